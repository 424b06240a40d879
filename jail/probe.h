/*
 * probe.h - finds versions and libraries of the runners, and makes their cache files, by running their commands in jails, one after
 * the other, in the background.
 *
 * In service mode it begins when the jailer has started; clients that ask for the runners are answered when it is done. A private jailer
 * does not do it: it lives for one program.
 */
#pragma once

#include "cell.h"

struct probe {
	struct cells *cells;
	struct runners *runners;
	const struct config *config;
	size_t next;    /* runner */
	enum { PROBE_VERSION, PROBE_LIBRARIES, PROBE_CACHE, PROBE_COMMANDS } command; /* which of its commands */
	int output;     /* memfd of the command that is running, or -1 */
	struct cell *cell;
	bool done;
};

void probe_init(struct probe *probe, struct cells *cells, struct runners *runners, const struct config *config);
void probe_tick(struct probe *probe); /* between events: begins the next command */
void probe_clear(struct probe *probe);
