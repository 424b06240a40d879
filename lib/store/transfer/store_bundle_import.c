/*
 * store_bundle_import.c - a bundle of somebody else, into this record.
 *
 * The order: everything is checked (store_bundle_check.c); then the contents go into the blob folder, where nothing
 * names them yet and the garbage collector finds them if it ends here; then the rows, in one transaction, under the
 * constraints of schema.sql.
 */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_bundle_file.h"

#define FREE_PART 20 /* a 20th of the disk stays free */

int store_bundle_check_room(struct store_bundle *bundle, struct store *store, struct err *err)
{
	struct statvfs disk;
	int64_t pages = 0, size = 0;
	int result = store_bundle_number(bundle, "PRAGMA page_count", &pages, err);

	if (result == 0)
		result = store_bundle_number(bundle, "PRAGMA page_size", &size, err);
	if (result < 0)
		return result;
	if (fstatvfs(store->dir_fd, &disk) < 0)
		return err_errno(err, "looking at the disk of %s", store->path);
	/* contents once, rows in the database and in its log */
	if ((uint64_t)(2 * pages * size) + disk.f_blocks * disk.f_frsize / FREE_PART > disk.f_bavail * disk.f_frsize)
		return err_set(err, ERR_LIMIT, "%s: there is no room for it on the disk of %s", bundle->path,
			       store->path);
	return 0;
}

struct importing {
	struct store_bundle *bundle;
	struct store_carried done;
};

/* The row that `row` is at, by the names of its columns. */
void store_bundle_bind_row(struct query *to, sqlite3_stmt *row, const char *but)
{
	for (int i = 0; i < sqlite3_column_count(row); i++) {
		char name[64];

		if (but && streq(sqlite3_column_name(row, i), but))
			continue;
		snprintf(name, sizeof(name), ":%s", sqlite3_column_name(row, i));
		query_bind_value(to, name, sqlite3_column_value(row, i));
	}
}

static int import_blob_rows(struct store_txn *txn, struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, "SELECT sha256 FROM blob", &row, err);

	while (result == 0 && sqlite3_step(row) == SQLITE_ROW)
		result = store_txn_blob(txn, (const char *)sqlite3_column_text(row, 0), -1, err);
	return result;
}

static int import_sandboxes(struct store_txn *txn, struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, "SELECT * FROM sandbox", &row, err);

	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		auto_query struct query q = query_begin(txn->conn, SQL_IMPORT_SANDBOX);

		store_bundle_bind_row(&q, row, NULL);
		query_bind_text(&q, ":instance", txn->store->instance);
		result = query_run(&q, NULL, err);
	}
	return result;
}

/* The rows of a table that belong to an execution. */
static int import_rows_of(struct store_txn *txn, struct store_bundle *bundle, const char *id, const char *select,
			  enum store_sql insert, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, select, &row, err);

	if (result == 0)
		sqlite3_bind_text(row, 1, id, -1, SQLITE_STATIC);
	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		auto_query struct query q = query_begin(txn->conn, insert);

		store_bundle_bind_row(&q, row, NULL);
		result = query_run(&q, NULL, err);
	}
	return result;
}

/* Also of an execution that was there: generations that it lacks. */
static int import_baselines(struct store_txn *txn, struct store_bundle *bundle, const char *id, struct err *err)
{
	const struct {
		const char *select;
		enum store_sql insert;
	} tables[] = {
		{"SELECT * FROM baseline WHERE execution = ?1 ORDER BY generation", SQL_IMPORT_BASELINE},
		{"SELECT * FROM baseline_file WHERE execution = ?1", SQL_IMPORT_BASELINE_FILE},
		{"SELECT * FROM baseline_server WHERE execution = ?1", SQL_IMPORT_BASELINE_SERVER},
		{store_bundle_has(bundle, STORE_BUNDLE_CALL_TEXTS)
			 ? "SELECT * FROM baseline_call LEFT JOIN call_text USING (execution, generation, seq) WHERE "
			   "execution = ?1"
			 : "SELECT *, NULL AS arguments_blob, NULL AS result_blob FROM baseline_call WHERE "
			   "execution = ?1",
		 SQL_IMPORT_BASELINE_CALL},
	};
	int result = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tables) && result == 0; i++)
		result = import_rows_of(txn, bundle, id, tables[i].select, tables[i].insert, err);
	return result;
}

/* Also of an execution that was there: tags that it lacks. */
static int import_tags(struct store_txn *txn, struct store_bundle *bundle, const char *id, int64_t *ret_new,
		       struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, "SELECT * FROM execution_tag WHERE execution = ?1", &row, err);

	if (result == 0)
		sqlite3_bind_text(row, 1, id, -1, SQLITE_STATIC);
	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		auto_query struct query q = query_begin(txn->conn, SQL_IMPORT_TAG);
		int64_t rows = 0;

		store_bundle_bind_row(&q, row, NULL);
		result = query_run(&q, &rows, err);
		*ret_new += rows;
	}
	return result;
}

static int is_there(struct store_txn *txn, const char *id, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_EXECUTION_STATE);

	query_bind_text(&q, ":id", id);
	return query_next(&q, err);
}

/* All of a table whose rows are shared by runs. */
static int import_shared(struct store_txn *txn, struct store_bundle *bundle, const char *select, enum store_sql insert,
			 struct err *err)
{
	return import_rows_of(txn, bundle, "", select, insert, err);
}

/* The servers of a run and its calls, each with its entry of the audit log. */
static int import_calls(struct store_txn *txn, struct store_bundle *bundle, const char *id, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = import_rows_of(txn, bundle, id, "SELECT * FROM execution_server WHERE execution = ?1",
				    SQL_IMPORT_SERVER, err);

	if (result == 0)
		result = import_rows_of(txn, bundle, id,
					store_bundle_has(bundle, STORE_BUNDLE_CALL_TEXTS)
						? "SELECT c.*, arguments_blob, result_blob FROM tool_call AS c LEFT "
						  "JOIN call_text AS t ON t.execution = c.execution AND t.seq = c.seq "
						  "AND generation = 1 WHERE c.execution = ?1"
						: "SELECT *, NULL AS arguments_blob, NULL AS result_blob FROM "
						  "tool_call WHERE execution = ?1",
					SQL_IMPORT_CALL, err);
	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT seq FROM tool_call WHERE execution = ?1 ORDER BY seq",
					      &row, err);
	if (result == 0)
		sqlite3_bind_text(row, 1, id, -1, SQLITE_STATIC);
	while (result == 0 && sqlite3_step(row) == SQLITE_ROW)
		result = store_txn_audit_call(txn, id, sqlite3_column_int64(row, 0), err);
	return result;
}

static int import_one(struct store_txn *txn, struct store_bundle *bundle, sqlite3_stmt *row, struct err *err)
{
	const char *id = (const char *)sqlite3_column_text(row, 0);
	const char *env = (const char *)sqlite3_column_text(row, sqlite3_column_count(row) - 1);
	auto_buf struct buf sealed = {0};
	auto_query struct query q = query_begin(txn->conn, SQL_IMPORT_EXECUTION);

	buf_init(&sealed, SIZE_MAX / 2);
	if (env)
		seal(txn->store->env_key, id, env, strlen(env), &sealed);
	store_bundle_bind_row(&q, row, "env");
	query_bind_blob(&q, ":env", sealed.length > 0 ? sealed.data : NULL, sealed.length);
	query_bind_text(&q, ":instance", txn->store->instance);
	int result = query_run(&q, NULL, err);

	if (result == 0)
		result = import_rows_of(txn, bundle, id, "SELECT * FROM execution_file WHERE execution = ?1",
					SQL_IMPORT_FILE, err);
	if (result == 0)
		result = store_txn_hold_imported(txn, id, err);
	if (result == 0)
		result = store_txn_audit_begin(txn, id, err);
	if (result == 0)
		result = store_txn_audit_end(txn, id, err);
	return result < 0 ? result : import_calls(txn, bundle, id, err);
}

static int audit_import(struct store_txn *txn, const struct store_carried *done, struct err *err)
{
	struct store_audit entry;

	store_audit_init(&entry, STORE_AUDIT_IMPORT, "log", "audit");
	store_audit_int(&entry, "executions", done->executions);
	store_audit_int(&entry, "added", done->added);
	store_audit_int(&entry, "tags", done->tags);
	return store_txn_audit(txn, &entry, err);
}

int store_bundle_import_blobs(struct store_bundle *bundle, struct store *store, struct err *err)
{
	int64_t bytes = 0;

	return store_bundle_each_blob(bundle, store, &bytes, err);
}

int store_bundle_import_rows(struct store_txn *txn, struct store_bundle *bundle, struct store_carried *ret,
			     struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = import_blob_rows(txn, bundle, err);

	*ret = (struct store_carried){0};
	if (result == 0)
		result = import_sandboxes(txn, bundle, err);
	if (result == 0)
		result = import_shared(txn, bundle, "SELECT * FROM runtime", SQL_IMPORT_RUNTIME, err);
	if (result == 0)
		result = import_shared(txn, bundle, "SELECT * FROM tool_list", SQL_IMPORT_TOOL_LIST, err);
	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT * FROM execution ORDER BY id", &row, err);
	while (result == 0 && sqlite3_step(row) == SQLITE_ROW) {
		int there = is_there(txn, (const char *)sqlite3_column_text(row, 0), err);

		if (there < 0)
			return there;
		if (there == 0)
			result = import_one(txn, bundle, row, err);
		if (result == 0)
			result = import_baselines(txn, bundle, (const char *)sqlite3_column_text(row, 0), err);
		if (result == 0 && store_bundle_has(bundle, STORE_BUNDLE_TAGS))
			result = import_tags(txn, bundle, (const char *)sqlite3_column_text(row, 0), &ret->tags, err);
		ret->executions++;
		ret->added += !there;
	}
	if (result == 0 && (ret->added > 0 || ret->tags > 0))
		result = audit_import(txn, ret, err);
	return result;
}

static int import_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct importing *importing = arg;

	return store_bundle_import_rows(txn, importing->bundle, &importing->done, err);
}

int store_bundle_import(struct store_bundle *bundle, struct store *store, struct store_carried *ret, struct err *err)
{
	struct importing importing = {.bundle = bundle};
	int result = store_bundle_check_room(bundle, store, err);

	if (result == 0)
		result = store_bundle_import_blobs(bundle, store, err);
	if (result == 0)
		result = store_commit(store, import_work, &importing, err);
	if (result == -ERR_CONFLICT) /* what the schema's own constraints refuse */
		result = -(int)(err->code = ERR_INVALID);
	if (result < 0)
		return err_wrap(err, "%s", bundle->path);
	ret->executions += importing.done.executions;
	ret->added += importing.done.added;
	return 0;
}
