/*
 * grade_sample.h - samples of tasks: where they are read from, and what of their text is code.
 */
#pragma once

#include "grade_task.h"

/* Fills in the samples of tasks that are open. A line that is no sample is left out and named; ERR_INVALID where that
 * leaves none. */
int grade_sample_open(const struct grade_tasks_source *source, struct grade_tasks *tasks, struct err *err);
/* The code in text with fences of Markdown; the caller's, NULL: it has none, and is code. */
char *grade_sample_unfence(const char *text, const char *entry);
/* Does a line of Python define or assign the name, at its beginning? */
bool grade_sample_defines(const char *text, const char *name);
