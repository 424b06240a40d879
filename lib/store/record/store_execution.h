/*
 * store_execution.h - runs: what was asked, what came of it, and the files before and after.
 */
#pragma once

#include "lib/store/audit/store_audit.h"
#include "lib/store/blob/store_text.h"
#include "store_file.h"

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
	int64_t recorded; /* its place in the order in which ends were recorded; 0: it runs */
	/* what was asked */
	char language[32], fingerprint[256]; /* canonical runner name; interpreter and version */
	struct store_text code, stdin_text;
	char *args_json;      /* ["a","b"] */
	/* Names and values; secrets are names only: {"KEY":null}, what an export left out is {"KEY":false}. Sealed in
	 * the database, in clear here. */
	char *env_json;
	char *limits_json;    /* as resolved: everything of jail_limits */
	bool network;
	bool display; /* its last value was shown */
	int64_t secrets; /* how many it had */
	char *entry;          /* the file of /data that is run in place; NULL: none */
	char sandbox_id[ID_SIZE]; /* the live sandbox (store_sandbox.h), … */
	int64_t sandbox_seq;      /* … in which its first run is 1; "" and 0: none */
	char request_id[33];      /* of the HTTP request, 32 hexadecimal digits; "": none */
	char trace[56];           /* W3C traceparent of the caller; "": none */
	char client_address[STORE_ADDRESS_SIZE], client[100]; /* struct store_client; "": not known, or not kept */
	char door[STORE_DOOR_SIZE], caller[STORE_CALLER_SIZE];
	bool grading; /* stdin_text is cases, stdout_text what came of each (lib/grade/grade_batch.h) */
	/* what came of it; meaningless while running */
	char verdict[3];
	char message[256];
	int exit_code, signal; /* -1, 0: none */
	struct store_text stdout_text, stderr_text;
	bool stdout_truncated, stderr_truncated;
	struct store_usage run, compile;
	int64_t setup_us;
	bool warm;
	int64_t generation; /* of what is expected of it (store_baseline.h); 1: what was recorded */
	bool deterministic; /* what is expected of it came of a deterministic run */
	char erased[8];    /* "output", "content": what is gone; "": nothing */
	int64_t erased_us; /* when */
	char erased_why[32];
	char *result_json; /* everything else that was reported: limit, step, oom, denied … */
};
void store_execution_clear(struct store_execution *execution);
/* ERR_NOT_FOUND, with a sentence: its output (or more) was removed. */
int store_execution_whole(const struct store_execution *execution, struct err *err);

struct store_filter {
	const char *id; /* prefix, or NULL; so for all strings */
	const char *owner, *token_id /* or a name, or a beginning */, *conversation, *language, *text_in_code, *task;
	const char *const *owners; /* one of these, in addition to `owner` … */
	size_t n_owners;           /* … if there are any */
	const char *tool; /* "github", "github.list_*": one that it called; NULL: any */
	const char *tag;  /* one that it has (store_tag.h); NULL: any */
	const char *request; /* its HTTP request, or the client's own id of it */
	const char *client, *file; /* patterns: who asked, a file that it changed */
	const char *same;     /* id of a run that has the same code */
	const char *door; /* the API that it came through */
	bool denied, secrets; /* only runs that were denied something; that had secrets */
	bool text_in_output; /* text_in_code may be in an output, too: in its first STORE_SEARCH_HEAD bytes */
	char verdict[40]; /* "RE,ML": one of these; "": any */
	int64_t since_us, until_us; /* 0: open */
	bool running_too;
	int64_t limit;      /* 0: all */
	bool newest_first;
	const char *after;  /* id: only later ones */
	bool follow;            /* only rows recorded after the one of place `recorded_after`, in that order */
	int64_t recorded_after;
};
int store_execution_list(struct store *store, const struct store_filter *filter,
			 int (*each)(void *arg, const struct store_execution *execution), void *arg, struct err *err);
/* The place of the row that was recorded last; 0: none was. */
int store_execution_recorded(struct store *store, int64_t *ret, struct err *err);
/* By its id, a unique part of that (STORE_ID_PART characters at least, or its beginning), or the id of its HTTP
 * request: ERR_NOT_FOUND, ERR_CONFLICT (several). */
#define STORE_ID_PART 4
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


/* The row as `running` plus the conversation's present files as BEFORE. `execution->conversation_row` 0: no files. */
int store_txn_execution_begin(struct store_txn *txn, const struct store_execution *execution, struct err *err);
/* 1: a run of this conversation begins with more than STORE_FILES_AT_ONCE files, so its beginning is for
 * store_commit_large; 0; negative. */
int store_txn_execution_is_large(struct store_txn *txn, const char *owner, const char *conversation, struct err *err);
/* For a run of this process whose end could not be recorded (a full disk, one that fails): as soon as the disk is back
 * its row ends as interrupted, with the output in running/, and so does its task. Returns at once. */
void store_execution_abandon(struct store *store, const char *id);
/* Some of the changed files before the end, so that the transaction of the end is short where they are many: at most
 * STORE_FILES_AT_ONCE in one transaction. The end is then called with the rest. */
#define STORE_FILES_AT_ONCE 64
int store_txn_execution_files(struct store_txn *txn, const struct store_execution *execution,
			      struct store_execution_file *changes, size_t n_changes, struct err *err);
/* Outcome, output and changed files in one go; puts the changes into the conversation too. Where the files would exceed
 * the owner's cap they are recorded (and marked in `changes`) as "lost" with that reason and the outcome is still
 * recorded. */
int store_txn_execution_finish(struct store_txn *txn, const struct store_execution *execution,
			       struct store_execution_file *changes, size_t n_changes, struct err *err);
/* The rows in execution_file count from now on. */
int store_txn_count_files(struct store_txn *txn, const char *id, struct err *err);
