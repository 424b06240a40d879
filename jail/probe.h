/*
 * probe.h - finds versions and libraries of the runners, and makes their cache files, by running their commands in jails, one after
 * the other, in the background.
 *
 * In service mode it begins when the jailer has started; clients that ask for the runners are answered when it is done. A private jailer
 * asks only for versions, when the first run comes that wants its fingerprint (runner->awaited): it may live for one program. Who waits is
 * served first in both modes.
 */
#pragma once

#include "cell.h"

struct probe {
	struct cells *cells;
	struct runners *runners;
	const struct config *config;
	bool all;               /* a service */
	size_t next, next_step; /* its way through runners and their commands … */
	bool done;              /* … has come to the end */
	/* the command that is running; cell NULL: none */
	struct runner *runner;
	enum { PROBE_VERSION, PROBE_LIBRARIES, PROBE_CACHE, PROBE_COMMANDS } command;
	int output; /* memfd, or -1 */
	struct cell *cell;
	bool told; /* a version that runs wait for is there */
};

void probe_init(struct probe *probe, struct cells *cells, struct runners *runners, const struct config *config, bool all);
void probe_tick(struct probe *probe); /* between events: begins the next command */
void probe_clear(struct probe *probe);
