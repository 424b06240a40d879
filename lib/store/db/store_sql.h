/*
 * store_sql.h - every SQL statement that the store runs, by name: those on the file itself, on instances, and of small
 * subjects; store_sql_*.h have the others, by subject.
 *
 * One line each: X(NAME, READ|WRITE, "text"). store_query.c makes the enumeration and the array of texts from it; a
 * statement is prepared once per connection, and parameters are bound by name. Columns are read by name, too: see
 * store_column.h. READ statements run on any connection; readers have an authorizer that lets through nothing that
 * writes. Every text is prepared when the store is opened for writing: a slip fails the start.
 */
#pragma once

#include "store_sql_audit.h"
#include "store_sql_baseline.h"
#include "store_sql_bundle.h"
#include "store_sql_erase.h"
#include "store_sql_execution.h"
#include "store_sql_file.h"
#include "store_sql_move.h"
#include "store_sql_oauth.h"
#include "store_sql_search.h"
#include "store_sql_snippet.h"
#include "store_sql_space.h"
#include "store_sql_task.h"
#include "store_sql_token.h"
#include "store_sql_tool.h"
#include "store_sql_view.h"

/* Of owners for whom nothing starts here. */
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

/* Of what programs run on. */
#define STORE_STATEMENTS_RUNTIME(X) \
	X(RUNTIME_IS, READ, "SELECT 1 FROM runtime WHERE hash = :hash") \
	X(RUNTIME_ADD, WRITE, \
	  "INSERT INTO runtime (hash, description, first_us) VALUES (:hash, :description, :now)") \
	X(RUNTIME_SET, WRITE, "UPDATE execution SET runtime = :hash WHERE id = :id") \
	X(RUNTIME_OF, READ, \
	  "SELECT description FROM execution JOIN runtime ON hash = execution.runtime WHERE execution.id = :id")

/* Of the tags of executions. */
#define STORE_TAG_COLUMNS(FIRST, NEXT, OWN)                                                                            \
	FIRST(TAG_NAME, "tag", name)                                                                                   \
	NEXT(TAG_COUNT, "count(*)", count)
enum { STORE_TAG_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) TAG_COLUMNS };
#define STORE_SQL_TAG STORE_TAG_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_TAG(X)                                                                                        \
	X(TAG_ADD, WRITE, "INSERT OR IGNORE INTO execution_tag (execution, tag) VALUES (:id, :tag)")                   \
	X(TAG_REMOVE, WRITE, "DELETE FROM execution_tag WHERE execution = :id AND tag = :tag")                         \
	X(TAG_LIST, READ, "SELECT " STORE_SQL_TAG "FROM execution_tag GROUP BY tag ORDER BY tag")

#define STORE_IDENTITY_COLUMNS(FIRST, NEXT, OWN)                                                                       \
	FIRST(IDENTITY_APPLICATION, "(SELECT application_id FROM pragma_application_id)", application)                 \
	NEXT(IDENTITY_VERSION, "(SELECT user_version FROM pragma_user_version)", version)                              \
	NEXT(IDENTITY_OBJECTS, "(SELECT count(*) FROM sqlite_schema)", objects)
enum { STORE_IDENTITY_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) IDENTITY_COLUMNS };
#define STORE_SQL_IDENTITY STORE_IDENTITY_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_INSTANCE_COLUMNS(FIRST, NEXT, OWN)                                                                       \
	FIRST(INSTANCE_ID, "id", id)                                                                                   \
	NEXT(INSTANCE_KIND, "kind", kind)
enum { STORE_INSTANCE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) INSTANCE_COLUMNS };
#define STORE_SQL_INSTANCE STORE_INSTANCE_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_STORE(X)                                                                                      \
	/* the file itself */                                                                                          \
	X(IDENTITY, READ, "SELECT " STORE_SQL_IDENTITY)                                                                \
	X(BEGIN_WRITE, WRITE, "BEGIN IMMEDIATE")                                                                       \
	X(COMMIT, WRITE, "COMMIT")                                                                                     \
	X(ROLLBACK, WRITE, "ROLLBACK")                                                                                 \
	X(SAVEPOINT, WRITE, "SAVEPOINT work")                                                                          \
	X(RELEASE, WRITE, "RELEASE work")                                                                              \
	X(ROLLBACK_TO, WRITE, "ROLLBACK TO work")                                                                      \
	X(UPTIME, READ, "SELECT served_us FROM uptime WHERE one = 1")                                                  \
	X(UPTIME_SAVE, WRITE, "UPDATE uptime SET served_us = max(served_us, :served) WHERE one = 1")                   \
	/* instances */                                                                                                \
	X(INSTANCE_ADD, WRITE,                                                                                         \
	  "INSERT INTO instance (id, kind, pid, boot_id, started_us) VALUES (:id, :kind, :pid, :boot_id, :now)")       \
	X(INSTANCE_END, WRITE, "UPDATE instance SET ended_us = :now WHERE id = :id AND ended_us IS NULL")              \
	X(INSTANCE_REMOVE, WRITE,                                                                                      \
	  "DELETE FROM instance WHERE id = :id AND NOT EXISTS (SELECT 1 FROM execution WHERE instance = :id)")         \
	X(INSTANCE_LIST, READ, /* those that may be gone: not ended in order, or ended with something still running */ \
	  "SELECT " STORE_SQL_INSTANCE "FROM instance WHERE id <> :self AND (ended_us IS NULL OR EXISTS (SELECT "      \
	  "1 FROM execution WHERE instance = instance.id AND state = 'running'))")                                     \
	X(INSTANCE_RUNNING, READ, "SELECT id FROM execution WHERE instance = :id AND state = 'running'")

#define STORE_STATEMENTS(X)                                                                                            \
	STORE_STATEMENTS_STORE(X)                                                                                      \
	STORE_STATEMENTS_VIEW(X)                                                                                       \
	STORE_STATEMENTS_TOKEN(X)                                                                                      \
	STORE_STATEMENTS_OAUTH(X)                                                                                      \
	STORE_STATEMENTS_FILE(X)                                                                                       \
	STORE_STATEMENTS_EXECUTION(X)                                                                                  \
	STORE_STATEMENTS_TASK(X)                                                                                       \
	STORE_STATEMENTS_TOOL(X)                                                                                       \
	STORE_STATEMENTS_BASELINE(X)                                                                                   \
	STORE_STATEMENTS_BUNDLE(X)                                                                                     \
	STORE_STATEMENTS_AUDIT(X)                                                                                      \
	STORE_STATEMENTS_SPACE(X)                                                                                      \
	STORE_STATEMENTS_RUNTIME(X)                                                                                    \
	STORE_STATEMENTS_SNIPPET(X)                                                                                    \
	STORE_STATEMENTS_TAG(X)                                                                                        \
	STORE_STATEMENTS_DRAIN(X)                                                                                      \
	STORE_STATEMENTS_MOVE(X)                                                                                       \
	STORE_STATEMENTS_SEARCH(X)                                                                                     \
	STORE_STATEMENTS_ERASE(X)
