/*
 * store_sql_search.h - statements on the index of texts (store_search.h).
 */
#pragma once

#include "store_column.h"

#define STORE_SEARCH_COLUMNS(FIRST, NEXT, OWN)                                                                         \
	FIRST(SEARCH_RECORDED, "recorded")                                                                             \
	OWN(SEARCH_CODE, "code")                                                                                       \
	OWN(SEARCH_CODE_BLOB, "code_blob")                                                                             \
	OWN(SEARCH_STDOUT, "stdout")                                                                                   \
	OWN(SEARCH_STDOUT_BLOB, "stdout_blob")                                                                         \
	OWN(SEARCH_STDERR, "stderr")                                                                                   \
	OWN(SEARCH_STDERR_BLOB, "stderr_blob")
enum {
	STORE_SEARCH_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) SEARCH_COLUMNS,
	SEARCH_TEXTS_BEGIN = SEARCH_CODE
};
#define STORE_SQL_SEARCH STORE_SEARCH_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "
#define STORE_SEARCHED_COLUMNS(FIRST, OWN) FIRST(SEARCHED_STALE, "stale") OWN(SEARCHED_DEBT, "debt")
enum { STORE_SEARCHED_COLUMNS(COLUMN_NAME, COLUMN_NAME) SEARCHED_COLUMNS };
#define STORE_SQL_SEARCHED "(SELECT through FROM searched)"

/* searched.debt of an index that is being emptied; no texts amount to it. */
#define STORE_SEARCH_ALL (INT64_C(1) << 60)
#define STORE_SQL_MATCH	 "iif((SELECT debt FROM searched) < 1 << 60, :match, '\"\"')"

/* Runs that may have the text: those that the index names, those that it does not know yet, and those whose code it
 * knows the beginning of. */
#define STORE_SQL_CANDIDATES                                                                                           \
	"SELECT id FROM execution WHERE recorded IN (SELECT search.rowid / 64 FROM search WHERE search "               \
	"MATCH " STORE_SQL_MATCH ") "                                                                                  \
	"UNION SELECT id FROM execution WHERE recorded > " STORE_SQL_SEARCHED " UNION SELECT id FROM execution WHERE " \
	"code_blob IS NOT NULL UNION SELECT id FROM execution WHERE instance IN (SELECT id FROM "         \
	"instance) AND state = 'running' ORDER BY id "

#define STORE_STATEMENTS_SEARCH(X)                                                                                     \
	X(SEARCH_NEXT, READ,                                                                                           \
	  "SELECT " STORE_SQL_SEARCH "FROM execution WHERE recorded > " STORE_SQL_SEARCHED " ORDER BY recorded")       \
	X(SEARCH_ROW, READ,                                                                                            \
	  "SELECT " STORE_SQL_SEARCH "FROM execution WHERE id = :id AND recorded IS NOT NULL")                         \
	X(SEARCH_HAS, READ, "SELECT 1 FROM search WHERE search MATCH :first AND rowid = :place")                       \
	X(SEARCH_ADD, WRITE, "INSERT INTO search (rowid, text) VALUES (:place, :text)")                                \
	X(SEARCH_REMOVE, WRITE, "INSERT INTO search (search, rowid, text) VALUES ('delete', :place, :text)")           \
	X(SEARCH_EMPTY_PAGES, SHADOW,                                                                                  \
	  "DELETE FROM search_data WHERE id IN (SELECT id FROM search_data WHERE id > 10 LIMIT 16)")                   \
	X(SEARCH_EMPTY_PLACES, SHADOW,                                                                                 \
	  "DELETE FROM search_idx WHERE (segid, term) IN (SELECT segid, term FROM search_idx LIMIT 64)")               \
	X(SEARCH_EMPTY, WRITE, "INSERT INTO search (search) VALUES ('delete-all')")                                    \
	X(SEARCH_MERGE, WRITE, "INSERT INTO search (search, rank) VALUES ('merge', :pages)")                           \
	X(SEARCH_MOVE_ON, WRITE, "UPDATE searched SET through = :through")                                             \
	X(SEARCH_IS_STALE, READ, "SELECT " STORE_SEARCHED_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT) " FROM searched")       \
	X(SEARCH_BACKLOG, READ, "SELECT coalesce(max(recorded), 0) - " STORE_SQL_SEARCHED " FROM execution")           \
	X(SEARCH_STATE, WRITE,                                                                                         \
	  "UPDATE searched SET stale = :state, debt = CASE :state WHEN 1 THEN debt + :debt ELSE 0 END")                \
	X(SEARCH_NEWEST, READ, STORE_SQL_CANDIDATES "DESC")                                                            \
	X(SEARCH_OLDEST, READ, STORE_SQL_CANDIDATES)
