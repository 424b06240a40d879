/*
 * store_expire.h - what has a time to live goes: a process that stays (the gateway, stdio) removes it, at its start and
 * hourly.
 */
#pragma once

#include "store_gc.h"

/* Removes conversations and sessions that idled beyond their time to live (store_set_retention), sessions that
 * ended, events, keys and tasks whose time is up, all by the time that gateways served, whatever the clock says
 * (store_uptime.c); and blobs that nothing refers to any more (STORE_BLOB_GRACE_US after they were put last). The
 * executions stay. At the end `lost` (NULL: nobody) is
 * called for each owner whose conversations went, once. */
int store_expire(struct store *store, int64_t now_us, void (*lost)(void *arg, const char *owner), void *arg,
		 struct err *err);
/* All conversations of the owner, however young; the executions stay. */
int store_expire_owner(struct store *store, const char *owner, struct err *err);
