/*
 * bridge_progress.h - what servers say of calls that are under way, for the client of the run whose program made them.
 *
 * One report is kept, the newest, and at most BRIDGE_PROGRESS_MAX bytes of it: a server that reports all the time fills
 * neither memory nor the client, which takes what is there when its next message is due. A run has one only if its
 * client wants to hear of progress; servers are asked for it then, and else never.
 * Thread-safe; held by the run's tools and by the request or task that tells its client.
 */
#pragma once

#include "bridge.h"

#define BRIDGE_PROGRESS_MAX 512 /* bytes of a report, names included */

struct bridge_progress;
struct bridge_progress *bridge_progress_new(void);
struct bridge_progress *bridge_progress_keep(struct bridge_progress *progress);
void bridge_progress_free(struct bridge_progress *progress); /* NULL is fine */

/* For the provider: `done` < 0: the server gave none, `total` likewise. In `text` the secrets of server and
 * run are masked. */
void bridge_progress_put(struct bridge_progress *progress, const struct bridge_call *call, double done, double total,
			 const char *text);

/* "SERVER.TOOL: 3 of 10: TEXT", as the server sent it. */
struct bridge_progress_text {
	char text[BRIDGE_PROGRESS_MAX + 1];
	size_t length;
	bool cut; /* there was more */
};
/* False: nothing was put since the last time. */
bool bridge_progress_take(struct bridge_progress *progress, struct bridge_progress_text *ret);
