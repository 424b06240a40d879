/*
 * store_sql_space.h - statements on what owners have, and on what a run counts for.
 */
#pragma once

#include "store_column.h"

/* A text of the statement's parameters or of the row (prefix ":" or ""), where it stands in the row. */
#define STORE_SQL_INLINE(text) "iif(" text " IS NULL, 0, coalesce(" text "_bytes, 0))"
#define STORE_SQL_BYTES(text)  "coalesce(length(CAST(" text " AS BLOB)), 0)"
#define STORE_SQL_ASKED_BYTES(p)                                                                                       \
	"1024 + " STORE_SQL_INLINE(p "code") " + " STORE_SQL_INLINE(p "stdin") " + " STORE_SQL_BYTES(                  \
		p "args") " + " STORE_SQL_BYTES(p "env")
#define STORE_SQL_OUTPUT_BYTES(p) STORE_SQL_INLINE(p "stdout") " + " STORE_SQL_INLINE(p "stderr")
#define STORE_SQL_IMPORT_BYTES                                                                                         \
	STORE_SQL_ASKED_BYTES(":") " + " STORE_SQL_OUTPUT_BYTES(":") " + " STORE_SQL_BYTES(":result")
#define STORE_SQL_FILES_BYTES                                                                                          \
	"(SELECT coalesce(sum(128 + length(CAST(name AS BLOB))), 0) FROM execution_file WHERE execution = :id)"

/* What an owner has, and whether a content is in it. */
#define STORE_USAGE_COLUMNS(FIRST, NEXT, OWN)                                                                          \
	FIRST(USAGE_BYTES, "coalesce((SELECT bytes FROM usage WHERE owner = :owner), 0)")                              \
	OWN(USAGE_HELD, "EXISTS (SELECT 1 FROM holding WHERE owner = :owner AND blob = :blob)")
enum { STORE_USAGE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) USAGE_COLUMNS };
#define STORE_SQL_USAGE STORE_USAGE_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_HOLDING_COLUMNS(FIRST, NEXT, OWN)                                                                        \
	FIRST(HOLDING_OWNER, "owner")                                                                                  \
	OWN(HOLDING_BLOB, "blob")
enum { STORE_HOLDING_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) HOLDING_COLUMNS };
#define STORE_SQL_HOLDING STORE_HOLDING_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_SPACE(X)                                                                                      \
	X(USAGE_OF, READ, "SELECT " STORE_SQL_USAGE)                                                                   \
	X(EXECUTION_COUNT_FILES, WRITE,                                                                                \
	  "UPDATE execution SET bytes = bytes + " STORE_SQL_FILES_BYTES " WHERE id = :id")                             \
	X(IMPORT_HOLD, WRITE, /* 'before' has no trigger */                                                            \
	  "INSERT INTO holding (owner, blob, size) SELECT owner, blob, size FROM execution_file JOIN execution ON "    \
	  "id = execution WHERE execution = :id AND blob IS NOT NULL ON CONFLICT (owner, blob) DO UPDATE SET doubt "   \
	  "= 0 WHERE doubt = 1")                                                                                       \
	X(HOLDING_DOUBTED, READ,                                                                                       \
	  "SELECT " STORE_SQL_HOLDING                                                                                  \
	  "FROM holding WHERE doubt = 1 AND (owner, blob) > (:owner, :blob) ORDER BY owner, "                          \
	  "blob LIMIT :limit")                                                                                         \
	X(HOLDING_REFERRED, READ, /* of a content that very many files name, it looks at a thousand */                 \
	  "SELECT EXISTS (SELECT 1 FROM (SELECT conversation FROM file WHERE blob = :blob LIMIT 1000) JOIN "           \
	  "conversation ON id = conversation WHERE owner = :owner) OR EXISTS (SELECT 1 FROM (SELECT execution FROM "   \
	  "execution_file WHERE blob = :blob LIMIT 1000) JOIN execution ON id = execution WHERE owner = :owner) OR "   \
	  "EXISTS (SELECT 1 FROM execution WHERE code_blob = :blob AND owner = :owner) OR EXISTS (SELECT 1 FROM "      \
	  "execution WHERE stdin_blob = :blob AND owner = :owner) OR EXISTS (SELECT 1 FROM execution WHERE "           \
	  "stdout_blob = :blob AND owner = :owner) OR EXISTS (SELECT 1 FROM execution WHERE stderr_blob = :blob AND "  \
	  "owner = :owner) OR EXISTS (SELECT 1 FROM (SELECT execution FROM tool_call WHERE arguments_blob = :blob "    \
	  "LIMIT 1000) JOIN execution ON id = execution WHERE owner = :owner) OR EXISTS (SELECT 1 FROM (SELECT "       \
	  "execution FROM tool_call WHERE result_blob = :blob LIMIT 1000) JOIN execution ON id = execution WHERE "     \
	  "owner = :owner)")                                                                                           \
	X(HOLDING_BELIEVE, WRITE, "UPDATE holding SET doubt = 0 WHERE owner = :owner AND blob = :blob")                \
	X(HOLDING_DROP, WRITE, "DELETE FROM holding WHERE owner = :owner AND blob = :blob AND doubt = 1")
