/* store_audit_internal.h - entries of the audit log that other rooms of the store append in their transactions. */
#pragma once

#include "lib/store/db/store_txn.h"
#include "store_audit.h"

/* The first entry, where the log is empty. */
int store_txn_audit_open(struct store_txn *txn, struct err *err);
/* store_audit_run.c: entries of a run, made from its row */
int store_txn_audit_begin(struct store_txn *txn, const char *id, struct err *err);
int store_txn_audit_end(struct store_txn *txn, const char *id, struct err *err);
int store_txn_audit_token(struct store_txn *txn, enum store_audit_kind kind, const char *id, struct err *err);
int store_txn_audit_call(struct store_txn *txn, const char *execution, int64_t seq, struct err *err);
int store_txn_audit_conversation(struct store_txn *txn, int64_t id, struct err *err);
/* Before rows of a run's files go ("output", "content", as many as `limit`): entries for those that its conversation
 * still has as the run left them, because nothing else of the record says what they are. */
int store_txn_audit_kept(struct store_txn *txn, const char *id, const char *what, int64_t limit, struct err *err);
