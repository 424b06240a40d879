/*
 * store_sql_drain.h - statements on owners for whom nothing starts here.
 */
#pragma once

#include "store_column.h"

#define STORE_DRAIN_COLUMNS(FIRST, NEXT, OWN) \
	FIRST(DRAIN_OWNER, "owner") \
	OWN(DRAIN_REASON, "reason") \
	OWN(DRAIN_SINCE, "since_us")
enum { STORE_DRAIN_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) DRAIN_COLUMNS };
#define STORE_SQL_DRAIN STORE_DRAIN_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_DRAIN(X) \
	X(DRAIN_BEGIN, WRITE, \
	  "INSERT INTO drain (owner, reason, since_us) VALUES (:owner, :reason, :now) ON CONFLICT (owner) DO UPDATE " \
	  "SET reason = excluded.reason") \
	X(DRAIN_END, WRITE, "DELETE FROM drain WHERE owner = :owner") \
	X(DRAIN_LIST, READ, "SELECT " STORE_SQL_DRAIN "FROM drain ORDER BY owner") \
	X(DRAIN_STATE, READ, "SELECT EXISTS (SELECT 1 FROM drain WHERE owner IN ('*', :owner))") \
	X(DRAIN_UNDER_WAY, READ, \
	  "SELECT (SELECT count(*) FROM execution WHERE instance IN (SELECT id FROM instance) AND state = 'running' "  \
	  "AND :owner IN ('*', owner)) + (SELECT count(*) FROM task WHERE instance IS NOT NULL AND execution IS NULL "\
	  "AND :owner IN ('*', owner))")
