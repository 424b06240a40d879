/* stats_more.h - what `sallyport stats` does not add up from runs: limits that were hit, the disk by owner, the slowest
 * runs. */
#pragma once

#include "cli.h"
#include "lib/store/store.h"

struct stats_more {
	const char *by; /* "limit", "disk" or "slowest" */
	const struct cli_filter *filter;
	size_t most; /* lines */
	bool json;
	int64_t owner_bytes; /* retention.owner_mb; 0: no cap */
};
bool stats_more_has(const char *by);
int stats_more_show(struct store *store, const struct stats_more *more, struct err *err);
