/*
 * store_bundle_audit.c - see store_bundle_audit.h.
 *
 * To be checked, a bundle becomes a record in memory: schema.sql, the rows of the bundle in it, columns that a bundle
 * does not have empty. So what a verifier asks of a record it asks of a bundle in the same words. The bundle's schema
 * was compared to the letter before anything of it is read (store_bundle_open).
 */
#include "store_bundle_audit.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit_scan.h"
#include "lib/store/db/store_schema.h"
#include "lib/store/db/store_txn.h"
#include "store_bundle_file.h"

/* -------- out ----------------------------------------------------------------------------------------- */

int store_bundle_audit_add(struct store_bundle *bundle, struct store *store, struct err *err)
{
	static const struct store_bundle_rows entries = {
		SQL_BUNDLE_AUDIT, "INSERT OR IGNORE INTO audit (n, at_us, kind, object, entry, salt, detail) VALUES "
				  "(?1, ?2, ?3, ?4, ?5, ?6, ?7)"};
	auto_statement sqlite3_stmt *ids = NULL;
	int result = store_bundle_prepare(bundle, "SELECT id FROM execution", NULL, &ids, err);

	while (result == 0 && (result = store_bundle_next(bundle, ids, err)) > 0)
		result = MIN(store_bundle_carry(bundle, store, &entries, ":id",
						(const char *)sqlite3_column_text(ids, 0), err),
			     0);
	return result;
}

int store_bundle_audit_numbers(struct store_bundle *bundle, int64_t **ret, size_t *ret_count, struct err *err)
{
	auto_statement sqlite3_stmt *rows = NULL;
	int64_t count = 0;
	size_t i = 0;
	int result = store_bundle_number(bundle, "SELECT count(*) FROM audit", &count, err);

	if (result == 0)
		result = store_bundle_prepare(bundle, "SELECT n FROM audit ORDER BY n", NULL, &rows, err);
	if (result < 0)
		return result;
	*ret = xcalloc((size_t)count + 1, sizeof(**ret));
	while (i < (size_t)count && sqlite3_step(rows) == SQLITE_ROW)
		(*ret)[i++] = sqlite3_column_int64(rows, 0);
	*ret_count = i;
	return 0;
}

int store_bundle_audit_prove(struct store_bundle *bundle, int64_t n, const void *proof, size_t length, struct err *err)
{
	auto_statement sqlite3_stmt *update = NULL;
	int result = store_bundle_prepare(bundle, "UPDATE audit SET proof = ?2 WHERE n = ?1", NULL, &update, err);

	if (result < 0)
		return result;
	sqlite3_bind_int64(update, 1, n);
	sqlite3_bind_blob64(update, 2, proof, length, SQLITE_STATIC);
	return store_bundle_next(bundle, update, err);
}

int store_bundle_audit_head(struct store_bundle *bundle, int64_t size, const uint8_t root[SHA256_SIZE],
			    const char *checkpoint, struct err *err)
{
	auto_statement sqlite3_stmt *insert = NULL;
	int result = store_bundle_prepare(bundle, "INSERT INTO audit_head VALUES (?1, ?2, ?3)", NULL, &insert, err);

	if (result < 0)
		return result;
	sqlite3_bind_int64(insert, 1, size);
	sqlite3_bind_blob(insert, 2, root, SHA256_SIZE, SQLITE_STATIC);
	sqlite3_bind_text(insert, 3, checkpoint, -1, SQLITE_STATIC);
	return store_bundle_next(bundle, insert, err);
}

/* -------- in ------------------------------------------------------------------------------------------ */

void store_bundle_log_clear(struct store_bundle_log *log)
{
	free(log->checkpoint);
	free(log->damage);
	*log = (struct store_bundle_log){0};
}

/* clang-format off */
#define ROWS_OF(table, list, more, values)                                                                             \
	"INSERT INTO main." table " (" BUNDLE_NAMES(list) more ") SELECT " BUNDLE_NAMES(list) values " FROM bundle."   \
	table ";"
static const char load_rows[] =
	ROWS_OF("execution", STORE_BUNDLE_EXECUTION, ", instance", ", ''")
	ROWS_OF("execution_file", STORE_BUNDLE_FILE, "", "")
	ROWS_OF("tool_call", STORE_BUNDLE_CALL, "", "")
	"INSERT INTO main.audit SELECT n, at_us, kind, object, entry FROM bundle.audit;"
	"INSERT INTO main.audit_detail SELECT n, salt, detail FROM bundle.audit WHERE salt IS NOT NULL;";
/* clang-format on */

static int load(struct store_conn *conn, const char *path, struct err *err)
{
	auto_statement sqlite3_stmt *attach = NULL;
	int result = sqlite3_exec(conn->db, store_schema, NULL, NULL, NULL);

	sqlite3_db_config(conn->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(conn->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_exec(conn->db, "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF", NULL,
				      NULL, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_prepare_v2(conn->db, "ATTACH ?1 AS bundle", -1, &attach, NULL);
	if (result == SQLITE_OK) {
		sqlite3_bind_text(attach, 1, path, -1, SQLITE_STATIC);
		result = sqlite3_step(attach) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(conn->db);
		sqlite3_reset(attach);
	}
	if (result == SQLITE_OK)
		result = sqlite3_exec(conn->db, load_rows, NULL, NULL, NULL);
	return result == SQLITE_OK ? 0 : store_conn_error(conn, result, err);
}

static int read_head(struct store_audit_reader *reader, struct store_bundle_log *log, struct err *err)
{
	auto_scan sqlite3_stmt *scan = NULL;
	int result =
		store_audit_scan(reader, "SELECT size, root, checkpoint FROM bundle.audit_head LIMIT 1", &scan, err);

	if (result == 0)
		result = store_audit_scan_next(reader, scan, err);
	if (result < 0)
		return result;
	if (result == 0 || sqlite3_column_bytes(scan, 1) != SHA256_SIZE)
		return err_set(err, ERR_CORRUPT, "it has no audit entries: only files of sallyport export have them");
	log->size = sqlite3_column_int64(scan, 0);
	memcpy(log->root, sqlite3_column_blob(scan, 1), SHA256_SIZE);
	if (sqlite3_column_type(scan, 2) == SQLITE_TEXT)
		log->checkpoint = xstrdup(store_audit_scan_text(scan, 2));
	return 0;
}

/* Its form, and its contents. What is wrong with a content is for the verifier to say. */
static int check(const char *path, struct store_bundle_log *log, struct err *err)
{
	struct store_bundle *bundle = NULL;
	struct err cause = ERR_INIT;
	int result = store_bundle_open(path, &bundle, &cause);

	store_bundle_close(bundle);
	if (result < 0 && cause.code != ERR_CORRUPT)
		return err_set(err, cause.code, "%s", cause.text);
	if (result < 0)
		log->damage = xstrdup(cause.text);
	return 0;
}

int store_bundle_audit_open(const char *path, struct store_audit_reader **ret, struct store_bundle_log *ret_log,
			    struct err *err)
{
	struct store_bundle_log log = {0};
	int result = check(path, &log, err);

	if (result < 0)
		return result;
	struct store_audit_reader *reader = xcalloc(1, sizeof(*reader));

	reader->conn = xcalloc(1, sizeof(*reader->conn));
	result = sqlite3_open_v2(":memory:", &reader->conn->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
	result = result == SQLITE_OK ? load(reader->conn, path, err) : store_conn_error(reader->conn, result, err);
	if (result == 0)
		result = read_head(reader, &log, err);
	if (result < 0) {
		store_audit_reader_close(reader);
		store_bundle_log_clear(&log);
		return err_wrap(err, "%s", path);
	}
	*ret = reader;
	*ret_log = log;
	return 0;
}

int store_bundle_audit_proof(struct store_audit_reader *reader, int64_t n, void *ret, size_t room, struct err *err)
{
	auto_scan sqlite3_stmt *scan = NULL;
	int result = store_audit_scan(reader, "SELECT proof FROM bundle.audit WHERE n = ?1", &scan, err);

	if (result < 0)
		return result;
	sqlite3_bind_int64(scan, 1, n);
	result = store_audit_scan_next(reader, scan, err);
	if (result <= 0)
		return result;
	const int length = sqlite3_column_bytes(scan, 0);

	if (length > 0 && (size_t)length <= room)
		memcpy(ret, sqlite3_column_blob(scan, 0), (size_t)length);
	return (size_t)length <= room ? length : 0;
}
