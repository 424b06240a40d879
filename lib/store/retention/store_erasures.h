/*
 * store_erasures.h - the erasures that the audit log names, and repeating them: a backup that is restored brings back
 * what was erased after it was made.
 */
#pragma once

#include "store_erase.h"

#define STORE_ERASURE_OBJECT_SIZE 80

/* An entry of kind content.erase. */
struct store_erasure {
	int64_t n;                              /* of the entry */
	char object[STORE_ERASURE_OBJECT_SIZE]; /* "execution:ID", "conversation:" and the hash of its place */
	char what[16];                          /* "content", "output" */
};
/* In the order of the log. */
int store_erasures_list(struct store *store, int (*each)(void *arg, const struct store_erasure *erasure), void *arg,
			struct err *err);
/* Does it once more; what is not there, or is erased, stays as it is. Adds to *ret. ERR_INVALID: it is none. */
int store_erasures_repeat(struct store *store, const struct store_erasure *erasure, struct store_erased *ret,
			  struct err *err);
