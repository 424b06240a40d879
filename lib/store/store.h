/*
 * store.h - the record: everything that ran and everything needed to run it again, in SQLite (schema.sql) and a folder
 * of blobs.
 *
 * One struct store serves a whole process and all its threads. There is one writing connection on a thread of its own:
 * writers hand it operations, it runs what has queued up inside one BEGIN IMMEDIATE … COMMIT (each under a savepoint,
 * so that one that fails takes nobody with it) and returns after the commit: acknowledged means durable, and fsync is
 * shared. Readers use read-only connections under an authorizer. All SQL is an enumerated set of statements
 * (store_sql.h), prepared once, bound by name, checked at start.
 *
 * What can be read and written is declared by subject: store_token.h, store_session.h, store_file.h (conversations and
 * their files), store_blob.h, store_execution.h, store_sandbox.h, store_request.h, store_task.h, store_event.h,
 * store_subscription.h, store_resource.h (an owner's files and outputs, in pages), store_space.h (caps and times to
 * live), store_expire.h.
 *
 * Ids are UUIDv7 text (crypto.c), times UTC microseconds. Structs with pointers are given back by their _clear.
 * Callbacks return 0 to go on, anything else ends the listing without error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/store/db/crypto.h"

#define STORE_ID_SHORT(id) ((id) + 24) /* 48 random bits: as much of an id as lists show, and enough to find it by */
#define STORE_ID_ABOVE  "g" /* sorts behind every id, whose digits are 0-9 and a-f */
#define STORE_OWNER_MAX   32 /* [a-z0-9-], starts with a letter or digit */
#define STORE_OWNER_LOCAL "local" /* of commands and of stdio: no token is needed */

struct store;
enum store_mode {
	STORE_SERVE, /* create or migrate (store_migrate.h), lock as the one gateway of this database, mark what dead
			instances left as interrupted */
	STORE_WRITE, /* as a CLI: the database must exist */
	STORE_READ,
};
/* `data_dir` holds sallyport.db, blobs/, running/, secret.key (made with mode 0600 on first use). ERR_CONFLICT: another
 * gateway. */
int store_open(const char *data_dir, enum store_mode mode, struct store **ret, struct err *err);
void store_close(struct store *store); /* NULL is fine */
/* What the record may take (store_space.h). To be called before other threads use the store; without it nothing is
 * bounded and nothing expires. */
struct store_retention;
void store_set_retention(struct store *store, const struct store_retention *retention);
/* It is about to be closed: long work in other threads (garbage collection, erasures, the index of texts) ends with
 * ERR_UNAVAILABLE at its next step. The next process goes on with it. */
void store_hurry(struct store *store);
/* Is there a run that a process left running that is gone? Who opens the folder for writing marks it as interrupted. */
bool store_left_running(struct store *store);
/* Marks the runs of processes that are gone as interrupted, and removes partial output that no run needs. Opening for
 * writing does it too; a process that stays open calls it with store_expire. */
int store_reap(struct store *store, struct err *err);
/* Processor time of the longest transaction since it was opened: so long nobody else could write. */
int64_t store_longest_us(struct store *store);
/* That of all of them. */
int64_t store_used_us(struct store *store);
/* Does a gateway serve this folder, as far as we may see? */
bool store_served(const char *data_dir);
/* The version of the schema of a database (0: an empty file), also where it is older than this program's
 * store_schema_newest (store_schema.h). ERR_NOT_FOUND: none yet; ERR_UNAVAILABLE: newer. */
int store_schema_version(const char *data_dir, int *ret, struct err *err);

/* -------- writing: everything goes through here ------------------------------------------------------- */
struct store_txn; /* an open write transaction on the writer's thread */
typedef int (*store_work)(struct store_txn *txn, void *arg, struct err *err);
/* Runs `work` on the writer's thread inside a transaction and returns after the commit (or after it was rolled back:
 * its error). What was committed is on disk: every commit of every process is synced, see store_writer.c. */
int store_commit(struct store *store, store_work work, void *arg, struct err *err);
/* The same without waiting: `done` is called on the writer's thread after the commit; it must not block or call
 * store_commit. */
void store_commit_async(struct store *store, store_work work, void *arg,
			void (*done)(void *arg, int result, const struct err *err));
/* The same for what takes the writer long: in a transaction of its own, and afterwards all others come first for as
 * long as it took. */
void store_commit_large(struct store *store, store_work work, void *arg,
			void (*done)(void *arg, int result, const struct err *err));
