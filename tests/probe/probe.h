/*
 * probe.h - the escape probes: each tries to do what a guest must not be able to do, and says what it got.
 *
 * A probe calls refused() for everything that must fail and holds() for everything that must be so; it has held when
 * nothing was said. Numbers are those of the project's list of probes (tests/probe/list.txt), with a letter where one
 * of them takes several. Whatever is made where others might see it is called PROBE_MARK; files that are to come out
 * begin with "own".
 */
#pragma once

#include <stdbool.h>

#define PROBE_MARK "sallyport-probe"
#define PROBE_KEY  0x53414c59 /* of System V objects */

struct probe {
	const char *name;
	const char *what;
	void (*run)(void);
	const char *terms; /* how it is run and what it promises, see cli/selftest.h; NULL: a jail with nothing special,
			      "held" */
	void (*plant)(void); /* after=plant: leaves behind what the others look for; the process then waits until it is
				ended */
};
#define PROBE(name, what, run)                                                                                         \
	{                                                                                                              \
		name, what, run, NULL, NULL                                                                            \
	}
#define PROBE_TERMS(name, what, run, terms)                                                                            \
	{                                                                                                              \
		name, what, run, terms, NULL                                                                           \
	}
#define PROBE_AFTER(name, what, plant, run)                                                                            \
	{                                                                                                              \
		name, what, run, "after=plant", plant                                                                  \
	}
extern const struct probe probes_files[], probes_processes[], probes_network[], probes_kernel[], probes_privileges[],
	probes_places[], probes_ends[], probes_limits[], probes_output[], probes_traces[],
	probes_outside[], probes_tools[]; /* ended by {0} */

/* The call gave `result`: it must be -1; else the probe is broken, and `what` says by what. */
void refused(long result, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As refused, and errno must be the one. */
void refused_with(long result, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));
void holds(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));
