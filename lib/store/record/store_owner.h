/*
 * store_owner.h - who has tokens or a record here, with sums.
 */
#pragma once

#include "lib/store/store.h"

struct store_owner {
	char name[STORE_OWNER_MAX + 1];
	int64_t tokens; /* that are neither revoked nor expired */
	int64_t conversations, runs, bytes;
	int64_t used_us; /* 0: never */
	bool drained;
};
/* By name; another value than 0 from `each` ends it. */
int store_owner_list(struct store *store, int (*each)(void *arg, const struct store_owner *owner), void *arg,
		     struct err *err);
