/*
 * grade_format.h - the formats of tasks, told apart by the members of a line.
 *
 * Each format fills in the same struct grade_task: what comes before a sample, the function in question, and the tests:
 * code (`suite`, which the tests' process gets as it is), cases of arguments (in `suite`, too), or cases of standard
 * input (`cases`). Sources: the formats' own harnesses (docs/man/sallyport-grade.mdoc has the list of members).
 */
#pragma once

#include "grade_task.h"

/* Fills in *ret, whose `line` is set. ERR_INVALID: no format has such members, or a member that looks like tests would
 * not be run. `language`: a runner's name or alias instead of what the task says; NULL. */
int grade_format_read(struct grade_task *ret, const char *language, struct err *err);
/* The formats and the members by which each is known, for people; the caller's. */
char *grade_format_list(void);
