/*
 * replay.h - is what a recorded execution did once the same as what it does now? Between cmd_replay.c and
 * replay_batch.c (options, which executions, the order of things), replay_work.c (runs one as often as it takes),
 * replay_compare.c (one run) and replay_report.c (what is printed).
 */
#pragma once

#include <pthread.h>
#include <stdio.h>

#include "cli.h"
#include "lib/grade/normalise.h"
#include "lib/job/job.h"
#include "lib/job/job_secret.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/transfer/store_results.h"
#include "report.h"

/* In the order of severity: of several differences the last class counts. */
#define REPLAY_CLASS_LIST(X)                                                                                           \
	X(IDENTICAL, "identical")                                                                                      \
	X(EQUAL, "equal_after_normalising")                                                                            \
	X(FASTER, "faster")                                                                                            \
	X(SLOWER, "slower")                                                                                            \
	X(MEMORY, "more_memory")                                                                                       \
	X(ANSWERS, "answers_changed") /* --live: tools answer something else */                                        \
	X(FILES, "files_changed")                                                                                      \
	X(STDERR, "stderr_changed")                                                                                    \
	X(OUTPUT, "output_changed")                                                                                    \
	X(EXIT, "exit_changed")                                                                                        \
	X(VERDICT, "verdict_changed")                                                                                  \
	X(DIVERGED, "diverged")             /* the program called other tools, or with other arguments */              \
	X(FLAKY, "flaky")                   /* runs of today differ from each other */                                 \
	X(NEW, "new")                       /* nothing was expected of it: --bless made this run its first outcome */  \
	X(NOT_REPLAYABLE, "not_replayable") /* it cannot be the same run again; the reason says why */                 \
	X(MISSING, "missing")               /* no shard has a result of it */                                          \
	X(SANDBOX_ERROR, "sandbox_error")   /* the sandbox or the store failed, also when tried again */
enum replay_class {
#define X(name, text) REPLAY_##name,
	REPLAY_CLASS_LIST(X)
#undef X
		REPLAY_CLASSES
};
const char *replay_class_text(enum replay_class class);
enum replay_class replay_class_from(const char *text); /* REPLAY_CLASSES: none of them */

/* What is compared: bits. */
enum { REPLAY_BY_VERDICT = 1, REPLAY_BY_EXIT = 2, REPLAY_BY_STDOUT = 4, REPLAY_BY_STDERR = 8, REPLAY_BY_FILES = 16 };
enum { REPLAY_BY_CPU = 32, REPLAY_BY_MEMORY = 64 };
#define REPLAY_REPEAT_MAX 100
struct replay_settings {
	unsigned by, normalisers;
	int64_t repeat; /* run each so often; 0: once, and again where something differs */
	bool deterministic; /* also where what is expected did not come of such a run */
	bool live; /* real servers answer the calls of tools: what a run does is done once, unless `repeat` says more */
	const struct job_secrets *secrets; /* of --secret; NULL: none */
	struct json_object *old_runners;   /* of the side that suspects alternate with; NULL: what was recorded */
};
/* "verdict,stdout,cpu", or what is not to be: "-stderr"; NULL: the defaults. */
int replay_settings_by(const char *list, unsigned *ret, struct err *err);
/* Of --secret. */
int replay_settings_secrets(const struct bind_strings *list, struct job_secrets *ret, struct err *err);
/* What results depend on besides the execution, the runners' versions included. */
void replay_settings_key(const struct replay_settings *settings, struct json_object *runners,
			 char ret[SHA256_HEX_SIZE]);
/* The key of one execution's results, which depend on what is expected of it, too. */
void replay_settings_item_key(const char key[SHA256_HEX_SIZE], int64_t generation, char ret[SHA256_HEX_SIZE]);

/* A project's own normalisers (cmd_normalisers.c); loaded before --normalise is read and any thread is started. */
struct replay_normalisers {
	struct bind_strings files;
};
extern const struct cli_option replay_normaliser_options[];
int replay_normalisers_load(const struct replay_normalisers *normalisers, struct err *err);

/* -------- a new generation of what is expected (replay_bless.c) ------------------------------------- */
struct replay_bless {
	bool on, force;
	bool record; /* with what real servers answered */
	const char *author, *reason;
};
extern const struct cli_option replay_bless_options[];
/* Refused under CI and without a reason; fills in the author. */
int replay_bless_check(struct replay_bless *bless, struct err *err);
/* What a run did, as it would be expected from then on. */
struct replay_candidate {
	struct store_execution outcome;
	int stdout_fd, stderr_fd;
	struct store_execution_file *files;
	char **names; /* of the files */
	size_t n_files;
	struct store_tools tools; /* replay_bless.record: its calls */
};
void replay_candidate_init(struct replay_candidate *candidate);
void replay_candidate_clear(struct replay_candidate *candidate);
int replay_candidate_take(struct replay_candidate *candidate, const char *id, const struct job_replay *now,
			  struct err *err);
int replay_bless(struct store *store, const struct replay_bless *bless, struct replay_candidate *candidate,
		 int64_t *ret_generation, struct err *err);

struct replay_difference {
	char *what;           /* "stdout", "file \"chart.png\"" */
	size_t line;          /* of a stream: the first that differs; 0: the whole is compared */
	char *recorded, *now; /* printable */
	char *diff;           /* of streams of several lines: unified; or NULL */
};
struct replay_report {
	enum replay_class class;
	char *reason; /* not replayable, sandbox error */
	struct replay_difference *differences;
	size_t n_differences;
	unsigned hidden_by; /* normalisers */
	char now[3];        /* verdict */
	bool deterministic; /* so it was run */
	char fingerprint[256];          /* of the interpreter */
	struct json_object *runtime;    /* [{"what","recorded","now"}]: in what today's differs; NULL: not compared */
	int64_t blessed;    /* generation that was made of it; 0: none */
	struct replay_candidate candidate; /* --bless: what this run did */
	struct store_result_sum output, errors; /* of what this run put out */
	struct buf outcome; /* what this run did, normalised: equal for runs that did the same */
	int64_t wall_us, cpu_us, memory_bytes;
};
void replay_report_init(struct replay_report *report);
void replay_report_clear(struct replay_report *report);
/* Takes the texts over. */
void replay_differ(struct replay_report *report, enum replay_class class, struct replay_difference difference);

/* Why it makes no sense to run this one again with these secrets; NULL: it does. The caller's. */
char *replay_incomparable_with(const struct store_execution *execution, const struct job_secrets *secrets);
char *replay_incomparable(const struct store_execution *execution); /* without secrets */
/* Would it make sense, if only something were expected of it? The recorded outcome says nothing of the program. */
bool replay_without_outcome(const struct store_execution *execution);
/* One run of this execution next to the record, added to the report. An error is the store's. */
int replay_compare(struct store *store, const struct replay_settings *settings, const struct store_execution *execution,
		   const struct job_replay *now, struct replay_report *report, struct err *err);
/* The same for an earlier run of the live sandbox that the execution ran in. */
int replay_compare_earlier(struct store *store, const struct replay_settings *settings,
			   const struct store_execution *execution, const struct job_replay *now,
			   struct replay_report *report, struct err *err);

/* Other code in place of what was recorded. */
struct replay_instead {
	const char *language, *code; /* canonical name of the runner */
	size_t length;
};
/* The old side of a comparison of numbers: one jailer for all threads. */
struct replay_old {
	struct jail_client *client; /* NULL: there is none, what was recorded is the old side */
	pthread_mutex_t lock;
};
/* One execution, as often as it takes; the client is opened where it is NULL and closed where it failed. Never fails:
 * what went wrong is a class. */
struct replay_runner {
	const struct config *config;
	struct store *store;
	const struct replay_settings *settings;
	struct jail_client *client;
	struct json_object *runners; /* of jail_client_runners; NULL: what it runs on is not compared */
	const struct replay_instead *instead; /* NULL: the recorded code */
	const struct replay_bless *bless;     /* NULL: nothing is blessed */
	struct replay_old *old;
	struct upstream *upstream; /* settings->live: who answers the calls */
	struct job_secrets secrets; /* its own: settings->secrets, then those of the owner's folder */
};
void replay_one(struct replay_runner *runner, const char *id, struct store_result *ret);

/* -------- the report ---------------------------------------------------------------------------------- */
/* What is stored and printed of one; *ret->report is the caller's. */
void replay_result(const struct replay_report *report, const char *id, const char *language,
		   const struct store_execution *execution, struct store_result *ret);
void replay_print(FILE *out, const char *report);
/* The differences of a report as text: what, recorded and now, diff. */
void replay_details(struct json_object *differences, struct buf *ret);
/* Into the file of --report, too; with its program and conversation where it is not as recorded. */
void replay_report_add(struct report *to, struct store *store, const struct store_result *result);

struct replay_summary {
	size_t classes[REPLAY_CLASSES];
	size_t verdicts[16][16]; /* recorded × now, by place in replay_report.c's list */
	bool bless; /* what differed is expected from now on */
	double seconds;
};
void replay_summary_add(struct replay_summary *summary, const struct store_result *result);
size_t replay_summary_different(const struct replay_summary *summary);
int replay_summary_exit(const struct replay_summary *summary);
void replay_summary_matrix(FILE *out, const struct replay_summary *summary);
void replay_summary_print(FILE *out, const struct replay_summary *summary);
struct json_object *replay_summary_json(const struct replay_summary *summary);
