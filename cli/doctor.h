/*
 * doctor.h - the findings of `sallyport doctor`: each one looked at by doing it, not by guessing from version numbers.
 *
 * OK: as it should be. WEAKER: runs are possible, with less isolation, comfort or one part missing. MISSING: it stops a
 * run.
 */
#pragma once

#include "cli.h"

enum doctor_state { DOCTOR_OK, DOCTOR_WEAKER, DOCTOR_MISSING };

struct doctor_finding {
	const char *name; /* a constant */
	enum doctor_state state;
	char *found;  /* what was seen */
	char *remedy; /* NULL: nothing to do */
};
struct doctor {
	const struct config *config;
	struct doctor_finding *findings;
	size_t count, size;
};

/* `remedy` is kept only if the state is not DOCTOR_OK. */
void doctor_add(struct doctor *doctor, const char *name, enum doctor_state state, const char *remedy,
		const char *format, ...) __attribute__((format(printf, 5, 6)));
/* First line of the file without its newline; NULL if it cannot be read. The caller's. */
char *doctor_read_line(const char *path);

void doctor_kernel(struct doctor *doctor);     /* doctor_kernel.c: system calls */
void doctor_namespaces(struct doctor *doctor); /* doctor_namespaces.c */
void doctor_cgroups(struct doctor *doctor);    /* doctor_cgroups.c: cgroups, swap */
void doctor_host(struct doctor *doctor);       /* doctor_host.c: ids, sysctls, nginx, jailer, data folder, database */
void doctor_network(struct doctor *doctor);    /* doctor_network.c: network.allow */
void doctor_runners(struct doctor *doctor, struct jail_client *client); /* doctor_runners.c */
