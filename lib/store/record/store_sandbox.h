/*
 * store_sandbox.h - live sandboxes in the record: which runs shared one jail, in which order, and why it was closed.
 *
 * The job engine owns the sandboxes themselves. This table serves two questions: which runs must be replayed
 * together, and was the state that a caller counts on lost, even over a restart of the gateway?
 */
#pragma once

#include "lib/store/store.h"

#define STORE_CAUSE_SIZE 8

struct store_sandbox {
	const char *id, *owner, *conversation, *language;
};
/* In the transaction of its first run. *ret_before is how the one before it in this place ended: "" there was none,
 * "reset" by request, "idle", "ended", "lost" (schema.sql), or "gone": its gateway ended. */
int store_txn_sandbox_add(struct store_txn *txn, const struct store_sandbox *sandbox, char ret_before[STORE_CAUSE_SIZE],
			  struct err *err);
/* No harm if it has an end already, or was never written. */
int store_txn_sandbox_end(struct store_txn *txn, const char *id, const char *cause, struct err *err);
/* The state of all that were there in this place, of the language or (language "") of every one, is given up: id is not
 * used. */
int store_txn_sandbox_dismiss(struct store_txn *txn, const struct store_sandbox *place, struct err *err);
/* The ids of its executions up to number `last`, in order; a negative code of `each` stops and is passed on. */
int store_sandbox_runs(struct store *store, const char *id, int64_t last,
		       int (*each)(void *arg, const char *execution_id), void *arg, struct err *err);
