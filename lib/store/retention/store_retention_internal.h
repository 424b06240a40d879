/* store_retention_internal.h - what retention has for the door of the store, and its files for each other. */
#pragma once

#include "lib/store/db/store_txn.h"
#include "store_erase.h"

/* store_erase.c: the parameters by which a statement finds the runs of an erasure, from behind `after` on. Nothing is
 * copied. */
void store_erase_bind(struct query *query, const struct store_erase *erase, const struct store_range *range,
		      const char *after);

/* store_retain.c */
void store_retain_start(struct store *store); /* where the oldest give way, and this is the gateway */
void store_retain_stop(struct store *store);

/* store_expire.c: before the row of a conversation goes: its runs name it no more, by their column `conversation`. Such
 * a run is found as before: its conversation's name stays. */
int store_conversation_detach(struct store *store, int64_t row, struct err *err);
