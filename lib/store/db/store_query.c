/*
 * store_query.c - see store_query.h.
 *
 * What makes a connection ours: foreign keys on; double-quoted strings, extension loading and functions from the schema
 * off; SQLite's own defences on (nobody writes the schema or shadow tables by SQL, but for the statements that are
 * marked so: see store_search.c); a busy timeout, since a CLI may write next to the gateway. Readers are opened
 * read-only and under an authorizer as well: belt and braces, because what they run is chosen by clients' requests.
 *
 * Texts for people are made here out of SQLite's result codes, once: a full disk, a read-only one, a file that is no
 * database.
 */
#include "store_query.h"

#include <errno.h>
#include <sqlite3.h>
#include <sys/statvfs.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "store_schema.h"

enum access { READ, WRITE, SHADOW };
static const struct {
	const char *name, *text;
	enum access access;
} statements[SQL_STATEMENTS] = {
#define STORE_SQL_ROW(name, access, text) [SQL_##name] = {#name, text, access},
	STORE_STATEMENTS(STORE_SQL_ROW)
#undef STORE_SQL_ROW
};

/* errno of what SQLite could not do. It tries a second way where the first failed, and says how that one failed: the
 * disk is asked whether it is full or read-only. */
static int system_error(sqlite3 *db)
{
	int number = sqlite3_system_errno(db);
	const char *path = sqlite3_db_filename(db, "main");
	sqlite3_file *log = NULL;
	struct statvfs disk;

	if (number == 0)
		sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
	if (number == 0 && sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
	    log != NULL && log->pMethods != NULL)
		log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &number);
	if (number != ENOENT || path == NULL || statvfs(path, &disk) < 0)
		return number;
	return disk.f_flag & ST_RDONLY ? EROFS : disk.f_bavail == 0 || disk.f_favail == 0 ? ENOSPC : number;
}

const char *store_sqlite_said(sqlite3 *db)
{
	const int code = sqlite3_errcode(db) & 0xff;

	return code == SQLITE_FULL || (code == SQLITE_IOERR && system_error(db) == ENOSPC) ? "no space left on its disk"
											    : sqlite3_errmsg(db);
}

int store_conn_error(struct store_conn *conn, int result, struct err *err)
{
	const char *said = conn->db != NULL ? sqlite3_errmsg(conn->db) : sqlite3_errstr(result);
	int system = conn->db != NULL ? system_error(conn->db) : 0;

	switch (result & 0xff) {
	case SQLITE_FULL:
		return err_set(err, ERR_SYSTEM,
			       "the database cannot be written: no space left on its disk; make room outside of the "
			       "data folder");
	case SQLITE_READONLY:
		return err_set(err, ERR_SYSTEM,
				"the database cannot be written: run this as the account that owns its folder, on a disk that is not mounted read-only");
	case SQLITE_INTERRUPT: /* store_conn_limit */
		return err_set(err, ERR_LIMIT, "the question took too long: ask for less, or for a shorter time");
	case SQLITE_CANTOPEN:
		errno = system;
		if (system != 0 && system != EACCES && system != EPERM)
			return err_errno(err, "the database cannot be opened");
		return err_set(err, ERR_SYSTEM,
			       "the database cannot be opened (%s): run this as the account that owns its "
			       "folder",
			       said);
	case SQLITE_IOERR:
		errno = system != 0 ? system : EIO;
		err_errno(err, "the database cannot be read or written (SQLite: %s, code %d)", said,
			  sqlite3_extended_errcode(conn->db));
		if (errno == EIO && err != NULL)
			snprintf(err->text + strlen(err->text), sizeof(err->text) - strlen(err->text),
				 ": its disk fails, see the kernel's log");
		return -ERR_SYSTEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, ERR_BUSY, "the database is locked: another process has been writing for %d s",
			       STORE_BUSY_MS / 1000);
	case SQLITE_NOTADB:
		return err_set(err, ERR_INVALID,
				"this file is not a database of Sallyport: restore it from a backup, or name another data_dir");
	case SQLITE_CORRUPT:
		return err_set(err, ERR_CORRUPT, "the database is damaged (%s): restore it from a backup", said);
	case SQLITE_CONSTRAINT:
		return err_set(err, ERR_CONFLICT, "the database refuses it: %s", said);
	default:
		return err_set(err, ERR_INTERNAL, "SQLite: %s (code %d)", said, result);
	}
}

/* What a reader may do: select, read columns, call functions. FTS5 tells SQLite what its table looks like when it opens
 * it, which counts as a change of the schema (nothing is written, and nothing can be), and asks whether the file was
 * changed. */
static int authorize_reader(void *arg, int action, const char *a, const char *b, const char *database,
			    const char *trigger)
{
	(void)arg, (void)b, (void)database, (void)trigger;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_FUNCTION:
		return SQLITE_OK;
	case SQLITE_UPDATE:
		return streq(a, "sqlite_master") ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_PRAGMA:
		return streq(a, "data_version") ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

static int configure(struct store_conn *conn, enum store_conn_kind kind, struct err *err)
{
	static const struct {
		int option, value;
	} options[] = {
		{SQLITE_DBCONFIG_DQS_DML, 0},        {SQLITE_DBCONFIG_DQS_DDL, 0},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
		{SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_ENABLE_FKEY, 1},
	};
	int keep = 1, result = sqlite3_busy_timeout(conn->db, STORE_BUSY_MS);

	for (size_t i = 0; result == SQLITE_OK && i < ARRAY_SIZE(options); i++)
		result = sqlite3_db_config(conn->db, options[i].option, options[i].value, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_exec(conn->db, "PRAGMA temp_store = MEMORY; PRAGMA journal_size_limit = 67108864",
				      NULL, NULL, NULL);
	if (result == SQLITE_OK &&
	    kind == STORE_CONN_WRITER) /* what is erased is overwritten; 16 MiB hold thousands of files' rows */
		result = sqlite3_exec(conn->db, "PRAGMA secure_delete = ON; PRAGMA cache_size = -16384", NULL, NULL,
				      NULL);
	/* The last writer to go leaves the log and its index, empty: an account that may only read (the signer) could
	 * not make them, and no reader opens a database of this mode without. */
	if (result == SQLITE_OK && kind == STORE_CONN_WRITER)
		result = sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
	if (result == SQLITE_OK && kind == STORE_CONN_READER)
		result = sqlite3_exec(conn->db, "PRAGMA query_only = ON", NULL, NULL, NULL);
	return result == SQLITE_OK ? 0 : store_conn_error(conn, result, err);
}

struct identity {
	int64_t application, version, objects;
};
#define ROW struct identity
static const struct column identity_columns[] = {STORE_IDENTITY_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

/* Every commit of this connection waits for the disk. Read back: an acknowledgement hangs on it. */
static int sync_commits(struct store_conn *conn, struct err *err)
{
	static const int full = 2;
	sqlite3_stmt *statement = NULL;
	int is = -1, result = sqlite3_exec(conn->db, "PRAGMA synchronous = FULL", NULL, NULL, NULL);

	if (result == SQLITE_OK)
		result = sqlite3_prepare_v2(conn->db, "PRAGMA synchronous", -1, &statement, NULL);
	if (result == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
		is = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	if (result != SQLITE_OK)
		return store_conn_error(conn, result, err);
	return is == full ? 0 : err_set(err, ERR_INTERNAL, "SQLite does not sync commits (synchronous is %d)", is);
}

static int check_identity(struct store_conn *conn, int *ret_version, struct err *err)
{
	auto_query struct query q = query_begin(conn, SQL_IDENTITY);
	struct identity found = {0};
	int result = query_next(&q, err);

	if (result < 0)
		return result;
	query_read(&q, identity_columns, ARRAY_SIZE(identity_columns), &found);
	int64_t version = found.version;

	*ret_version = 0;
	if (found.application == 0 && version == 0 && found.objects == 0)
		return 0;
	if (found.application != STORE_APPLICATION_ID)
		return err_set(err, ERR_INVALID,
			       "this file is a database of another program (application id %#llx): it is left alone",
			       (unsigned long long)found.application);
	if (version > store_schema_newest)
		return store_schema_refuse(version, err);
	if (version < 1)
		return err_set(err, ERR_CORRUPT, "the database has no valid version (%lld): restore it from a backup",
			       (long long)version);
	*ret_version = (int)version;
	return 0;
}

int store_conn_open(const char *path, enum store_conn_kind kind, struct store_conn **ret, int *ret_version,
		    struct err *err)
{
	int flags = SQLITE_OPEN_NOMUTEX | (kind == STORE_CONN_READER ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
	struct store_conn *conn = xcalloc(1, sizeof(*conn));
	int result = sqlite3_open_v2(path, &conn->db, flags, NULL);
	int failed = result == SQLITE_OK ? configure(conn, kind, err) : store_conn_error(conn, result, err);

	if (failed == 0 && kind == STORE_CONN_WRITER)
		failed = sync_commits(conn, err);
	if (failed == 0)
		failed = check_identity(conn, ret_version, err);
	if (failed == 0 && kind == STORE_CONN_READER)
		sqlite3_set_authorizer(conn->db, authorize_reader, NULL);
	if (failed < 0) {
		store_conn_close(conn);
		return err_wrap(err, "%s", path);
	}
	*ret = conn;
	return 0;
}

void store_conn_close(struct store_conn *conn)
{
	if (conn == NULL)
		return;
	for (size_t i = 0; i < SQL_STATEMENTS; i++)
		sqlite3_finalize(conn->statements[i]);
	/* What was folded into the database must not stay in its log: a backup may be put in the database's place. */
	if (conn->db != NULL && sqlite3_db_readonly(conn->db, "main") == 0)
		sqlite3_exec(conn->db, "PRAGMA journal_size_limit = 0", NULL, NULL, NULL);
	sqlite3_close(conn->db);
	free(conn);
}

int store_conn_prepare(struct store_conn *conn, bool fresh, struct err *err)
{
	int result = SQLITE_OK;

	if (fresh) /* only before the first page is written */
		result = sqlite3_exec(conn->db, "PRAGMA auto_vacuum = INCREMENTAL", NULL, NULL, NULL);
	if (result == SQLITE_OK)
		result = sqlite3_exec(conn->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
	if (result == SQLITE_OK && fresh) {
		result = sqlite3_exec(conn->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
		if (result == SQLITE_OK)
			result = sqlite3_exec(conn->db, store_schema, NULL, NULL, NULL);
		if (result == SQLITE_OK)
			result = sqlite3_exec(conn->db, "COMMIT", NULL, NULL, NULL);
	}
	return result == SQLITE_OK ? 0 : store_conn_error(conn, result, err);
}

/* Whenever such a statement is prepared, which SQLite does again by itself when the schema was changed. */
static void allow_shadow(struct store_conn *conn, enum store_sql which, bool allow)
{
	if (statements[which].access == SHADOW)
		sqlite3_db_config(conn->db, SQLITE_DBCONFIG_DEFENSIVE, allow ? 0 : 1, NULL);
}

static int prepare(struct store_conn *conn, enum store_sql which)
{
	if (conn->statements[which] != NULL)
		return SQLITE_OK;
	return sqlite3_prepare_v3(conn->db, statements[which].text, -1, SQLITE_PREPARE_PERSISTENT,
				  &conn->statements[which], NULL);
}

int store_conn_check(struct store_conn *conn, enum store_conn_kind kind, struct err *err)
{
	for (enum store_sql which = 0; which < SQL_STATEMENTS; which++) {
		/* The identity was asked before the authorizer came, which does not let pragmas through. */
		if (kind == STORE_CONN_READER && (statements[which].access != READ || which == SQL_IDENTITY))
			continue;
		allow_shadow(conn, which, true);
		int result = prepare(conn, which);

		allow_shadow(conn, which, false);
		if (result == SQLITE_ERROR) /* a table or column is not there */
			return err_set(err, ERR_CORRUPT,
				       "the database's schema is not as Sallyport made it (%s): restore it from a "
				       "backup",
				       sqlite3_errmsg(conn->db));
		if (result != SQLITE_OK) {
			store_conn_error(conn, result, err);
			return err_wrap(err, "statement %s", statements[which].name);
		}
	}
	return 0;
}

#define STEPS_BETWEEN_LOOKS 4000 /* of SQLite's machine: some 0.1 ms */

static int past_deadline(void *arg)
{
	const struct store_conn *conn = arg;

	return clock_monotonic_us() > conn->deadline_us;
}

void store_conn_limit(struct store_conn *conn, int64_t us)
{
	conn->deadline_us = us > 0 ? clock_monotonic_us() + us : 0;
	sqlite3_progress_handler(conn->db, us > 0 ? STEPS_BETWEEN_LOOKS : 0, us > 0 ? past_deadline : NULL, conn);
}

bool store_conn_idle(struct store_conn *conn)
{
	return sqlite3_get_autocommit(conn->db) != 0;
}

int64_t store_conn_changes(struct store_conn *conn)
{
	return sqlite3_total_changes64(conn->db);
}

struct query query_begin(struct store_conn *conn, enum store_sql which)
{
	struct query query = {.conn = conn, .which = which};

	allow_shadow(conn, which, true);
	query.result = prepare(conn, which);
	if (query.result != SQLITE_OK)
		return query;
	if (sqlite3_stmt_busy(conn->statements[which]))
		query.result = SQLITE_MISUSE;
	else
		query.statement = conn->statements[which];
	return query;
}

void query_end(struct query *query)
{
	allow_shadow(query->conn, query->which, false);
	if (query->statement == NULL)
		return;
	sqlite3_reset(query->statement);
	sqlite3_clear_bindings(query->statement);
	query->statement = NULL;
}

/* Place of the parameter, 0 if there is nothing to bind any more. */
static int parameter(struct query *query, const char *name)
{
	if (query->failed < 0 || query->result != SQLITE_OK || query->wrong != NULL)
		return 0;
	int place = sqlite3_bind_parameter_index(query->statement, name);

	if (place == 0)
		query->wrong = name;
	else
		query->bound++;
	return place;
}

void query_bind_value(struct query *query, const char *name, const struct sqlite3_value *value)
{
	int place = parameter(query, name);

	if (place > 0)
		query->result = sqlite3_bind_value(query->statement, place, value);
}

void query_bind_int(struct query *query, const char *name, int64_t value)
{
	int place = parameter(query, name);

	if (place > 0)
		query->result = sqlite3_bind_int64(query->statement, place, value);
}

void query_bind_null(struct query *query, const char *name)
{
	int place = parameter(query, name);

	if (place > 0)
		query->result = sqlite3_bind_null(query->statement, place);
}

void query_bind_int_if(struct query *query, const char *name, bool there, int64_t value)
{
	if (there)
		query_bind_int(query, name, value);
	else
		query_bind_null(query, name);
}

void query_bind_text(struct query *query, const char *name, const char *text)
{
	int place = parameter(query, name);

	if (place > 0)
		query->result = sqlite3_bind_text(query->statement, place, text, -1, SQLITE_STATIC);
}

void query_bind_some(struct query *query, const char *name, const char *text)
{
	query_bind_text(query, name, text != NULL && text[0] != '\0' ? text : NULL);
}

void query_bind_chars(struct query *query, const char *name, const char *data, size_t length)
{
	int place = parameter(query, name);

	if (place > 0)
		query->result = sqlite3_bind_text64(query->statement, place, data, length, SQLITE_STATIC, SQLITE_UTF8);
}

void query_bind_blob(struct query *query, const char *name, const void *data, size_t length)
{
	int place = parameter(query, name);

	if (place > 0)
		query->result = sqlite3_bind_blob64(query->statement, place, data, length, SQLITE_STATIC);
}

void query_bind_bytes(struct query *query, const char *name, const void *data, size_t length)
{
	if (data != NULL && (memchr(data, '\0', length) != NULL || !utf8_valid(data, length))) {
		query_bind_blob(query, name, data, length);
		return;
	}
	int place = parameter(query, name);

	if (place > 0)
		query->result = sqlite3_bind_text64(query->statement, place, data, length, SQLITE_STATIC, SQLITE_UTF8);
}

int query_next(struct query *query, struct err *err)
{
	const char *name = statements[query->which].name;

	if (query->failed < 0)
		return query->failed;
	if (query->wrong != NULL)
		return err_set(err, ERR_INTERNAL, "statement %s has no parameter %s", name, query->wrong);
	if (query->result != SQLITE_OK) {
		store_conn_error(query->conn, query->result, err);
		return err_wrap(err, "statement %s", name);
	}
	if (query->bound != sqlite3_bind_parameter_count(query->statement))
		return err_set(err, ERR_INTERNAL, "statement %s: %d of %d parameters are bound", name, query->bound,
			       sqlite3_bind_parameter_count(query->statement));
	int result = sqlite3_step(query->statement);

	if (result == SQLITE_ROW)
		return 1;
	return result == SQLITE_DONE ? 0 : store_conn_error(query->conn, result, err);
}

int query_run(struct query *query, int64_t *ret_changes, struct err *err)
{
	int found;

	do
		found = query_next(query, err);
	while (found > 0);
	if (found == 0 && ret_changes != NULL)
		*ret_changes = sqlite3_changes64(query->conn->db);
	return found;
}

int64_t query_int(struct query *query, int column)
{
	return sqlite3_column_int64(query->statement, column);
}

bool query_is_null(struct query *query, int column)
{
	return sqlite3_column_type(query->statement, column) == SQLITE_NULL;
}

const char *query_text(struct query *query, int column)
{
	const unsigned char *text = sqlite3_column_text(query->statement, column);

	return text != NULL ? (const char *)text : "";
}

const void *query_bytes(struct query *query, int column, size_t *ret_length)
{
	/* As text even where it is a BLOB: the bytes are the same in a UTF-8 database, and a NUL follows them. */
	const void *bytes = sqlite3_column_text(query->statement, column);

	*ret_length = (size_t)sqlite3_column_bytes(query->statement, column);
	return bytes;
}

void query_copy(struct query *query, int column, char *ret, size_t size)
{
	snprintf(ret, size, "%s", query_text(query, column));
}

void query_read(struct query *query, const struct column *columns, size_t n_columns, void *ret)
{
	for (int i = 0; i < (int)n_columns; i++) {
		void *place = (char *)ret + columns[i].offset;

		switch (columns[i].kind) {
		case COLUMN_SKIPPED:
			break;
		case COLUMN_TEXT:
			query_copy(query, i, place, columns[i].size);
			break;
		case COLUMN_STRING:
			*(char **)place = query_is_null(query, i) ? NULL : xstrdup(query_text(query, i));
			break;
		case COLUMN_INT64:
			*(int64_t *)place = query_int(query, i);
			break;
		case COLUMN_INT:
			*(int *)place = (int)query_int(query, i);
			break;
		case COLUMN_UNSIGNED:
			*(unsigned *)place = (unsigned)query_int(query, i);
			break;
		case COLUMN_BOOL:
			*(bool *)place = query_int(query, i) != 0;
			break;
		}
	}
}
