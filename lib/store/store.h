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
 * Ids are UUIDv7 text (crypto.c), times UTC microseconds. Structs with pointers are given back by their _clear.
 * Callbacks return 0 to go on, anything else ends the listing without error.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crypto.h"
#include "lib/base/err.h"

#define STORE_OWNER_MAX 32         /* [a-z0-9-], starts with a letter or digit */
#define STORE_CONVERSATION_MAX 128 /* bytes of a conversation's name */
#define STORE_TOKEN_TEXT 128
#define STORE_MEDIA_TYPE_SIZE 80
#define STORE_INLINE_MAX (64 * 1024) /* code and output up to here stand in the row, beyond it in a blob */

struct store;
enum store_mode {
	STORE_SERVE, /* create or migrate, lock as the one gateway of this database, mark what dead instances left as
			interrupted */
	STORE_WRITE, /* as a CLI: the database must exist */
	STORE_READ,
};
/* `data_dir` holds sallyport.db, blobs/, running/, secret.key (made with mode 0600 on first use). ERR_CONFLICT: another
 * gateway. */
int store_open(const char *data_dir, enum store_mode mode, struct store **ret, struct err *err);
void store_close(struct store *store); /* NULL is fine */

/* -------- tokens: text sp_<owner>_<secret>; only SHA-256 of the text is stored ------------------------ */
enum store_scope {
	STORE_SCOPE_RUN = 1,
	STORE_SCOPE_FILES = 2,
	STORE_SCOPE_ADMIN = 4 /* everything */,
	STORE_SCOPE_NETWORK = 8
};
#define STORE_SCOPES_TEXT 32 /* "run files network admin" */
struct store_token {
	unsigned scopes; /* of enum store_scope; in store_token_add_scoped 0: run and files */
	char id[ID_SIZE];
	char owner[STORE_OWNER_MAX + 1];
	char name[64]; /* what the operator calls it */
	int64_t created_us, used_us, revoked_us; /* 0: never */
};
int store_token_add(struct store *store, const char *owner, const char *name, char ret_text[STORE_TOKEN_TEXT],
		    struct store_token *ret, struct err *err);
/* The same; owner, name and scopes stand in *token, the rest is filled in. */
int store_token_add_scoped(struct store *store, struct store_token *token, char ret_text[STORE_TOKEN_TEXT],
			   struct err *err);
/* Names between commas or blanks, and back (with blanks); ERR_INVALID names what it does not know. */
int store_scopes_parse(const char *text, unsigned *ret, struct err *err);
void store_scopes_print(unsigned scopes, char ret[STORE_SCOPES_TEXT]);
/* Constant-time; ERR_DENIED for unknown ones and revoked ones alike. */
int store_token_check(struct store *store, const char *text, struct store_token *ret, struct err *err);
int store_token_list(struct store *store, int (*each)(void *arg, const struct store_token *token), void *arg,
		     struct err *err);
/* By id or a prefix of it that is unique. */
int store_token_revoke(struct store *store, const char *id, struct store_token *ret, struct err *err);

/* -------- sessions of the legacy protocol: survive a restart, bound to an owner ----------------------- */
#define STORE_SAMPLING    1u
#define STORE_ELICITATION 2u
#define STORE_ROOTS       4u
#define STORE_SESSIONS_MAX 512 /* of one owner: one more, and the one that was not used for longest is gone */
struct store_session {
	char id[ID_SIZE], token_id[ID_SIZE];
	char owner[STORE_OWNER_MAX + 1];
	char protocol[16], client_name[64], client_version[32];
	unsigned client_offers; /* STORE_SAMPLING … */
	int log_level;          /* -1: none was asked for; filled in by _add */
	int64_t created_us, seen_us, ended_us;
	char removed[ID_SIZE]; /* the one that made room; "": none */
};
int store_session_add(struct store *store, struct store_session *session /* id, times and removed are filled in */,
		      struct err *err);
/* ERR_NOT_FOUND: unknown, ended, or another owner's. */
int store_session_find(struct store *store, const char *id, const char *owner, struct store_session *ret,
		       struct err *err);
int store_session_log_level(struct store *store, const char *id, int level, struct err *err);
int store_session_end(struct store *store, const char *id, const char *owner, struct err *err);

/* -------- conversations and their files --------------------------------------------------------------- */
struct store_conversation {
	int64_t row;
	char owner[STORE_OWNER_MAX + 1];
	char name[STORE_CONVERSATION_MAX + 1];
	char hash[SHA256_HEX_SIZE]; /* HMAC-SHA-256(secret.key, owner NUL name): the folder in download URLs */
	int64_t created_us, seen_us, bytes;
};
int store_conversation_find(struct store *store, const char *owner, const char *name, struct store_conversation *ret,
			    struct err *err);
int store_conversation_by_hash(struct store *store, const char *hash, struct store_conversation *ret, struct err *err);
/* Its hash without touching the database (for a conversation that may not exist yet). */
void store_conversation_hash(struct store *store, const char *owner, const char *name, char ret[SHA256_HEX_SIZE]);
/* HMAC-SHA-256 under a key that is made of secret.key for this alone: for texts that a client keeps for us. */
void store_sign(struct store *store, const void *data, size_t length, char ret[SHA256_HEX_SIZE]);

struct store_file {
	const char *name; /* path below /data: bytes, not necessarily UTF-8 */
	size_t name_length;
	char blob[SHA256_HEX_SIZE];
	char media_type[STORE_MEDIA_TYPE_SIZE]; /* store_media_type; "" in store_txn_file_put: found out from the blob
						 */
	uint32_t mode;
	int64_t size, mtime_us;
};
int store_file_list(struct store *store, int64_t conversation, int (*each)(void *arg, const struct store_file *file),
		    void *arg, struct err *err);
/* name and name_length of *ret are the caller's own. */
int store_file_find(struct store *store, int64_t conversation, const char *name, size_t length, struct store_file *ret,
		    struct err *err);

/* By magic bytes for PNG, JPEG, GIF and WebP (`head` is the beginning of the content, 16 bytes are enough), else by the
 * name's extension, else application/octet-stream. */
void store_media_type(const char *name, size_t length, const unsigned char *head, size_t head_length,
		      char ret[STORE_MEDIA_TYPE_SIZE]);

/* -------- blobs: files named by their SHA-256 below blobs/, two levels: blobs/ab/cdef… ---------------- */
/* Read-only descriptor of a blob; ERR_NOT_FOUND, ERR_CORRUPT. */
int store_blob_open(struct store *store, const char *sha256, int *ret_fd, int64_t *ret_size, struct err *err);
/* "ab/cdef…": below blobs/, and below nginx's internal location. */
void store_blob_path(const char *sha256, char ret[SHA256_HEX_SIZE + 1]);
/* Copies all of fd (from offset 0) or the bytes into the blob folder: written, synced, renamed; not referenced yet. */
int store_blob_put_fd(struct store *store, int fd, int64_t max, char ret_sha256[SHA256_HEX_SIZE], int64_t *ret_size,
		      struct err *err);
int store_blob_put(struct store *store, const void *data, size_t length, char ret_sha256[SHA256_HEX_SIZE],
		   struct err *err);

/* -------- executions ---------------------------------------------------------------------------------- */
/* A text that stands in the row, or in a blob when it is larger than STORE_INLINE_MAX. */
struct store_text {
	char *data; /* NULL: in the blob */
	size_t length;
	char blob[SHA256_HEX_SIZE]; /* "" : inline */
};
enum store_state { STORE_RUNNING, STORE_FINISHED, STORE_INTERRUPTED };
struct store_usage {
	int64_t wall_us, cpu_user_us, cpu_system_us, memory_peak_bytes;
};
struct store_execution {
	char id[ID_SIZE];
	enum store_state state;
	char owner[STORE_OWNER_MAX + 1], token_id[ID_SIZE], session_id[ID_SIZE],
		task_id[ID_SIZE]; /* "" where there is none */
	char task_state[10]; /* read only, of the task; "": none, or its time is up */
	int64_t conversation_row;                                                /* 0: none */
	char conversation[STORE_CONVERSATION_MAX + 1];
	int64_t created_us, finished_us;
	/* what was asked */
	char language[32], fingerprint[256]; /* canonical runner name; interpreter and version */
	struct store_text code, stdin_text;
	char *args_json;      /* ["a","b"] */
	char *env_json; /* names and values; secrets are names only: {"KEY":null}. Sealed in the database, in clear here
			 */
	char *limits_json;    /* as resolved: everything of jail_limits */
	bool network;
	char *entry;          /* the file of /data that is run in place; NULL: none */
	char sandbox_id[ID_SIZE]; /* the live sandbox (store_sandbox.h), … */
	int64_t sandbox_seq;      /* … in which its first run is 1; "" and 0: none */
	/* what came of it; meaningless while running */
	char verdict[3];
	char message[256];
	int exit_code, signal; /* -1, 0: none */
	struct store_text stdout_text, stderr_text;
	bool stdout_truncated, stderr_truncated;
	struct store_usage run, compile;
	int64_t setup_us;
	bool warm;
	char *result_json; /* everything else that was reported: limit, step, oom, denied … */
};
void store_execution_clear(struct store_execution *execution);
/* The bytes of a text wherever they are; the caller frees. */
int store_text_read(struct store *store, const struct store_text *text, char **ret, size_t *ret_length,
		    struct err *err);

struct store_filter {
	const char *id; /* prefix, or NULL; so for all strings */
	const char *owner, *token_id, *conversation, *language, *verdict, *text_in_code, *task;
	int64_t since_us, until_us; /* 0: open */
	bool running_too;
	int64_t limit;      /* 0: all */
	bool newest_first;
	const char *after;  /* id: only later ones */
	int64_t finished_after_us; /* only rows recorded later than that, in that order (for --follow); 0: any */
};
int store_execution_list(struct store *store, const struct store_filter *filter,
			 int (*each)(void *arg, const struct store_execution *execution), void *arg, struct err *err);
/* By id or unique prefix: ERR_NOT_FOUND, ERR_CONFLICT (several). */
int store_execution_find(struct store *store, const char *id, struct store_execution *ret, struct err *err);

enum store_phase { STORE_BEFORE, STORE_AFTER };
struct store_execution_file {
	struct store_file file;
	enum store_phase phase;
	char change[8]; /* AFTER: "created" "changed" "deleted" "lost" (not kept); BEFORE: "" */
	char reason[64];
};
int store_execution_files(struct store *store, const char *execution_id, enum store_phase phase,
			  int (*each)(void *arg, const struct store_execution_file *file), void *arg, struct err *err);

/* -------- writing: everything goes through here ------------------------------------------------------- */
struct store_txn; /* an open write transaction on the writer's thread */
typedef int (*store_work)(struct store_txn *txn, void *arg, struct err *err);
/* Runs `work` on the writer's thread inside a transaction and returns after the commit (or after it was rolled back:
 * its error). `durable` false: the commit is atomic and visible but may be lost if the machine (not the process) dies;
 * for rows that nobody has been told of yet. */
int store_commit(struct store *store, store_work work, void *arg, bool durable, struct err *err);
/* The same without waiting: `done` is called on the writer's thread after the commit; it must not block or call
 * store_commit. */
void store_commit_async(struct store *store, store_work work, void *arg, bool durable,
			void (*done)(void *arg, int result, const struct err *err));

/* Verbs inside a transaction (the typed functions above use them too). This one finds or makes the conversation, and
 * touches it. */
int store_txn_conversation(struct store_txn *txn, const char *owner, const char *name, struct store_conversation *ret,
			   struct err *err);
/* Puts a file in place (blob already in the blob folder), replacing one of that name. ERR_LIMIT: beyond the owner's
 * byte cap. */
int store_txn_file_put(struct store_txn *txn, int64_t conversation, const struct store_file *file, struct err *err);
int store_txn_file_place(struct store_txn *txn, int64_t conversation, const char *name,
			 struct err *err); /* ERR_CONFLICT: a folder's */
int store_txn_file_delete(struct store_txn *txn, int64_t conversation, const char *name, size_t length,
			  struct err *err);
/* The row as `running` plus the conversation's present files as BEFORE. `execution->conversation_row` 0: no files. */
int store_txn_execution_begin(struct store_txn *txn, const struct store_execution *execution, struct err *err);
/* Outcome, output and changed files in one go; puts the changes into the conversation too. Where the files would exceed
 * the owner's cap they are recorded (and marked in `changes`) as "lost" with that reason and the outcome is still
 * recorded. */
int store_txn_execution_finish(struct store_txn *txn, const struct store_execution *execution,
			       struct store_execution_file *changes, size_t n_changes, struct err *err);
/* Caps and times to live, from the configuration; enforced by store_expire (store_expire.h). */
void store_set_retention(struct store *store, int64_t owner_bytes, int64_t conversation_ttl_us);
/* Folder for partial output: running/ID.out, running/ID.err (suffix "out", "err"); opened read-write, made new. */
int store_running_open(struct store *store, const char *id, const char *suffix, int *ret_fd, struct err *err);
void store_running_remove(struct store *store, const char *id);
