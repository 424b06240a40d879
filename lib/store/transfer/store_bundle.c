/*
 * store_bundle.c - the file of a bundle, and its way out of a record: see store_bundle.h. store_bundle_check.c and
 * store_bundle_import.c have the way in.
 *
 * Rows are carried column by column as SQLite's values, so nothing is lost on the way; the lists of columns are those
 * of store_sql_bundle.h and store_sql_move.h on both sides. A new file is one transaction with a journal in memory,
 * next to its place. A suite that is changed in place has a journal on the disk, because a killed process must leave
 * the file as it was.
 */
#include "store_bundle.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/db/store_sql_move.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_sandbox.h"

#include "store_bundle_file.h"

#define APPLICATION_AT 68 /* application_id in the header of SQLite's file format */

/* clang-format off */
#define COLUMN(name)      #name " ANY"
#define COLUMN_MORE(name) ", " #name " ANY"
#define TABLE(name, list, key) "CREATE TABLE " name " (" list(COLUMN, COLUMN_MORE) ", PRIMARY KEY (" key ")) STRICT;"

const char store_bundle_schema[] =
	"CREATE TABLE execution (" STORE_BUNDLE_EXECUTION(COLUMN, COLUMN_MORE) ", env ANY, PRIMARY KEY (id)) STRICT;"
	TABLE("execution_file", STORE_BUNDLE_FILE, "execution, phase, name")
	TABLE("execution_tag", STORE_BUNDLE_TAG, "execution, tag")
	TABLE("baseline", STORE_BUNDLE_BASELINE, "execution, generation")
	TABLE("baseline_file", STORE_BUNDLE_BASELINE_FILE, "execution, generation, name")
	TABLE("runtime", STORE_BUNDLE_RUNTIME, "hash")
	TABLE("tool_list", STORE_BUNDLE_TOOL_LIST, "hash")
	TABLE("execution_server", STORE_BUNDLE_SERVER, "execution, position")
	TABLE("tool_call", STORE_BUNDLE_CALL, "execution, seq")
	TABLE("baseline_server", STORE_BUNDLE_BASELINE_SERVER, "execution, generation, position")
	TABLE("baseline_call", STORE_BUNDLE_BASELINE_CALL, "execution, generation, seq")
	TABLE("sandbox", STORE_BUNDLE_SANDBOX, "id")
	"CREATE TABLE blob (sha256 TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;"
	/* store_bundle_audit.h */
	"CREATE TABLE audit (n INTEGER PRIMARY KEY, at_us ANY, kind ANY, object ANY, entry ANY, salt ANY, detail ANY, "
	"proof ANY) STRICT;"
	"CREATE TABLE audit_head (size INTEGER PRIMARY KEY, root ANY, checkpoint ANY) STRICT;"
	/* an owner who moves: at most one */
	"CREATE TABLE owner (name TEXT PRIMARY KEY) STRICT;"
	TABLE("token", STORE_MOVE_TOKEN, "id")
	TABLE("snippet", STORE_MOVE_SNIPPET, "owner, name, version")
	"CREATE TABLE conversation (name TEXT PRIMARY KEY) STRICT;"
	TABLE("file", STORE_MOVE_FILE, "conversation, name")
	"CREATE TABLE run (execution TEXT PRIMARY KEY, conversation TEXT NOT NULL) STRICT;"
	/* a suite; tags: JSON; compare, normalise: as of replay's options */
	"CREATE TABLE suite_case (execution TEXT PRIMARY KEY, name TEXT NOT NULL, tags TEXT NOT NULL, compare TEXT "
	"NOT NULL, normalise TEXT NOT NULL, promoted_us INTEGER NOT NULL) STRICT;";
/* clang-format on */

/* -------- statements on the file ---------------------------------------------------------------------- */

int store_bundle_failed(struct store_bundle *bundle, struct err *err)
{
	int code = sqlite3_errcode(bundle->db);

	return err_set(err,
		       code == SQLITE_NOTADB    ? ERR_INVALID
		       : code == SQLITE_CORRUPT ? ERR_CORRUPT
						: ERR_SYSTEM,
		       "%s: %s", bundle->path, store_sqlite_said(bundle->db));
}

void store_bundle_statement(sqlite3_stmt **statement)
{
	sqlite3_finalize(*statement);
}

int store_bundle_prepare(struct store_bundle *bundle, const char *sql, const char *text, sqlite3_stmt **ret,
			 struct err *err)
{
	if (sqlite3_prepare_v2(bundle->db, sql, -1, ret, NULL) != SQLITE_OK)
		return store_bundle_failed(bundle, err);
	if (text)
		sqlite3_bind_text(*ret, 1, text, -1, SQLITE_STATIC);
	return 0;
}

int store_bundle_next(struct store_bundle *bundle, sqlite3_stmt *statement, struct err *err)
{
	int step = sqlite3_step(statement);

	return step == SQLITE_ROW ? 1 : step == SQLITE_DONE ? 0 : store_bundle_failed(bundle, err);
}

int store_bundle_number(struct store_bundle *bundle, const char *sql, int64_t *ret, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, sql, NULL, &statement, err);

	if (result == 0)
		result = store_bundle_next(bundle, statement, err);
	if (result > 0)
		*ret = sqlite3_column_int64(statement, 0);
	return MIN(result, 0);
}

static int run(struct store_bundle *bundle, const char *sql, struct err *err)
{
	return sqlite3_exec(bundle->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_bundle_failed(bundle, err);
}

/* Opens the file; nothing that it says runs as code. */
static int open_file(struct store_bundle *bundle, const char *file, int flags, struct err *err)
{
	const int off[] = {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW};

	if (sqlite3_open_v2(file, &bundle->db, flags, NULL) != SQLITE_OK)
		return store_bundle_failed(bundle, err);
	for (size_t i = 0; i < ARRAY_SIZE(off); i++)
		sqlite3_db_config(bundle->db, off[i], 0, NULL);
	sqlite3_db_config(bundle->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_busy_timeout(bundle->db, STORE_BUSY_MS);
	return 0;
}

static int make_tables(struct store_bundle *bundle, struct err *err)
{
	auto_free char *sql = xasprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; %s",
					STORE_BUNDLE_APPLICATION, STORE_BUNDLE_VERSION, store_bundle_schema);

	return run(bundle, sql, err);
}

void store_bundle_close(struct store_bundle *bundle)
{
	if (!bundle)
		return;
	sqlite3_close(bundle->db);
	if (bundle->part)
		unlink(bundle->part);
	free(bundle->part);
	free(bundle->owner);
	free(bundle->path);
	free(bundle);
}

/* *ret = bundle, or it is closed where `result` says that it failed. */
static int give(struct store_bundle *bundle, int result, struct store_bundle **ret)
{
	if (result < 0)
		store_bundle_close(bundle);
	else
		*ret = bundle;
	return result;
}

bool store_bundle_is(const char *path)
{
	static const char magic[] = "SQLite format 3"; /* and its NUL */
	char head[APPLICATION_AT + 4];
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	return fd >= 0 && pread(fd, head, sizeof(head), 0) == sizeof(head) && memcmp(head, magic, sizeof(magic)) == 0 &&
	       memcmp(&head[APPLICATION_AT], "SPRT", 4) != 0;
}

int store_bundle_open(const char *path, struct store_bundle **ret, struct err *err)
{
	struct store_bundle *bundle = xcalloc(1, sizeof(*bundle));

	bundle->path = xstrdup(path);
	int result = open_file(bundle, path, SQLITE_OPEN_READONLY, err);

	return give(bundle, result < 0 ? result : store_bundle_check(bundle, err), ret);
}

/* -------- out ----------------------------------------------------------------------------------------- */

int store_bundle_new(const char *path, struct store_bundle **ret, struct err *err)
{
	struct store_bundle *bundle = xcalloc(1, sizeof(*bundle));
	bool special;

	bundle->path = path_to_replace(path, &special);
	if (special)
		return give(bundle, err_set(err, ERR_INVALID, "%s is not a regular file", path), ret);
	bundle->part = xasprintf("%s.part-%d", bundle->path, (int)getpid());
	unlink(bundle->part);
	int result = open_file(bundle, bundle->part, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);

	if (result == 0)
		result = run(bundle, "PRAGMA journal_mode = MEMORY", err);
	if (result == 0 && chmod(bundle->part, 0600) < 0) /* it has what people sent, in clear */
		result = err_errno(err, "making %s", bundle->part);
	if (result == 0)
		result = make_tables(bundle, err);
	return give(bundle, result < 0 ? result : run(bundle, "BEGIN", err), ret);
}

int store_bundle_change(const char *path, struct store_bundle **ret, struct err *err)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct store_bundle *bundle = xcalloc(1, sizeof(*bundle));
	int64_t tables = 0, heads = 0;

	bundle->path = xstrdup(path);
	bundle->part = fd < 0 ? NULL : xstrdup(path);
	int result = open_file(bundle, path, SQLITE_OPEN_READWRITE, err);

	if (result == 0 && sqlite3_exec(bundle->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		result = sqlite3_errcode(bundle->db) == SQLITE_BUSY
				 ? err_set(err, ERR_BUSY, "%s: another process is changing it", path)
				 : store_bundle_failed(bundle, err);
	if (result == 0)
		result = store_bundle_number(bundle, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (result == 0 && tables == 0)
		result = make_tables(bundle, err);
	if (result == 0)
		result = store_bundle_check(bundle, err);
	if (result == 0)
		result = store_bundle_number(bundle, "SELECT count(*) FROM audit_head", &heads, err);
	if (result == 0 && heads > 0)
		result = err_set(err, ERR_INVALID,
				 "%s is an export, whose proofs would not cover the cases: name another file", path);
	return give(bundle, result, ret);
}

int store_bundle_carry(struct store_bundle *bundle, struct store *store, const struct store_bundle_rows *rows,
		       const char *parameter, const char *value, struct err *err)
{
	auto_statement sqlite3_stmt *to = NULL;
	int result = store_bundle_prepare(bundle, rows->insert, NULL, &to, err), count = 0;

	if (result < 0)
		return result;
	auto_read struct query q = store_read(store, rows->from, err);

	query_bind_text(&q, parameter, value);
	while (result == 0 && (result = query_next(&q, err)) > 0) {
		for (int i = 0; i < sqlite3_column_count(q.statement); i++)
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(q.statement, i));
		result = store_bundle_next(bundle, to, err);
		sqlite3_reset(to);
		count++;
	}
	return result < 0 ? result : count;
}

void store_bundle_leave_env(struct store_bundle *bundle)
{
	bundle->leave_env = true;
}

/* The names without values; NULL where the text is not an environment. The caller's. */
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
	int result = store_bundle_prepare(bundle, "UPDATE execution SET env = ?2 WHERE id = ?1", execution->id,
					  &statement, err);

	if (result < 0)
		return result;
	sqlite3_bind_text(statement, 2, names ? names : execution->env_json, -1, SQLITE_STATIC);
	return store_bundle_next(bundle, statement, err);
}

static const struct store_bundle_rows rows_of_run[] = {
	{SQL_BUNDLE_EXECUTION, BUNDLE_IF_NEW("execution", STORE_BUNDLE_EXECUTION)},
	{SQL_BUNDLE_RUNTIME, BUNDLE_IF_NEW("runtime", STORE_BUNDLE_RUNTIME)},
	{SQL_BUNDLE_FILES, BUNDLE_IF_NEW("execution_file", STORE_BUNDLE_FILE)},
	{SQL_BUNDLE_TAGS, BUNDLE_IF_NEW("execution_tag", STORE_BUNDLE_TAG)},
	{SQL_BUNDLE_BASELINES, BUNDLE_IF_NEW("baseline", STORE_BUNDLE_BASELINE)},
	{SQL_BUNDLE_BASELINE_FILES, BUNDLE_IF_NEW("baseline_file", STORE_BUNDLE_BASELINE_FILE)},
	{SQL_BUNDLE_TOOL_LISTS, BUNDLE_IF_NEW("tool_list", STORE_BUNDLE_TOOL_LIST)},
	{SQL_BUNDLE_SERVERS, BUNDLE_IF_NEW("execution_server", STORE_BUNDLE_SERVER)},
	{SQL_BUNDLE_CALLS, BUNDLE_IF_NEW("tool_call", STORE_BUNDLE_CALL)},
	{SQL_BUNDLE_BASELINE_SERVERS, BUNDLE_IF_NEW("baseline_server", STORE_BUNDLE_BASELINE_SERVER)},
	{SQL_BUNDLE_BASELINE_CALLS, BUNDLE_IF_NEW("baseline_call", STORE_BUNDLE_BASELINE_CALL)},
};
static const struct store_bundle_rows rows_of_sandbox = {SQL_BUNDLE_SANDBOX,
							     BUNDLE_IF_NEW("sandbox", STORE_BUNDLE_SANDBOX)};

static int add_one(struct store_bundle *bundle, struct store *store, const char *id, struct err *err)
{
	struct store_execution row = {0};
	int result = store_execution_find(store, id, &row, err);

	if (result < 0)
		return result;
	result = store_execution_whole(&row, err);
	for (size_t i = 0; result >= 0 && i < ARRAY_SIZE(rows_of_run); i++) {
		result = store_bundle_carry(bundle, store, &rows_of_run[i], ":id", id, err);
		if (result == 0 && i == 0)
			break; /* it still runs */
	}
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
	struct adding adding = {bundle, store, err};
	struct store_execution row = {0};
	int result = store_execution_find(store, id, &row, err);

	if (result == 0 && sqlite3_exec(bundle->db, "SAVEPOINT execution", NULL, NULL, NULL) != SQLITE_OK)
		result = store_bundle_failed(bundle, err);
	if (result == 0 && *row.sandbox_id) {
		result = store_bundle_carry(bundle, store, &rows_of_sandbox, ":id", row.sandbox_id, err);
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
		result = store_bundle_prepare(bundle, "INSERT INTO blob (sha256, data) VALUES (?1, ?2)", sha256,
					      &statement, err);
	if (result == 0) {
		sqlite3_bind_blob64(statement, 2, data ? data : "", (sqlite3_uint64)size, SQLITE_STATIC);
		result = store_bundle_next(bundle, statement, err);
	}
	if (data)
		munmap(data, (size_t)size);
	return result;
}

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

/* Durable: the owner may leave the old host next. */
static int put_in_place(const struct store_bundle *bundle)
{
	auto_free char *folder = xstrdup(bundle->path);
	char *slash = strrchr(folder, '/');

	if (slash)
		slash[slash == folder] = '\0';
	auto_close int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || rename(bundle->part, bundle->path) < 0 ? -1 : fsync(fd);
}

int store_bundle_finish(struct store_bundle *bundle, struct store *store, struct err *err)
{
	auto_statement sqlite3_stmt *names = NULL;
	int result = store_bundle_prepare(bundle,
					  "SELECT name FROM " STORE_SQL_NAMED " WHERE name IS NOT NULL AND name NOT "
					  "IN (SELECT sha256 FROM blob)",
					  NULL, &names, err);

	while (result == 0 && (result = store_bundle_next(bundle, names, err)) > 0)
		result = add_blob(bundle, store, (const char *)sqlite3_column_text(names, 0), err);
	sqlite3_reset(names);
	if (result == 0)
		result = run(bundle, "COMMIT", err);
	if (result == 0 && bundle->part && put_in_place(bundle) < 0)
		result = err_errno(err, "writing %s", bundle->path);
	if (result == 0)
		free(steal(&bundle->part));
	return result;
}

/* -------- a suite ------------------------------------------------------------------------------------- */

int store_bundle_case_add(struct store_bundle *suite, struct store *store, const struct store_bundle_case *one,
			  struct err *err)
{
	static const char insert[] =
		"INSERT INTO suite_case VALUES (?1, coalesce(?2, ?1), coalesce(?3, '[]'), coalesce(?4, 'default'), "
		"coalesce(?5, 'default'), ?6) ON CONFLICT DO UPDATE SET name = coalesce(?2, name), tags = coalesce(?3, "
		"tags), compare = coalesce(?4, compare), normalise = coalesce(?5, normalise)";
	const char *const values[] = {one->name, one->tags, one->compare, one->normalise};
	auto_statement sqlite3_stmt *known = NULL, *statement = NULL;
	int there = 0, result = store_bundle_add(suite, store, one->id, err);

	if (result == 0)
		result = store_bundle_prepare(suite, "SELECT 1 FROM suite_case WHERE execution = ?1", one->id, &known,
					      err);
	if (result == 0)
		result = there = store_bundle_next(suite, known, err);
	if (result >= 0)
		result = store_bundle_prepare(suite, insert, one->id, &statement, err);
	if (result < 0)
		return result;
	for (int i = 0; i < (int)ARRAY_SIZE(values); i++)
		sqlite3_bind_text(statement, i + 2, values[i], -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, (int)ARRAY_SIZE(values) + 2, clock_now_us());
	result = store_bundle_next(suite, statement, err);
	return result < 0 ? result : !there;
}

int store_bundle_cases(struct store_bundle *bundle, int (*each)(void *arg, const struct store_bundle_case *one),
		       void *arg, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle,
					  "SELECT execution, name, tags, compare, normalise FROM suite_case ORDER BY "
					  "name, execution",
					  NULL, &row, err);

	while (result == 0 && (result = store_bundle_next(bundle, row, err)) > 0) {
		const char *texts[5];

		for (int i = 0; i < (int)ARRAY_SIZE(texts); i++)
			texts[i] = (const char *)sqlite3_column_text(row, i);
		result = each(arg, &(struct store_bundle_case){texts[0], texts[1], texts[2], texts[3], texts[4]});
	}
	return result;
}
