/*
 * grade_trial.h - one case under way: between grade_case.c (who runs when) and grade_check.c (what the validator is
 * given and says).
 */
#pragma once

#include "grade_case.h"
#include "grade_load.h"
#include "jail/client/client_once.h"

#define GRADE_PIDS  64 /* processes of a submission or a validator */
#define GRADE_DATA_SLACK (64 << 20) /* what a program may write to /data besides its own files */

/* What a validator wrote into its folder; it persists between passes, but for nextpass.in. */
struct grade_feedback {
	struct jail_file *files;
	size_t count;
	int next; /* nextpass.in; -1 */
};

struct grade_trial {
	const struct grade_bench *bench;
	struct jail_client *client;
	const struct grade_program *program;
	const struct grade_node *node;
	const struct grade_program *validator; /* whose turn it is; NULL: the default validator */
	struct grade_outcome *outcome;
	enum grade_load_word word; /* on the last run */
	struct grade_ahead **ahead;
	struct grade_feedback feedback;
	struct grade_feedback news; /* of the validator's last run: part of the above once that is judged */
	int input; /* of this pass */
	int answer;
	struct jail_file *files; /* of the submission and of the case (NAME.files): what the submission is given */
	size_t n_files;
	size_t n_own;            /* at the end of them: the case's, whose names and descriptors are ours */
};

void grade_feedback_clear(struct grade_feedback *feedback);

/* The validator as a run over `output` (-1: its standard input comes later); both arrays are the caller's. */
struct jail_once grade_check_run(struct grade_trial *trial, int output, struct jail_file **ret_files,
				 const char ***ret_args);
/* What a validator's end says; GRADE_JE: nothing. */
enum grade_verdict grade_check_verdict(const struct grade_program *validator, const struct jail_result *result);
/* The same with its files: sets the outcome. */
void grade_check_judge(struct grade_trial *trial, const struct jail_once *once);
/* The default validator over the output, in this process: sets the outcome. */
void grade_check_compare(struct grade_trial *trial, int output);
