/*
 * job_internal.h - what the files of the job engine share; nobody else includes it.
 *
 * Threads: a job is handed from one to the next, and only its holder touches it (besides `cancelled` and `finished`):
 *
 *   request thread   checks and copies the request, puts its files into the blob folder         job.c, job_check.c
 *   reactor          owns the jailer's connection and the order of things, never waits for disk  job_reactor.c,
 * job_run.c writer           the store's thread: the row's two transactions                              job_record.c
 *   keepers          slow disk work: open blobs, hash and keep what the run made, long output    job_keeper.c,
 * job_record.c
 *
 * The hand-over is a job_task: `work` runs on a keeper and hands the task on when it is through (usually by job_post),
 * then `done` runs on the reactor. A job is held by one thread at a time, so it needs one task; files on their way into
 * the blob folder have one each.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "job.h"
#include "job_known.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/store_execution.h"
#include "lib/store/store_sandbox.h"

#define JOB_KEEPERS 2
#define JOB_JAILER_WAIT_US 10000000 /* a job waits so long for a lost jailer to come back */
#define JOB_PING_US 5000000     /* while programs run the jailer is asked so often for a sign of life … */
#define JOB_SILENT_US 15000000  /* … and given up when it owes one for so long */
#define JOB_CANCEL_GRACE_US 5000000 /* at the stop: from cancelling to giving the jailer up */
#define JOB_KEEP_BACKLOG    128 /* changed files waiting for a keeper; beyond it the jailer is not read */

#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

struct job_task {
	struct job_task *next;
	void (*work)(struct job_task *task);
	void (*done)(struct job_task *task);
};
struct job_tasks {
	struct job_task *head, *tail;
};
void job_tasks_add(struct job_tasks *tasks, struct job_task *task);
struct job_task *job_tasks_take(struct job_tasks *tasks);

enum job_stage {
	JOB_RESERVED, /* has its place in the order; its inputs are still being written */
	JOB_WAITING,  /* for its conversation, a free jail, or the jailer */
	JOB_ACTIVE,
};

/* The calls of one conversation that are not finished. */
struct job_conversation {
	struct job_conversation *next;
	char hash[SHA256_HEX_SIZE];
	size_t jobs;
	bool busy;     /* one of them is active */
	uint64_t scan; /* the last scan of the queue that had to leave one of them waiting */
};

/* A file that goes into a jail or a conversation: the request's own, or one of the conversation. */
struct job_input {
	char *name;
	struct store_file file; /* file.name is `name` */
};

/* A file that came out of a jail, on its way into the blob folder. */
struct job_output {
	struct job_task task;
	struct job *job;
	struct job_output *next;
	struct job_change change;
	int fd;
};

struct job {
	atomic_int references;
	struct job_engine *engine;
	struct job *next, *previous; /* engine->jobs, in order of arrival */
	struct job_conversation *order;
	enum job_stage stage;
	bool upload; /* or a reset: needs no jail */
	bool reset;
	int wake_fd; /* eventfd, readable from the end on */
	atomic_bool cancelled, finished;
	atomic_bool has_output; /* stdout_fd and stderr_fd are there, and stay until the job is freed */
	struct job_task task;

	/* asked */
	struct store_execution record;
	struct jail_limits limits;
	char **args, **env; /* NULL-terminated; env holds the secrets: wiped when the run was started */
	struct job_input *files;
	size_t n_files;
	int code_fd, stdin_fd;
	bool live, keeps_state, asked_time, asked_memory; /* keeps_state: the runner does so in a live sandbox */
	int64_t waiting_since_us;
	char *key, key_hash[SHA256_HEX_SIZE]; /* NULL: none */
	char recalled[ID_SIZE];               /* the key was used for this execution: its result is ours */

	/* in the making: reactor and keepers by turns */
	struct job_sandbox *sandbox; /* NULL: the jail is the job's own */
	char before[STORE_CAUSE_SIZE]; /* how the sandbox ended whose place a new one takes */
	size_t n_reset;
	struct jail *jail;
	bool jail_over;      /* nothing more comes from the jail */
	bool has_result;     /* the run's verdict is known */
	bool run_started;
	bool awaiting_task; /* a keeper or the writer holds the job: what happens meanwhile is acted on when it is back
			     */
	struct job_input *inputs; /* what /data is filled with */
	size_t n_inputs, inputs_sent;
	struct job_gone gone; /* what is taken out of a live sandbox's /data before */
	int input_fds[JAIL_BATCH_FILES];
	size_t n_input_fds;
	bool batch_ready;
	int stdout_fd, stderr_fd;
	struct job_output *outputs, **outputs_tail;
	size_t n_outputs, keeping;
	struct store_execution_file *changes; /* the outputs as the store wants them */

	/* the end */
	struct err error; /* code ERR_NONE: `result` counts */
	struct job_result result;
};

struct job_engine {
	const struct config *config;
	struct store *store;
	pthread_t reactor, keepers[JOB_KEEPERS];
	size_t n_keepers;
	int wake_fd;

	pthread_mutex_t lock; /* for all of this: */
	struct job *jobs, *jobs_last;
	struct job_conversation *conversations;
	size_t n_jobs;
	struct json_object *runners, *info;
	bool connected, stopping, cancels;
	uint64_t generation; /* of runners and info */
	int64_t away_since_us;
	struct job_tasks inbox;
	struct job_tasks keep;
	pthread_cond_t keep_more;
	bool keepers_stop;

	void (*tell)(void *arg, const struct job_news *news); /* NULL: nobody wants to know; set before the first job */
	void *tell_arg;

	/* the reactor's own: */
	struct job_sandbox *sandboxes;
	struct jail_client *client, *candidate; /* a candidate is connected and has not given a sign of life yet */
	size_t running, keeping, removing;
	uint64_t scan;
	int64_t retry_us, retry_delay_us, drain_us, ping_us /* when the next one is due */;
};

/* job_check.c: request -> job, without touching anything outside */
/* Everything but the inputs' bytes. Called with the engine's lock held for `runners`; NULL: no jailer was there yet, so
 * nothing that needs one can be asked for (ERR_UNAVAILABLE). */
int job_take_request(struct job *job, const struct job_request *request, struct json_object *runners, struct err *err);
void job_wipe_env(struct job *job);

/* job.c */
struct job *job_new(struct job_engine *engine);
void job_reference(struct job *job);
char *json_text(struct json_object *object); /* compact; the caller's */

/* job_keeper.c: tasks between threads */
int job_keepers_start(struct job_engine *engine, struct err *err);
void job_keepers_stop(struct job_engine *engine); /* works off what is queued first */
void job_keep(struct job_engine *engine, struct job_task *task); /* `work` on a keeper */
void job_post(struct job_engine *engine, struct job_task *task); /* `done` on the reactor */
void job_wake_reactor(struct job_engine *engine);

/* job_reactor.c */
int job_jailer_begin(struct job_engine *engine, struct err *err); /* the first time; a service may be away */
void *job_reactor(void *engine);
/* The job is over (with its result, or with job->error): out of the order, waiters wake. */
void job_over(struct job *job);

/* job_run.c: one job through the jail; on the reactor */
extern const struct jail_events job_jail_events; /* of an ordinary jail; their argument is the job */
void job_start(struct job *job);
void job_fill_next(struct job *job);  /* sends the batch that a keeper opened, if there is one */
void job_jail_lost(struct job *job, const char *why);
void job_jail_sweep(struct job *job); /* closes the jail when it is over; never from a callback */

/* job_record.c: to and from the store */
/* Appends a copy of it. */
void job_inputs_add(struct job_input **inputs, size_t *count, const struct store_file *file);
void job_inputs_free(struct job_input *inputs, size_t count);
int job_keep_text(struct store *store, const struct bind_text *text, struct store_text *ret, int *ret_fd,
		  struct err *err);
int job_begin_work(struct store_txn *txn, void *job, struct err *err);
int job_key_work(struct store_txn *txn, void *job,
		 struct err *err); /* writes nothing: sets job->recalled, or fails with job->error */
int job_upload_work(struct store_txn *txn, void *job, struct err *err);
int job_reset_work(struct store_txn *txn, void *arg, struct err *err);
void job_list_changes(struct job *job);    /* result.changes out of the outputs */
void job_prepare(struct job_task *task);   /* keeper: running files, list of inputs, first batch */
void job_open_batch(struct job_task *task); /* keeper: the next batch */
void job_keep_output(struct job_task *task); /* keeper: a job_output's descriptor into the blob folder */
bool job_output_inline(
	const struct job *job); /* does all output stand in the row? Then job_record_work needs no keeper */
void job_record_work(
	struct job_task *task); /* output texts (into blobs: keeper); then the last transaction, then job->task.done */
void job_remove_running(struct job_task *task); /* keeper */

/* job_result.c */
void job_recall_work(struct job_task *task); /* keeper: loads the result of job->recalled, or sets job->error */
void job_changes_free(struct job_change *changes, size_t count);

/* The media type of an open file, by its name and first bytes. */
void job_media_type(const char *name, int fd, char ret[STORE_MEDIA_TYPE_SIZE]);
