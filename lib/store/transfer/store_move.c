/*
 * store_move.c - see store_move.h.
 *
 * Out: a bundle of another kind, whose rows beyond those of runs are carried as they are. In: the order of an import
 * (store_bundle_check.c, store_bundle_import.c): the schema, then every row, then the contents, then all rows in one
 * transaction, through the functions by which tokens, conversations and files come into being here, so that the audit
 * log has its entries.
 */
#include "store_move.h"

#include <sqlite3.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_drain.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_token.h"
#include "lib/store/retention/store_expire.h"
#include "store_bundle_file.h"

/* clang-format off */
static const struct store_bundle_kind kind = {
	"PRAGMA application_id = 0x5350424f;" STORE_BUNDLE_TABLES
	"CREATE TABLE owner (name TEXT PRIMARY KEY) STRICT;"
	"CREATE TABLE token (" STORE_BUNDLE_COLUMNS(STORE_MOVE_TOKEN) ", PRIMARY KEY (id)) STRICT;"
	"CREATE TABLE snippet (" STORE_BUNDLE_COLUMNS(STORE_MOVE_SNIPPET)
	", PRIMARY KEY (owner, name, version)) STRICT;"
	"CREATE TABLE conversation (name TEXT PRIMARY KEY) STRICT;"
	"CREATE TABLE file (" STORE_BUNDLE_COLUMNS(STORE_MOVE_FILE) ", PRIMARY KEY (conversation, name)) STRICT;"
	"CREATE TABLE run (execution TEXT PRIMARY KEY, conversation TEXT NOT NULL) STRICT;",
	"an owner of sallyport owners pack", 0x5350424f /* "SPBO" */, 5, "SELECT blob FROM file",
	{STORE_BUNDLE_TAGS, STORE_BUNDLE_CALL_TEXTS}};
/* clang-format on */

static const struct {
	const char *sql, *text;
} checks[] = {
	{"SELECT count(*) <> 1 FROM owner", "it has no owner, or several"},
	{"SELECT count(*) FROM token WHERE owner IS NOT (SELECT name FROM owner) OR length(id) IS NOT 36 OR "
	 "length(hash) IS NOT 64 OR typeof(name) <> 'text' OR typeof(scopes) <> 'text'",
	 "a token is not as it must be"},
	{"SELECT count(*) FROM snippet WHERE owner IS NOT (SELECT name FROM owner) OR typeof(version) <> 'integer' OR "
	 "version < 1 OR name IS NULL OR name GLOB '*[^A-Za-z0-9_-]*' OR length(name) NOT BETWEEN 1 AND 64 OR "
	 "length(CAST(description AS BLOB)) > 1024 OR length(CAST(code AS BLOB)) > 65536 OR length(CAST(schema AS "
	 "BLOB)) > 16384 OR length(CAST(servers AS BLOB)) > 65536 OR NOT json_valid(schema) OR NOT "
	 "json_valid(servers) OR typeof(language) <> 'text' OR length(language) > 31",
	 "a snippet is not as it must be"},
	{"SELECT count(*) FROM execution WHERE owner IS NOT (SELECT name FROM owner)", "a run is somebody else's"},
	{"SELECT count(*) FROM file WHERE conversation NOT IN (SELECT name FROM conversation) OR blob NOT IN (SELECT "
	 "sha256 FROM blob) OR typeof(mode) <> 'integer' OR mode NOT BETWEEN 0 AND 511 OR " STORE_BUNDLE_BAD_PATH(
		 "name"),
	 "a file is not as it must be"},
	{"SELECT count(*) FROM file JOIN blob ON sha256 = blob WHERE size IS NOT length(data)",
	 "the size of a file is not that of its content"},
	{"SELECT count(*) FROM run WHERE execution NOT IN (SELECT id FROM execution) OR conversation NOT IN (SELECT "
	 "name "
	 "FROM conversation)",
	 "a run's conversation is missing"},
};

/* Nothing changes while it is read. */
static int check_quiet(struct store *store, const char *owner, struct err *err)
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

/* -------- out ----------------------------------------------------------------------------------------- */

static int carry(struct store_bundle *bundle, struct store *store, enum store_sql from, const char *owner,
		 const char *insert, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	int result = store_reader_take(store, &reader, err);

	if (result < 0)
		return result;
	auto_query struct query q = query_begin(reader.conn, from);

	query_bind_text(&q, ":owner", owner);
	return store_bundle_carry(bundle, &q, insert, err);
}

static int add_owner(struct store_bundle *bundle, const char *owner, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, "INSERT INTO owner VALUES (?1)", &statement, err);

	if (result < 0)
		return result;
	sqlite3_bind_text(statement, 1, owner, -1, SQLITE_STATIC);
	return sqlite3_step(statement) == SQLITE_DONE ? 0 : store_bundle_failed(bundle, err);
}

struct packing {
	struct store_bundle *bundle;
	struct store *store;
	struct err *err;
	int64_t count, erased;
	int result;
};

static int add_run(void *arg, const struct store_execution *execution)
{
	struct packing *packing = arg;

	if (execution->erased[0]) {
		packing->erased++; /* the fact stays where it was recorded */
		return 0;
	}
	packing->result = store_bundle_add(packing->bundle, packing->store, execution->id, packing->err);
	packing->count++;
	return packing->result;
}

static int add_rows(struct store_bundle *bundle, struct store *store, const char *owner, struct store_moved *ret,
		    struct err *err)
{
	const struct {
		enum store_sql from;
		const char *insert;
		int64_t *count;
	} tables[] = {
		{SQL_MOVE_TOKENS, "INSERT INTO token VALUES (" BUNDLE_VALUES(STORE_MOVE_TOKEN) ")", &ret->tokens},
		{SQL_MOVE_SNIPPETS, "INSERT INTO snippet VALUES (" BUNDLE_VALUES(STORE_MOVE_SNIPPET) ")",
		 &ret->snippets},
		{SQL_MOVE_CONVERSATIONS, "INSERT INTO conversation VALUES (?1)", &ret->conversations},
		{SQL_MOVE_FILES, "INSERT INTO file VALUES (" BUNDLE_VALUES(STORE_MOVE_FILE) ")", &ret->files},
		{SQL_MOVE_RUNS, "INSERT INTO run SELECT ?1, ?2 WHERE ?1 IN (SELECT id FROM execution)", NULL},
	};
	int result = add_owner(bundle, owner, err);

	for (size_t i = 0; result >= 0 && i < ARRAY_SIZE(tables); i++) {
		result = carry(bundle, store, tables[i].from, owner, tables[i].insert, err);
		if (result >= 0 && tables[i].count)
			*tables[i].count = result;
	}
	return MIN(result, 0);
}

int store_move_pack(struct store *store, const char *owner, const char *path, struct store_moved *ret, struct err *err)
{
	const struct store_filter filter = {.owner = owner};
	struct packing packing = {.store = store, .err = err};
	int result = check_quiet(store, owner, err);

	*ret = (struct store_moved){0};
	if (result == 0)
		result = store_bundle_create(path, &kind, &packing.bundle, err);
	if (result < 0)
		return result;
	result = store_execution_list(store, &filter, add_run, &packing, err);
	if (result == 0)
		result = packing.result;
	if (result == 0)
		result = add_rows(packing.bundle, store, owner, ret, err);
	if (result == 0)
		result = store_bundle_finish(packing.bundle, store, err);
	ret->executions = packing.count;
	ret->erased = packing.erased;
	store_bundle_close(packing.bundle);
	return result;
}

/* -------- in ------------------------------------------------------------------------------------------ */

struct unpacking {
	struct store_bundle *bundle;
	const char *owner;
	struct store_moved *done;
};

static int refuse_if_there(struct store_txn *txn, const char *owner, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_MOVE_CONVERSATIONS);

	query_bind_text(&q, ":owner", owner);
	int found = query_next(&q, err);

	return found <= 0 ? found
			  : err_set(err, ERR_CONFLICT,
				    "%s has conversations here already, such as \"%s\": nothing was written", owner,
				    query_text(&q, 0));
}

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

static int put_tokens(struct store_txn *txn, struct unpacking *unpacking, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(unpacking->bundle, "SELECT " BUNDLE_NAMES(STORE_MOVE_TOKEN) " FROM token",
					  &row, err);

	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		result = put_token(txn, row, err);
		unpacking->done->tokens++;
	}
	return result;
}

static int put_snippets(struct store_txn *txn, struct unpacking *unpacking, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(unpacking->bundle,
					  "SELECT " BUNDLE_NAMES(STORE_MOVE_SNIPPET) " FROM snippet", &row, err);

	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		auto_query struct query q = query_begin(txn->conn, SQL_MOVE_SNIPPET_PUT);

		store_bundle_bind_row(&q, row, NULL);
		result = query_run(&q, NULL, err);
		unpacking->done->snippets++;
	}
	return result;
}

static int put_files(struct store_txn *txn, struct unpacking *unpacking, const struct store_conversation *conversation,
		     struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(unpacking->bundle,
					  "SELECT " BUNDLE_NAMES(STORE_MOVE_FILE) " FROM file WHERE conversation = ?1",
					  &row, err);

	if (result == 0)
		sqlite3_bind_text(row, 1, conversation->name, -1, SQLITE_STATIC);
	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		struct store_file file = {.mode = (uint32_t)sqlite3_column_int64(row, 4),
					  .size = sqlite3_column_int64(row, 5),
					  .mtime_us = sqlite3_column_int64(row, 6)};

		file.name = sqlite3_column_blob(row, 1);
		file.name_length = (size_t)sqlite3_column_bytes(row, 1);
		snprintf(file.blob, sizeof(file.blob), "%s", (const char *)sqlite3_column_text(row, 2));
		snprintf(file.media_type, sizeof(file.media_type), "%s", (const char *)sqlite3_column_text(row, 3));
		result = store_txn_file_put(txn, conversation->row, &file, err);
		unpacking->done->files++;
	}
	return result;
}

static int link_runs(struct store_txn *txn, struct unpacking *unpacking, const struct store_conversation *conversation,
		     struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result =
		store_bundle_prepare(unpacking->bundle, "SELECT execution FROM run WHERE conversation = ?1", &row, err);

	if (result == 0)
		sqlite3_bind_text(row, 1, conversation->name, -1, SQLITE_STATIC);
	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		auto_query struct query q = query_begin(txn->conn, SQL_MOVE_RUN_LINK);

		query_bind_int(&q, ":conversation", conversation->row);
		query_bind_text(&q, ":execution", (const char *)sqlite3_column_text(row, 0));
		result = query_run(&q, NULL, err);
	}
	return result;
}

static int put_conversations(struct store_txn *txn, struct unpacking *unpacking, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(unpacking->bundle, "SELECT name FROM conversation", &row, err);

	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		struct store_conversation conversation;

		result = store_txn_conversation(txn, unpacking->owner, (const char *)sqlite3_column_text(row, 0),
						&conversation, err);
		if (result == 0)
			result = put_files(txn, unpacking, &conversation, err);
		if (result == 0)
			result = link_runs(txn, unpacking, &conversation, err);
		unpacking->done->conversations++;
	}
	return result;
}

static int unpack_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct unpacking *unpacking = arg;
	struct store_carried carried = {0};
	int result = refuse_if_there(txn, unpacking->owner, err);

	*unpacking->done = (struct store_moved){0};
	if (result == 0)
		result = store_bundle_import_rows(txn, unpacking->bundle, &carried, err);
	if (result == 0)
		result = put_tokens(txn, unpacking, err);
	if (result == 0)
		result = put_snippets(txn, unpacking, err);
	if (result == 0)
		result = put_conversations(txn, unpacking, err);
	unpacking->done->executions = result == 0 ? carried.executions : 0;
	return result;
}

static int read_owner(struct store_bundle *bundle, char **ret, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, "SELECT name FROM owner", &row, err);

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(checks); i++) {
		int64_t count = 0;

		result = store_bundle_number(bundle, checks[i].sql, &count, err);
		if (result == 0 && count > 0)
			result = err_set(err, ERR_INVALID, "%s: %s", bundle->path, checks[i].text);
	}
	if (result < 0)
		return result;
	if (sqlite3_step(row) != SQLITE_ROW || !store_owner_valid((const char *)sqlite3_column_text(row, 0)))
		return err_set(err, ERR_INVALID, "%s: its owner has no valid name", bundle->path);
	*ret = xstrdup((const char *)sqlite3_column_text(row, 0));
	return 0;
}

int store_move_unpack(struct store *store, const char *path, char **ret_owner, struct store_moved *ret, struct err *err)
{
	struct unpacking unpacking = {.done = ret};
	auto_free char *owner = NULL;
	int result = store_bundle_read(path, &kind, &unpacking.bundle, err);

	if (result < 0)
		return result;
	result = read_owner(unpacking.bundle, &owner, err);
	unpacking.owner = owner;
	if (result == 0)
		result = store_bundle_check_room(unpacking.bundle, store, err);
	if (result == 0)
		result = store_bundle_import_blobs(unpacking.bundle, store, err);
	if (result == 0)
		result = store_commit(store, unpack_work, &unpacking, err);
	store_bundle_close(unpacking.bundle);
	if (result == 0)
		*ret_owner = steal(&owner);
	return result;
}

int store_move_leave(struct store *store, const char *owner, struct err *err)
{
	int result = check_quiet(store, owner, err);

	return result < 0 ? result : store_expire_owner(store, owner, err);
}
