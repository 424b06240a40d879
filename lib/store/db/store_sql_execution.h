/*
 * store_sql_execution.h - statements on executions and their files, and on what an owner may read of them, in pages.
 */
#pragma once

#include "store_sql_file.h"
#include "store_sql_space.h"

#define STORE_EXECUTION_COLUMNS(FIRST, NEXT, OWN)                                                                      \
	FIRST(EXECUTION_ID, "id", id)                                                                                  \
	OWN(EXECUTION_STATE, "state")                                                                                  \
	NEXT(EXECUTION_OWNER, "owner", owner)                                                                          \
	NEXT(EXECUTION_TOKEN, "token", token_id)                                                                       \
	NEXT(EXECUTION_SESSION, "session", session_id)                                                                 \
	NEXT(EXECUTION_CONVERSATION_ROW, "conversation", conversation_row)                                             \
	NEXT(EXECUTION_CONVERSATION, "conversation_name", conversation)                                                \
	NEXT(EXECUTION_CREATED_US, "created_us", created_us)                                                           \
	NEXT(EXECUTION_FINISHED_US, "finished_us", finished_us)                                                        \
	NEXT(EXECUTION_RECORDED, "recorded", recorded)                                                                 \
	NEXT(EXECUTION_LANGUAGE, "language", language)                                                                 \
	NEXT(EXECUTION_FINGERPRINT, "fingerprint", fingerprint)                                                        \
	NEXT(EXECUTION_NETWORK, "network", network)                                                                    \
	NEXT(EXECUTION_DISPLAY, "display", display)                                                                    \
	NEXT(EXECUTION_ARGS, "args", args_json)                                                                        \
	NEXT(EXECUTION_LIMITS, "limits", limits_json)                                                                  \
	OWN(EXECUTION_ENV, "env")                                                                                      \
	NEXT(EXECUTION_VERDICT, "verdict", verdict)                                                                    \
	NEXT(EXECUTION_MESSAGE, "message", message)                                                                    \
	NEXT(EXECUTION_EXIT_CODE, "coalesce(exit_code, -1)", exit_code)                                                \
	NEXT(EXECUTION_SIGNAL, "signal", signal)                                                                       \
	NEXT(EXECUTION_STDOUT_TRUNCATED, "stdout_truncated", stdout_truncated)                                         \
	NEXT(EXECUTION_STDERR_TRUNCATED, "stderr_truncated", stderr_truncated)                                         \
	NEXT(EXECUTION_RUN_WALL_US, "run_wall_us", run.wall_us)                                                        \
	NEXT(EXECUTION_RUN_CPU_USER_US, "run_cpu_user_us", run.cpu_user_us)                                            \
	NEXT(EXECUTION_RUN_CPU_SYSTEM_US, "run_cpu_system_us", run.cpu_system_us)                                      \
	NEXT(EXECUTION_RUN_MEMORY_PEAK, "run_memory_peak", run.memory_peak_bytes)                                      \
	NEXT(EXECUTION_COMPILE_WALL_US, "compile_wall_us", compile.wall_us)                                            \
	NEXT(EXECUTION_COMPILE_CPU_USER_US, "compile_cpu_user_us", compile.cpu_user_us)                                \
	NEXT(EXECUTION_COMPILE_CPU_SYSTEM_US, "compile_cpu_system_us", compile.cpu_system_us)                          \
	NEXT(EXECUTION_COMPILE_MEMORY_PEAK, "compile_memory_peak", compile.memory_peak_bytes)                          \
	NEXT(EXECUTION_SETUP_US, "setup_us", setup_us)                                                                 \
	NEXT(EXECUTION_WARM, "warm", warm)                                                                             \
	NEXT(EXECUTION_RESULT, "result", result_json)                                                                  \
	OWN(EXECUTION_CODE, "code")                                                                                    \
	NEXT(EXECUTION_CODE_BLOB, "code_blob", code.blob)                                                              \
	OWN(EXECUTION_CODE_BYTES, "code_bytes")                                                                        \
	OWN(EXECUTION_STDIN, "stdin")                                                                                  \
	NEXT(EXECUTION_STDIN_BLOB, "stdin_blob", stdin_text.blob)                                                      \
	OWN(EXECUTION_STDIN_BYTES, "stdin_bytes")                                                                      \
	OWN(EXECUTION_STDOUT, "stdout")                                                                                \
	NEXT(EXECUTION_STDOUT_BLOB, "stdout_blob", stdout_text.blob)                                                   \
	OWN(EXECUTION_STDOUT_BYTES, "stdout_bytes")                                                                    \
	OWN(EXECUTION_STDERR, "stderr")                                                                                \
	NEXT(EXECUTION_STDERR_BLOB, "stderr_blob", stderr_text.blob)                                                   \
	OWN(EXECUTION_STDERR_BYTES, "stderr_bytes")                                                                    \
	NEXT(EXECUTION_ENTRY, "entry", entry)                                                                          \
	NEXT(EXECUTION_SANDBOX, "sandbox", sandbox_id)                                                                 \
	NEXT(EXECUTION_SANDBOX_SEQ, "sandbox_seq", sandbox_seq)                                                        \
	NEXT(EXECUTION_REQUEST, "request_id", request_id)                                                              \
	NEXT(EXECUTION_CLIENT_ADDRESS, "client_address", client_address)                                               \
	NEXT(EXECUTION_SECRETS, "coalesce(secrets, 0)", secrets)                                                       \
	NEXT(EXECUTION_CLIENT, "client", client)                                                                       \
	NEXT(EXECUTION_DOOR, "door", door)                                                                             \
	NEXT(EXECUTION_CALLER, "caller", caller)                                                                       \
	NEXT(EXECUTION_GRADING, "grading", grading)                                                                    \
	NEXT(EXECUTION_TRACE, "trace", trace)                                                                          \
	NEXT(EXECUTION_ERASED, "erased", erased)                                                                       \
	NEXT(EXECUTION_ERASED_US, "erased_us", erased_us)                                                              \
	NEXT(EXECUTION_ERASED_WHY, "erased_why", erased_why)                                                           \
	NEXT(EXECUTION_TASK, "task", task_id)                                                                          \
	NEXT(EXECUTION_GENERATION,                                                                                     \
	     "coalesce((SELECT max(generation) FROM baseline WHERE baseline.execution = execution.id), 1)",            \
	     generation)                                                                                               \
	NEXT(EXECUTION_TASK_STATE, "(SELECT state FROM task WHERE id = execution.task)", task_state)
enum { STORE_EXECUTION_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) EXECUTION_COLUMNS };
#define STORE_SQL_EXECUTION STORE_EXECUTION_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* Behind the columns of a file. */
#define STORE_CHANGE_COLUMNS(FIRST, NEXT, OWN)                                                                         \
	NEXT(CHANGE_CHANGE, "change", change)                                                                          \
	NEXT(CHANGE_REASON, "reason", reason)
enum { CHANGE_AFTER = FILE_COLUMNS - 1, STORE_CHANGE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) CHANGE_COLUMNS };
#define STORE_SQL_CHANGE STORE_CHANGE_COLUMNS(COLUMN_SQL_NEXT, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_OUTPUT_COLUMNS(FIRST, NEXT, OWN)                                                                         \
	FIRST(OUTPUT_ID, "id", id)                                                                                     \
	NEXT(OUTPUT_LANGUAGE, "language", language)                                                                    \
	NEXT(OUTPUT_VERDICT, "verdict", verdict)                                                                       \
	NEXT(OUTPUT_CREATED_US, "created_us", created_us)                                                              \
	NEXT(OUTPUT_STDOUT_BYTES, "stdout_bytes", stdout_bytes)                                                        \
	NEXT(OUTPUT_STDERR_BYTES, "stderr_bytes", stderr_bytes)
enum { STORE_OUTPUT_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) OUTPUT_COLUMNS };
#define STORE_SQL_OUTPUT STORE_OUTPUT_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* What an auditor knows of a run. A token by its name, its id or the beginning of it. */
#define STORE_SQL_KNOWN                                                                                                \
	"AND (:token IS NULL OR token = :token OR token IN (SELECT id FROM token WHERE name = :token OR substr(id, "   \
	"1, length(:token)) = :token)) "                                                                               \
	"AND (:tool IS NULL OR EXISTS (SELECT 1 FROM tool_call WHERE tool_call.execution = execution.id AND "          \
	"server || '.' || tool GLOB iif(instr(:tool, '.'), :tool, :tool || '.*'))) "                                   \
	"AND (:request IS NULL OR request_id = :request OR caller = :request) "                                        \
	"AND (:client IS NULL OR client GLOB :client) "                                                                \
	"AND (NOT :secrets OR secrets > 0) AND (NOT :denied OR instr(result, '\"denied\":[{') OR EXISTS (SELECT 1 "    \
	"FROM tool_call WHERE tool_call.execution = execution.id AND tool_call.state = 'refused')) "                   \
	"AND (:file IS NULL OR EXISTS (SELECT 1 FROM execution_file AS f WHERE f.execution = execution.id AND "        \
	"f.phase = 'after' AND CAST(f.name AS TEXT) GLOB :file)) "                                                     \
	"AND (:same IS NULL OR (code_bytes, coalesce(code_blob, code)) = (SELECT code_bytes, coalesce(code_blob, "     \
	"code) FROM execution WHERE id = :same)) "

/* Ids lie between two bounds that are always bound ('' and STORE_ID_ABOVE enclose every id), so the primary key serves
 * every listing; `+id` keeps SQLite from using it. */
#define STORE_SQL_LISTED(id)                                                                                           \
	"FROM execution WHERE " id " > :after AND " id " >= :from AND " id                                             \
	" < :to AND (:owner IS NULL OR owner = :owner) "                                                               \
	"AND (:owners IS NULL OR instr(:owners, ',' || owner || ',')) "                                                \
	"AND (:conversation IS NULL OR conversation_name = :conversation) "                                            \
	"AND (:language IS NULL OR language = :language) AND (:verdict IS NULL OR instr(:verdict, verdict)) "     \
	"AND (:since = 0 OR created_us >= :since) AND (:until = 0 OR created_us < :until) "                            \
	"AND (:tag IS NULL OR EXISTS (SELECT 1 FROM execution_tag WHERE execution_tag.execution = execution.id AND "   \
	"tag = :tag)) " STORE_SQL_KNOWN "AND (:door IS NULL OR door = :door) "                                         \
	"AND (:running_too OR state <> 'running') AND (:task IS NULL OR substr(task, 1, length(:task)) = :task) "      \
	"AND (:text IS NULL OR code_blob IS NOT NULL OR instr(code, :text) > 0 OR (:output_too AND "                   \
	"(coalesce(stdout_blob, stderr_blob) IS NOT NULL OR instr(stdout, :text) > 0 OR instr(stderr, :text) > 0))) "

#define STORE_SQL_RECORDED_AFTER STORE_SQL_LISTED("+id") "AND recorded > :recorded_after ORDER BY recorded"
#define STORE_SQL_LAST_RECORD    "coalesce((SELECT max(recorded) FROM execution WHERE recorded IS NOT NULL), 0)"
#define STORE_SQL_NEXT_RECORD    "1 + " STORE_SQL_LAST_RECORD

#define STORE_STATEMENTS_EXECUTION(X)                                                                                  \
	/* executions */                                                                                               \
	X(EXECUTION_ADD, WRITE,                                                                                        \
	  "INSERT INTO execution (id, instance, state, owner, token, session, conversation, conversation_name, "       \
	  "created_us, language, fingerprint, network, display, args, limits, env, code, code_blob, code_bytes, "      \
	  "stdin, "                                                                                                    \
	  "stdin_blob, stdin_bytes, entry, sandbox, sandbox_seq, task, request_id, trace, client_address, client, "    \
	  "secrets, door, caller, grading, bytes) VALUES "                                                             \
	  "(:id, :instance, 'running', "                                                                               \
	  ":owner, :token, :session, :conversation, (SELECT name FROM conversation WHERE id = :conversation), "        \
	  ":created, :language, :fingerprint, :network, :display, :args, :limits, :env, :code, :code_blob, "           \
	  ":code_bytes, "                                                                                              \
	  ":stdin, :stdin_blob, :stdin_bytes, :entry, :sandbox, :sandbox_seq, :task, :request, "                       \
	  ":trace, :client_address, :client, :secrets, :door, :caller, :grading, " STORE_SQL_ASKED_BYTES(":") ")")     \
	X(EXECUTION_BEFORE, WRITE,                                                                                     \
	  "INSERT INTO execution_file (execution, phase, " STORE_SQL_FILE ") SELECT :id, 'before', " STORE_SQL_FILE    \
	  "FROM file WHERE conversation = :conversation")                                                              \
	X(EXECUTION_FINISH, WRITE,                                                                                     \
	  "UPDATE execution SET state = 'finished', finished_us = :now, recorded = " STORE_SQL_NEXT_RECORD ", "        \
	  "fingerprint = iif(:fingerprint = '', "                                                                      \
	  "fingerprint, :fingerprint), verdict = :verdict, message = :message, exit_code = :exit_code, signal = "      \
	  ":signal, run_wall_us = :run_wall, run_cpu_user_us = :run_user, run_cpu_system_us = :run_system, "           \
	  "run_memory_peak = :run_memory, compile_wall_us = :compile_wall, compile_cpu_user_us = :compile_user, "      \
	  "compile_cpu_system_us = :compile_system, compile_memory_peak = :compile_memory, setup_us = :setup, "        \
	  "warm = :warm, result = :result, stdout = :stdout, stdout_blob = :stdout_blob, stdout_bytes = "              \
	  ":stdout_bytes, stdout_truncated = :stdout_truncated, stderr = :stderr, stderr_blob = :stderr_blob, "        \
	  "stderr_bytes = :stderr_bytes, stderr_truncated = :stderr_truncated, bytes = bytes + :file_bytes "           \
	  "+ " STORE_SQL_OUTPUT_BYTES(":") " + " STORE_SQL_BYTES(                                                      \
		  ":result") " WHERE id = :id AND instance = "                                                         \
			     ":instance AND state = 'running' RETURNING conversation")                                 \
	X(EXECUTION_INTERRUPT, WRITE,                                                                                  \
	  "UPDATE execution SET state = 'interrupted', finished_us = :now, recorded = " STORE_SQL_NEXT_RECORD ", "     \
	  "verdict = 'XX', message = :message, "                                                                       \
	  "stdout = :stdout, stdout_blob = :stdout_blob, stdout_bytes = :stdout_bytes, stdout_truncated = 0, "         \
	  "stderr = :stderr, stderr_blob = :stderr_blob, stderr_bytes = :stderr_bytes, stderr_truncated = 0, "         \
	  "bytes = bytes + " STORE_SQL_OUTPUT_BYTES(                                                                   \
		  ":") " "                                                                                             \
		       "WHERE id = :id AND instance = :instance AND state = 'running'")                                \
	X(EXECUTION_STATE, READ, "SELECT state FROM execution WHERE id = :id")                                         \
	X(EXECUTION_FIND, READ, "SELECT " STORE_SQL_EXECUTION "FROM execution WHERE id >= :from AND id < :to LIMIT 2") \
	X(EXECUTION_FIND_PART, READ,                                                                                   \
	  "SELECT " STORE_SQL_EXECUTION "FROM execution WHERE id IN (SELECT id FROM execution WHERE instr(id, :part) " \
	  "LIMIT 2)")                                                                                                  \
	X(EXECUTION_FIND_REQUEST, READ,                                                                                \
	  "SELECT " STORE_SQL_EXECUTION "FROM execution WHERE request_id = :part LIMIT 2")                             \
	X(EXECUTION_LIST, READ, "SELECT " STORE_SQL_EXECUTION STORE_SQL_LISTED("id") "ORDER BY id")                    \
	X(EXECUTION_LIST_NEWEST, READ, "SELECT " STORE_SQL_EXECUTION STORE_SQL_LISTED("id") "ORDER BY id DESC")        \
	X(EXECUTION_LAST_RECORD, READ, "SELECT " STORE_SQL_LAST_RECORD)                                                \
	X(EXECUTION_LIST_RECORDED, READ, /* for followers */                                                           \
	  "SELECT " STORE_SQL_EXECUTION STORE_SQL_RECORDED_AFTER)                                                      \
	X(EXECUTION_SANDBOX, READ,                                                                                     \
	  "SELECT id FROM execution WHERE sandbox = :sandbox AND sandbox_seq <= :last ORDER BY sandbox_seq")           \
	X(EXECUTION_FILE_ADD, WRITE,                                                                                   \
	  "INSERT INTO execution_file (execution, phase, name, change, reason, blob, media_type, mode, size, "         \
	  "mtime_us) VALUES (:id, 'after', :name, :change, :reason, :blob, :media_type, :mode, :size, :mtime)")        \
	X(EXECUTION_COUNT_MORE, WRITE,                                                                                 \
	  "UPDATE execution SET bytes = bytes + :bytes WHERE id = :id AND instance = :instance AND state = "           \
	  "'running'")                                                                                                 \
	X(EXECUTION_REMOVE_FILES, WRITE,                                                                               \
	  "DELETE FROM file WHERE conversation = :conversation AND name IN (SELECT name FROM execution_file WHERE "    \
	  "execution = :id AND phase = 'after' AND change = 'deleted')")                                               \
	X(EXECUTION_PUT_FILES, WRITE,                                                                                  \
	  "INSERT INTO file (conversation, name, blob, media_type, mode, size, mtime_us) SELECT :conversation, name, " \
	  "blob, coalesce(media_type, 'application/octet-stream'), mode, size, mtime_us FROM execution_file WHERE "    \
	  "execution = :id AND phase = 'after' AND blob IS NOT NULL ON CONFLICT (conversation, name) DO UPDATE SET "   \
	  "blob = excluded.blob, media_type = excluded.media_type, mode = excluded.mode, size = excluded.size, "       \
	  "mtime_us = excluded.mtime_us")                                                                              \
	X(EXECUTION_FILE_LIST, READ, /* of a run that ends the files are being recorded */                             \
	  "SELECT " STORE_SQL_FILE STORE_SQL_CHANGE "FROM execution_file WHERE execution = :id AND phase = "           \
	  ":phase AND (phase = 'before' OR EXISTS (SELECT 1 FROM execution WHERE id = :id AND state <> 'running')) "   \
	  "ORDER BY name")                                                                                             \
	/* what an owner may read, in pages */                                                                         \
	X(OWNER_FILES, READ,                                                                                           \
	  "SELECT " STORE_SQL_FILE STORE_SQL_OWNER_FILE "FROM (SELECT id, name AS conversation_name FROM "             \
	  "conversation WHERE owner = :owner) JOIN file ON conversation = id WHERE (conversation_name, name) > "       \
	  "(:conversation, :name) ORDER BY conversation_name, name LIMIT :limit")                                      \
	X(OWNER_OUTPUTS, READ,                                                                                         \
	  "SELECT " STORE_SQL_OUTPUT "FROM execution WHERE owner = :owner AND id < :before AND (stdout_bytes > 0 OR "  \
	  "stderr_bytes > 0) AND erased IS NULL ORDER BY id DESC LIMIT :limit")                                        \
	X(COMPLETE_CONVERSATION, READ,                                                                                 \
	  "SELECT name FROM conversation WHERE owner = :owner AND substr(name, 1, length(:prefix)) = :prefix "         \
	  "ORDER BY name LIMIT :limit")                                                                                \
	X(COMPLETE_FILE, READ,                                                                                         \
	  "SELECT file.name FROM file JOIN conversation ON conversation.id = file.conversation WHERE owner = "         \
	  ":owner AND conversation.name = :conversation AND typeof(file.name) = 'text' AND substr(file.name, 1, "      \
	  "length(:prefix)) = :prefix ORDER BY file.name LIMIT :limit")
