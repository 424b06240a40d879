/*
 * store_bundle_import.c - a bundle of somebody else, into this record.
 *
 * The order: the schema is compared before any statement touches a table; then every row and the hash of every content
 * is checked; then the contents go into the blob folder, where nothing names them yet and the sweeper finds them if it
 * ends here; then the rows, in one transaction, under the constraints of schema.sql.
 */
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "store_bundle_file.h"
#include "store_txn.h"

#define BUNDLE_CALL_MAX "16777216" /* bytes of arguments, a result, a list of tools */
#define FREE_PART 20 /* a 20th of the disk stays free */

/* What must not be there; each is a count, and a sentence. */
static const struct {
	const char *sql, *text;
} checks[] = {
	{"SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'", "the file is damaged"},
	{"SELECT count(*) FROM execution WHERE typeof(id) <> 'text' OR state NOT IN ('finished', 'interrupted') OR "
	 "owner "
	 "NOT GLOB '[a-z0-9]*' OR owner GLOB '*[^a-z0-9-]*' OR length(owner) > 32 OR typeof(language) <> 'text' OR "
	 "length(language) > 31 OR length(conversation_name) > 512 OR NOT json_valid(args) OR NOT json_valid(limits) "
	 "OR "
	 "(env IS NOT NULL AND NOT json_valid(env)) OR (result IS NOT NULL AND NOT json_valid(result))",
	 "a run is not as it must be"},
	{"SELECT count(*) FROM execution WHERE json_type(args) <> 'array' OR json_type(limits) <> 'object' OR "
	 "json_type(env) <> 'object' OR json_type(result) <> 'object' OR EXISTS (SELECT 1 FROM json_each(args) WHERE "
	 "type <> 'text') OR EXISTS (SELECT 1 FROM json_each(env) WHERE type NOT IN ('text', 'null', 'false') OR key "
	 "= '' OR instr(key, '=') > 0)",
	 "a run is not as it must be"},
	{"SELECT count(*) FROM execution WHERE length(CAST(code AS BLOB)) > 65536 OR length(CAST(stdin AS BLOB)) > "
	 "65536 "
	 "OR length(CAST(stdout AS BLOB)) > 65536 OR length(CAST(stderr AS BLOB)) > 65536 OR length(args) > 1048576 OR "
	 "length(limits) > 65536 OR length(env) > 1048576 OR length(result) > 1048576",
	 "a run is larger than it may be"},
	{"SELECT count(*) FROM execution WHERE entry IS NOT NULL AND " STORE_BUNDLE_BAD_PATH("entry"),
	 "a path leads out of /data"},
	{"SELECT count(*) FROM execution_file WHERE " STORE_BUNDLE_BAD_PATH("name"), "a path leads out of /data"},
	{"SELECT count(*) FROM execution_file JOIN blob ON sha256 = blob WHERE blob IS NOT NULL AND size IS NOT "
	 "length(data)",
	 "the size of a file is not that of its content"},
	{"SELECT count(*) FROM execution_file WHERE execution NOT IN (SELECT id FROM execution)",
	 "a file belongs to no run"},
	{"SELECT count(*) FROM baseline WHERE execution NOT IN (SELECT id FROM execution) OR typeof(generation) <> "
	 "'integer' OR length(CAST(stdout AS BLOB)) > 65536 OR length(CAST(stderr AS BLOB)) > 65536 OR "
	 "length(CAST(author AS BLOB)) > 256 OR length(CAST(reason AS BLOB)) > 4096",
	 "a generation is not as it must be"},
	{"SELECT count(*) FROM baseline_file WHERE " STORE_BUNDLE_BAD_PATH("name"), "a path leads out of /data"},
	{"SELECT count(*) FROM baseline_file AS f WHERE NOT EXISTS (SELECT 1 FROM baseline AS b WHERE b.execution = "
	 "f.execution AND b.generation = f.generation)",
	 "a file belongs to no generation"},
	{"SELECT count(*) FROM tool_call WHERE execution NOT IN (SELECT id FROM execution) OR typeof(seq) <> 'integer' "
	 "OR NOT json_valid(arguments) OR length(CAST(arguments AS BLOB)) > " BUNDLE_CALL_MAX
	 " OR length(CAST(result AS BLOB)) > " BUNDLE_CALL_MAX " OR length(server) > 256 OR length(tool) > 4096",
	 "a call of a tool is not as it must be"},
	{"SELECT count(*) FROM execution_server WHERE execution NOT IN (SELECT id FROM execution) OR list NOT IN "
	 "(SELECT hash FROM tool_list) OR length(name) > 256 OR length(alias) > 256 OR length(description) > 65536",
	 "a server of a run is not as it must be"},
	{"SELECT count(*) FROM baseline_call AS c WHERE NOT EXISTS (SELECT 1 FROM baseline AS b WHERE b.execution = "
	 "c.execution AND b.generation = c.generation) OR typeof(seq) <> 'integer' OR NOT json_valid(arguments) OR "
	 "length(CAST(arguments AS BLOB)) > " BUNDLE_CALL_MAX " OR length(CAST(result AS BLOB)) > " BUNDLE_CALL_MAX
	 " OR length(server) > 256 OR length(tool) > 4096",
	 "a call of a generation is not as it must be"},
	{"SELECT count(*) FROM baseline_server AS s WHERE NOT EXISTS (SELECT 1 FROM baseline AS b WHERE b.execution = "
	 "s.execution AND b.generation = s.generation) OR list NOT IN (SELECT hash FROM tool_list) OR length(name) > "
	 "256 OR length(alias) > 256 OR length(description) > 65536",
	 "a server of a generation is not as it must be"},
	{"SELECT count(*) FROM tool_list WHERE NOT json_valid(definitions) OR length(CAST(definitions AS BLOB)) > "
	 BUNDLE_CALL_MAX,
	 "a list of tools is not as it must be"},
	{"SELECT count(*) FROM runtime WHERE NOT json_valid(description) OR length(CAST(description AS BLOB)) > "
	 "1048576",
	 "what a run ran on is not as it must be"},
	{"SELECT count(*) FROM execution WHERE runtime IS NOT NULL AND runtime NOT IN (SELECT hash FROM runtime)",
	 "what a run ran on is missing"},
	{"SELECT count(*) FROM execution WHERE sandbox IS NOT NULL AND sandbox NOT IN (SELECT id FROM sandbox)",
	 "a sandbox is missing"},
	{"SELECT count(*) FROM " STORE_BUNDLE_BLOBS " WHERE name IS NOT NULL AND name NOT IN (SELECT sha256 FROM blob)",
	 "a content is missing"},
};

int store_bundle_number(struct store_bundle *bundle, const char *sql, int64_t *ret, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, sql, &statement, err);

	if (result < 0)
		return result;
	if (sqlite3_step(statement) != SQLITE_ROW)
		return store_bundle_failed(bundle, err);
	*ret = sqlite3_column_int64(statement, 0);
	return 0;
}

/* Everything that a schema says, in the order of names. */
static char *schema_text(sqlite3 *db)
{
	auto_statement sqlite3_stmt *statement = NULL;
	char *text = NULL;

	if (sqlite3_prepare_v2(db,
			       "SELECT group_concat(type || ' ' || name || ' ' || coalesce(sql, ''), char(10)) FROM "
			       "(SELECT * FROM sqlite_schema ORDER BY name)",
			       -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
		text = xstrdup((const char *)sqlite3_column_text(statement, 0));
	return text ? text : xstrdup("");
}

static int check_schema(struct store_bundle *bundle, struct err *err)
{
	sqlite3 *ours = NULL;
	bool same = sqlite3_open_v2(":memory:", &ours, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
		    sqlite3_exec(ours, bundle->kind->schema, NULL, NULL, NULL) == SQLITE_OK &&
		    (!bundle->tags || sqlite3_exec(ours, bundle->kind->tags, NULL, NULL, NULL) == SQLITE_OK);
	auto_free char *wanted = schema_text(ours), *is = schema_text(bundle->db);

	sqlite3_close(ours);
	return same && streq(wanted, is) ? 0
					 : err_set(err, ERR_INVALID, "%s: its tables are not those of %s", bundle->path,
						   bundle->kind->what);
}

static int check_identity(struct store_bundle *bundle, struct err *err)
{
	int64_t application = 0, version = 0;
	int result = store_bundle_number(bundle, "PRAGMA application_id", &application, err);

	if (result == 0)
		result = store_bundle_number(bundle, "PRAGMA user_version", &version, err);
	if (result < 0)
		return result;
	if (application != bundle->kind->application_id)
		return err_set(err, ERR_INVALID, "%s is not %s", bundle->path, bundle->kind->what);
	bundle->tags = bundle->kind->tags && version == bundle->kind->version;
	if (version < bundle->kind->version - (bundle->kind->tags != NULL))
		return err_set(err, ERR_UNAVAILABLE, "%s is of version %lld, this program knows %d: write it anew",
			       bundle->path, (long long)version, bundle->kind->version);
	if (version > bundle->kind->version)
		return err_set(err, ERR_UNAVAILABLE,
			       "%s is of version %lld, this program knows %d: install a newer release", bundle->path,
			       (long long)version, bundle->kind->version);
	return check_schema(bundle, err);
}

static int check_ids(struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, "SELECT id FROM execution UNION ALL SELECT id FROM sandbox",
					  &statement, err);

	while (result == 0 && sqlite3_step(statement) == SQLITE_ROW) {
		const char *id = (const char *)sqlite3_column_text(statement, 0);

		if (!id || !id_valid(id))
			result = err_set(err, ERR_INVALID, "%s: an id is not as it must be", bundle->path);
	}
	return result;
}

/* Texts that are stored once, under their sum: another text under a name would stand for that one from then on. */
static int check_sums(struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(
		bundle, "SELECT hash, definitions FROM tool_list UNION ALL SELECT hash, description FROM runtime",
		&statement, err);

	while (result == 0 && sqlite3_step(statement) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		const char *text = (const char *)sqlite3_column_text(statement, 1);
		char hash[SHA256_HEX_SIZE] = "";

		if (text)
			sha256_hex(text, (size_t)sqlite3_column_bytes(statement, 1), hash);
		if (!name || !streq(name, hash))
			result = err_set(err, ERR_CORRUPT, "%s: a text does not have its hash: it was changed",
					 bundle->path);
	}
	return result;
}

/* Each content, checked: its bytes have its name. */
static int each_blob(struct store_bundle *bundle, struct store *store, int64_t *ret_bytes, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, "SELECT sha256, data FROM blob", &statement, err), step = SQLITE_DONE;

	while (result == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		const void *data = sqlite3_column_blob(statement, 1);
		size_t length = (size_t)sqlite3_column_bytes(statement, 1);
		char hash[SHA256_HEX_SIZE];

		sha256_hex(data ? data : "", length, hash);
		*ret_bytes += (int64_t)length;
		if (!name || !streq(name, hash))
			result = err_set(err, ERR_CORRUPT, "%s: a content does not have its hash: it was changed",
					 bundle->path);
		else if (store)
			result = store_blob_put(store, data, length, hash, err);
	}
	return result == 0 && step != SQLITE_DONE ? store_bundle_failed(bundle, err) : result;
}

/* The count that the query gives is 0. */
static int check_none(struct store_bundle *bundle, const char *sql, const char *text, struct err *err)
{
	int64_t count = 0;
	int result = store_bundle_number(bundle, sql, &count, err);

	return result == 0 && count > 0 ? err_set(err, ERR_INVALID, "%s: %s", bundle->path, text) : result;
}

int store_bundle_check(struct store_bundle *bundle, struct err *err)
{
	int64_t bytes = 0;
	int result = check_identity(bundle, err);

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(checks); i++)
		result = check_none(bundle, checks[i].sql, checks[i].text, err);
	if (result == 0 && bundle->tags)
		result = check_none(bundle,
				    "SELECT count(*) FROM execution_tag WHERE execution NOT IN (SELECT id FROM "
				    "execution) OR typeof(tag) <> 'text' OR length(tag) NOT BETWEEN 1 AND 64 OR "
				    "tag GLOB '*[^A-Za-z0-9._:/-]*' OR instr(CAST(tag AS BLOB), x'00') > 0",
				    "a tag is not as it must be", err);
	if (result == 0)
		result = check_ids(bundle, err);
	if (result == 0)
		result = check_sums(bundle, err);
	return result == 0 ? each_blob(bundle, NULL, &bytes, err) : result;
}

/* -------- in ------------------------------------------------------------------------------------------ */

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
	static const struct {
		const char *select;
		enum store_sql insert;
	} tables[] = {
		{"SELECT * FROM baseline WHERE execution = ?1 ORDER BY generation", SQL_IMPORT_BASELINE},
		{"SELECT * FROM baseline_file WHERE execution = ?1", SQL_IMPORT_BASELINE_FILE},
		{"SELECT * FROM baseline_server WHERE execution = ?1", SQL_IMPORT_BASELINE_SERVER},
		{"SELECT * FROM baseline_call WHERE execution = ?1", SQL_IMPORT_BASELINE_CALL},
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
		result = import_rows_of(txn, bundle, id, "SELECT * FROM tool_call WHERE execution = ?1",
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

	return each_blob(bundle, store, &bytes, err);
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
		if (result == 0 && bundle->tags)
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
