/*
 * store_txn.h - what all rooms of the store share: struct store, the transaction, the writing thread and the clock of
 * what expires. What one room has for the others is in that room's header of internals: store_blob_internal.h,
 * store_record_internal.h, store_audit_internal.h, store_retention_internal.h and, of the door, store_internal.h.
 * Nobody outside of lib/store includes any of them.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "lib/store/audit/store_refused.h"
#include "lib/store/record/store_space.h"
#include "lib/store/store.h"
#include "store_query.h"
#include "store_reader.h"

#define STORE_READERS_IDLE 16               /* connections kept open for the next reader */
#define STORE_SEEN_US      (60 * 1000000ll) /* used_us and seen_us are brought up to date at most this often */
#define STORE_BATCH_MAX    256              /* operations in one commit */
#define STORE_RETRY_MS     500              /* between attempts to end an abandoned run */

struct store_op {
	struct store_op *next;
	store_work work;
	void *arg;
	void (*done)(void *arg, int result, const struct err *err); /* NULL: somebody waits */
	int result;
	bool over;
	int64_t since_us; /* queued then */
	struct err err;
	pthread_cond_t wake;
};

/* Operations that wait, the first to come first. */
struct store_queue {
	struct store_op *first, **end;
};

/* A run whose end could not be recorded yet. */
struct store_abandoned {
	struct store_abandoned *next;
	char id[ID_SIZE];
};

/* The thread that makes room for owners above their cap (store_retain.c). */
struct store_retainer {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool started, wanted;
	atomic_bool stopping;
};

/* What store_refused.c has counted. */
struct store_refused_count {
	enum store_audit_kind kind;
	char word[24], owner[STORE_OWNER_MAX + 1];
	struct store_client client; /* of the last */
	int64_t waiting, written_us; /* not written yet; when some were */
};
struct store_refused_counts {
	pthread_mutex_t lock;
	struct store_refused_count items[STORE_REFUSED_KEPT];
};

struct store {
	enum store_mode mode;
	char *path; /* absolute */
	int dir_fd, blobs_fd, running_fd, instances_fd, lock_fd, instance_fd;
	uid_t uid; /* owner of the data folder: what root makes in it is given to that one */
	gid_t gid;
	uint8_t secret[SHA256_SIZE]; /* secret.key */
	uint8_t env_key[SHA256_SIZE];
	char instance[ID_SIZE]; /* "": opened for reading */
	struct store_retention retention;
	struct store_retainer retainer;
	struct store_refused_counts refused;

	pthread_mutex_t readers_lock;
	struct store_conn *readers;
	int n_readers;

	struct store_conn *writer; /* the writing thread's */
	bool writer_started, stopping;
	atomic_bool hurries; /* store_hurry */
	pthread_t thread;
	_Atomic int64_t longest_us, used_us; /* store_longest_us, store_used_us */
	int64_t last_us;  /* of store_txn_now */
	int64_t served_us, served_at_us; /* STORE_SERVE: uptime when it was opened, and the monotonic time then */
	pthread_mutex_t queue_lock;
	pthread_cond_t queue_more;
	struct store_queue queue, idle; /* idle: one at a time, when nobody else wants the writer */
	struct store_queue large;       /* store_commit_large: one at a time, none before large_us */
	int64_t large_us;
	struct store_abandoned *abandoned;
	int (*abandoned_end)(struct store *store, const char *id, struct err *err);
};

struct store_txn {
	struct store *store;
	struct store_conn *conn;
};

/* store_writer.c; `abandoned_end` is called on the writing thread for a run whose end could not be recorded, until it
 * returns 0 */
int store_writer_start(struct store *store,
		       int (*abandoned_end)(struct store *store, const char *id, struct err *err), struct err *err);
void store_writer_stop(struct store *store);
/* On the writing thread: one operation in a transaction of its own. */
int store_writer_run(struct store *store, store_work work, void *arg, struct err *err);
/* The time in a transaction: later than any it gave before, so that it gives the order of what was recorded. */
int64_t store_txn_now(struct store_txn *txn);

/* One operation of a long work, at idle priority: it begins when no other operation waits, or after STORE_IDLE_US, so
 * that a busy gateway gets on with it, too. Afterwards the writer is left to others for as long as this one took. */
int store_commit_gently(struct store *store, store_work work, void *arg, struct err *err);
/* ERR_UNAVAILABLE after store_hurry: what such an operation and the steps between them ask. */
int store_hurried(struct store *store, struct err *err);
#define STORE_IDLE_US	1000000
#define STORE_BUDGET_US 10000 /* after which such an operation begins nothing more */
#define STORE_SLICE_ROWS 200  /* rows that one statement of such an operation touches at most */

/* store_uptime.c: the clock of what expires */
int store_uptime_begin(struct store *store, struct err *err);
int store_uptime(struct store *store, int64_t *ret, struct err *err);
int store_uptime_save(struct store *store, struct err *err);
/* The parameter :served; NULL where this process is not the gateway. */
void store_uptime_bind(struct store *store, struct query *query);
