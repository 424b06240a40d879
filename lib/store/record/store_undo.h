/*
 * store_undo.h - the files that a conversation had before or after one of its runs: the record names them all
 * (execution_file), so going back needs no copies.
 */
#pragma once

#include "store_file.h"

struct store_undo {
	const char *execution; /* id, whole */
	bool after;
};
/* Is each content in the blob folder? Looked at before the transaction, because there may be thousands. */
int store_undo_check(struct store *store, const struct store_undo *state, struct err *err);
/* Gets each file that is removed or put; its name is valid until the function returns. */
struct store_undo_watch {
	void (*removed)(void *arg, const struct store_file *file);
	void (*put)(void *arg, const struct store_file *file);
	void *arg;
};
/* Makes the files of the owner's conversation those of the state. ERR_NOT_FOUND: the run's files were erased;
 * ERR_LIMIT: the owner's cap. */
int store_txn_undo(struct store_txn *txn, const char *owner, int64_t conversation, const struct store_undo *state,
		    const struct store_undo_watch *watch, struct err *err);
