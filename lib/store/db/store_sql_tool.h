/* store_sql_tool.h - statements on servers of runs and their calls. */
#pragma once

#include "store_column.h"

#define STORE_TOOL_CALL_COLUMNS(FIRST, NEXT, OWN)                                                                      \
	FIRST(CALL_SEQ, "seq", seq)                                                                                    \
	NEXT(CALL_CONNECTION, "connection", connection)                                                                \
	NEXT(CALL_SERVER, "server", server)                                                                            \
	NEXT(CALL_TOOL, "tool", tool)                                                                                  \
	NEXT(CALL_IS_READ, "is_read", is_read)                                                                         \
	NEXT(CALL_DEFINITION, "definition", definition)                                                                \
	NEXT(CALL_ARGUMENTS, "arguments", arguments)                                                                   \
	NEXT(CALL_ARGUMENTS_HASH, "arguments_hash", arguments_hash)                                                    \
	NEXT(CALL_OCCURRENCE, "occurrence", occurrence)                                                                \
	NEXT(CALL_DECISION, "decision", decision)                                                                      \
	NEXT(CALL_RULE, "rule", rule)                                                                                  \
	NEXT(CALL_DECIDED_BY, "decided_by", decided_by)                                                                \
	NEXT(CALL_STATE, "state", state)                                                                               \
	NEXT(CALL_KIND, "kind", kind)                                                                                  \
	NEXT(CALL_IS_ERROR, "is_error", is_error)                                                                      \
	NEXT(CALL_RESULT, "result", result)                                                                            \
	NEXT(CALL_PROTOCOL, "protocol", protocol)                                                                      \
	NEXT(CALL_ATTEMPTS, "attempts", attempts)                                                                      \
	NEXT(CALL_APPROVAL_US, "approval_us", approval_us)                                                             \
	NEXT(CALL_QUEUED_US, "queued_us", queued_us)                                                                   \
	NEXT(CALL_STARTED_US, "started_us", started_us)                                                                \
	NEXT(CALL_FINISHED_US, "finished_us", finished_us)                                                             \
	NEXT(CALL_ARGUMENTS_BLOB, "arguments_blob", arguments_blob)                                                    \
	NEXT(CALL_RESULT_BLOB, "result_blob", result_blob)
enum { STORE_TOOL_CALL_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) CALL_COLUMNS };
#define STORE_SQL_TOOL_CALL STORE_TOOL_CALL_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_TOOL_SERVER_COLUMNS(FIRST, NEXT, OWN)                                                                    \
	FIRST(SERVER_NAME, "name", name)                                                                               \
	NEXT(SERVER_ALIAS, "alias", alias)                                                                             \
	NEXT(SERVER_DESCRIPTION, "description", description)                                                           \
	NEXT(SERVER_LIST, "list", list)                                                                                \
	NEXT(SERVER_DEFINITIONS, "definitions", definitions)
enum { STORE_TOOL_SERVER_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) SERVER_COLUMNS };
#define STORE_SQL_TOOL_SERVER STORE_TOOL_SERVER_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_PIN_COLUMNS(FIRST, NEXT, OWN)                                                                            \
	FIRST(PIN_TOOL, "tool", tool)                                                                                  \
	NEXT(PIN_HASH, "hash", hash)
enum { STORE_PIN_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) PIN_COLUMNS };
#define STORE_SQL_PIN STORE_PIN_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* The newest generation up to :generation that has calls of its own. */
#define STORE_SQL_CASSETTE                                                                                             \
	"(SELECT max(generation) FROM baseline_server WHERE execution = :execution AND generation <= :generation)"

#define STORE_STATEMENTS_TOOL(X)                                                                                       \
	X(TOOL_LIST_ADD, WRITE,                                                                                        \
	  "INSERT OR IGNORE INTO tool_list (hash, definitions, first_us) VALUES (:hash, :definitions, :now)")          \
	X(TOOL_SERVER_ADD, WRITE,                                                                                      \
	  "INSERT INTO execution_server (execution, position, name, alias, description, list) VALUES (:execution, "    \
	  ":position, :name, :alias, :description, :list)")                                                            \
	X(TOOL_CALL_ADD, WRITE,                                                                                        \
	  "INSERT INTO tool_call (execution, seq, connection, server, tool, is_read, definition, arguments, "          \
	  "arguments_hash, occurrence, decision, rule, decided_by, state, kind, is_error, result, protocol, "          \
	  "attempts, "                                                                                                 \
	  "approval_us, queued_us, started_us, finished_us, arguments_blob, result_blob) VALUES (:execution, :seq, "   \
	  ":connection, :server, :tool, "                                                                              \
	  ":is_read, :definition, :arguments, :arguments_hash, :occurrence, :decision, :rule, :decided_by, :state, "   \
	  ":kind, :is_error, :result, :protocol, :attempts, :approval, :queued, :started, :finished, "                 \
	  ":arguments_blob, :result_blob)")                                                                            \
	X(PIN_LIST, READ, "SELECT " STORE_SQL_PIN "FROM tool_pin WHERE server = :server")                              \
	X(PIN_ADD, WRITE,                                                                                              \
	  "INSERT OR IGNORE INTO tool_pin (server, tool, hash, first_us) VALUES (:server, :tool, :hash, :now)")        \
	X(PIN_ACCEPT, WRITE,                                                                                           \
	  "INSERT INTO tool_pin (server, tool, hash, first_us, decided_us) VALUES (:server, :tool, :hash, :now, "      \
	  ":now) ON CONFLICT (server, tool) DO UPDATE SET hash = excluded.hash, decided_us = :now")                    \
	X(BASELINE_SERVER_ADD, WRITE,                                                                                  \
	  "INSERT INTO baseline_server (execution, generation, position, name, alias, description, list) VALUES "      \
	  "(:execution, :generation, :position, :name, :alias, :description, :list)")                                  \
	X(BASELINE_CALL_ADD, WRITE,                                                                                    \
	  "INSERT INTO baseline_call (execution, generation, seq, connection, server, tool, is_read, definition, "     \
	  "arguments, arguments_hash, occurrence, decision, rule, decided_by, state, kind, is_error, result, "         \
	  "protocol, attempts, approval_us, queued_us, started_us, finished_us, arguments_blob, result_blob) VALUES "  \
	  "(:execution, :generation, :seq, :connection, :server, :tool, :is_read, :definition, :arguments, "           \
	  ":arguments_hash, :occurrence, :decision, :rule, :decided_by, :state, :kind, :is_error, :result, "           \
	  ":protocol, :attempts, :approval, :queued, :started, :finished, :arguments_blob, :result_blob)")             \
	X(BASELINE_SERVERS, READ,                                                                                      \
	  "SELECT " STORE_SQL_TOOL_SERVER "FROM baseline_server JOIN tool_list ON hash = list WHERE execution = "      \
	  ":execution AND generation = " STORE_SQL_CASSETTE " ORDER BY position")                                      \
	X(BASELINE_CALLS, READ,                                                                                        \
	  "SELECT " STORE_SQL_TOOL_CALL "FROM baseline_call WHERE execution = :execution AND generation = "            \
	  STORE_SQL_CASSETTE " ORDER BY seq")                                                                          \
	X(TOOL_SERVERS, READ,                                                                                          \
	  "SELECT " STORE_SQL_TOOL_SERVER "FROM execution_server JOIN tool_list ON hash = list WHERE execution = "     \
	  ":execution ORDER BY position")                                                                              \
	X(TOOL_CALLS, READ, "SELECT " STORE_SQL_TOOL_CALL "FROM tool_call WHERE execution = :execution ORDER BY seq")
