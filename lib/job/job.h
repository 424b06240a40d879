/*
 * job.h - request -> run -> record: the only place where store and jail meet.
 *
 * A job engine owns all running jobs of a process on one reactor thread, which holds the connection to the jailer (and
 * connects again when it is lost). A request thread submits a job and then waits for it; it never is the job. So
 * cancel, clients that vanish, tasks, progress and idempotency keys need nothing special.
 *
 * What happens to a job (job_step.h has all steps): it waits for its turn in its conversation; its row is written as
 * `running`; the conversation's files and the request's own go into the jail; the program runs, its output going to
 * running/ID.out and ID.err; the changed files go into the blob store; result, output and file list are recorded in one
 * transaction; then the waiters wake. An orderly stop drains for up to JOB_DRAIN_SECONDS.
 */
#pragma once

#include "jail/client/jail.h"
#include "job_step.h"
#include "job_tools.h"
#include "lib/base/bind.h"
#include "lib/base/config.h"
#include "lib/store/record/store_execution.h"

#define JOB_DRAIN_SECONDS 30
#define JOB_CONVERSATION_QUEUE 16 /* calls waiting in one conversation; one more is ERR_BUSY */
#define JOB_FILES_MAX 64          /* files with one request */
#define JOB_FILE_NAME_MAX 255
#define JOB_NOTE_SIZE 256
#define JOB_JAILER_AWAY                                                                                                \
	"the jailer does not answer, so nothing can run; the operator's log says why" /* with ERR_UNAVAILABLE */

/* Tells the store what the configuration's group `retention` says; before others use the store. */
void job_set_retention(const struct config *config, struct store *store);

struct job_engine;
/* Starts the reactor and connects to the jailer (config.jailer.socket; it may come later) or starts a private one,
 * which must succeed. */
int job_engine_start(const struct config *config, struct store *store, struct job_engine **ret, struct err *err);
/* Drains, then cancels what is left; the engine stays, and nothing runs in it any more. NULL is fine, also below. */
void job_engine_drain(struct job_engine *engine);
void job_engine_stop(struct job_engine *engine); /* the same, and frees it */
/* The jailer's runners (jail_client_runners); a copy, the caller's. NULL while it is away. Versions and libraries may
 * come later. */
struct json_object *job_engine_runners(struct job_engine *engine);
/* The name of the runner that has this name or alias; the caller's. NULL: there is none, or the jailer is away. */
char *job_engine_runner_name(struct job_engine *engine, const char *language);
/* With a private jailer in a process that stays: finds the versions and libraries, once; until then job_engine_runners
 * has none. Takes seconds. Failing is no error: what is known stays. */
void job_engine_learn(struct job_engine *engine);
/* Waits, for seconds at most, until the versions and libraries of all are there, or the jailer is lost: for lists. */
void job_engine_await_runners(struct job_engine *engine);
bool job_engine_connected(struct job_engine *engine); /* is the jailer there? */
/* The jailer's jails by state (jail/client/census.h) as of its last answer, and asks it again, without waiting: who
 * asks twice gets what was true the first time. All zeros while it is away. */
void job_engine_jails(struct job_engine *engine, void (*each)(void *arg, const char *state, int64_t count), void *arg);
/* Counts the jailer's comings and goings, and changes of the runners: while it is the same, so are they. */
uint64_t job_engine_generation(struct job_engine *engine);

/* Something that was recorded: a file that is new, changed or gone, or an execution that ended. */
struct job_news {
	bool cancel; /* nothing was recorded: `execution` is to be cancelled (job_engine_cancel) */
	const char *owner, *conversation;
	const char *name; /* of the file; NULL: none */
	size_t name_length;
	const char *execution; /* NULL: none; without a name, too: files of the owner went */
};
/* From now on `tell` is called on the engine's thread after each commit, before its waiters wake. It must not wait. One
 * watcher, set before the first job. */
void job_engine_watch(struct job_engine *engine, void (*tell)(void *arg, const struct job_news *news), void *arg);

struct job_secrets; /* job_secret.h */
struct job_file {
	const char *name; /* one path segment (job_file_name_check) */
	const char *data;
	size_t length;
};
struct job_request {
	const char *owner, *token_id, *session_id; /* session_id NULL: none */
	const char *conversation;                  /* NULL: none, /data starts empty and is not kept */
	const char *language;
	struct bind_text code, stdin_text;
	const char *entry; /* NULL, or one of `files`, whose content is `code`: it is run in place */
	struct bind_strings args;
	struct bind_map environment, secrets; /* secrets are never stored, in any form (job_secret.h) */
	const struct job_file *files;         /* put into the conversation before the run */
	size_t n_files;
	bool live; /* in the conversation's live sandbox of this language; needs a conversation */
	bool paths;                                /* the files' names may be paths below /data */
#define ASKED_LIMIT(argument, ...) int64_t argument; /* 0: default */
#include "lib/base/limits.def"
	const struct jail_limits *limits; /* NULL; else in the place of the arguments above; 0: default */
	bool placed; /* the caller bounds its calls itself: limits.in_flight, queue and sandboxes do not */
	bool network, display; /* display: of a last expression's value and open figures (jail_program) */
	/* NULL: none. The same key and hash give the first call's result again (store_request.h); the same key with
	 * another hash is ERR_CONFLICT. The second of two at once waits for the first. */
	const char *key, *key_hash;
	const char *id; /* of the execution, by id_new, for a caller that must know it before; NULL: a new one */
	struct job_tools *tools; /* NULL: none. Held by the job, too */
	const char *task_id; /* the MCP task that this is the work of; NULL: none */
	const char *trace;                 /* by which it is found elsewhere, like client->request_id; NULL: none */
	const struct store_client *client; /* who asks; NULL: not known */
};

/* A file that the run made, changed or removed. */
struct job_change {
	enum jail_change_kind kind;
	char *name;             /* NUL-terminated; owned */
	struct store_file file; /* file.name is `name` */
	char reason[64];
	bool masked; /* the file had a secret in it, its record has not */
};
/* The record's word for it (execution_file.change): "created" "changed" "deleted" "lost". */
const char *job_change_text(enum jail_change_kind kind);
struct job_stream {
	char *data; /* NUL-terminated, may hold NULs; owned */
	size_t length;
};
struct job_result {
	char id[ID_SIZE];
	struct jail_result jail; /* verdict and accounting */
	/* The first job_answer_max() bytes of each stream as they came; *_more: the stream went on. */
	struct job_stream stdout_text, stderr_text;
	bool stdout_more, stderr_more;
	struct job_change *changes;
	size_t n_changes;
	char conversation[STORE_CONVERSATION_MAX + 1],
		conversation_hash[SHA256_HEX_SIZE]; /* "" without a conversation */
	/* The live sandbox that it ran in, and its number there from 1 on; "": none. */
	char sandbox_id[ID_SIZE];
	int64_t sandbox_seq;
	struct store_tools tools; /* servers that the program could call, and its calls */
	char *workspace; /* lines about changes that are not in the workspace's folder; NULL: none. Owned */
	char note[JOB_NOTE_SIZE]; /* what became of the sandbox's state, for people; "": it is as expected */
};
/* Bytes of each stream that a result has: as many as an answer may show, and at least JOB_ANSWER_LEAST. */
#define JOB_ANSWER_LEAST (64 * 1024)
int64_t job_answer_max(const struct config *config);
/* The result of a finished execution, loaded from the record: equal to what job_wait returned then, with at most
 * `stream_max` bytes of each stream. ERR_NOT_FOUND; ERR_BUSY while it runs. The caller clears it. Needs no engine. */
int job_result_load(struct store *store, const char *id, int64_t stream_max, struct job_result *ret, struct err *err);
void job_result_clear(struct job_result *result);
/* A part of what a program printed, as it came, out of the record or while it runs. ERR_NOT_FOUND; ERR_INVALID: the
 * offset is beyond the end. */
struct job_printed {
	const char *owner; /* NULL: any */
	const char *id;
	bool is_stderr;
	int64_t offset; /* negative: from the end */
	int64_t length; /* at most */
};
int job_printed_load(struct store *store, const struct job_printed *which, struct job_stream *ret /* free data */,
		    int64_t *ret_size /* of the whole */, struct err *err);
/* What a row's columns say of it, without strings to free: for listings (view JAIL_COLUMNS). */
int job_result_columns(const struct store_execution *execution, struct jail_result *ret, struct err *err);

struct job;
/* Checks the request (ERR_INVALID names the member), takes it into the queue or refuses (ERR_BUSY, ERR_LIMIT,
 * ERR_UNAVAILABLE). All of the request is copied. The job is referenced by the caller until job_release. */
int job_submit(struct job_engine *engine, const struct job_request *request, struct job **ret, struct err *err);
/* Waits until the job is recorded (0), or it could not run (its error), or `hangup_fd` (-1: none) reports POLLRDHUP
 * (ERR_CANCELLED; the job goes on). *ret stays the job's. */
int job_wait(struct job *job, int hangup_fd, const struct job_result **ret, struct err *err);
/* For a caller that has other things to do meanwhile: 0: it is over (job_wait returns at once), JOB_TIME after
 * timeout_ms (-1: never), JOB_WOKEN when `wake_fd` (-1: none) is readable; ERR_CANCELLED as job_wait. */
enum { JOB_TIME = 1, JOB_WOKEN };
int job_wait_some(struct job *job, int hangup_fd, int wake_fd, int timeout_ms, struct err *err);
/* What the program has printed so far on a stream (1 or 2), from `offset` on, at most `size` bytes; returns how many
 * there were. */
size_t job_output_read(struct job *job, int stream, int64_t offset, char *ret, size_t size);
void job_cancel(struct job *job); /* the run ends with CX; harmless on a finished one */
bool job_keyed(const struct job *job);     /* it has an idempotency key */
const char *job_id(const struct job *job); /* a call that repeats another has the other's id in its result */
void job_release(struct job *job); /* NULL is fine */

/* Where the jobs of an engine are: those that wait or run, in order of arrival, then the last JOB_ENDED_LISTED that are
 * over. Returns how many; *ret is the caller's to free. Thread-safe. */
#define JOB_ENDED_LISTED 32
struct job_listing {
	char id[ID_SIZE], owner[STORE_OWNER_MAX + 1], conversation[STORE_CONVERSATION_MAX + 1]; /* "": none */
	enum job_step step;
	int64_t since_us; /* UTC: when the step began */
};
size_t job_engine_list(struct job_engine *engine, struct job_listing **ret);
/* Cancels the job of this id, as job_cancel does. False: the engine has none that is not over. */
bool job_engine_cancel(struct job_engine *engine, const char *id);

/* Puts one file (its name may be a path) into a conversation, in order with its jobs; creates the conversation. Blocks
 * until it is durable. */
int job_upload(struct job_engine *engine, const struct job_request *who /* owner, token, session, conversation */,
	       const struct job_file *file, struct store_file *ret /* name NULL */, char ret_hash[SHA256_HEX_SIZE],
	       struct err *err);
/* Ends the live sandboxes of the conversation `who` names, of who->language or (NULL) of all, in order with its jobs:
 * waits for a run that is under way. */
int job_reset(struct job_engine *engine, const struct job_request *who, size_t *ret_ended, struct err *err);
/* One path segment for people and file systems: UTF-8, 1 to JOB_FILE_NAME_MAX bytes, no '/', no control character, not
 * "." or "..". */
int job_file_name_check(const char *name, const char *member, struct err *err);
/* A path below /data: at most JAIL_LEVELS_MAX such segments, joined by '/', at most JAIL_NAME_MAX bytes. */
int job_file_path_check(const char *path, const char *member, struct err *err);
int job_conversation_check(const char *name, const char *member, struct err *err);
/* Of an environment variable: letters, digits and _, not a digit first. */
bool job_variable_valid(const char *name, size_t length);

/* Runs a recorded execution again on its stored inputs, recording nothing: for replay. Blocks. A run of a live sandbox
 * depends on all that ran there before, so the earlier runs are run again, too, in one jail. */
struct job_replay_from {
	struct store *store;
	struct jail_client *client;
	const struct job_secrets *secrets; /* values of those that runs were given; NULL: none */
	/* What answers the calls of a run; *ret NULL: it named no servers. NULL: programs call nothing. */
	int (*tools)(void *arg, const struct store_execution *execution, struct job_tools **ret, struct err *err);
	void *tools_arg;
	bool deterministic; /* jail_program.clock_us: the time of the recorded call */
};
struct job_replay {
	struct jail_result jail;
	int stdout_fd, stderr_fd; /* memfds, positioned at 0; secrets are masked as in the record. The value that was
				   * shown stands behind stdout */
	struct job_change *changes; /* file.blob holds the SHA-256, nothing was put into the store */
	size_t n_changes;
	struct store_tools tools; /* what the program called */
};
/* What is recorded, or expected, of the same: standard output, and behind it the value. The caller's. */
int job_replay_stdout(struct store *store, const struct store_execution *execution, char **ret, size_t *ret_length,
		      struct err *err);
/* Called for every run in the order of the record, `execution` last. `now` ends with the call. A negative code ends the
 * replay and is passed on. */
typedef int job_replay_each(void *arg, const struct store_execution *execution, const struct job_replay *now,
			    struct err *err);
/* Where a run ends the sandbox that did not do so then, nothing comes after it; that is not an error. ERR_INVALID: a
 * secret is missing. */
int job_replay(const struct job_replay_from *from, const struct store_execution *execution, job_replay_each *each,
	       void *arg, struct err *err);
