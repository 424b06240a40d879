/* store_record_internal.h - what rows of the record have for the other rooms of the store, in their transactions. */
#pragma once

#include "lib/store/db/store_txn.h"
#include "store_file.h"

/* store_holding.c */
int store_txn_hold_imported(struct store_txn *txn, const char *id, struct err *err); /* what an imported run names */
/* Ends each doubt about what owners hold (schema.sql) whose content was not touched since `blob_limit_us`. */
int store_holdings_settle(struct store *store, int64_t blob_limit_us, struct err *err);

/* store_file.c */
void store_file_read(struct query *query, struct store_file *ret); /* columns of STORE_SQL_FILE from 0 */

/* store_token.c: columns of STORE_SQL_TOKEN from 0; a new row and its entry in the audit log, created_us is filled in
 */
struct store_token;
void store_token_read(struct query *query, struct store_token *ret);
int store_txn_token_add(struct store_txn *txn, struct store_token *token, const char *hash, struct err *err);
/* store_token.c: revokes a token, and all grants that it approved; the grants that a statement (:id) finds. Each with
 * its entry in the audit log; what was revoked before stays as it is. */
int store_txn_token_revoke(struct store_txn *txn, const char *id, struct err *err);
int store_txn_token_revoke_all(struct store_txn *txn, enum store_sql which, const char *id, struct err *err);
/* store_oauth_token.c: new tokens of a grant: `parent` is the hash of the refresh token that they are made from, NULL:
 * a code. `granted`: its scopes; `ends_us`: when it ends; scopes, owner, grant and `offline` of *issued are filled in
 * already. Without `refreshes` there is no refresh token. */
struct store_oauth_issued;
struct store_oauth_terms;
struct store_oauth_issue {
	const struct store_oauth_terms *terms;
	const char *parent;
	unsigned granted;
	int64_t ends_us;
	bool refreshes;
};
int store_txn_oauth_issue(struct store_txn *txn, const struct store_oauth_issue *issue,
			  struct store_oauth_issued *issued, struct err *err);
/* store_token.c: brings "last used" of a row up to date, once a minute by either clock and without waiting: at last_us
 * by the machine's clock, at idle_from_us by that of what expires (STORE_NO_IDLE: the row has none). */
void store_seen(struct store *store, enum store_sql statement, const char *id, int64_t last_us, int64_t idle_from_us);
#define STORE_NO_IDLE (-1)

/* store_task.c: what an instance that is gone left; rows whose time is up */
int store_txn_task_abandon(struct store_txn *txn, const char *instance, struct err *err);
int store_txn_task_expire(struct store_txn *txn, struct err *err);

/* store_execution.c: how a run ended and what it printed, as parameters; not copied */
struct store_execution;
void store_execution_bind_outcome(struct query *query, const struct store_execution *e);
/* the rows in execution_file count from now on */
int store_txn_count_files(struct store_txn *txn, const char *id, struct err *err);
