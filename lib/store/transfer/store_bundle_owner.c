/*
 * store_bundle_owner.c - an owner who moves from host to host: the rows of a bundle besides those of runs.
 *
 * On the way in, tokens, conversations and files come into being through the functions that make them elsewhere, so
 * that the audit log has its entries.
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/db/store_sql_move.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_drain.h"
#include "lib/store/record/store_file.h"
#include "lib/store/retention/store_expire.h"
#include "store_bundle_file.h"

const char *store_bundle_owner(const struct store_bundle *bundle)
{
	return bundle->owner;
}

int store_bundle_owner_quiet(struct store *store, const char *owner, struct err *err)
{
	bool drained = false;
	int64_t left = 0;
	int result = store_drained(store, owner, &drained, err);

	if (result == 0)
		result = store_under_way(store, owner, &left, err);
	if (result < 0)
		return result;
	if (!drained)
		return err_set(err, ERR_CONFLICT, "%s may start runs here: call 'sallyport drain --owner %s' first",
			       owner, owner);
	if (left > 0)
		return err_set(err, ERR_CONFLICT, "%lld runs and tasks of %s are under way: wait for them",
			       (long long)left, owner);
	return 0;
}

int store_bundle_owner_leave(struct store *store, const char *owner, struct err *err)
{
	int result = store_bundle_owner_quiet(store, owner, err);

	return result < 0 ? result : store_expire_owner(store, owner, err);
}

/* -------- out ----------------------------------------------------------------------------------------- */

int store_bundle_owner_add(struct store_bundle *bundle, struct store *store, const char *owner,
			   struct store_carried *ret, struct err *err)
{
	const struct {
		struct store_bundle_rows rows;
		int64_t *count;
	} tables[] = {
		{{SQL_MOVE_TOKENS, "INSERT INTO token VALUES (" BUNDLE_VALUES(STORE_MOVE_TOKEN) ")"}, &ret->tokens},
		{{SQL_MOVE_SNIPPETS, "INSERT INTO snippet VALUES (" BUNDLE_VALUES(STORE_MOVE_SNIPPET) ")"},
		 &ret->snippets},
		{{SQL_MOVE_CONVERSATIONS, "INSERT INTO conversation VALUES (?1)"}, &ret->conversations},
		{{SQL_MOVE_FILES, "INSERT INTO file VALUES (" BUNDLE_VALUES(STORE_MOVE_FILE) ")"}, &ret->files},
		{{SQL_MOVE_RUNS, "INSERT INTO run SELECT ?1, ?2 WHERE ?1 IN (SELECT id FROM execution)"}, NULL},
	};
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, "INSERT INTO owner VALUES (?1)", owner, &statement, err);

	if (result == 0)
		result = store_bundle_next(bundle, statement, err);
	for (size_t i = 0; result >= 0 && i < ARRAY_SIZE(tables); i++) {
		result = store_bundle_carry(bundle, store, &tables[i].rows, ":owner", owner, err);
		if (result >= 0 && tables[i].count)
			*tables[i].count = result;
	}
	return MIN(result, 0);
}

/* -------- in ------------------------------------------------------------------------------------------ */

static int put_token(struct store_txn *txn, sqlite3_stmt *row, struct err *err)
{
	const char *id = (const char *)sqlite3_column_text(row, 0);
	const bool revoked = sqlite3_column_type(row, 7) != SQLITE_NULL;
	auto_query struct query known = query_begin(txn->conn, SQL_MOVE_TOKEN_KNOWN);

	query_bind_text(&known, ":id", id);
	int there = query_next(&known, err);
	const bool was_revoked = there > 0 && query_int(&known, 0) != 0;

	if (there < 0)
		return there;
	auto_query struct query q = query_begin(txn->conn, SQL_MOVE_TOKEN_PUT);

	store_bundle_bind_row(&q, row, NULL);
	int result = query_run(&q, NULL, err);

	if (result == 0 && !there)
		result = store_txn_audit_token(txn, STORE_AUDIT_TOKEN_ADD, id, err);
	if (result == 0 && revoked && !was_revoked)
		result = store_txn_audit_token(txn, STORE_AUDIT_TOKEN_REVOKE, id, err);
	return result;
}

static int put_snippet(struct store_txn *txn, sqlite3_stmt *row, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_MOVE_SNIPPET_PUT);

	store_bundle_bind_row(&q, row, NULL);
	return query_run(&q, NULL, err);
}

/* The file that `row` is at. */
static int put_file(struct store_txn *txn, sqlite3_stmt *row, int64_t conversation, struct err *err)
{
	struct store_file file = {.name = sqlite3_column_blob(row, 1),
				  .name_length = (size_t)sqlite3_column_bytes(row, 1),
				  .mode = (uint32_t)sqlite3_column_int64(row, 4),
				  .size = sqlite3_column_int64(row, 5),
				  .mtime_us = sqlite3_column_int64(row, 6)};

	snprintf(file.blob, sizeof(file.blob), "%s", (const char *)sqlite3_column_text(row, 2));
	snprintf(file.media_type, sizeof(file.media_type), "%s", (const char *)sqlite3_column_text(row, 3));
	int result = store_txn_file_put(txn, conversation, &file, err);

	return result < 0 ? result
			  : store_txn_audit_file(txn, conversation, file.name, file.name_length, NULL, err);
}

/* A conversation with its files; its runs belong to it again. */
static int put_conversation(struct store_txn *txn, struct store_bundle *bundle, const char *name,
			    struct store_carried *ret, struct err *err)
{
	auto_statement sqlite3_stmt *files = NULL, *runs = NULL;
	struct store_conversation conversation;
	int result = store_txn_conversation(txn, bundle->owner, name, &conversation, err);

	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT * FROM file WHERE conversation = ?1", name, &files, err);
	while (result == 0 && (result = store_bundle_next(bundle, files, err)) > 0) {
		result = put_file(txn, files, conversation.row, err);
		ret->files++;
	}
	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT execution FROM run WHERE conversation = ?1", name, &runs,
					      err);
	while (result == 0 && (result = store_bundle_next(bundle, runs, err)) > 0) {
		auto_query struct query q = query_begin(txn->conn, SQL_MOVE_RUN_LINK);

		query_bind_int(&q, ":conversation", conversation.row);
		query_bind_text(&q, ":execution", (const char *)sqlite3_column_text(runs, 0));
		result = query_run(&q, NULL, err);
	}
	ret->conversations++;
	return result;
}

int store_bundle_owner_import(struct store_txn *txn, struct store_bundle *bundle, struct store_carried *ret,
			      bool *ret_refused, struct err *err)
{
	auto_statement sqlite3_stmt *tokens = NULL, *snippets = NULL, *conversations = NULL;
	auto_query struct query here = query_begin(txn->conn, SQL_MOVE_CONVERSATIONS);

	query_bind_text(&here, ":owner", bundle->owner);
	int result = query_next(&here, err);

	*ret_refused = result > 0;
	if (result > 0)
		return err_set(err, ERR_CONFLICT,
			       "%s has conversations here already, such as \"%s\": nothing was written", bundle->owner,
			       query_text(&here, 0));
	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT * FROM token", NULL, &tokens, err);
	for (; result == 0 && (result = store_bundle_next(bundle, tokens, err)) > 0; ret->tokens++)
		result = put_token(txn, tokens, err);
	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT * FROM snippet", NULL, &snippets, err);
	for (; result == 0 && (result = store_bundle_next(bundle, snippets, err)) > 0; ret->snippets++)
		result = put_snippet(txn, snippets, err);
	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT name FROM conversation", NULL, &conversations, err);
	while (result == 0 && (result = store_bundle_next(bundle, conversations, err)) > 0)
		result = put_conversation(txn, bundle, (const char *)sqlite3_column_text(conversations, 0), ret, err);
	return result;
}
