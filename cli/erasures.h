/* erasures.h - what was erased, as lines: `sallyport forget --list` prints them, `sallyport restore --erasures` takes
 * them. A line is the number of the entry in the audit log, the object, and what was erased of it. */
#pragma once

#include "cli.h"

int erasures_print(struct store *store, bool json, struct err *err);
/* Repeats those of the file's lines (or of another data folder) whose entry the record of `config` does not have: from
 * number `entries` on. */
int erasures_repeat(const struct config *config, const char *from, int64_t entries, int64_t *ret_repeated,
		    struct err *err);
