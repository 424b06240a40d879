/*
 * store_sql.h - every SQL statement that the store runs, by name.
 *
 * One line each: X(NAME, READ|WRITE, "text"). store_query.c makes the enumeration and the array of texts from it; a
 * statement is prepared once per connection, and parameters are bound by name. READ statements run on any connection;
 * readers have an authorizer that lets through nothing that writes. Every text is prepared when the store is opened for
 * writing: a slip fails the start.
 */
#pragma once

/* The columns of an execution in the order in which store_execution.c reads them. */
#define STORE_SQL_EXECUTION                                                                                            \
	"id, state, owner, token, session, conversation, conversation_name, created_us, finished_us, language, "       \
	"fingerprint, network, "                                                                                       \
	"args, limits, env, verdict, message, exit_code, signal, stdout_truncated, stderr_truncated, run_wall_us, "    \
	"run_cpu_user_us, "                                                                                            \
	"run_cpu_system_us, run_memory_peak, compile_wall_us, compile_cpu_user_us, compile_cpu_system_us, "            \
	"compile_memory_peak, "                                                                                        \
	"setup_us, warm, result, code, code_blob, code_bytes, stdin, stdin_blob, stdin_bytes, stdout, stdout_blob, "   \
	"stdout_bytes, "                                                                                               \
	"stderr, stderr_blob, stderr_bytes, entry, sandbox, sandbox_seq, task, (SELECT state FROM task WHERE id = "    \
	"execution.task) "

/* Ids stand between two bounds that are always bound ('' and 'g' enclose every id), so the primary key serves every
 * listing; `+id` says that it shall not. */
#define STORE_SQL_LISTED(id)                                                                                           \
	"FROM execution WHERE " id " > :after AND " id " >= :from AND " id                                             \
	" < :to AND (:owner IS NULL OR owner = :owner) "                                                               \
	"AND (:token IS NULL OR token = :token) AND (:conversation IS NULL OR conversation_name = :conversation) "     \
	"AND (:language IS NULL OR language = :language) AND (:verdict IS NULL OR verdict = :verdict) "                \
	"AND (:since = 0 OR created_us >= :since) AND (:until = 0 OR created_us < :until) "                            \
	"AND (:running_too OR state <> 'running') AND (:task IS NULL OR substr(task, 1, length(:task)) = :task) "      \
	"AND (:text IS NULL OR code_blob IS NOT NULL OR instr(code, :text) > 0) "

#define STORE_SQL_TASK                                                                                                 \
	"id, owner, token, session, tool, execution, state, is_error, message, result, created_us, updated_us, "       \
	"expires_us "
#define STORE_SQL_FILE "name, blob, media_type, mode, size, mtime_us "
#define STORE_SQL_TOKEN "id, owner, name, created_us, used_us, revoked_us, scopes "
#define STORE_SQL_CONVERSATION "id, owner, name, hash, created_us, seen_us, bytes "

#define STORE_STATEMENTS(X)                                                                                            \
	/* the file itself */                                                                                          \
	X(IDENTITY, READ,                                                                                              \
	  "SELECT (SELECT application_id FROM pragma_application_id), (SELECT user_version FROM "                      \
	  "pragma_user_version), "                                                                                     \
	  "(SELECT count(*) FROM sqlite_schema)")                                                                      \
	X(BEGIN_WRITE, WRITE, "BEGIN IMMEDIATE")                                                                       \
	X(COMMIT, WRITE, "COMMIT")                                                                                     \
	X(ROLLBACK, WRITE, "ROLLBACK")                                                                                 \
	X(SAVEPOINT, WRITE, "SAVEPOINT work")                                                                          \
	X(RELEASE, WRITE, "RELEASE work")                                                                              \
	X(ROLLBACK_TO, WRITE, "ROLLBACK TO work")                                                                      \
	X(SYNC_FULL, WRITE, "PRAGMA synchronous = FULL")                                                               \
	X(SYNC_NORMAL, WRITE, "PRAGMA synchronous = NORMAL")                                                           \
	/* instances */                                                                                                \
	X(INSTANCE_ADD, WRITE,                                                                                         \
	  "INSERT INTO instance (id, kind, pid, boot_id, started_us) VALUES (:id, :kind, :pid, :boot_id, :now)")       \
	X(INSTANCE_END, WRITE, "UPDATE instance SET ended_us = :now WHERE id = :id AND ended_us IS NULL")              \
	X(INSTANCE_REMOVE, WRITE,                                                                                      \
	  "DELETE FROM instance WHERE id = :id AND NOT EXISTS (SELECT 1 FROM execution WHERE instance = :id)")         \
	X(INSTANCE_LIST, READ, /* those that may be gone: not ended in order, or ended with something still running */ \
	  "SELECT id, kind FROM instance WHERE id <> :self AND (ended_us IS NULL "                                     \
	  "OR EXISTS (SELECT 1 FROM execution WHERE instance = instance.id AND state = 'running'))")                   \
	X(INSTANCE_RUNNING, READ, "SELECT id FROM execution WHERE instance = :id AND state = 'running'")               \
	/* tokens */                                                                                                   \
	X(TOKEN_ADD, WRITE,                                                                                            \
	  "INSERT INTO token (id, owner, name, scopes, hash, created_us) VALUES (:id, :owner, :name, :scopes, :hash, " \
	  ":now)")                                                                                                     \
	X(TOKEN_CHECK, READ, "SELECT " STORE_SQL_TOKEN ", hash FROM token WHERE hash = :hash")                         \
	X(TOKEN_LIST, READ, "SELECT " STORE_SQL_TOKEN "FROM token ORDER BY id")                                        \
	X(TOKEN_FIND, READ, "SELECT " STORE_SQL_TOKEN "FROM token WHERE id >= :from AND id < :to LIMIT 2")             \
	X(TOKEN_REVOKE, WRITE, "UPDATE token SET revoked_us = :now WHERE id = :id AND revoked_us IS NULL")             \
	X(TOKEN_USED, WRITE, "UPDATE token SET used_us = max(coalesce(used_us, 0), :now) WHERE id = :id")              \
	/* sessions */                                                                                                 \
	X(SESSION_ADD, WRITE,                                                                                          \
	  "INSERT INTO session (id, token, owner, protocol, client_name, client_version, client_offers, created_us, "  \
	  "seen_us) VALUES (:id, :token, :owner, :protocol, :client_name, :client_version, :client_offers, :now, "     \
	  ":now)")                                                                                                     \
	X(SESSION_MAKE_ROOM, WRITE, /* those that ended first, then those that nobody used for longest */              \
	  "DELETE FROM session WHERE id = (SELECT id FROM session WHERE owner = :owner ORDER BY ended_us IS NULL, "    \
	  "seen_us, id LIMIT 1) "                                                                                      \
	  "AND (SELECT count(*) FROM session WHERE owner = :owner) >= :most RETURNING id")                             \
	X(SESSION_FIND, READ,                                                                                          \
	  "SELECT id, token, owner, protocol, client_name, client_version, created_us, seen_us, ended_us, "            \
	  "client_offers, coalesce(log_level, -1) FROM session WHERE id = :id AND owner = :owner AND ended_us IS "     \
	  "NULL")                                                                                                      \
	X(SESSION_LOG_LEVEL, WRITE, "UPDATE session SET log_level = :level WHERE id = :id")                            \
	X(SESSION_SEEN, WRITE, "UPDATE session SET seen_us = max(seen_us, :now) WHERE id = :id")                       \
	X(SESSION_END, WRITE,                                                                                          \
	  "UPDATE session SET ended_us = :now WHERE id = :id AND owner = :owner AND ended_us IS NULL")                 \
	X(SESSION_EXPIRE, WRITE, "DELETE FROM session WHERE ended_us IS NOT NULL OR seen_us < :limit")                 \
	X(SUBSCRIPTION_ADD, WRITE,                                                                                     \
	  "INSERT INTO subscription (session, uri) SELECT :session, :uri WHERE (SELECT count(*) FROM subscription "    \
	  "WHERE session = :session AND uri <> :uri) < :most ON CONFLICT (session, uri) DO UPDATE SET uri = "          \
	  "excluded.uri")                                                                                              \
	X(SUBSCRIPTION_REMOVE, WRITE, "DELETE FROM subscription WHERE session = :session AND uri = :uri")              \
	X(SUBSCRIPTION_LIST, READ, "SELECT uri FROM subscription WHERE session = :session ORDER BY uri")               \
	/* events of legacy streams */                                                                                 \
	X(EVENT_ADD, WRITE,                                                                                            \
	  "INSERT INTO event (stream, number, session, last, created_us, message) "                                    \
	  "VALUES (:stream, :number, :session, :last, :now, :message)")                                                \
	X(EVENT_LIST, READ,                                                                                            \
	  "SELECT number, last, message FROM event WHERE stream = :stream AND session = :session AND number >= :from " \
	  "ORDER BY number")                                                                                           \
	X(EVENT_EXPIRE, WRITE, "DELETE FROM event WHERE created_us < :limit")                                          \
	/* conversations and files */                                                                                  \
	X(CONVERSATION_TOUCH, WRITE,                                                                                   \
	  "INSERT INTO conversation (owner, name, hash, created_us, seen_us) VALUES (:owner, :name, :hash, :now, "     \
	  ":now) "                                                                                                     \
	  "ON CONFLICT (owner, name) DO UPDATE SET seen_us = max(seen_us, excluded.seen_us) "                          \
	  "RETURNING " STORE_SQL_CONVERSATION)                                                                         \
	X(CONVERSATION_SEEN, WRITE, "UPDATE conversation SET seen_us = max(seen_us, :now) WHERE id = :id")             \
	X(CONVERSATION_FIND, READ,                                                                                     \
	  "SELECT " STORE_SQL_CONVERSATION "FROM conversation WHERE owner = :owner AND name = :name")                  \
	X(CONVERSATION_BY_HASH, READ, "SELECT " STORE_SQL_CONVERSATION "FROM conversation WHERE hash = :hash")         \
	X(CONVERSATION_IDLE, READ,                                                                                     \
	  "SELECT id FROM conversation WHERE seen_us < :limit AND NOT EXISTS "                                         \
	  "(SELECT 1 FROM execution WHERE execution.conversation = conversation.id AND state = 'running')")            \
	X(CONVERSATION_EXPIRE, WRITE, /* asks again: it may have been used since it was listed */                      \
	  "DELETE FROM conversation WHERE id = :id AND seen_us < :limit AND NOT EXISTS "                               \
	  "(SELECT 1 FROM execution WHERE execution.conversation = conversation.id AND state = 'running') RETURNING "  \
	  "owner")                                                                                                     \
	X(OWNER_BYTES, READ,                                                                                           \
	  "SELECT owner, (SELECT sum(bytes) FROM conversation AS c WHERE c.owner = conversation.owner), "              \
	  "coalesce((SELECT size FROM file WHERE conversation = conversation.id AND name = :name), 0) "                \
	  "FROM conversation WHERE id = :conversation")                                                                \
	X(FILE_LIST, READ, "SELECT " STORE_SQL_FILE "FROM file WHERE conversation = :conversation ORDER BY name")      \
	X(FILE_FIND, READ, "SELECT " STORE_SQL_FILE "FROM file WHERE conversation = :conversation AND name = :name")   \
	X(FILE_BELOW, READ,                                                                                            \
	  "SELECT 1 FROM file WHERE conversation = :conversation AND name > :from AND name < :to UNION ALL "           \
	  "SELECT 1 FROM file WHERE conversation = :conversation AND name > CAST(:from AS BLOB) AND name < CAST(:to "  \
	  "AS BLOB) LIMIT 1")                                                                                          \
	X(FILE_PUT, WRITE,                                                                                             \
	  "INSERT INTO file (conversation, name, blob, media_type, mode, size, mtime_us) VALUES (:conversation, "      \
	  ":name, :blob, "                                                                                             \
	  ":media_type, :mode, :size, :mtime) ON CONFLICT (conversation, name) DO UPDATE SET blob = excluded.blob, "   \
	  "media_type = excluded.media_type, mode = excluded.mode, size = excluded.size, mtime_us = "                  \
	  "excluded.mtime_us")                                                                                         \
	X(FILE_DELETE, WRITE, "DELETE FROM file WHERE conversation = :conversation AND name = :name")                  \
	/* blobs */                                                                                                    \
	X(BLOB_ADD, WRITE, "INSERT OR IGNORE INTO blob (sha256, size, created_us) VALUES (:sha256, :size, :now)")      \
	X(BLOB_SIZE, READ, "SELECT size FROM blob WHERE sha256 = :sha256")                                             \
	X(BLOB_UNUSED, READ, "SELECT sha256 FROM blob WHERE created_us < :limit AND " STORE_SQL_NOT_REFERRED)          \
	X(BLOB_DELETE, WRITE, "DELETE FROM blob WHERE sha256 = :sha256 AND " STORE_SQL_NOT_REFERRED)                   \
	/* executions */                                                                                               \
	X(EXECUTION_ADD, WRITE,                                                                                        \
	  "INSERT INTO execution (id, instance, state, owner, token, session, conversation, conversation_name, "       \
	  "created_us, language, "                                                                                     \
	  "fingerprint, network, args, limits, env, code, code_blob, code_bytes, stdin, stdin_blob, stdin_bytes, "     \
	  "entry, "                                                                                                    \
	  "sandbox, sandbox_seq, task) "                                                                               \
	  "VALUES (:id, :instance, 'running', :owner, :token, :session, :conversation, "                               \
	  "(SELECT name FROM conversation WHERE id = :conversation), :created, :language, :fingerprint, :network, "    \
	  ":args, :limits, "                                                                                           \
	  ":env, :code, :code_blob, :code_bytes, :stdin, :stdin_blob, :stdin_bytes, :entry, :sandbox, :sandbox_seq, "  \
	  ":task)")                                                                                                    \
	X(EXECUTION_BEFORE, WRITE,                                                                                     \
	  "INSERT INTO execution_file (execution, phase, name, blob, media_type, mode, size, mtime_us) "               \
	  "SELECT :id, 'before', " STORE_SQL_FILE "FROM file WHERE conversation = :conversation")                      \
	X(EXECUTION_FINISH, WRITE,                                                                                     \
	  "UPDATE execution SET state = 'finished', finished_us = :now, fingerprint = iif(:fingerprint = '', "         \
	  "fingerprint, "                                                                                              \
	  ":fingerprint), verdict = :verdict, message = :message, exit_code = :exit_code, signal = :signal, "          \
	  "run_wall_us = :run_wall, run_cpu_user_us = :run_user, run_cpu_system_us = :run_system, run_memory_peak = "  \
	  ":run_memory, "                                                                                              \
	  "compile_wall_us = :compile_wall, compile_cpu_user_us = :compile_user, compile_cpu_system_us = "             \
	  ":compile_system, "                                                                                          \
	  "compile_memory_peak = :compile_memory, setup_us = :setup, warm = :warm, result = :result, "                 \
	  "stdout = :stdout, stdout_blob = :stdout_blob, stdout_bytes = :stdout_bytes, stdout_truncated = "            \
	  ":stdout_truncated, "                                                                                        \
	  "stderr = :stderr, stderr_blob = :stderr_blob, stderr_bytes = :stderr_bytes, stderr_truncated = "            \
	  ":stderr_truncated "                                                                                         \
	  "WHERE id = :id AND instance = :instance AND state = 'running' RETURNING conversation")                      \
	X(EXECUTION_INTERRUPT, WRITE,                                                                                  \
	  "UPDATE execution SET state = 'interrupted', finished_us = :now, verdict = 'XX', message = :message, "       \
	  "stdout = :stdout, stdout_blob = :stdout_blob, stdout_bytes = :stdout_bytes, stdout_truncated = 0, "         \
	  "stderr = :stderr, stderr_blob = :stderr_blob, stderr_bytes = :stderr_bytes, stderr_truncated = 0 "          \
	  "WHERE id = :id AND instance = :instance AND state = 'running'")                                             \
	X(EXECUTION_STATE, READ, "SELECT state FROM execution WHERE id = :id")                                         \
	X(EXECUTION_FIND, READ, "SELECT " STORE_SQL_EXECUTION "FROM execution WHERE id >= :from AND id < :to LIMIT 2") \
	X(EXECUTION_LIST, READ, "SELECT " STORE_SQL_EXECUTION STORE_SQL_LISTED("id") "ORDER BY id")                    \
	X(EXECUTION_LIST_NEWEST, READ, "SELECT " STORE_SQL_EXECUTION STORE_SQL_LISTED("id") "ORDER BY id DESC")        \
	X(EXECUTION_LIST_FINISHED, READ, /* for whoever follows: in the order in which they were recorded */           \
	  "SELECT " STORE_SQL_EXECUTION STORE_SQL_LISTED(                                                              \
		  "+id") "AND finished_us > :finished_after ORDER BY finished_us")                                     \
	X(EXECUTION_SANDBOX, READ,                                                                                     \
	  "SELECT id FROM execution WHERE sandbox = :sandbox AND sandbox_seq <= :last ORDER BY sandbox_seq")           \
	X(EXECUTION_FILE_ADD, WRITE,                                                                                   \
	  "INSERT INTO execution_file (execution, phase, name, change, reason, blob, media_type, mode, size, "         \
	  "mtime_us) "                                                                                                 \
	  "VALUES (:id, 'after', :name, :change, :reason, :blob, :media_type, :mode, :size, :mtime)")                  \
	X(EXECUTION_FILE_LIST, READ,                                                                                   \
	  "SELECT " STORE_SQL_FILE                                                                                     \
	  ", change, reason FROM execution_file WHERE execution = :id AND phase = :phase ORDER BY name")               \
	/* what an owner may read, in pages */                                                                         \
	X(OWNER_FILES, READ,                                                                                           \
	  "SELECT file.name, blob, media_type, mode, size, mtime_us, conversation.name FROM conversation "             \
	  "JOIN file ON file.conversation = conversation.id WHERE owner = :owner "                                     \
	  "AND (conversation.name, file.name) > (:conversation, :name) ORDER BY conversation.name, file.name LIMIT "   \
	  ":limit")                                                                                                    \
	X(OWNER_OUTPUTS, READ,                                                                                         \
	  "SELECT id, language, verdict, created_us, stdout_bytes, stderr_bytes FROM execution WHERE owner = :owner "  \
	  "AND id < :before "                                                                                          \
	  "AND state <> 'running' AND (stdout_bytes > 0 OR stderr_bytes > 0) ORDER BY id DESC LIMIT :limit")           \
	X(COMPLETE_CONVERSATION, READ,                                                                                 \
	  "SELECT name FROM conversation WHERE owner = :owner AND substr(name, 1, length(:prefix)) = :prefix "         \
	  "ORDER BY name LIMIT :limit")                                                                                \
	X(COMPLETE_FILE, READ,                                                                                         \
	  "SELECT file.name FROM file JOIN conversation ON conversation.id = file.conversation WHERE owner = :owner "  \
	  "AND conversation.name = :conversation AND typeof(file.name) = 'text' AND substr(file.name, 1, "             \
	  "length(:prefix)) = :prefix "                                                                                \
	  "ORDER BY file.name LIMIT :limit")                                                                           \
	/* live sandboxes */                                                                                           \
	X(SANDBOX_BEFORE, READ, /* the one that was there last */                                                      \
	  "SELECT iif(dismissed_us IS NULL, cause, 'reset') FROM sandbox WHERE owner = :owner "                        \
	  "AND conversation_name = :conversation AND language = :language ORDER BY id DESC LIMIT 1")                   \
	X(SANDBOX_ADD, WRITE,                                                                                          \
	  "INSERT INTO sandbox (id, instance, owner, conversation_name, language, opened_us) "                         \
	  "VALUES (:id, :instance, :owner, :conversation, :language, :now)")                                           \
	X(SANDBOX_END, WRITE,                                                                                          \
	  "UPDATE sandbox SET ended_us = :now, cause = :cause WHERE id = :id AND ended_us IS NULL")                    \
	X(SANDBOX_DISMISS, WRITE,                                                                                      \
	  "UPDATE sandbox SET dismissed_us = :now WHERE owner = :owner "                                               \
	  "AND conversation_name = :conversation AND :language IN ('', language) AND dismissed_us IS NULL")            \
	/* idempotency keys; one that is free again is not found */                                                    \
	X(REQUEST_FIND, READ,                                                                                          \
	  "SELECT hash, execution, state FROM request LEFT JOIN execution ON execution.id = execution "                \
	  "WHERE request.owner = :owner AND key = :key AND expires_us > :now AND (verdict IS NULL OR verdict NOT IN "  \
	  "('XX', 'CX'))")                                                                                             \
	X(REQUEST_PUT, WRITE,                                                                                          \
	  "INSERT OR REPLACE INTO request (owner, key, hash, execution, expires_us) VALUES (:owner, :key, :hash, "     \
	  ":execution, :expires)")                                                                                     \
	X(REQUEST_EXPIRE, WRITE, "DELETE FROM request WHERE expires_us <= :now")                                       \
	/* tasks; one that is working does not expire */                                                               \
	X(TASK_ADD, WRITE,                                                                                             \
	  "INSERT INTO task (id, owner, token, session, instance, tool, execution, state, is_error, message, "         \
	  "created_us, updated_us, "                                                                                   \
	  "expires_us) VALUES (:id, :owner, :token, :session, :instance, :tool, :execution, 'working', 0, :message, "  \
	  ":now, :now, "                                                                                               \
	  ":expires)")                                                                                                 \
	X(TASK_COUNT, READ, "SELECT count(*) FROM task WHERE owner = :owner")                                          \
	X(TASK_DROP, WRITE, "DELETE FROM task WHERE id = :id")                                                         \
	X(TASK_END, WRITE,                                                                                             \
	  "UPDATE task SET state = :state, instance = NULL, is_error = :is_error, message = :message, updated_us = "   \
	  ":now, "                                                                                                     \
	  "execution = coalesce(:execution, execution), result = :result WHERE id = :id AND state = 'working'")        \
	X(TASK_RECOVER, WRITE, /* the run was recorded, its task was not */                                            \
	  "UPDATE task SET state = 'completed', instance = NULL, updated_us = :now, "                                  \
	  "is_error = (SELECT verdict <> 'OK' FROM execution WHERE execution.id = task.execution), "                   \
	  "message = (SELECT message FROM execution WHERE execution.id = task.execution) WHERE instance = :instance "  \
	  "AND EXISTS (SELECT 1 FROM execution WHERE execution.id = task.execution AND execution.state = 'finished')") \
	X(TASK_INTERRUPT, WRITE,                                                                                       \
	  "UPDATE task SET state = 'failed', instance = NULL, updated_us = :now, "                                     \
	  "message = 'the gateway ended before this task did' || coalesce((SELECT '; what it printed until then is "   \
	  "kept as execution ' "                                                                                       \
	  "|| id FROM execution WHERE execution.id = task.execution), '') WHERE instance = :instance")                 \
	X(TASK_FIND, READ,                                                                                             \
	  "SELECT " STORE_SQL_TASK                                                                                     \
	  "FROM task WHERE id = :id AND owner = :owner AND (expires_us > :now OR state = 'working')")                  \
	X(TASK_LIST, READ,                                                                                             \
	  "SELECT " STORE_SQL_TASK                                                                                     \
	  "FROM task WHERE owner = :owner AND id < :before AND (expires_us > :now OR state = 'working') "              \
	  "ORDER BY id DESC LIMIT :limit")                                                                             \
	X(TASK_EXPIRE, WRITE, "DELETE FROM task WHERE expires_us <= :now AND state <> 'working'")

#define STORE_SQL_NOT_REFERRED                                                                                         \
	"NOT EXISTS (SELECT 1 FROM file WHERE file.blob = sha256) "                                                    \
	"AND NOT EXISTS (SELECT 1 FROM execution_file WHERE execution_file.blob = sha256) "                            \
	"AND NOT EXISTS (SELECT 1 FROM execution WHERE code_blob = sha256) "                                           \
	"AND NOT EXISTS (SELECT 1 FROM execution WHERE stdin_blob = sha256) "                                          \
	"AND NOT EXISTS (SELECT 1 FROM execution WHERE stdout_blob = sha256) "                                         \
	"AND NOT EXISTS (SELECT 1 FROM execution WHERE stderr_blob = sha256)"
