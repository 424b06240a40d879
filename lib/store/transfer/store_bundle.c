/*
 * store_bundle.c - see store_bundle.h; store_bundle_import.c has the way back.
 *
 * Rows are carried column by column as SQLite's values, so nothing is lost on the way; the lists of columns are those
 * of store_sql_bundle.h on both sides. The file is one transaction of a journal in memory, next to its place.
 */
#include "store_bundle.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_sandbox.h"

#include "store_bundle_file.h"

static const struct store_bundle_kind bundle_kind = {
	"PRAGMA application_id = 0x53504255;" STORE_BUNDLE_TABLES STORE_BUNDLE_AUDIT_TABLES,
	"a bundle of sallyport export",
	0x53504255 /* "SPBU" */,
	7,
	NULL,
	{STORE_BUNDLE_TAGS, STORE_BUNDLE_CALL_TEXTS}};

static int later_tables(const struct store_bundle_kind *kind)
{
	int count = 0;

	while (count < (int)ARRAY_SIZE(kind->later) && kind->later[count] != 0)
		count++;
	return count;
}

int store_bundle_oldest(const struct store_bundle_kind *kind)
{
	return kind->version - later_tables(kind);
}

bool store_bundle_has(const struct store_bundle *bundle, enum store_bundle_table table)
{
	const int count = later_tables(bundle->kind) - (bundle->kind->version - bundle->version);

	for (int i = 0; i < count; i++)
		if (bundle->kind->later[i] == table)
			return true;
	return false;
}

int store_bundle_make_later(const struct store_bundle *bundle, sqlite3 *db)
{
	static const char *const tables[] = {[STORE_BUNDLE_TAGS] = STORE_BUNDLE_TAG_TABLE,
					     [STORE_BUNDLE_CALL_TEXTS] = STORE_BUNDLE_CALL_TEXT_TABLE};
	auto_free char *version = xasprintf("PRAGMA user_version = %d", bundle->version);
	int result = sqlite3_exec(db, version, NULL, NULL, NULL);

	for (int i = 1; i < (int)ARRAY_SIZE(tables) && result == SQLITE_OK; i++)
		if (store_bundle_has(bundle, (enum store_bundle_table)i))
			result = sqlite3_exec(db, tables[i], NULL, NULL, NULL);
	return result;
}

int store_bundle_failed(struct store_bundle *bundle, struct err *err)
{
	int code = sqlite3_errcode(bundle->db);

	return err_set(err,
		       code == SQLITE_NOTADB    ? ERR_INVALID
		       : code == SQLITE_CORRUPT ? ERR_CORRUPT
						: ERR_SYSTEM,
		       "%s: %s", bundle->path, sqlite3_errmsg(bundle->db));
}

void store_bundle_statement(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

int store_bundle_prepare(struct store_bundle *bundle, const char *sql, sqlite3_stmt **ret, struct err *err)
{
	return sqlite3_prepare_v2(bundle->db, sql, -1, ret, NULL) == SQLITE_OK ? 0 : store_bundle_failed(bundle, err);
}

void store_bundle_close(struct store_bundle *bundle)
{
	if (!bundle)
		return;
	sqlite3_close(bundle->db);
	if (bundle->part)
		unlink(bundle->part);
	free(bundle->part);
	free(bundle->path);
	free(bundle);
}

/* -------- out ----------------------------------------------------------------------------------------- */

int store_bundle_create(const char *path, const struct store_bundle_kind *kind, struct store_bundle **ret,
			struct err *err)
{
	struct store_bundle *bundle;
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a device would be replaced by a file */
		return err_set(err, ERR_INVALID, "%s is no regular file", path);
	bundle = xcalloc(1, sizeof(*bundle));
	bundle->kind = kind;
	bundle->path = realpath(path, NULL); /* so would a link, such as /dev/stdout */
	if (!bundle->path)
		bundle->path = xstrdup(path);
	bundle->version = kind->version;
	bundle->part = xasprintf("%s.part-%d", bundle->path, (int)getpid());
	unlink(bundle->part);
	if (sqlite3_open_v2(bundle->part, &bundle->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK ||
	    sqlite3_exec(bundle->db, "PRAGMA journal_mode = MEMORY", NULL, NULL, NULL) != SQLITE_OK ||
	    chmod(bundle->part, 0600) < 0 || /* it has what people sent, in clear */
	    sqlite3_exec(bundle->db, kind->schema, NULL, NULL, NULL) != SQLITE_OK ||
	    store_bundle_make_later(bundle, bundle->db) != SQLITE_OK ||
	    sqlite3_exec(bundle->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) {
		int result = store_bundle_failed(bundle, err);

		store_bundle_close(bundle);
		return result;
	}
	*ret = bundle;
	return 0;
}

int store_bundle_new(const char *path, struct store_bundle **ret, struct err *err)
{
	return store_bundle_create(path, &bundle_kind, ret, err);
}

int store_bundle_carry(struct store_bundle *bundle, struct query *from, const char *insert, struct err *err)
{
	auto_statement sqlite3_stmt *to = NULL;
	int result = store_bundle_prepare(bundle, insert, &to, err), count = 0;

	while (result == 0 && (result = query_next(from, err)) > 0) {
		for (int i = 0; i < sqlite3_column_count(from->statement); i++)
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(from->statement, i));
		result = sqlite3_step(to) == SQLITE_DONE ? 0 : store_bundle_failed(bundle, err);
		sqlite3_reset(to);
		count++;
	}
	return result < 0 ? result : count;
}

static int carry_by_id(struct store_bundle *bundle, struct store *store, enum store_sql which, const char *id,
		       const char *insert, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	int result = store_reader_take(store, &reader, err);

	if (result < 0)
		return result;
	auto_query struct query q = query_begin(reader.conn, which);

	query_bind_text(&q, ":id", id);
	return store_bundle_carry(bundle, &q, insert, err);
}

void store_bundle_leave_env(struct store_bundle *bundle)
{
	bundle->leave_env = true;
}

/* Names for values. NULL: that is no environment. The caller's. */
static char *names_only(const char *text)
{
	auto_json struct json_object *env = NULL;
	auto_json struct json_object *names = json_object_new_object();
	auto_buf struct buf printed = {0};

	if (json_parse(text, strlen(text), &env, NULL) < 0 || !json_object_is_type(env, json_type_object))
		return NULL;
	json_object_object_foreach(env, name, value)
	{
		if (value && !streq(name, "FILE_BASE_URL"))
			json_add_bool(names, name, false);
		else
			json_add(names, name, json_object_get(value));
	}
	buf_init(&printed, SIZE_MAX);
	json_print(&printed, names);
	return buf_steal(&printed, NULL);
}

/* Its variables, which are sealed in the record under a key of this machine; of secrets only the names are known. */
static int add_env(struct store_bundle *bundle, const struct store_execution *execution, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;

	if (!execution->env_json || streq(execution->env_json, "{}"))
		return 0;
	auto_free char *names = bundle->leave_env ? names_only(execution->env_json) : NULL;

	if (store_bundle_prepare(bundle, "UPDATE execution SET env = ?2 WHERE id = ?1", &statement, err) < 0)
		return -(int)ERR_SYSTEM;
	sqlite3_bind_text(statement, 1, execution->id, -1, SQLITE_STATIC);
	sqlite3_bind_text(statement, 2, names ? names : execution->env_json, -1, SQLITE_STATIC);
	return sqlite3_step(statement) == SQLITE_DONE ? 0 : store_bundle_failed(bundle, err);
}

static const struct {
	enum store_sql from;
	const char *to;
} carried[] = {
	{SQL_BUNDLE_RUNTIME, "INSERT OR IGNORE INTO runtime VALUES (" BUNDLE_VALUES(STORE_BUNDLE_RUNTIME) ")"},
	{SQL_BUNDLE_FILES, "INSERT OR IGNORE INTO execution_file VALUES (" BUNDLE_VALUES(STORE_BUNDLE_FILE) ")"},
	{SQL_BUNDLE_BASELINES, "INSERT OR IGNORE INTO baseline VALUES (" BUNDLE_VALUES(STORE_BUNDLE_BASELINE) ")"},
	{SQL_BUNDLE_BASELINE_FILES,
	 "INSERT OR IGNORE INTO baseline_file VALUES (" BUNDLE_VALUES(STORE_BUNDLE_BASELINE_FILE) ")"},
	{SQL_BUNDLE_TOOL_LISTS, "INSERT OR IGNORE INTO tool_list VALUES (" BUNDLE_VALUES(STORE_BUNDLE_TOOL_LIST) ")"},
	{SQL_BUNDLE_SERVERS, "INSERT OR IGNORE INTO execution_server VALUES (" BUNDLE_VALUES(STORE_BUNDLE_SERVER) ")"},
	{SQL_BUNDLE_CALLS, "INSERT OR IGNORE INTO tool_call VALUES (" BUNDLE_VALUES(STORE_BUNDLE_CALL) ")"},
	{SQL_BUNDLE_BASELINE_SERVERS,
	 "INSERT OR IGNORE INTO baseline_server VALUES (" BUNDLE_VALUES(STORE_BUNDLE_BASELINE_SERVER) ")"},
	{SQL_BUNDLE_BASELINE_CALLS,
	 "INSERT OR IGNORE INTO baseline_call VALUES (" BUNDLE_VALUES(STORE_BUNDLE_BASELINE_CALL) ")"},
};

static int add_one(struct store_bundle *bundle, struct store *store, const char *id, struct err *err)
{
	static const char execution[] = "INSERT OR IGNORE INTO execution (" BUNDLE_NAMES(
		STORE_BUNDLE_EXECUTION) ") VALUES (" BUNDLE_VALUES(STORE_BUNDLE_EXECUTION) ")";
	struct store_execution row = {0};
	int result = store_execution_find(store, id, &row, err);

	if (result < 0)
		return result;
	result = store_execution_whole(&row, err);
	if (result == 0)
		result = carry_by_id(bundle, store, SQL_BUNDLE_EXECUTION, id, execution, err);
	bool over = result > 0; /* 0: it still runs */

	for (size_t i = 0; over && result >= 0 && i < ARRAY_SIZE(carried); i++)
		result = carry_by_id(bundle, store, carried[i].from, id, carried[i].to, err);
	if (over && result >= 0 && store_bundle_has(bundle, STORE_BUNDLE_CALL_TEXTS))
		result = carry_by_id(bundle, store, SQL_BUNDLE_CALL_TEXTS, id,
				     "INSERT OR IGNORE INTO call_text VALUES (" BUNDLE_VALUES(
					     STORE_BUNDLE_CALL_TEXT) ")",
				     err);
	if (over && result >= 0 && store_bundle_has(bundle, STORE_BUNDLE_TAGS))
		result = carry_by_id(bundle, store, SQL_BUNDLE_TAGS, id,
				     "INSERT OR IGNORE INTO execution_tag VALUES (" BUNDLE_VALUES(STORE_BUNDLE_TAG) ")",
				     err);
	if (result >= 0)
		result = add_env(bundle, &row, err);
	store_execution_clear(&row);
	return MIN(result, 0);
}

struct adding {
	struct store_bundle *bundle;
	struct store *store;
	struct err *err;
};

static int add_earlier(void *arg, const char *id)
{
	struct adding *adding = arg;

	return add_one(adding->bundle, adding->store, id, adding->err);
}

int store_bundle_add(struct store_bundle *bundle, struct store *store, const char *id, struct err *err)
{
	static const char sandbox[] = "INSERT OR IGNORE INTO sandbox VALUES (" BUNDLE_VALUES(STORE_BUNDLE_SANDBOX) ")";
	struct adding adding = {bundle, store, err};
	struct store_execution row = {0};
	int result = store_execution_find(store, id, &row, err);

	if (result == 0 && sqlite3_exec(bundle->db, "SAVEPOINT execution", NULL, NULL, NULL) != SQLITE_OK)
		result = store_bundle_failed(bundle, err);
	if (result == 0 && *row.sandbox_id) {
		result = carry_by_id(bundle, store, SQL_BUNDLE_SANDBOX, row.sandbox_id, sandbox, err);
		if (result >= 0)
			result = store_sandbox_runs(store, row.sandbox_id, row.sandbox_seq, add_earlier, &adding, err);
	} else if (result == 0) {
		result = add_one(bundle, store, row.id, err);
	}
	if (result < 0)
		sqlite3_exec(bundle->db, "ROLLBACK TO execution", NULL, NULL, NULL);
	sqlite3_exec(bundle->db, "RELEASE execution", NULL, NULL, NULL);
	store_execution_clear(&row);
	return MIN(result, 0);
}

static int add_blob(struct store_bundle *bundle, struct store *store, const char *sha256, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	char hash[SHA256_HEX_SIZE];
	int64_t size = 0;
	int fd = -1, result = store_blob_open(store, sha256, &fd, &size, err);

	if (result < 0)
		return result;
	auto_close int keep = fd;
	void *data = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;

	if (data == MAP_FAILED)
		return err_errno(err, "reading blob %s", sha256);
	sha256_hex(data ? data : "", (size_t)size, hash);
	if (!streq(hash, sha256))
		result = err_set(err, ERR_CORRUPT, "blob %s has other bytes: restore it from a backup", sha256);
	else
		result = store_bundle_prepare(bundle, "INSERT INTO blob (sha256, data) VALUES (?1, ?2)", &statement,
					      err);
	if (result == 0) {
		sqlite3_bind_text(statement, 1, sha256, -1, SQLITE_STATIC);
		sqlite3_bind_blob64(statement, 2, data ? data : "", (sqlite3_uint64)size, SQLITE_STATIC);
		result = sqlite3_step(statement) == SQLITE_DONE ? 0 : store_bundle_failed(bundle, err);
	}
	if (data)
		munmap(data, (size_t)size);
	return result;
}

int store_bundle_add_blobs(struct store_bundle *bundle, struct store *store, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	auto_free char *sql =
		xasprintf("SELECT name FROM (SELECT name FROM %s UNION SELECT name FROM %s UNION %s) WHERE name IS NOT "
			  "NULL AND name NOT IN (SELECT sha256 FROM blob)",
			  STORE_BUNDLE_BLOBS, STORE_BUNDLE_CALL_BLOBS,
			  bundle->kind->more_blobs ? bundle->kind->more_blobs : "SELECT NULL");
	int result = store_bundle_prepare(bundle, sql, &statement, err);

	while (result == 0 && sqlite3_step(statement) == SQLITE_ROW)
		result = add_blob(bundle, store, (const char *)sqlite3_column_text(statement, 0), err);
	return result;
}

int store_bundle_finish(struct store_bundle *bundle, struct store *store, struct err *err)
{
	int result = store_bundle_add_blobs(bundle, store, err);

	if (result == 0 && sqlite3_exec(bundle->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		result = store_bundle_failed(bundle, err);
	if (result < 0)
		return result;
	if (rename(bundle->part, bundle->path) < 0)
		return err_errno(err, "writing %s", bundle->path);
	free(steal(&bundle->part));
	return 0;
}

/* -------- in ------------------------------------------------------------------------------------------ */

void store_bundle_guard(struct store_bundle *bundle)
{
	sqlite3_db_config(bundle->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(bundle->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(bundle->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(bundle->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
}

int store_bundle_read(const char *path, const struct store_bundle_kind *kind, struct store_bundle **ret,
		      struct err *err)
{
	struct store_bundle *bundle = xcalloc(1, sizeof(*bundle));
	int result;

	bundle->kind = kind;
	bundle->path = xstrdup(path);
	result = sqlite3_open_v2(path, &bundle->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK
			 ? 0
			 : store_bundle_failed(bundle, err);
	store_bundle_guard(bundle);
	if (result == 0)
		result = store_bundle_check(bundle, err);
	if (result < 0) {
		store_bundle_close(bundle);
		return result;
	}
	*ret = bundle;
	return 0;
}

int store_bundle_open(const char *path, struct store_bundle **ret, struct err *err)
{
	return store_bundle_read(path, &bundle_kind, ret, err);
}
