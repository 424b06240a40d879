/*
 * store_txn.h - what the files of the store share; nobody else includes it.
 *
 *   store.c                  opening and closing: folders, key, lock, connections, pool of readers
 *   store_writer.c           the writing thread: group commit
 *   store_instance.c         who writes here, and marking what dead ones left
 *   store_token.c            tokens
 *   store_session.c          sessions of the legacy protocol
 *   store_event.c            events of legacy streams
 *   store_file.c             conversations and their files;  store_undo.c: going back to those of a run
 *   store_blob.c             the blob folder and the folder of partial output;  store_pack.c: contents that are packed
 *   store_execution.c        executions, in;  store_list.c: executions, out
 *   store_resource.c         an owner's files and outputs, in pages; completion
 *   store_request.c          idempotency keys
 *   store_task.c             tasks;  store_running.c: what is under way
 *   store_expire.c           times to live, unused blobs
 *   store_audit.c            the audit log;  store_audit_run.c: what entries say of a row;  store_refused.c: refusals
 *   store_baseline.c         later generations of what is expected of an execution
 *   store_holding.c          which contents count for whom
 *   store_erasures.c         erasures once more, after a restore
 *   store_erase.c, store_forget.c, store_retain.c   content that goes;  store_gc.c: what nothing names any more
 *   store_space.c            what an owner's record may take, free space of the disk
 *   store_bundle.c, store_bundle_import.c   executions from one database to another;  store_bundle_owner.c: an owner
 *   store_results.c          what a replay found (a file of its own)
 *   store_uptime.c           the clock of what expires;  store_media.c: media types
 *   store_view.c             what the admin page lists
 *   store_migrate.c          from older versions to this one
 *   store_search.c           the index of texts in code and output
 *   store_query.c            SQLite;  store_sql.h: every statement;  store_schema.c: schema.sql
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "lib/store/audit/store_refused_count.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_execution.h"
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
	struct err err;
	pthread_cond_t wake;
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
	struct store_op *queue, **queue_end;
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

/* One operation of a long work: afterwards the writer is left to others for as long as this one took. */
int store_commit_gently(struct store *store, store_work work, void *arg, struct err *err);
#define STORE_BUDGET_US 10000 /* after which such an operation begins nothing more */
#define STORE_SLICE_ROWS 200  /* rows that one statement of such an operation touches at most */

/* store_retain.c */
void store_retain_start(struct store *store); /* where the oldest give way, and this is the gateway */
void store_retain_stop(struct store *store);

/* store_instance.c */
int store_instance_begin(struct store *store, struct err *err);
void store_instance_end(struct store *store);
/* On the writing thread: interrupts a run of our own whose end could not be recorded. */
int store_abandoned_end(struct store *store, const char *id, struct err *err);

/* store_uptime.c: the clock of what expires */
int store_uptime_begin(struct store *store, struct err *err);
int store_uptime(struct store *store, int64_t *ret, struct err *err);
int store_uptime_save(struct store *store, struct err *err);
/* The parameter :served; NULL where this process is not the gateway. */
void store_uptime_bind(struct store *store, struct query *query);

/* store_blob.c */
/* What a garbage collection of the folder found. */
struct store_blob_gc {
	int64_t limit_us; /* files that were touched since stay */
	bool dry;         /* remove nothing */
	int64_t removed, bytes, young, young_bytes; /* of files without a row */
	void (*progress)(void *arg, const char *step, int64_t done, int64_t total); /* NULL: nobody asks */
	void *arg;
};
int store_folder_open(struct store *store, const char *name, mode_t mode, int *ret_fd, struct err *err);
/* Is there a blob's file at all? */
int store_blob_any(struct store *store, bool *ret, struct err *err);
/* Inside a transaction, for a blob that a row is about to name: its file is there and has this size (-1: any), and so
 * has its row. */
int store_txn_blob(struct store_txn *txn, const char *sha256, int64_t size, struct err *err);
/* Was the file of a blob put in place or wanted again since `limit_us`? */
bool store_blob_fresh(struct store *store, const char *sha256, int64_t limit_us);
/* Removes files of blobs that have no row. */
int store_blob_collect(struct store *store, struct store_blob_gc *sweep, struct err *err);

/* store_holding.c */
int store_txn_hold_imported(struct store_txn *txn, const char *id, struct err *err); /* what an imported run names */
/* Ends each doubt about what owners hold (schema.sql) whose content was not touched since `blob_limit_us`. */
int store_holdings_settle(struct store *store, int64_t blob_limit_us, struct err *err);

/* store_file.c */
void store_file_read(struct query *query, struct store_file *ret); /* columns of STORE_SQL_FILE from 0 */

/* store_expire.c: before the row of a conversation goes: its runs name it no more, by their column `conversation`. Such
 * a run is found as before: its conversation's name stays. */
int store_conversation_detach(struct store *store, int64_t row, struct err *err);

/* store_token.c: brings "last used" of a row up to date, once a minute by either clock and without waiting: at last_us
 * by the machine's clock, at idle_from_us by that of what expires (STORE_NO_IDLE: the row has none). */
void store_seen(struct store *store, enum store_sql statement, const char *id, int64_t last_us, int64_t idle_from_us);
#define STORE_NO_IDLE (-1)

/* store_task.c: what an instance that is gone left; rows whose time is up */
int store_txn_task_abandon(struct store_txn *txn, const char *instance, struct err *err);
int store_txn_task_expire(struct store_txn *txn, struct err *err);

/* store_audit.c: what the log adds to an entry, and the commitment to its details */
struct store_audit_line {
	int64_t n, at_us;
	char actor[STORE_AUDIT_OBJECT_SIZE], principal[ID_SIZE], commitment[SHA256_HEX_SIZE];
};
/* The first entry, where the log is empty. */
int store_txn_audit_open(struct store_txn *txn, struct err *err);
/* store_audit_run.c: entries of a run, made from its row */
int store_txn_audit_begin(struct store_txn *txn, const char *id, struct err *err);
int store_txn_audit_end(struct store_txn *txn, const char *id, struct err *err);
int store_txn_audit_token(struct store_txn *txn, enum store_audit_kind kind, const char *id, struct err *err);
int store_txn_audit_call(struct store_txn *txn, const char *execution, int64_t seq, struct err *err);
int store_txn_audit_conversation(struct store_txn *txn, int64_t id, struct err *err);

/* store_execution.c */
/* The rows in execution_file count from now on. */
int store_txn_count_files(struct store_txn *txn, const char *id, struct err *err);
/* All of fd: in the row where it is small enough, else into a blob. */
int store_text_keep(struct store *store, int fd, struct store_text *ret, struct err *err);
/* A text's blob gets its row; a text that belongs into a blob and is not there is the caller's mistake. */
int store_txn_text(struct store_txn *txn, const struct store_text *text, const char *what, struct err *err);
void store_text_bind(struct query *query, const char *column, const struct store_text *text);
