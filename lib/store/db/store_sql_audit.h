/*
 * store_sql_audit.h - statements of the audit log. The lists of columns are what an entry commits to: docs/audit.md
 * names those that no entry covers. A list is never changed, because entries were made with it.
 */
#pragma once

/* What was asked, but for code and standard input, which are summed apart. The conversation's row may go, its name
 * stays. The fingerprint belongs to the end: a run may correct it. */
#define STORE_SQL_BEGIN_COLUMNS                                                                                        \
	"id, instance, owner, token, session, conversation_name, created_us, language, network, args, limits, env, "   \
	"typeof(code), code_blob, code_bytes, typeof(stdin), stdin_blob, stdin_bytes, entry, sandbox, sandbox_seq, "   \
	"task, request_id, trace, display"
#define STORE_SQL_END_COLUMNS                                                                                          \
	"id, state, finished_us, fingerprint, verdict, message, exit_code, signal, run_wall_us, run_cpu_user_us, "     \
	"run_cpu_system_us, run_memory_peak, compile_wall_us, compile_cpu_user_us, compile_cpu_system_us, "            \
	"compile_memory_peak, setup_us, warm, result, typeof(stdout), stdout_blob, stdout_bytes, stdout_truncated, "   \
	"typeof(stderr), stderr_blob, stderr_bytes, stderr_truncated, recorded"
#define STORE_SQL_CHANGE_COLUMNS "phase, name, change, reason, blob, media_type, mode, size, mtime_us"

/* What the facts of a run's entries say, whatever was erased; then the content, then the columns above. */
enum {
	AUDIT_ROW_ID,
	AUDIT_ROW_OWNER,
	AUDIT_ROW_TOKEN,
	AUDIT_ROW_ERASED, /* how many files it had where they were erased; NULL: they were not */
	AUDIT_ROW_BEGIN,
	AUDIT_BEGIN_LANGUAGE = AUDIT_ROW_BEGIN,
	AUDIT_BEGIN_NETWORK,
	AUDIT_BEGIN_CODE_BYTES,
	AUDIT_BEGIN_STDIN_BYTES,
	AUDIT_END_STATE = AUDIT_ROW_BEGIN,
	AUDIT_END_VERDICT,
	AUDIT_END_EXIT,
	AUDIT_END_SIGNAL,
	AUDIT_END_WALL,
	AUDIT_END_CPU,
	AUDIT_END_MEMORY,
	AUDIT_END_STDOUT_BYTES,
	AUDIT_END_STDERR_BYTES,
	AUDIT_BEGIN_TEXTS = AUDIT_BEGIN_STDIN_BYTES + 1,
	AUDIT_END_TEXTS = AUDIT_END_STDERR_BYTES + 1,
	AUDIT_N_TEXTS = 4, /* text, blob, text, blob */
	AUDIT_N_LATER = 6, /* the last of the columns; NULL: in no sum */
	AUDIT_BEGIN_CREATED = AUDIT_BEGIN_TEXTS + AUDIT_N_TEXTS + 6, /* in the columns above */
	AUDIT_END_FINISHED = AUDIT_END_TEXTS + AUDIT_N_TEXTS + 2,
	AUDIT_PHASE_EXECUTION = 0,
};
#define STORE_SQL_AUDIT_BEGIN                                                                                          \
	"SELECT id, owner, token, erased_before, language, network, code_bytes, stdin_bytes, code, code_blob, stdin, " \
	"stdin_blob, " STORE_SQL_BEGIN_COLUMNS ", secrets, client_address, client, door, caller, grading "      \
	"FROM execution "
#define STORE_SQL_AUDIT_END                                                                                            \
	"SELECT id, owner, token, erased_after, state, verdict, coalesce(exit_code, -1), coalesce(signal, 0), "        \
	"coalesce(run_wall_us, 0), coalesce(run_cpu_user_us, 0) + coalesce(run_cpu_system_us, 0), "                    \
	"coalesce(run_memory_peak, 0), stdout_bytes, stderr_bytes, stdout, stdout_blob, stderr, "                      \
	"stderr_blob, " STORE_SQL_END_COLUMNS " FROM execution "

enum {
	AUDIT_CALL_EXECUTION,
	AUDIT_CALL_OWNER,
	AUDIT_CALL_SEQ,
	AUDIT_CALL_STATE,
	AUDIT_CALL_IS_ERROR,
	AUDIT_CALL_COLUMNS,
	AUDIT_TOKEN_ID = 0,
	AUDIT_TOKEN_OWNER,
	AUDIT_TOKEN_SCOPES,
	AUDIT_TOKEN_REVOKED,
	AUDIT_TOKEN_COLUMNS,
	AUDIT_CONVERSATION_ID = 0,
	AUDIT_CONVERSATION_OWNER,
	AUDIT_CONVERSATION_NAME,
	AUDIT_CONVERSATION_HASH,
	AUDIT_CONVERSATION_CREATED,
	AUDIT_FILE_HASH = 0,
	AUDIT_FILE_OWNER,
	AUDIT_FILE_SIZE,
	AUDIT_FILE_COLUMNS,
	AUDIT_FILE_CONVERSATION = AUDIT_FILE_COLUMNS,
	AUDIT_FILE_NAME,
	AUDIT_BEFORE_RUNS = 0,
	AUDIT_BEFORE_TOKENS,
	AUDIT_BEFORE_CONVERSATIONS,
};
/* A token is revoked later, and used: neither is in the sum. */
#define STORE_SQL_AUDIT_TOKEN                                                                                          \
	"SELECT id, owner, scopes, revoked_us, id, owner, name, scopes, hash, created_us, expires_us, results, "       \
	"servers FROM token "
/* A long text is its content's name, as bytes, which no text in a row is. */
#define STORE_SQL_AUDIT_TEXT(text)                                                                                     \
	"iif(" text "_blob IS NULL, call." text ", CAST(call." text " || " text "_blob AS BLOB))"
#define STORE_SQL_AUDIT_CALL                                                                                           \
	"SELECT execution, owner, seq, call.state, is_error, seq, connection, server, tool, is_read, definition, "     \
	STORE_SQL_AUDIT_TEXT("arguments") ", arguments_hash, occurrence, decision, rule, decided_by, call.state, "     \
	"kind, is_error, " STORE_SQL_AUDIT_TEXT("result") ", protocol, attempts, approval_us, queued_us, started_us, " \
	"call.finished_us FROM tool_call AS call CROSS JOIN execution ON execution.id = call.execution "
#define STORE_SQL_AUDIT_CONVERSATION "SELECT id, owner, name, hash, created_us FROM conversation "
#define STORE_SQL_AUDIT_FILE                                                                                           \
	"SELECT c.hash, c.owner, f.size, f.conversation, f.name, f.blob, f.media_type, f.mode, f.size, f.mtime_us "    \
	"FROM file AS f JOIN conversation AS c ON c.id = f.conversation "

/* Kinds of entries whose details go with a run's output alone. */
#define STORE_SQL_OF_OUTPUT "'run.end', 'call'"
#define STORE_SQL_AS_LEFT                                                                                              \
	"x.phase = 'after' AND x.blob = f.blob AND coalesce(x.media_type, f.media_type) = f.media_type AND x.mode = "  \
	"f.mode AND x.size = f.size AND x.mtime_us = f.mtime_us "

#define STORE_STATEMENTS_AUDIT(X)                                                                                      \
	X(AUDIT_NEXT, READ, "SELECT coalesce(max(n), -1) + 1 FROM audit")                                              \
	X(AUDIT_ADD, WRITE,                                                                                            \
	  "INSERT INTO audit (n, at_us, kind, object, entry) VALUES (:n, :at, :kind, :object, :entry)")                \
	X(AUDIT_DETAIL_ADD, WRITE, "INSERT INTO audit_detail (n, salt, detail) VALUES (:n, :salt, :detail)")           \
	X(AUDIT_DETAIL_ERASE, WRITE,                                                                                   \
	  "DELETE FROM audit_detail WHERE n IN (SELECT n FROM audit WHERE object = :object AND (:what <> 'output' "    \
	  "OR kind IN (" STORE_SQL_OF_OUTPUT ")))")                                                                    \
	X(AUDIT_CONFIG, READ,                                                                                          \
	  "SELECT detail FROM audit JOIN audit_detail USING (n) WHERE object = 'log:config' ORDER BY n DESC LIMIT 1")  \
	X(PRINCIPAL_FIND, READ, "SELECT id FROM principal WHERE owner = :owner")                                       \
	X(PRINCIPAL_ADD, WRITE, "INSERT INTO principal (owner, id, created_us) VALUES (:owner, :id, :now)")            \
	X(AUDIT_BEGIN_ROW, READ, STORE_SQL_AUDIT_BEGIN "WHERE id = :id")                                               \
	X(AUDIT_END_ROW, READ, STORE_SQL_AUDIT_END "WHERE id = :id")                                                   \
	X(AUDIT_FILES, READ,                                                                                           \
	  "SELECT " STORE_SQL_CHANGE_COLUMNS " FROM execution_file WHERE execution = :id AND phase = :phase ORDER "    \
	  "BY name")                                                                                                   \
	X(AUDIT_CALL_ROW, READ, STORE_SQL_AUDIT_CALL "WHERE execution = :id AND seq = :seq")                           \
	X(AUDIT_TOKEN_ROW, READ, STORE_SQL_AUDIT_TOKEN "WHERE id = :id")                                               \
	X(AUDIT_CONVERSATION_ROW, READ, STORE_SQL_AUDIT_CONVERSATION "WHERE id = :id")                                 \
	X(AUDIT_FILE_ROW, READ, STORE_SQL_AUDIT_FILE "WHERE f.conversation = :conversation AND f.name = :name")        \
	X(AUDIT_REFUSED, READ,                                                                                         \
	  "SELECT at_us, object, coalesce(owner, ''), json_extract(entry, '$.f.count') FROM audit LEFT JOIN "          \
	  "principal ON principal.id = json_extract(entry, '$.p') WHERE ((object >= 'limit:' AND object < 'limit;') "  \
	  "OR (object >= 'auth:' AND object < 'auth;')) AND at_us >= :since AND at_us < :until")                       \
	/* for who verifies */                                                                                         \
	X(AUDIT_BEGIN_ROWS, READ, STORE_SQL_AUDIT_BEGIN "ORDER BY id")                                                 \
	X(AUDIT_END_ROWS, READ, STORE_SQL_AUDIT_END "ORDER BY id")                                                     \
	X(AUDIT_CALL_ROWS, READ, STORE_SQL_AUDIT_CALL "")                                                              \
	X(AUDIT_BEFORE_FILES, READ,                                                                                    \
	  "SELECT execution FROM execution_file WHERE phase = 'before' GROUP BY execution ORDER BY execution")         \
	X(AUDIT_AFTER_FILES, READ,                                                                                     \
	  "SELECT execution FROM execution_file WHERE phase = 'after' GROUP BY execution ORDER BY execution")          \
	X(AUDIT_HAS, READ, "SELECT 1 FROM audit WHERE object = :object AND n > :behind AND kind = :kind")              \
	X(AUDIT_ERASED, READ,                                                                                          \
	  "SELECT 1 FROM audit WHERE object = :object AND n > :behind AND kind = 'content.erase' AND (:kind IN ("      \
	  STORE_SQL_OF_OUTPUT ") OR instr(entry, '\"what\":\"output\"') = 0)")                                         \
	X(AUDIT_HAS_DETAIL, READ,                                                                                      \
	  "SELECT 1 FROM audit JOIN audit_detail USING (n) WHERE object = :object AND (detail = :detail OR "           \
	  "substr(detail, 1, length(:detail)) = rtrim(:detail, '}') || ',')")               \
	X(AUDIT_CONVERSATIONS, READ, STORE_SQL_AUDIT_CONVERSATION "ORDER BY id")                                       \
	X(AUDIT_CONVERSATION_FILES, READ, STORE_SQL_AUDIT_FILE "ORDER BY f.conversation, f.name")                      \
	X(AUDIT_FILE_LEFT, READ,                                                                                       \
	  "SELECT 1 FROM conversation AS c CROSS JOIN file AS f ON f.conversation = c.id CROSS JOIN execution AS e "   \
	  "ON e.conversation = c.id JOIN execution_file AS x ON x.execution = e.id AND x.name = f.name "               \
	  "WHERE c.id = :conversation AND f.name = :name AND " STORE_SQL_AS_LEFT)                                      \
	X(AUDIT_BEFORE, READ, /* what was there before the log */                                                      \
	  "SELECT (SELECT count(*) FROM execution), (SELECT count(*) FROM token), (SELECT count(*) FROM "              \
	  "conversation)")
