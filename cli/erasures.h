/* erasures.h - the lines of `sallyport forget --list`, which `sallyport restore --erasures` repeats. A line is the
 * number of the entry in the audit log, the object, and what was erased of it. */
#pragma once

#include "cli.h"

/* Repeats those of the file's lines (or of another data folder) whose entry the record of `config` does not have: from
 * number `entries` on. */
int erasures_repeat(const struct config *config, const char *from, int64_t entries, int64_t *ret_repeated,
		    struct err *err);
