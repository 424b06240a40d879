/*
 * versions.h - finds versions and libraries of the runners, and makes their cache files, by running their commands in
 * jails, in the background.
 *
 * A service begins when the jailer has started, with what an earlier jailer's commands answered (answers.h), and runs
 * the other commands one after the other. A private jailer asks only for versions, when the first run comes that wants
 * its fingerprint (runner->awaited): it may live for one program. A version that a run waits for is asked for at once
 * in both modes, next to whatever else is running: no runner's command waits for another runner's.
 */
#pragma once

#include "answers.h"
#include "jail/cell/cell.h"

enum versions_command {
	VERSIONS_VERSION,
	VERSIONS_LIBRARIES,
	VERSIONS_CACHE,
	VERSIONS_COMMANDS
};

/* A runner's, at most one at a time. */
struct versions_probe {
	struct versions *versions;
	struct runner *runner;
	unsigned known; /* bits of the commands whose answer was kept */
	enum versions_command command;
	struct cell *cell; /* NULL: none is running */
	int output;        /* memfd, or -1 */
};

struct versions {
	struct cells *cells;
	struct runners *runners;
	const struct config *config;
	bool all;                      /* a service */
	size_t next, next_step;        /* its way through runners and their commands */
	struct versions_probe *probes; /* by runner */
	struct versions_probe *way;    /* what is running on the way; NULL: nothing */
	int64_t begun;                 /* commands, so far */
	struct answers answers;
	/* NULL, or called at each version command's end: its result, or (NULL) why there was no jail for it */
	void (*answered)(void *arg, const struct runner *runner, const struct jail_result *result,
			 const struct err *why);
	void *arg;
	bool answered_run; /* a version that runs wait for is there */
};

/* `answers_fd`: of answers_open, taken over; -1: none. */
void versions_init(struct versions *versions, struct cells *cells, struct runners *runners, const struct config *config,
		   bool all, int answers_fd);
void versions_tick(struct versions *versions); /* between events: begins what is next */
/* A service: has every command ended? Private: no run waits. */
bool versions_done(const struct versions *versions);
void versions_clear(struct versions *versions);
