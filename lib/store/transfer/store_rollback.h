/*
 * store_rollback.h - back to the database as it was before the last upgrade of its schema: the copy that the upgrade
 * made (store_migrate.h) takes its place again. For the newer release, which knows how it left the database; the older
 * one is installed afterwards.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_ROLLBACK_NAME_SIZE 80

struct store_rollback {
	int from, to;                             /* versions of the schema */
	int64_t executions, lost;                 /* that are there afterwards; that were recorded since the upgrade */
	char copy[STORE_ROLLBACK_NAME_SIZE];      /* took the place of sallyport.db */
	char set_aside[STORE_ROLLBACK_NAME_SIZE]; /* what was in that place, in the same folder */
};
/* ERR_CONFLICT: a gateway or another command has the database open; ERR_NOT_FOUND: no upgrade left a copy; ERR_CORRUPT:
 * the copy is damaged. On failure everything is as it was. */
int store_rollback(const char *data_dir, struct store_rollback *ret, struct err *err);
