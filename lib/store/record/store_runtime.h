/* store_runtime.h - what programs ran on (interpreter, libraries, kernel, processor): each once, runs refer to it. */
#pragma once

#include "lib/store/db/crypto.h"
#include "lib/store/store.h"

struct store_txn;
struct store_runtime {
	char hash[SHA256_HEX_SIZE]; /* of the text */
	char *text;                 /* a JSON object */
};
/* Puts it where it is not there yet, and notes that the execution ran on it. */
int store_txn_runtime(struct store_txn *txn, const char *execution, const struct store_runtime *runtime,
		      struct err *err);
/* What the execution ran on; *ret NULL: that was not recorded. The caller's. */
int store_runtime_of(struct store *store, const char *execution, char **ret, struct err *err);
