/*
 * versions.h - finds versions and libraries of the runners, and makes their cache files, by running their commands in
 * jails, one after the other, in the background.
 *
 * In service mode it begins when the jailer has started; clients that ask for the runners are answered when it is done.
 * A private jailer asks only for versions, when the first run comes that wants its fingerprint (runner->awaited): it
 * may live for one program. A run that waits is served first in both modes.
 */
#pragma once

#include "jail/cell/cell.h"

struct versions {
	struct cells *cells;
	struct runners *runners;
	const struct config *config;
	bool all;               /* a service */
	size_t next, next_step; /* its way through runners and their commands … */
	bool done;              /* … has come to the end */
	/* the command that is running; cell NULL: none */
	struct runner *runner;
	enum {
		VERSIONS_VERSION,
		VERSIONS_LIBRARIES,
		VERSIONS_CACHE,
		VERSIONS_DRIVER,
		VERSIONS_SHOW,
		VERSIONS_CALL,
		VERSIONS_COMMANDS
	} command;
	int output; /* memfd, or -1 */
	struct cell *cell;
	/* NULL, or called at each version command's end: its result, or (NULL) why there was no jail for it */
	void (*answered)(void *arg, const struct runner *runner, const struct jail_result *result,
			 const struct err *why);
	void *arg;
	bool answered_run; /* a version that runs wait for is there */
};

void versions_init(struct versions *versions, struct cells *cells, struct runners *runners, const struct config *config,
		   bool all);
void versions_tick(struct versions *versions); /* between events: begins the next command */
void versions_clear(struct versions *versions);
