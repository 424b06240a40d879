/*
 * doctor.h - the findings of `sallyport doctor`. Whether programs can be run is the jailer's to say: it tries.
 *
 * OK: as it should be. WEAKER: runs are possible, with less isolation, comfort or one part missing. MISSING: it stops a
 * run.
 */
#pragma once

#include "cli.h"

enum doctor_state { DOCTOR_OK, DOCTOR_WEAKER, DOCTOR_MISSING };

struct doctor_finding {
	char *name;
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

/* What a program writes to standard output, with `both` to standard error, too; NULL if it cannot be started. The
 * caller's. *ret_status (NULL: not wanted) is as of waitpid(2). */
char *doctor_ask(char *const argv[], bool both, int *ret_status);

void doctor_jailer(struct doctor *doctor);  /* doctor_jailer.c: what sallyport-jailer --check says */
void doctor_host(struct doctor *doctor);    /* doctor_host.c: sysctls, nginx, data folder, database */
void doctor_network(struct doctor *doctor); /* network.allow */
void doctor_oauth(struct doctor *doctor);   /* doctor_oauth.c: signing in; nothing where oauth.mode is off */
void doctor_profile(struct doctor *doctor); /* what `profile` set; nothing without one */
