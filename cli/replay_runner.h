/*
 * replay_runner.h - the same recordings under other interpreters: --runner NAME=PATH, --first-bad.
 *
 * Each is a replay of its own: this program once more, with the same arguments but these, and a folder of runner files
 * in which that language has that interpreter. So everything else (shards, results, reports) is as always.
 */
#pragma once

#include "cli.h"

struct replay_runners {
	struct bind_strings list; /* NAME=PATH, in order */
	bool first_bad;           /* the list goes from good to bad: find where, with as few replays as that takes */
};
/* Exit status: that of the replays, the worst of several; of first_bad 1 where one is bad, and 0. */
int replay_runners_run(const struct replay_runners *runners, const struct config *config, bool json, struct err *err);
