/*
 * grade.h - between the files of `sallyport grade`: cmd_grade.c (which kind of input); grade_package.c, grade_tasks.c
 * and grade_suite.c (each grades one kind); grade_shared.c (what all kinds use).
 */
#pragma once

#include "cli.h"
#include "lib/grade/grade_judge.h"
#include "lib/grade/grade_memory.h"
#include "replay_batch.h"
#include "report.h"

struct grade_options {
	struct cli_common common;
	int64_t jobs, time_limit_us;
	bool no_cache, fail_fast, resume, raw, require_split, strict, quiet;
	struct bind_strings tags, merge;
	struct report_wanted reports;
	struct replay_normalisers normalisers;
	struct cli_priority priority;
	const char *samples, *solution, *language, *k, *results, *shard, *only, *checkers;
};

/* What is graded, by whom; each kind of input has a struct of its own around it. */
struct grading {
	const struct grade_options *options;
	const struct config *config;
	struct cli_progress progress;
	struct report *report; /* NULL: none is wanted */
	char *summary;         /* the last line of --json; NULL: it did not come to its end */
	double seconds;
	struct store_results *results; /* NULL: nothing is kept */
	struct grade_memory memory;    /* over it */
	bool parts;                    /* the input can be graded in parts */
	bool told;                     /* what is weaker on this host */
	struct replay_shard shard;     /* which part of the tasks this is */
	struct replay_shards shards;   /* --merge: the results of all parts */
};
/* The file of --results, --resume, --only and --shard, and those of --merge; NULL where nothing is kept. */
int grade_results_open(struct grading *grading, struct err *err);
const struct grade_memory *grade_results_memory(struct grading *grading);
/* The part of `count` that the task of a sample (TASK #N) is in. */
int grade_shard_of(const char *name, int count);
/* The line of one case: printed where --json wants it, and one of the report, whose `json` it is. True: people want a
 * line of their own. */
bool grade_put_line(struct grading *grading, struct json_object *line, struct report_case *one);
/* The last line: printed where --json wants it, and kept. */
void grade_put_summary(struct grading *grading, struct json_object *line, double seconds);
/* The member "verdicts": how many of each, without those that did not occur. */
void grade_add_verdicts(struct json_object *object, const size_t counts[GRADE_VERDICTS]);
/* Prints why nothing was graded; the exit code: a submission is not there, or the input is wrong. */
int grade_refuse(const struct err *err);
int grade_jobs(const struct grade_options *options);
struct grade_dial grade_dial(struct grading *grading);
/* A private jailer will allow so much. Before the first connection. */
void grade_raise_caps(const struct config *config, int64_t wall_us, int64_t memory, int64_t output);
#define GRADE_INTERRUPTED "sallyport: interrupted: what is not listed was not graded\n"
/* A step of the progress bar; `arg` is a struct grading. */
void grade_progress(void *arg, size_t done, size_t all);

/* The kinds; the exit code. */
int grade_package_run(struct grading *grading, struct err *err);
int grade_tasks_run(struct grading *grading, struct err *err);
int grade_suite_run(struct grading *grading, struct err *err);
