/*
 * store_sql_task.h - statements on live sandboxes, idempotency keys and tasks.
 */
#pragma once

#include "store_column.h"

#define STORE_REQUEST_COLUMNS(FIRST, NEXT, OWN)                                                                        \
	FIRST(REQUEST_HASH, "hash", hash)                                                                              \
	NEXT(REQUEST_EXECUTION, "execution", execution)                                                                \
	NEXT(REQUEST_STATE, "state", state)
enum { STORE_REQUEST_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) REQUEST_COLUMNS };
#define STORE_SQL_REQUEST STORE_REQUEST_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_TASK_COLUMNS(FIRST, NEXT, OWN)                                                                           \
	FIRST(TASK_ID, "id", id)                                                                                       \
	NEXT(TASK_OWNER, "owner", owner)                                                                               \
	NEXT(TASK_TOKEN, "token", token_id)                                                                            \
	NEXT(TASK_SESSION, "session", session_id)                                                                      \
	NEXT(TASK_TOOL, "tool", tool)                                                                                  \
	NEXT(TASK_EXECUTION, "execution", execution)                                                                   \
	OWN(TASK_STATE, "state")                                                                                       \
	NEXT(TASK_IS_ERROR, "is_error", is_error)                                                                      \
	NEXT(TASK_MESSAGE, "message", message)                                                                         \
	OWN(TASK_RESULT, "result")                                                                                     \
	NEXT(TASK_CREATED_US, "created_us", created_us)                                                                \
	NEXT(TASK_UPDATED_US, "updated_us", updated_us)                                                                \
	OWN(TASK_EXPIRES_US, "expires_us")
enum { STORE_TASK_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) TASK_COLUMNS };
#define STORE_SQL_TASK STORE_TASK_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_RUNNING_COLUMNS(FIRST, NEXT, OWN)                                                                        \
	FIRST(RUNNING_ID, "execution.id AS run", id)                                                                   \
	NEXT(RUNNING_WAITS, "0", waits)                                                                                \
	NEXT(RUNNING_OWNER, "owner", owner)                                                                            \
	NEXT(RUNNING_CONVERSATION, "conversation_name", conversation)                                                  \
	NEXT(RUNNING_WHAT, "language", what)                                                                           \
	NEXT(RUNNING_SINCE, "created_us AS since", since_us)                                                           \
	NEXT(RUNNING_INSTANCE, "instance.id", instance)                                                                \
	NEXT(RUNNING_PROGRAM, "kind", program)                                                                         \
	NEXT(RUNNING_PID, "pid", pid)
enum { STORE_RUNNING_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) RUNNING_COLUMNS };
#define STORE_SQL_RUNNING STORE_RUNNING_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_TASK(X)                                                                                       \
	/* live sandboxes */                                                                                           \
	X(SANDBOX_BEFORE, READ, /* the one that was there last */                                                      \
	  "SELECT iif(dismissed_us IS NULL, cause, 'reset') FROM sandbox WHERE owner = :owner AND "                    \
	  "conversation_name = :conversation AND language = :language ORDER BY id DESC LIMIT 1")                       \
	X(SANDBOX_ADD, WRITE,                                                                                          \
	  "INSERT INTO sandbox (id, instance, owner, conversation_name, language, opened_us) VALUES (:id, "            \
	  ":instance, :owner, :conversation, :language, :now)")                                                        \
	X(SANDBOX_END, WRITE,                                                                                          \
	  "UPDATE sandbox SET ended_us = :now, cause = :cause WHERE id = :id AND ended_us IS NULL")                    \
	X(SANDBOX_DISMISS, WRITE,                                                                                      \
	  "UPDATE sandbox SET dismissed_us = :now WHERE owner = :owner AND conversation_name = :conversation "         \
	  "AND :language IN ('', language) AND dismissed_us IS NULL")                                                  \
	/* idempotency keys; not found if its call may act again: it failed, or was cancelled before it began */       \
	X(REQUEST_FIND, READ,                                                                                          \
	  "SELECT " STORE_SQL_REQUEST "FROM request LEFT JOIN execution ON execution.id = execution WHERE "            \
	  "request.owner = :owner AND key = :key AND until_us > " STORE_SQL_SERVED                                     \
	  " AND (verdict IS NULL OR verdict NOT IN "                                                                   \
	  "('XX', 'CX') OR (verdict = 'CX' AND run_wall_us > 0))")                                                     \
	X(REQUEST_PUT, WRITE,                                                                                          \
	  "INSERT OR REPLACE INTO request (owner, key, hash, execution, expires_us, until_us) VALUES (:owner, :key, "  \
	  ":hash, :execution, :now + :ttl, " STORE_SQL_SERVED " + :ttl)")                                              \
	X(REQUEST_EXPIRE, WRITE,                                                                                       \
	  "DELETE FROM request WHERE (owner, key) IN (SELECT owner, key FROM request WHERE until_us <= "               \
	  STORE_SQL_SERVED " LIMIT :rows)")                                                                            \
	/* tasks; one that is working does not expire */                                                               \
	X(TASK_ADD, WRITE,                                                                                             \
	  "INSERT INTO task (id, owner, token, session, instance, tool, execution, state, is_error, message, "         \
	  "created_us, updated_us, expires_us, until_us) VALUES (:id, :owner, :token, :session, :instance, :tool, "    \
	  ":execution, 'working', 0, :message, :now, :now, :now + :ttl, " STORE_SQL_SERVED " + :ttl)")                 \
	X(TASK_COUNT, READ, "SELECT count(*) FROM task WHERE owner = :owner")                                          \
	X(TASK_DROP, WRITE, "DELETE FROM task WHERE id = :id")                                                         \
	X(TASK_END, WRITE,                                                                                             \
	  "UPDATE task SET state = :state, instance = NULL, is_error = :is_error, message = :message, "                \
	  "updated_us = :now, execution = coalesce(:execution, execution), result = :result WHERE id = :id AND "       \
	  "state = 'working'")                                                                                         \
	X(TASK_RECOVER, WRITE, /* the run was recorded, its task was not */                                            \
	  "UPDATE task SET state = 'completed', instance = NULL, updated_us = :now, is_error = (SELECT verdict "       \
	  "<> 'OK' FROM execution WHERE execution.id = task.execution), message = (SELECT message FROM "               \
	  "execution WHERE execution.id = task.execution) WHERE instance = :instance AND EXISTS (SELECT 1 FROM "       \
	  "execution WHERE execution.id = task.execution AND execution.state = 'finished')")                           \
	X(TASK_INTERRUPT, WRITE,                                                                                       \
	  "UPDATE task SET state = 'failed', instance = NULL, updated_us = :now, message = 'the gateway ended "        \
	  "before this task did' || coalesce((SELECT '; what it printed until then is kept as execution ' || id "      \
	  "FROM execution WHERE execution.id = task.execution), '') WHERE instance = :instance")                       \
	X(TASK_ABANDON, WRITE, /* of an execution whose end could not be recorded */                                   \
	  "UPDATE task SET state = 'failed', instance = NULL, updated_us = :now, message = :message WHERE "            \
	  "instance = :instance AND execution = :execution AND state = 'working'")                                     \
	X(TASK_FIND, READ,                                                                                             \
	  "SELECT " STORE_SQL_TASK "FROM task WHERE id = :id AND owner = :owner AND (until_us > " STORE_SQL_SERVED     \
	  " OR state "                                                                                                 \
	  "= 'working')")                                                                                              \
	X(TASK_LIST, READ,                                                                                             \
	  "SELECT " STORE_SQL_TASK "FROM task WHERE owner = :owner AND id < :before AND (until_us > " STORE_SQL_SERVED \
	  " OR "                                                                                                       \
	  "state = 'working') ORDER BY id DESC LIMIT :limit")                                                          \
	X(TASK_EXPIRE, WRITE,                                                                                          \
	  "DELETE FROM task WHERE id IN (SELECT id FROM task WHERE until_us <= " STORE_SQL_SERVED " AND state <> "     \
	  "'working' LIMIT :rows)")                                                                                    \
	/* what is under way: rows, and tasks whose run has none yet */                                                \
	X(RUNNING_LIST, READ,                                                                                          \
	  "SELECT " STORE_SQL_RUNNING "FROM instance CROSS JOIN execution ON instance = instance.id AND state = "      \
	  "'running' UNION ALL SELECT execution, 1, owner, '', tool, created_us, instance.id, kind, pid FROM task "    \
	  "CROSS JOIN instance ON instance.id = task.instance WHERE task.instance IS NOT NULL AND execution IS NOT "   \
	  "NULL AND NOT EXISTS (SELECT 1 FROM execution WHERE execution.id = task.execution) ORDER BY since, run")
