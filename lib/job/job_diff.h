/* job_diff.h - what a recorded run changed of its conversation's files, as text: unified diffs. */
#pragma once

#include "job.h"

#define JOB_DIFF_FILE_MAX (1024 * 1024) /* of larger files the sizes are shown alone */
#define JOB_DIFF_LINES    300           /* of each file */

/* Appends one part a file: a unified diff of what is text, the sizes of everything else. What no longer fits the buffer
 * is counted in its last line. Nothing where the run changed nothing. ERR_NOT_FOUND: its files were erased; ERR_BUSY:
 * it has not ended. */
int job_diff(struct store *store, const struct store_execution *execution, struct buf *ret, struct err *err);
