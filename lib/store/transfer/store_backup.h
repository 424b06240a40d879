/*
 * store_backup.h - a copy of the record of one moment, while it is written, and the way back.
 *
 * A backup is a folder: sallyport.db (not in WAL mode), blobs/, manifest.json, and secret.key where it was asked for.
 * It always holds one complete moment: contents are there before the database that names them takes its place, and what
 * the new database does not name goes after that. A second backup into the same folder copies the database and those
 * contents that are not there yet.
 */
#pragma once

#include <stdbool.h>

#include "lib/store/store.h"

#define STORE_BACKUP_DATABASE "sallyport.db"
#define STORE_BACKUP_MANIFEST "manifest.json"
#define STORE_RESTORE_MARK    "restoring" /* in a data folder that is being restored */

struct store_backup {
	const char *dir;
	bool key;  /* secret.key, too */
	bool full; /* read what is there already again, and compare its sums */
	int (*check)(void *arg, const char *database, struct err *err); /* of the copy, before it counts; may be NULL */
	void (*progress)(void *arg, const char *what, int64_t done, int64_t total);
	void *arg;
};
struct store_backup_made {
	int64_t schema, executions, entries, blobs, new_blobs, bytes, new_bytes;
};
/* ERR_INVALID: the folder is the record's own; ERR_BUSY: another backup writes there. On failure the folder holds what
 * it held before. */
int store_backup(struct store *store, const struct store_backup *backup, struct store_backup_made *ret,
		 struct err *err);

struct store_restore {
	const char *dir;      /* of the backup */
	const char *data_dir; /* made where it is missing; must be empty, or left by a restore that did not end */
	const char *key;      /* a file; NULL: the backup's own */
	int (*check)(void *arg, const char *database, struct err *err);
	void (*progress)(void *arg, const char *what, int64_t done, int64_t total);
	void *arg;
};
/* ERR_UNAVAILABLE: of a newer release; ERR_CONFLICT: data_dir is not empty; ERR_CORRUPT: the backup is damaged. */
int store_restore(const struct store_restore *restore, struct store_backup_made *ret, struct err *err);

/* Shared by the two. */
struct store_backup_blobs {
	int from_fd, to_fd; /* folders of contents */
	int64_t total, done;
	bool full;
	void (*progress)(void *arg, const char *what, int64_t done, int64_t total);
	void *arg;
	struct store_backup_made *made;
};
/* Copies what the database names and the target lacks; each is read to its end and compared with its name. */
int store_backup_copy_blobs(const char *database, struct store_backup_blobs *blobs, struct err *err);
/* The database as a file: quick_check and foreign keys; counts into *ret. */
int store_backup_inspect(const char *database, struct store_backup_made *ret, struct err *err);
int store_backup_sum(int dir, const char *name, char ret[SHA256_HEX_SIZE], struct err *err);

/* Back to the database as it was before the last upgrade of its schema: the copy that the upgrade kept
 * (store_migrate.h) takes its place again. The newer release does it, which knows how it left the database; the older
 * one is installed afterwards. */
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
