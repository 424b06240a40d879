/*
 * probe.h - the escape probes: each tries to do what a guest must not be able to do, and says what it got.
 *
 * A probe calls refused() for everything that must fail and holds() for everything that must be so; it has held when nothing was said.
 * Numbers are those of the project's list of probes (docs/security.md).
 */
#pragma once

#include <stdbool.h>

struct probe {
	const char *name;
	const char *what;
	void (*run)(void);
};
extern const struct probe probes_files[], probes_processes[], probes_network[], probes_kernel[], probes_privileges[]; /* ended by {0} */

/* The call gave `result`: it must be -1; else the probe is broken, and `what` says by what. */
void refused(long result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As refused, and errno must be the one. */
void refused_with(long result, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
void holds(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));
