/* show_steps.h - a conversation step by step: what was put, what ran, what became of its files. */
#pragma once

#include "cli.h"

struct show_steps {
	const char *owner; /* NULL: the only one who has it */
	const char *conversation;
	bool json; /* an object a step, on a line of its own */
};
/* ERR_NOT_FOUND: nothing ran there; ERR_CONFLICT: several owners have a conversation of this name. */
int show_steps(struct store *store, const struct show_steps *which, struct err *err);
