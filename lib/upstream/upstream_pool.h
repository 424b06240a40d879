/*
 * upstream_pool.h - what any thread may ask of upstream servers, on its way to their thread: upstream_pool.c hands it
 * over, upstream_thread.c does it.
 */
#pragma once

#include <pthread.h>

#include "upstream.h"
#include "upstream_connection.h"

#define POOL_EVERYBODY "" /* the owner or run of a connection that is shared */

struct work_item {
	struct work_item *next;
	enum { WORK_ITEM_ORDER, WORK_ITEM_CANCEL, WORK_ITEM_REPLY, WORK_ITEM_END_RUN } kind;
	struct upstream_order *order;
	uint64_t id;
	char *text;
};

struct upstream {
	struct upstream_file file;
	struct connection_loop loop;
	struct upstream_connection *connections;
	pthread_t thread;
	bool leaving;                    /* the thread's own: no order begins any more */
	struct upstream_source *sources; /* the thread's own */
	pthread_mutex_t lock;            /* guards the rest */
	struct work_item *work_items, **last;
	struct upstream_source *newcomers; /* that the thread does not serve yet */
	uint64_t next_id;
	bool stopping;
	struct spent *spent; /* calls of owners in this minute */
	int64_t minute;
};

void *pool_thread(void *upstream);
bool pool_on_thread(const struct upstream *upstream); /* is it the one that runs here? */
