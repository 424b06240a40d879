/*
 * grade_checker.h - special judges: programs that decide which outputs are right, for problems with several right
 * answers. A folder has one for each task that needs it, named by the task's id.
 */
#pragma once

#include "grade_exam.h"

/* Names the programs of a folder in their tasks. ERR_INVALID: it has none for these. */
int grade_checker_find(const char *folder, struct grade_tasks *tasks, struct err *err);
/* The task's, ready to run; or GRADE_JE and why. */
void grade_checker_make(const struct grade_exam *exam, const struct grade_task *task, struct grade_program *ret);
/* What it says of an output: GRADE_AC, GRADE_WA, GRADE_PE; GRADE_JE where it says nothing. */
struct grade_checked {
	const char *input, *answer, *output;
};
enum grade_verdict grade_checker_run(const struct grade_exam *exam, const struct grade_program *checker,
				     const struct grade_checked *checked);
