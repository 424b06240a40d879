/* replay_tools.h - a replayed program's calls of tools: answered from the record, and compared with it. */
#pragma once

#include "cgi/bridge/bridge.h"
#include "replay.h"

struct replay_tools {
	const struct config *config;
	struct store *store;
	struct bridge *bridge; /* started with the first run that called tools; the caller stops it */
};
/* job_replay_from.tools; `arg` is a struct replay_tools. */
int replay_tools(void *arg, const struct store_execution *execution, struct job_tools **ret, struct err *err);
int replay_tools_compare(struct store *store, const struct store_execution *execution, const struct job_replay *now,
			 struct replay_report *report, struct err *err);
