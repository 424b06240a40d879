/*
 * store_bundle_import.c - a bundle into this record.
 *
 * The order: everything is checked (store_bundle_check.c); then the contents go into the blob folder, where nothing
 * names them yet and the garbage collector finds them if the import ends here; then the rows, in one transaction, under
 * the constraints of schema.sql.
 */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/blob/store_blob_internal.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_record_internal.h"
#include "lib/store/record/store_tag.h"
#include "store_bundle_file.h"

#define FREE_PART 20 /* a 20th of the disk stays free */

static int check_room(struct store_bundle *bundle, struct store *store, struct err *err)
{
	struct statvfs disk;
	int64_t bytes = 0;
	int result = store_bundle_number(
		bundle, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", &bytes, err);

	if (result < 0)
		return result;
	if (fstatvfs(store->dir_fd, &disk) < 0)
		return err_errno(err, "looking at the disk of %s", store->path);
	/* contents once, rows in the database and in its log */
	if ((uint64_t)(2 * bytes) + disk.f_blocks * disk.f_frsize / FREE_PART > disk.f_bavail * disk.f_frsize)
		return err_set(err, ERR_LIMIT, "%s: there is no room for it on the disk of %s", bundle->path,
			       store->path);
	return 0;
}

/* Rows of the file, by the names of their columns, into the record. */
struct rows {
	const char *select; /* ?1: the run; ?2: this instance */
	enum store_sql insert;
};

/* Adds to *ret_new (NULL: nobody counts) how many rows were not there. */
static int import_rows(struct store_txn *txn, struct store_bundle *bundle, const struct rows *rows, const char *id,
		       int64_t *ret_new, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, rows->select, id, &row, err);

	if (result == 0)
		sqlite3_bind_text(row, 2, txn->store->instance, -1, SQLITE_STATIC);
	while (result == 0 && (result = store_bundle_next(bundle, row, err)) > 0) {
		auto_query struct query q = query_begin(txn->conn, rows->insert);
		int64_t changes = 0;

		store_bundle_bind_row(&q, row, NULL);
		result = query_run(&q, &changes, err);
		if (ret_new)
			*ret_new += changes;
	}
	return result;
}

/* What runs share: contents, sandboxes, what they ran on, lists of tools. */
static int import_shared(struct store_txn *txn, struct store_bundle *bundle, struct err *err)
{
	static const struct rows shared[] = {{"SELECT *, ?2 AS instance FROM sandbox", SQL_IMPORT_SANDBOX},
					     {"SELECT * FROM runtime", SQL_IMPORT_RUNTIME},
					     {"SELECT * FROM tool_list", SQL_IMPORT_TOOL_LIST}};
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, "SELECT sha256 FROM blob", NULL, &row, err);

	while (result == 0 && (result = store_bundle_next(bundle, row, err)) > 0)
		result = store_txn_blob(txn, (const char *)sqlite3_column_text(row, 0), -1, err);
	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(shared); i++)
		result = import_rows(txn, bundle, &shared[i], NULL, NULL, err);
	return result;
}

/* The servers of a run and its calls, each with its entry of the audit log. */
static int import_calls(struct store_txn *txn, struct store_bundle *bundle, const char *id, struct err *err)
{
	static const struct rows servers = {"SELECT * FROM execution_server WHERE execution = ?1", SQL_IMPORT_SERVER};
	static const struct rows calls = {"SELECT * FROM tool_call WHERE execution = ?1", SQL_IMPORT_CALL};
	auto_statement sqlite3_stmt *row = NULL;
	int result = import_rows(txn, bundle, &servers, id, NULL, err);

	if (result == 0)
		result = import_rows(txn, bundle, &calls, id, NULL, err);
	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT seq FROM tool_call WHERE execution = ?1 ORDER BY seq", id,
					      &row, err);
	while (result == 0 && (result = store_bundle_next(bundle, row, err)) > 0)
		result = store_txn_audit_call(txn, id, sqlite3_column_int64(row, 0), err);
	return result;
}

/* `row`: of the table execution. */
static int import_run(struct store_txn *txn, struct store_bundle *bundle, sqlite3_stmt *row, struct err *err)
{
	static const struct rows files = {"SELECT * FROM execution_file WHERE execution = ?1", SQL_IMPORT_FILE};
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
		result = import_rows(txn, bundle, &files, id, NULL, err);
	if (result == 0)
		result = store_txn_hold_imported(txn, id, err);
	if (result == 0)
		result = store_txn_audit_begin(txn, id, err);
	if (result == 0)
		result = store_txn_audit_end(txn, id, err);
	return result < 0 ? result : import_calls(txn, bundle, id, err);
}

void store_bundle_unverified(struct store_bundle *bundle)
{
	bundle->unverified = true;
}

static int mark(struct store_txn *txn, const char *id, struct err *err)
{
	auto_query struct query tag = query_begin(txn->conn, SQL_TAG_ADD);

	query_bind_text(&tag, ":id", id);
	query_bind_text(&tag, ":tag", STORE_TAG_UNVERIFIED);
	return query_run(&tag, NULL, err);
}

/* A run, unless it is there; generations and tags that it lacks. */
static int import_or_add(struct store_txn *txn, struct store_bundle *bundle, sqlite3_stmt *row,
			 struct store_carried *ret, struct err *err)
{
	static const struct rows generations[] = {
		{"SELECT * FROM baseline WHERE execution = ?1 ORDER BY generation", SQL_IMPORT_BASELINE},
		{"SELECT * FROM baseline_file WHERE execution = ?1", SQL_IMPORT_BASELINE_FILE},
		{"SELECT * FROM baseline_server WHERE execution = ?1", SQL_IMPORT_BASELINE_SERVER},
		{"SELECT * FROM baseline_call WHERE execution = ?1", SQL_IMPORT_BASELINE_CALL}};
	static const struct rows tags = {"SELECT * FROM execution_tag WHERE execution = ?1", SQL_IMPORT_TAG};
	const char *id = (const char *)sqlite3_column_text(row, 0);
	auto_query struct query known = query_begin(txn->conn, SQL_EXECUTION_STATE);

	query_bind_text(&known, ":id", id);
	int result = query_next(&known, err);

	ret->executions++;
	if (result == 0) {
		ret->added++;
		result = import_run(txn, bundle, row, err);
		if (result == 0 && bundle->unverified)
			result = mark(txn, id, err);
	}
	for (size_t i = 0; i < ARRAY_SIZE(generations) && result >= 0; i++)
		result = import_rows(txn, bundle, &generations[i], id, NULL, err);
	return result < 0 ? result : import_rows(txn, bundle, &tags, id, &ret->tags, err);
}

struct importing {
	struct store_bundle *bundle;
	struct store_carried done;
	bool refused; /* the owner is here already */
};

static int import_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct importing *importing = arg;
	struct store_carried *done = &importing->done;
	auto_statement sqlite3_stmt *row = NULL;
	struct store_audit entry;
	int result = import_shared(txn, importing->bundle, err);

	*done = (struct store_carried){0};
	if (result == 0)
		result =
			store_bundle_prepare(importing->bundle, "SELECT * FROM execution ORDER BY id", NULL, &row, err);
	while (result == 0 && (result = store_bundle_next(importing->bundle, row, err)) > 0)
		result = import_or_add(txn, importing->bundle, row, done, err);
	if (result == 0 && (done->added > 0 || done->tags > 0)) {
		store_audit_init(&entry, STORE_AUDIT_IMPORT, "log", "audit");
		store_audit_int(&entry, "executions", done->executions);
		store_audit_int(&entry, "added", done->added);
		store_audit_int(&entry, "tags", done->tags);
		if (importing->bundle->unverified)
			store_audit_int(&entry, "unverified", done->added);
		result = store_txn_audit(txn, &entry, err);
	}
	if (result == 0 && importing->bundle->owner)
		result = store_bundle_owner_import(txn, importing->bundle, done, &importing->refused, err);
	return result;
}

int store_bundle_import(struct store_bundle *bundle, struct store *store, struct store_carried *ret, struct err *err)
{
	struct importing importing = {.bundle = bundle};
	const struct store_carried *done = &importing.done;
	int result = check_room(bundle, store, err);

	if (result == 0)
		result = store_bundle_each_blob(bundle, store, err);
	if (result == 0)
		result = store_commit(store, import_work, &importing, err);
	if (result == -ERR_CONFLICT && !importing.refused) /* what the schema's own constraints refuse */
		result = -(int)(err->code = ERR_INVALID);
	if (result < 0)
		return err_wrap(err, "%s", bundle->path);
	ret->executions += done->executions;
	ret->added += done->added;
	ret->tags += done->tags;
	ret->tokens += done->tokens;
	ret->snippets += done->snippets;
	ret->conversations += done->conversations;
	ret->files += done->files;
	return 0;
}
