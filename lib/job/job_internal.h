/*
 * job_internal.h - what the files of the job engine share; nobody else includes it.
 *
 * Threads:
 *   request thread   checks and copies the request, puts its files into the blob folder          job.c, job_check.c
 *   reactor          owns the jailer's connection, the order of turns (job_turn.c) and the steps
 *                    of every job (job_run.c) and visit; never waits for the disk                job_reactor.c
 *   writer           the store's thread: the row's two transactions                              job_record.c
 *   I/O workers      slow disk work: open blobs, store what the run made, long output            job_io.c
 *
 * Only the reactor moves a job (job_step.h). A thread that a job is lent to reads all of it and writes what its work
 * produces; meanwhile the reactor only notes in `run` what the jail reports.
 */
#pragma once
#include <pthread.h>
#include <stddef.h>

#include "job.h"
#include "job_known.h"
#include "job_picture.h"
#include "job_secret.h"
#include "job_turn.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_sandbox.h"

#define JOB_IO_WORKERS      3        /* one of them is always free for something else than files that runs made */
#define JOB_JAILER_WAIT_US  10000000 /* a job waits so long for a lost jailer to come back */
#define JOB_PING_US         5000000  /* while programs run the jailer is asked so often for a sign of life … */
#define JOB_SILENT_US       15000000 /* … and given up when it owes one for so long */
#define JOB_CANCEL_GRACE_US 5000000  /* at the stop: from cancelling to giving the jailer up */

/* A file that goes into a jail or a conversation: the request's own, or one of the conversation. */
struct job_input {
	char *name;
	struct store_file file; /* file.name is `name` */
};
void job_inputs_add(struct job_input **inputs, size_t *count, const struct store_file *file); /* a copy of it */
void job_inputs_free(struct job_input *inputs, size_t count);
/* What a request puts into a conversation. */
struct job_files {
	const char *owner, *conversation; /* the owner of the files has them, too */
	struct store_caller caller;       /* who puts or removes them */
	int64_t bytes_max;                /* of all the conversation's files */
	struct job_input *items;
	size_t count;
};
/* A file that came out of a jail. */
struct job_output {
	struct job_work_item work_item;
	struct job *job;
	struct job_output *next;
	struct job_change change;
	int fd;          /* -1 where there is a copy: many files wait, and descriptors are few */
	size_t copied;
	char *copy; /* of so many bytes */
};
/* What was asked: set by the request's thread, unchanged once the job waits. */
struct job_asked {
	struct store_execution row;  /* the columns that are known before the run */
	struct store_client client;
	char place[SHA256_HEX_SIZE]; /* the conversation's hash; "": none */
	struct jail_limits limits, named; /* named: 0 where the caller gave none */
	char **args; /* NULL-terminated */
	struct job_files files;
	int code_fd, stdin_fd;
	struct job_tools *tools; /* NULL: none */
	bool live, keeps_state;               /* keeps_state: the runner does so in a live sandbox */
	char *key, key_hash[SHA256_HEX_SIZE];             /* NULL: none */
};

/* What becomes of it: the reactor's, and in part the thread's that the job is lent to. */
struct job_run {
	struct job_secrets secrets;
	char **env;                /* NULL-terminated; holds the secrets: wiped when the run was started */
	struct jail_limits limits; /* what was asked, or the sandbox's */
	char *limits_json;
	bool large;                  /* its beginning is long work for the writer */
	char recalled[ID_SIZE];      /* the key was used for this execution: its result is ours */
	struct job_sandbox *sandbox; /* NULL: the jail is the job's own */
	char sandbox_id[ID_SIZE];    /* "" and 0: none */
	int64_t sandbox_seq, conversation_row;
	char before[STORE_CAUSE_SIZE]; /* how the sandbox ended whose place a new one takes */

	struct jail *jail;
	bool has_jail;    /* it counts as a running one */
	bool jail_over;   /* nothing more comes from the jail */
	bool has_verdict; /* the verdict is known */
	struct job_waits waits;
	bool started, tools_filled, tools_open; /* the program was sent; its tools are in the jail, are to be closed */

	struct job_input *inputs; /* what /data is filled with */
	size_t n_inputs, inputs_sent, n_input_fds;
	struct job_gone gone;            /* what is taken out of a live sandbox's /data before */
	int input_fds[JAIL_BATCH_FILES]; /* n_input_fds of the next ones */

	struct job_output *outputs, **outputs_tail;
	size_t n_outputs, storing;            /* storing: on their way into the blob folder */
	struct job_work_items to_store; /* no I/O worker has them yet; under the engine's lock, as its list of jobs */
	struct job *next_storing;
	struct store_execution_file *changes; /* the outputs as the store wants them */
	size_t files_recorded;                /* so many of them are in the record, before the row's end */
	struct store_text stdout_text, stderr_text;
	char *result_json;
	int64_t finished_us; /* 0: the row's end was not tried yet */
	struct job_result result;
};

/* Published once, when `over` becomes true. */
struct job_end {
	struct err error; /* code ERR_NONE: `result` counts */
	struct job_result result;
};

struct job {
	atomic_int references;
	struct job_engine *engine;
	int wake_fd; /* eventfd, readable from the end on */
	struct job_turn turn;
	struct job_asked asked;
	struct job_run run;
	atomic_bool has_output; /* stdout_fd and stderr_fd are there, and stay until the job is freed */
	int stdout_fd, stderr_fd;
	struct job_cover cover; /* of the output, where the run has secrets */
	atomic_bool over;
	struct job_end end;
};

enum stop_phase { STOP_NOT, STOP_DRAINING, STOP_CANCELLING, STOP_GIVEN_UP };

struct job_engine {
	const struct config *config;
	struct store *store;
	struct workspace *workspace; /* NULL: none; used by who has the turn in its conversation */
	pthread_t reactor, io_workers[JOB_IO_WORKERS];
	size_t n_io_workers;
	int wake_fd;

	pthread_mutex_t lock; /* for all of this: */
	struct job_turn *turns, *turns_last;
	struct job_queue *queues;
	size_t n_turns, n_ended;                    /* n_ended: ever */
	struct job_listing ended[JOB_ENDED_LISTED]; /* a ring */
	struct json_object *runners, *info;
	struct job_runtimes *runtimes; /* has a lock of its own */
	struct jail_census jails;
	bool connected, stopping, cancels, asks, io_stop, learned; /* asks: for jails */
	bool runners_known;                                        /* with versions and libraries, of all */
	pthread_cond_t runners_wake;
	uint64_t generation; /* of runners and info */
	int64_t away_since_us;
	struct job_work_items inbox, for_io;
	struct job *storing_first, **storing_last; /* jobs with files to store: they take turns, a file each */
	size_t io_storing, copied, backlog;        /* backlog: so many files may wait, then the jailer is not read */
	pthread_cond_t io_wake;

	struct job_pictures { /* job_picture.c */
		pthread_mutex_t lock;
		pthread_cond_t left; /* a place became free */
		struct job_picture_place {
			struct jail_client *client;      /* NULL: none yet */
			char owner[STORE_OWNER_MAX + 1]; /* whose pictures are looked at; "": nobody's */
		} places[JOB_PICTURE_PLACES];
	} pictures;

	void (*tell)(void *arg, const struct job_news *news); /* NULL: nobody wants to know; set before the first job */
	void *tell_arg;

	/* the reactor's own: */
	struct job_sandbox *sandboxes;
	struct jail_client *client, *candidate; /* a candidate is connected and has not given a sign of life yet */
	size_t running, storing, removing;
	uint64_t scan;
	int64_t retry_us, retry_delay_us, ping_us; /* when the next one is due */
	enum stop_phase stop_phase;
	bool drained;    /* it has ended; of the thread that stops the engine */
	int64_t stop_us; /* when this phase is over; INT64_MAX: no such time */
};

/* The files of the engine, each calling only those above it. */

/* job_io.c */
int job_io_start(struct job_engine *engine, struct err *err);
void job_lend_file(struct job_output *output); /* to an I/O worker, in turn with other jobs' files */
void job_io_stop(struct job_engine *engine);   /* works off what is queued first */
void job_wake_reactor(struct job_engine *engine);

/* job_result.c */
void job_changes_free(struct job_change *changes, size_t count);
int job_recall(struct job_work_item *work_item, struct err *err); /* I/O worker: the result of run.recalled */

/* job_files.c */
/* ret->bytes_max, owner and conversation are set before. */
int job_take_files(const struct job_request *request, bool upload, struct job_files *ret, struct err *err);
int job_store_files(struct store *store, const struct job_request *request, const struct job_files *files,
		    struct err *err); /* into blobs; slow */
int job_put_files(struct store_txn *txn, const struct job_files *files, int64_t *ret_row, struct err *err);
void job_tell_files(const struct job_engine *engine, const struct job_files *files); /* put into a conversation */

/* job_tools.c: a job whose program calls tools; on the reactor */
int job_tools_fill(struct job *job, struct err *err); /* their files, into a jail whose program was not sent yet */
/* Opens them, and fills the jail unless that was done. *ret_env: the program's environment, to be freed, not its
 * strings. */
int job_tools_give(struct job *job, struct job_tools_given *ret, const char ***ret_env, struct err *err);
void job_tools_tell(struct job *job);  /* the jailer, that the program waits for tools or goes on */
void job_tools_close(struct job *job); /* nothing more is called; what was is in the result */

/* job_life.c */
struct job *job_new(struct job_engine *engine, job_turn_advance *advance); /* referenced once */
void job_reference(struct job *job);
void job_wipe_env(struct job *job);

/* job_metrics.c */
void job_metrics_begin(void);
void job_metrics_runners(struct json_object *runners); /* languages have a label of their own from now on */
void job_metrics_start(const struct job *job);         /* its turn has come */
void job_metrics_end(const struct job *job);           /* it is recorded */
void job_metrics_row(const struct store_execution *row, enum jail_verdict verdict); /* what is counted of any row */

/* job_workspace.c: a turn of the workspace's conversation reads the folder first, and writes there what it changed */
int job_workspace_start(struct job_engine *engine, struct err *err); /* opens it, if the configuration names one */
bool job_workspace_has(const struct job_turn *turn);                 /* is it a turn of that conversation? */
int job_workspace_read(struct job_work_item *work_item, struct err *err); /* I/O worker; the work item is a turn's */
void job_workspace_tell(struct job_turn *turn);                           /* what was read, as news; on the reactor */
/* I/O worker: what a run changed, and the request's own files. run.result.workspace says what is not there. */
int job_workspace_write(struct job_work_item *work_item, struct err *err);
/* The same of files of the conversation with this hash; what is not there is the error. */
int job_workspace_write_files(struct job_engine *engine, const char *place, const struct job_files *files,
			      struct err *err);

/* The program as it is run and recorded: what is inside of a Markdown fence around all of it; of bash, with LF at the
 * end of lines. *own holds it where it is not a part of `code`. */
void job_source(const char *language, const struct bind_text *code, struct buf *own, struct bind_text *ret);
/* job_record.c: to and from the store */
int job_store_text(struct store *store, const struct bind_text *text, struct store_text *ret, int *ret_fd,
		   struct err *err);
char *job_json_text(struct json_object *object); /* compact; the caller's */
struct store_usage job_usage(const struct jail_usage *usage);
/* 1: nothing is written yet, since it is large: job_lend_writer_large. */
int job_begin_work(struct store_txn *txn, void *work_item, struct err *err);
/* Writes nothing: sets run.recalled, or fails with the turn's error. */
int job_key_work(struct store_txn *txn, void *work_item, struct err *err);
bool job_has_many_files(const struct job *job); /* then before the end, as often as it is so: job_files_work */
int job_files_work(struct store_txn *txn, void *work_item, struct err *err);
int job_finish_work(struct store_txn *txn, void *work_item, struct err *err);
void job_note_lost_changes(struct job *job); /* after job_finish_work */
/* I/O worker: */
int job_prepare(struct job_work_item *work_item, struct err *err);       /* output files, inputs, the first batch */
int job_open_batch(struct job_work_item *work_item, struct err *err);    /* the next batch */
int job_store_output(struct job_work_item *work_item, struct err *err);  /* a job_output's file, into a blob */
int job_store_streams(struct job_work_item *work_item, struct err *err); /* output texts; into rows: on the reactor */
int job_remove_running(struct job_work_item *work_item, struct err *err);
void job_media_type(const char *name, int fd, char ret[STORE_MEDIA_TYPE_SIZE]); /* by name and first bytes */
bool job_output_inline(const struct job *job);                                  /* is all output kept in rows? */
void job_list_changes(struct job *job); /* result.changes out of the outputs */

/* job_check.c: request -> job, without touching anything outside */
/* Everything but the inputs' bytes. Under the engine's lock, for `runners`; NULL: no jailer yet (ERR_UNAVAILABLE). */
int job_take_request(struct job *job, const struct job_request *request, struct json_object *runners, struct err *err);
void job_take_client(const struct store_client *client, struct store_execution *row);
/* The runner's own name of a language. */
int job_take_language(struct json_object *runners, const char *language, char ret[32], struct err *err);

/* job_report.c: what the jailer reports of a job's jail; on the reactor */
extern const struct jail_events job_jail_events; /* of a job's jail; their argument is the job */
/* The verdict of a job whose program did not come to an end that could be reported. */
void job_set_verdict(struct job *job, enum jail_verdict verdict, const char *message);
void job_note_failure(struct job *job, const char *why);
void job_jail_lost(struct job *job, const char *why);
void job_jail_reap(struct job *job); /* closes the jail when it is over; never from a callback */

/* job_run.c: the steps of a job, as its turn's `advance`; on the reactor */
void job_advance(struct job_turn *turn, enum job_event event);

/* job_reactor.c */
int job_jailer_begin(struct job_engine *engine, struct err *err); /* the first time; a service may be away */
void *job_reactor(void *engine);
