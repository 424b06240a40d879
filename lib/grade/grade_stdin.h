/*
 * grade_stdin.h - a sample against cases of standard input: one program, a jail a case, the output compared here.
 */
#pragma once

#include "grade_exam.h"

/* All cases run, so that the result tells how many passed; after one that was too slow no more does. */
void grade_stdin_exam(const struct grade_exam *exam, const struct grade_sample *sample, struct grade_exam_result *ret);
/* Is the output right? */
bool grade_stdin_same(enum grade_compare_kind kind, const char *expected, const char *output);
