/*
 * store_query.h - a connection to the database and the statements on it: the only way in which the store talks to
 * SQLite.
 *
 *     auto_query struct query q = query_begin(conn, SQL_TOKEN_FIND);
 *     query_bind_text(&q, ":from", id);
 *     while ((found = query_next(&q, err)) > 0)
 *             name = query_text(&q, TOKEN_NAME);
 *
 * Binding does not return errors: the first one is kept and comes out of query_next or query_run, as does a parameter
 * that was not bound. Columns are valid until the next query_next; a query ends with its scope. A connection belongs to
 * one thread at a time, and a statement to one query at a time (using it twice at once is ERR_INTERNAL).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "store_sql.h"

#define STORE_BUSY_MS 10000 /* waiting for another process that writes */

enum store_sql {
#define STORE_SQL_NAME(name, access, text) SQL_##name,
	STORE_STATEMENTS(STORE_SQL_NAME)
#undef STORE_SQL_NAME
		SQL_STATEMENTS
};

struct sqlite3;
struct store;
struct sqlite3_stmt;
struct sqlite3_value;
/* What SQLite says of its last error, of which a full disk is one in any file: for texts. */
const char *store_sqlite_said(struct sqlite3 *db);
struct store_conn {
	struct sqlite3 *db;
	struct store *store; /* of a reader: whose pool it is of */
	struct sqlite3_stmt *statements[SQL_STATEMENTS]; /* prepared on first use */
	struct store_conn *next;                         /* in the pool of idle readers */
	int64_t deadline_us; /* monotonic: a query that is not through by then is ended; 0: none */
};
enum store_conn_kind { STORE_CONN_WRITER, STORE_CONN_READER };
/* Opens the file (which must exist), sets everything that makes it ours except the journal mode, and looks at the
 * identity: *ret_version is the schema's, at most store_schema_newest; 0: the file is empty. A reader gets its
 * authorizer. */
int store_conn_open(const char *path, enum store_conn_kind kind, struct store_conn **ret, int *ret_version,
		    struct err *err);
void store_conn_close(struct store_conn *conn); /* NULL is fine */
/* Write-ahead log, and schema.sql into a fresh file. */
int store_conn_prepare(struct store_conn *conn, bool fresh, struct err *err);
/* Prepares every statement that this kind of connection may run. */
int store_conn_check(struct store_conn *conn, enum store_conn_kind kind, struct err *err);
/* Queries of this connection end with ERR_LIMIT when together they have taken that long; 0: they may take all time. */
void store_conn_limit(struct store_conn *conn, int64_t us);
/* Is no transaction open? (SQLite ends one by itself when it cannot go on.) */
bool store_conn_idle(struct store_conn *conn);
/* Rows that this connection ever changed. */
int64_t store_conn_changes(struct store_conn *conn);
/* Sets err by what SQLite says about this result code; returns the negative code. */
int store_conn_error(struct store_conn *conn, int result, struct err *err);

struct query {
	struct store_conn *conn;
	struct sqlite3_stmt *statement;
	enum store_sql which;
	int failed;        /* there is no connection: the code that query_next returns */
	int bound;         /* parameters that have a value */
	int result;        /* the first result code that was not SQLITE_OK */
	const char *wrong; /* a parameter that the statement does not have */
};
struct query query_begin(struct store_conn *conn, enum store_sql which);
void query_end(struct query *query);
#define auto_query __attribute__((cleanup(query_end)))

void query_bind_int(struct query *query, const char *name, int64_t value);
void query_bind_null(struct query *query, const char *name);
void query_bind_int_if(struct query *query, const char *name, bool there, int64_t value); /* else NULL */
void query_bind_text(struct query *query, const char *name, const char *text); /* NULL: NULL */
void query_bind_some(struct query *query, const char *name, const char *text); /* NULL or empty: NULL */
/* TEXT where the bytes are UTF-8 without NUL, else BLOB; NULL data: NULL. Not copied: valid until the query ends. */
void query_bind_bytes(struct query *query, const char *name, const void *data, size_t length);
/* TEXT, whatever the bytes are; not copied. */
void query_bind_chars(struct query *query, const char *name, const char *data, size_t length);
void query_bind_blob(struct query *query, const char *name, const void *data, size_t length);
/* Of whatever type, as another statement has it. */
void query_bind_value(struct query *query, const char *name, const struct sqlite3_value *value);

/* 1: a row, 0: no (more) row, negative: failed. */
int query_next(struct query *query, struct err *err);
/* To the end; *ret_changes (may be NULL) is how many rows were changed. */
int query_run(struct query *query, int64_t *ret_changes, struct err *err);

int64_t query_int(struct query *query, int column); /* NULL: 0 */
bool query_is_null(struct query *query, int column);
const char *query_text(struct query *query, int column) __attribute__((returns_nonnull));
const void *query_bytes(struct query *query, int column,
			size_t *ret_length);                              /* NULL: NULL; bytes are followed by a NUL */
void query_copy(struct query *query, int column, char *ret, size_t size); /* text, cut to the size */
/* Fills the members of *ret that the table places (store_column.h); the others stay as they are. */
void query_read(struct query *query, const struct column *columns, size_t n_columns, void *ret);
