/*
 * grade.h - between the files of `sallyport grade`: cmd_grade.c (which kind of input), grade_package.c and
 * grade_tasks.c, grade_suite.c (each grades one kind), grade_report.c (how a package's submissions are shown).
 */
#pragma once

#include "cli.h"
#include "lib/grade/grade_judge.h"

struct grade_options {
	struct cli_common common;
	int64_t jobs, time_limit_us;
	bool no_cache, fail_fast;
	struct bind_strings tags;
	const char *samples, *solution, *language, *k;
};

/* What is graded, by whom; each kind of input has a struct of its own around it. */
struct grading {
	const struct grade_options *options;
	const struct config *config;
	struct cli_progress progress;
};
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

/* What all submissions of a package came to. */
struct grade_summary {
	size_t submissions, as_expected, unexpected, skipped, judge_errors, cases_run, compiled, from_cache;
	size_t verdicts[GRADE_VERDICTS];
};

enum grade_expected { GRADE_EXPECTED_NOTHING, GRADE_EXPECTED_NO, GRADE_EXPECTED_YES };
enum grade_expected grade_report_expected(const struct grade_submission *submission);

/* Counts a submission and prints its line: JSON, or for people. */
void grade_report_submission(const struct grade_judge *judge, const struct grade_submission *submission, bool json,
			     struct grade_summary *summary);
void grade_report_summary(const struct grade_judge *judge, const struct grade_summary *summary, bool json,
			  double seconds);
