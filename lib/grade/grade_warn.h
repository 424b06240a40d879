/*
 * grade_warn.h - what in a package is surely not as its author meant it, though it can be judged.
 *
 * Names that 2025-09 leaves out, answers without an input, files that were not fetched, and words and patterns of
 * submissions.yaml that say nothing: without a warning a case or an expectation would be lost in silence.
 */
#pragma once

#include "grade_judge.h"

#define GRADE_WARNINGS_MAX 20 /* texts for one package; the last one says how many more there are */

/* Calls `say` with each, after grade_judge_open. `all`: the list is all of the package's submissions. */
void grade_warn(const struct grade_judge *judge, bool all, void (*say)(void *arg, const char *text), void *arg);
