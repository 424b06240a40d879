/*
 * replay_tools.h - a replayed program's calls of tools: answered from the record, or (--live) by the real servers, and
 * compared with the record.
 */
#pragma once

#include "lib/bridge/bridge.h"
#include "replay.h"

struct replay_tools {
	const struct config *config;
	struct store *store;
	struct upstream *upstream; /* answers the calls of `id`; NULL: the record does */
	const char *id; /* the run that is asked for: those of its sandbox before it are answered from the record */
	struct bridge *bridge; /* started with the first run that called tools; the caller stops it */
};
/* The servers of upstream.file, which must be set. */
int replay_tools_connect(const struct config *config, struct upstream **ret, struct err *err);
/* job_replay_from.tools; `arg` is a struct replay_tools. */
int replay_tools(void *arg, const struct store_execution *execution, struct job_tools **ret, struct err *err);
/* Which calls were made; live: also what was answered. */
int replay_tools_compare(struct store *store, const struct store_execution *execution, const struct job_replay *now,
			 bool live, struct replay_report *report, struct err *err);
