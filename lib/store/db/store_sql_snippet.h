/* store_sql_snippet.h - statements on programs that are kept by name; see store_sql.h. */
#pragma once

#include "store_column.h"

#define STORE_SNIPPET_COLUMNS(FIRST, NEXT, OWN)                                                                        \
	FIRST(SNIPPET_OWNER, "owner", owner)                                                                           \
	NEXT(SNIPPET_NAME, "name", name)                                                                               \
	NEXT(SNIPPET_VERSION, "version", version)                                                                      \
	NEXT(SNIPPET_LANGUAGE, "language", language)                                                                   \
	NEXT(SNIPPET_DESCRIPTION, "description", description)                                                          \
	NEXT(SNIPPET_SCHEMA, "schema", schema)                                                                         \
	NEXT(SNIPPET_SERVERS, "servers", servers)                                                                      \
	NEXT(SNIPPET_CODE, "code", code)                                                                               \
	NEXT(SNIPPET_CREATED, "created_us", created_us)
enum { STORE_SNIPPET_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) SNIPPET_COLUMNS };
#define STORE_SQL_SNIPPET STORE_SNIPPET_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* Version 0: the newest. An owner's own comes before everybody's. */
#define STORE_STATEMENTS_SNIPPET(X)                                                                                    \
	X(SNIPPET_FIND, READ,                                                                                          \
	  "SELECT " STORE_SQL_SNIPPET "FROM snippet WHERE owner IN (:owner, '') AND name = :name AND (:version = 0 "   \
	  "OR version = :version) ORDER BY owner DESC, version DESC LIMIT 1")                                          \
	X(SNIPPET_LIST, READ,                                                                                          \
	  "SELECT " STORE_SQL_SNIPPET "FROM snippet AS one WHERE (:owner IS NULL OR owner IN (:owner, '')) AND "       \
	  "version = (SELECT max(version) FROM snippet WHERE owner = one.owner AND name = one.name) ORDER BY owner, "  \
	  "name")                                                                                                      \
	X(SNIPPET_NAMES, READ,                                                                                         \
	  "SELECT count(DISTINCT name) FROM snippet WHERE owner = :owner AND name <> :name")                           \
	X(SNIPPET_ADD, WRITE,                                                                                          \
	  "INSERT INTO snippet (owner, name, version, language, description, schema, servers, code, created_us) "      \
	  "SELECT :owner, :name, coalesce(max(version), 0) + 1, :language, :description, :schema, :servers, :code, "   \
	  ":now FROM snippet WHERE owner = :owner AND name = :name RETURNING version")                                 \
	X(SNIPPET_TRIM, WRITE,                                                                                         \
	  "DELETE FROM snippet WHERE owner = :owner AND name = :name AND version <= :version")                         \
	X(SNIPPET_REMOVE, WRITE,                                                                                       \
	  "DELETE FROM snippet WHERE owner = :owner AND name = :name AND (:version = 0 OR version = :version)")        \
	X(SNIPPET_FORGET, WRITE, "DELETE FROM snippet WHERE owner = :owner")
