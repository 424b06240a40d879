/*
 * grade_case.h - one submission on one test case: the run, and the validator's word on its output.
 *
 * Both programs run in jails of their own; the submission's holds its files, its standard input and nothing of the
 * answers, the validator's holds the input, the answer and a folder for its feedback. In an interactive problem two
 * pipes join the two jails. In a multi-pass problem that is repeated with the input that the validator wrote
 * (nextpass.in). A sandbox that fails is tried again and never counts against the program.
 */
#pragma once

#include "grade_compare.h"
#include "grade_data.h"
#include "grade_program.h"

struct grade_outcome {
	enum grade_verdict verdict;
	double score;      /* from the validator; NAN: it gave none */
	double multiplier; /* score_multiplier.txt; NAN: none */
	bool late;         /* TLE, but it ended by itself */
	char message[GRADE_MESSAGE];
	int64_t cpu_us, wall_us, memory_bytes; /* of the slowest pass */
};

/* What all cases of a package have in common. */
struct grade_bench {
	const struct grade_package *package;
	const struct grade_program *validators; /* an output has to please all of them */
	size_t n_validators;                    /* 0: the default validator */
	const struct grade_program *grader;    /* legacy: graders/; NULL: none */
	double time_limit;                     /* seconds of CPU time */
	double patience; /* so many times the limit a program runs on; 0: it ends there */
};

/* A jail that is made while another program runs; of one thread and its client, which it must not outlive. */
struct grade_ahead;
void grade_ahead_free(void *ahead); /* a struct grade_ahead *; NULL is fine */

/* `ahead`: where the thread keeps the jail for the next run (NULL: none yet); NULL: nothing is made ahead. */
void grade_case_run(const struct grade_bench *bench, struct jail_client *client, const struct grade_program *program,
		    const struct grade_node *node, struct grade_ahead **ahead, struct grade_outcome *ret);
/* Runs a custom grader over "VERDICT SCORE" lines: verdict and score of *ret are set. An error is the judge's. */
int grade_check_grader(const struct grade_bench *bench, struct jail_client *client, const char *results,
		       char *const *flags, struct grade_outcome *ret, struct err *err);
