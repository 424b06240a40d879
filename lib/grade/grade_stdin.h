/*
 * grade_stdin.h - a sample against cases of standard input: one program, a jail a case, the output compared here.
 */
#pragma once

#include "grade_exam.h"

/* All cases run, so that the result tells how many passed; after one that was too slow no more does. */
void grade_stdin_exam(const struct grade_exam *exam, const struct grade_sample *sample, struct grade_exam_result *ret);
/* A run of a program on one input, in a jail of its own; again where the sandbox failed or other work had the
 * processors. */
struct grade_stdin_run {
	struct jail_client *client;
	const struct grade_program *program;
	struct jail_limits limits; /* of the first run */
	const char *input;
	size_t length;
	/* What came of it: */
	struct grade_exam_result result; /* GRADE_AC: it ended well, and its output decides */
	struct jail_once once;           /* with its output; the caller clears it */
};
void grade_stdin_run(struct grade_stdin_run *run);
/* Is the output right? */
bool grade_stdin_same(enum grade_compare_kind kind, const char *expected, const char *output);
