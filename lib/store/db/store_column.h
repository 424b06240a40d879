/*
 * store_column.h - the columns of a SELECT, each written once: a list X(NAME, "sql", member) makes the text of the
 * SELECT list, the names by which columns are asked for, and the table by which query_read fills a struct.
 *
 *     #define STORE_TOKEN_COLUMNS(FIRST, NEXT, OWN)                                  in store_sql_token.h
 *             FIRST(TOKEN_ID, "id", id)
 *             NEXT(TOKEN_USED, "used_us", used_us)
 *             OWN(TOKEN_SCOPES, "scopes")                    its reader looks at it itself, by name
 *     enum { STORE_TOKEN_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) TOKEN_COLUMNS };
 *     #define STORE_SQL_TOKEN STORE_TOKEN_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT)
 *
 *     #define ROW struct store_token                                                 in store_token.c
 *     static const struct column columns[] = {STORE_TOKEN_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
 *     query_read(&q, columns, ARRAY_SIZE(columns), &token);
 *
 * How a column is read follows from the type of its member. A type that is not listed here does not compile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum column_kind {
	COLUMN_SKIPPED, /* OWN, or another list's */
	COLUMN_TEXT,    /* char[]: cut to its size; NULL: "" */
	COLUMN_STRING,  /* char *: a copy on the heap; NULL: NULL */
	COLUMN_INT64,   /* NULL: 0; so for all numbers */
	COLUMN_INT,
	COLUMN_UNSIGNED,
	COLUMN_BOOL,
};
struct column {
	enum column_kind kind;
	size_t offset, size;
};

#define COLUMN_NAME(name, ...)          name,
#define COLUMN_SQL(name, sql, ...)      sql
#define COLUMN_SQL_NEXT(name, sql, ...) ", " sql
#define COLUMN_NONE(name, sql)
#define COLUMN_PLACE(name, sql, member)                                                                                \
	[name] = {COLUMN_KIND(member), offsetof(ROW, member), sizeof(((ROW *)0)->member)},
#define COLUMN_KIND(member)                                                                                            \
	_Generic(&((ROW *)0)->member,                                                                                  \
		char **: COLUMN_STRING,                                                                                \
		int64_t *: COLUMN_INT64,                                                                               \
		int *: COLUMN_INT,                                                                                     \
		unsigned *: COLUMN_UNSIGNED,                                                                           \
		bool *: COLUMN_BOOL,                                                                                   \
		char(*)[sizeof(((ROW *)0)->member)]: COLUMN_TEXT)
