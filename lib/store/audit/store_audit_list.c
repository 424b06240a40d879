/*
 * store_audit_list.c - see store_audit_list.h.
 *
 * The statement is made of the view's own text, out of the schema.sql that is in this program: the view in a database
 * may be anybody's, and its functions of JSON are not run out of a schema that is not trusted. So it is none of the
 * enumerated statements, and is prepared where it is asked for; nothing in it comes from outside.
 */
#include "store_audit_list.h"

#include <sqlite3.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/db/store_reader.h"
#include "lib/store/db/store_schema.h"

const char *const store_audit_line_names[STORE_AUDIT_LINE_COLUMNS] = {
#define LINE_NAME(name, column) #column,
	STORE_AUDIT_LINE(LINE_NAME)
#undef LINE_NAME
};

#define LINE_COLUMN(name, column) ", " #column
#define COLUMNS                   "n, at_us" STORE_AUDIT_LINE(LINE_COLUMN)
enum { N, AT, COLUMNS_BEGIN };

#define ANY(parameter, condition) "(" parameter " IS NULL OR " condition ") "
/* A run that left, changed or removed the file. */
#define CHANGED                                                                                                        \
	"kind = 'run.end' AND EXISTS (SELECT 1 FROM execution_file AS f WHERE f.execution = run AND f.phase = "        \
	"'after' AND CAST(f.name AS TEXT) GLOB :file)"
#define WHERE                                                                                                          \
	"WHERE n > :after AND n < :before AND at_us >= :since AND at_us < :until AND " ANY(":kind", "kind GLOB :kind") \
	"AND " ANY(":owner", "owner = :owner") "AND " ANY(":token", "(token = :token OR substr(actor, 7) = :token)")   \
	"AND " ANY(":conversation", "conversation = :conversation") "AND " ANY(":file", "file GLOB :file OR " CHANGED) \
	"AND " ANY(":run", "substr(object, 11, length(:run)) = :run AND object GLOB 'execution:*'")                    \
	"AND " ANY(":request", "request_id = :request") "AND " ANY(":address", "client_address GLOB :address")         \
	"AND " ANY(":client", "client GLOB :client")

static void bind_text(sqlite3_stmt *statement, const char *name, const char *text)
{
	if (text != NULL)
		sqlite3_bind_text(statement, sqlite3_bind_parameter_index(statement, name), text, -1, SQLITE_STATIC);
}

static void bind_number(sqlite3_stmt *statement, const char *name, int64_t number)
{
	sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, name), number);
}

static void bind_all(sqlite3_stmt *statement, const struct store_audit_lines *which)
{
	bind_number(statement, ":after", which->after);
	bind_number(statement, ":before", which->before > 0 ? which->before : INT64_MAX);
	bind_number(statement, ":since", which->since_us);
	bind_number(statement, ":until", which->until_us > 0 ? which->until_us : INT64_MAX);
	bind_number(statement, ":limit", which->limit > 0 ? which->limit : -1);
	bind_text(statement, ":kind", which->kind);
	bind_text(statement, ":owner", which->owner);
	bind_text(statement, ":token", which->token);
	bind_text(statement, ":conversation", which->conversation);
	bind_text(statement, ":file", which->file);
	bind_text(statement, ":run", which->run);
	bind_text(statement, ":request", which->request_id);
	bind_text(statement, ":address", which->address);
	bind_text(statement, ":client", which->client);
}

/* 0: it came to its end, or `each` did not want more. */
static int walk(struct store_conn *conn, sqlite3_stmt *statement,
		int (*each)(void *arg, const struct store_audit_line *line), void *arg, struct err *err)
{
	int result;

	while ((result = sqlite3_step(statement)) == SQLITE_ROW) {
		struct store_audit_line line = {.n = sqlite3_column_int64(statement, N),
						.at_us = sqlite3_column_int64(statement, AT)};

		for (int i = 0; i < STORE_AUDIT_LINE_COLUMNS; i++)
			line.columns[i] = (const char *)sqlite3_column_text(statement, COLUMNS_BEGIN + i);
		if (each(arg, &line) != 0)
			return 0;
	}
	return result == SQLITE_DONE ? 0 : store_conn_error(conn, result, err);
}

int store_audit_list(struct store *store, const struct store_audit_lines *which,
		     int (*each)(void *arg, const struct store_audit_line *line), void *arg, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	auto_free char *view = store_schema_view("audit_log");
	auto_free char *sql = xasprintf("SELECT " COLUMNS " FROM (%s) " WHERE "ORDER BY n %s LIMIT :limit", view,
					which->newest_first ? "DESC" : "ASC");
	sqlite3_stmt *statement = NULL;
	int failed = store_reader_take(store, &reader, err);

	if (failed < 0)
		return failed;
	store_conn_limit(reader.conn, which->us);
	int result = sqlite3_prepare_v2(reader.conn->db, sql, -1, &statement, NULL);

	if (result == SQLITE_OK) {
		bind_all(statement, which);
		failed = walk(reader.conn, statement, each, arg, err);
	} else {
		failed = store_conn_error(reader.conn, result, err);
	}
	sqlite3_finalize(statement);
	store_conn_limit(reader.conn, 0);
	return failed < 0 ? err_wrap(err, "the audit log") : 0;
}

int store_audit_next(struct store *store, int64_t *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_AUDIT_NEXT, err);
	int found = query_next(&q, err);

	if (found > 0)
		*ret = query_int(&q, 0);
	return MIN(found, 0);
}
