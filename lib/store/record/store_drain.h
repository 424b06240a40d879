/*
 * store_drain.h - owners for whom nothing starts here: the host is being emptied, or the owner moves to another one.
 *
 * A row stays until it is taken back, whatever starts and stops meanwhile. It is read with the token of each request
 * (struct store_token's drained_us), so it holds from the next request on. What is under way goes on to its end.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_DRAIN_ALL        "*" /* in the place of an owner: everybody */
#define STORE_DRAIN_REASON_MAX 200 /* bytes */

struct store_drain {
	const char *owner;
	const char *reason; /* the operator's words, for operators; "": none */
	int64_t since_us;
};
/* ERR_INVALID: no owner's name, or a reason that is too long. Once more: the newer reason, the older time. */
int store_drain_begin(struct store *store, const struct store_drain *drain, struct err *err);
/* ERR_NOT_FOUND: he was not drained. */
int store_drain_end(struct store *store, const char *owner, struct err *err);
/* `each` gets texts that are gone after it. */
int store_drain_list(struct store *store, void (*each)(void *arg, const struct store_drain *drain), void *arg,
		     struct err *err);
/* Is the owner drained, or everybody? With STORE_DRAIN_ALL: everybody. */
int store_drained(struct store *store, const char *owner, bool *ret, struct err *err);
/* Runs and tasks of the owner (STORE_DRAIN_ALL: of all) that processes which live are at work on. */
int store_under_way(struct store *store, const char *owner, int64_t *ret, struct err *err);
