/*
 * store_sql_view.h - statements of the admin page (store_view.h). The primary key is in the order of time: listings go
 * through it backwards.
 */
#pragma once

#include "store_sql_execution.h"

#define STORE_VIEW_RUN_COLUMNS(FIRST, NEXT, OWN)                                                                       \
	FIRST(VIEW_RUN_ID, "id", id)                                                                                   \
	NEXT(VIEW_RUN_OWNER, "owner", owner)                                                                           \
	NEXT(VIEW_RUN_CONVERSATION, "conversation_name", conversation)                                                 \
	NEXT(VIEW_RUN_LANGUAGE, "language", language)                                                                  \
	NEXT(VIEW_RUN_VERDICT, "verdict", verdict)                                                                     \
	NEXT(VIEW_RUN_MESSAGE, "message", message)                                                                     \
	NEXT(VIEW_RUN_CREATED, "created_us", created_us)                                                               \
	NEXT(VIEW_RUN_WALL, "run_wall_us", wall_us)                                                                    \
	NEXT(VIEW_RUN_CPU, "run_cpu_user_us + run_cpu_system_us", cpu_us)                                              \
	NEXT(VIEW_RUN_MEMORY, "run_memory_peak", memory_bytes)                                                         \
	NEXT(VIEW_RUN_BYTES, "code_bytes", code_bytes)                                                                 \
	NEXT(VIEW_RUN_NETWORK, "network", network)                                                                     \
	NEXT(VIEW_RUN_ERASED, "erased", erased)                                                                        \
	OWN(VIEW_RUN_CODE, "substr(code, 1, 160)")
enum { STORE_VIEW_RUN_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) VIEW_RUN_COLUMNS };
#define STORE_SQL_VIEW_RUN STORE_VIEW_RUN_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_VIEW_COUNT_COLUMNS(FIRST, NEXT, OWN)                                                                     \
	FIRST(VIEW_COUNT_VERDICT, "verdict", verdict)                                                                  \
	NEXT(VIEW_COUNT_RUNS, "count(*)", runs)                                                                        \
	NEXT(VIEW_COUNT_WARM, "sum(warm)", warm)
enum { STORE_VIEW_COUNT_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) VIEW_COUNT_COLUMNS };
#define STORE_SQL_VIEW_COUNT STORE_VIEW_COUNT_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_VIEW_ENTRY_COLUMNS(FIRST, NEXT, OWN)                                                                     \
	FIRST(VIEW_ENTRY_N, "n", n)                                                                                    \
	NEXT(VIEW_ENTRY_AT, "at_us", at_us)                                                                            \
	OWN(VIEW_ENTRY_KIND, "kind")                                                                                   \
	OWN(VIEW_ENTRY_OBJECT, "object")                                                                               \
	OWN(VIEW_ENTRY_TEXT, "entry")
enum { STORE_VIEW_ENTRY_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) VIEW_ENTRY_COLUMNS };
#define STORE_SQL_VIEW_ENTRY STORE_VIEW_ENTRY_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_VIEW_POINT_COLUMNS(FIRST, NEXT, OWN)                                                                     \
	FIRST(VIEW_POINT_CREATED, "created_us", created_us)                                                            \
	NEXT(VIEW_POINT_WALL, "run_wall_us", wall_us)                                                                  \
	NEXT(VIEW_POINT_CPU, "coalesce(run_cpu_user_us, 0) + coalesce(run_cpu_system_us, 0)", cpu_us)                  \
	NEXT(VIEW_POINT_VERDICT, "verdict", verdict)                                                                   \
	NEXT(VIEW_POINT_OWNER, "owner", owner)                                                                         \
	NEXT(VIEW_POINT_LANGUAGE, "language", language)
enum { STORE_VIEW_POINT_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) VIEW_POINT_COLUMNS };
#define STORE_SQL_VIEW_POINT STORE_VIEW_POINT_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

enum { VIEW_TASKS_STATE, VIEW_TASKS_COUNT, VIEW_AUDIT_ENTRIES = 0, VIEW_AUDIT_BACKUP };

#define STORE_VIEW_OWNER_COLUMNS(FIRST, NEXT, OWN)                                                                     \
	FIRST(VIEW_OWNER_NAME, "o.owner", owner)                                                                       \
	NEXT(VIEW_OWNER_BYTES, "coalesce(o.bytes, 0)", bytes)                                                      \
	NEXT(VIEW_OWNER_RUNS, "(SELECT count(*) FROM execution WHERE owner = o.owner AND id >= :from)", runs)          \
	NEXT(VIEW_OWNER_CPU,                                                                                           \
	     "(SELECT coalesce(sum(run_cpu_user_us + run_cpu_system_us), 0) FROM execution WHERE owner = o.owner AND " \
	     "id >= :from)",                                                                                           \
	     cpu_us)                                                                                                   \
	NEXT(VIEW_OWNER_CONVERSATIONS, "(SELECT count(*) FROM conversation WHERE owner = o.owner)", conversations)     \
	NEXT(VIEW_OWNER_TOKENS, "(SELECT count(*) FROM token WHERE owner = o.owner AND revoked_us IS NULL)", tokens)
enum { STORE_VIEW_OWNER_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) VIEW_OWNER_COLUMNS };
#define STORE_SQL_VIEW_OWNER STORE_VIEW_OWNER_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_SQL_VIEWED                                                                                               \
	"FROM execution WHERE id < :before AND id >= :from " STORE_SQL_KNOWN "AND (:conversation "                     \
	"IS NULL OR conversation_name = :conversation) AND (:language IS NULL OR language = :language) AND (:verdict " \
	"IS NULL OR instr(:verdict, verdict)) AND (NOT :running OR verdict IS NULL) AND (:text IS NULL OR "            \
	"instr(code, :text) OR instr(stdout, :text) OR instr(stderr, :text)) "

#define STORE_STATEMENTS_VIEW(X)                                                                                       \
	X(VIEW_RUNS, READ, "SELECT " STORE_SQL_VIEW_RUN STORE_SQL_VIEWED "ORDER BY id DESC LIMIT :limit")              \
	X(VIEW_RUNS_OF, READ,                                                                                          \
	  "SELECT " STORE_SQL_VIEW_RUN STORE_SQL_VIEWED "AND owner = :owner ORDER BY id DESC LIMIT :limit")            \
	X(VIEW_RUNS_SLOWEST, READ,                                                                                     \
	  "SELECT " STORE_SQL_VIEW_RUN STORE_SQL_VIEWED "AND (:owner IS NULL OR owner = :owner) ORDER BY "             \
	  "run_wall_us DESC, id DESC LIMIT :limit")                                                                    \
	X(VIEW_RUNS_LARGEST, READ,                                                                                     \
	  "SELECT " STORE_SQL_VIEW_RUN STORE_SQL_VIEWED "AND (:owner IS NULL OR owner = :owner) ORDER BY code_bytes "  \
	  "+ stdin_bytes + coalesce(stdout_bytes, 0) + coalesce(stderr_bytes, 0) DESC, id DESC LIMIT :limit")          \
	X(VIEW_FAILURES, READ,                                                                                         \
	  "SELECT verdict, message, result, substr(stderr, -2000), id FROM execution WHERE id >= :from AND verdict "   \
	  "NOT IN ('OK', 'CX') ORDER BY id DESC")                                                                      \
	X(VIEW_SHARED, READ, /* code that several owners ran */                                                        \
	  "SELECT substr(code, 1, 160), count(*), group_concat(DISTINCT owner), max(id) FROM execution WHERE id >= "   \
	  ":from AND coalesce(code_blob, code) IS NOT NULL GROUP BY coalesce(code_blob, code) HAVING min(owner) <> "   \
	  "max(owner) ORDER BY count(*) DESC LIMIT :limit")                                                            \
	X(VIEW_LANGUAGES, READ,                                                                                        \
	  "SELECT DISTINCT language FROM (SELECT language FROM execution ORDER BY id DESC LIMIT 2000) ORDER BY 1")     \
	X(VIEW_NAMES, READ, "SELECT owner FROM usage UNION SELECT owner FROM token ORDER BY 1 LIMIT 200")              \
	X(VIEW_BEFORE, READ,                                                                                           \
	  "SELECT max(id) FROM execution WHERE conversation = (SELECT conversation FROM execution WHERE id = :id) "    \
	  "AND id < :id")                                                                                              \
	X(VIEW_AFTER, READ,                                                                                            \
	  "SELECT min(id) FROM execution WHERE conversation = (SELECT conversation FROM execution WHERE id = :id) "    \
	  "AND id > :id")                                                                                              \
	X(VIEW_VERDICTS, READ,                                                                                         \
	  "SELECT " STORE_SQL_VIEW_COUNT "FROM execution WHERE id >= :from GROUP BY verdict ORDER BY count(*) DESC")   \
	X(VIEW_POINTS, READ, "SELECT " STORE_SQL_VIEW_POINT "FROM execution WHERE id >= :from ORDER BY id DESC")       \
	X(VIEW_OWNERS, READ, /* OFFSET: the inner one is sorted alone, and each owner is added up when it is read */   \
	  "SELECT " STORE_SQL_VIEW_OWNER "FROM (SELECT names.owner, usage.bytes FROM (SELECT owner FROM usage UNION "  \
	  "SELECT owner FROM token) AS names LEFT JOIN usage ON usage.owner = names.owner ORDER BY usage.bytes DESC "  \
	  "LIMIT :limit OFFSET 0) AS o")                                                                               \
	X(VIEW_TASKS, READ, /* states without any, too */                                                              \
	  "SELECT column1, (SELECT count(*) FROM task WHERE state = column1) FROM (VALUES ('working'), "              \
	  "('completed'), ('failed'), ('cancelled'))")                                                                 \
	X(VIEW_KINDS, READ, /* length() of a value reads its header alone */                                           \
	  "SELECT coalesce(sum(code_bytes), 0), coalesce(sum(stdin_bytes), 0), coalesce(sum(coalesce(stdout_bytes, "   \
	  "0) + coalesce(stderr_bytes, 0)), 0), (SELECT coalesce(sum(bytes), 0) FROM conversation), (SELECT "          \
	  "coalesce(sum(length(arguments) + length(result)), 0) FROM tool_call), (SELECT "                             \
	  "coalesce(sum(length(block)), 0) FROM search_data) FROM execution WHERE erased IS NULL")                     \
	X(VIEW_BLOBS, READ, "SELECT coalesce(sum(size), 0) FROM blob")                                                 \
	X(VIEW_AUDIT, READ,                                                                                            \
	  "SELECT (SELECT coalesce(max(n), -1) + 1 FROM audit), coalesce((SELECT max(at_us) FROM audit WHERE object "  \
	  "= 'log:audit' AND kind = 'backup.made'), 0)")                                                               \
	X(VIEW_SANDBOXES, READ, "SELECT count(*) FROM sandbox WHERE instance = :instance AND ended_us IS NULL")        \
	X(VIEW_ENTRIES, READ,                                                                                          \
	  "SELECT " STORE_SQL_VIEW_ENTRY "FROM audit WHERE n < :before AND (:kind IS NULL OR kind = :kind) ORDER BY "  \
	  "n DESC LIMIT :limit")                                                                                       \
	X(VIEW_ENTRIES_OF, READ,                                                                                       \
	  "SELECT " STORE_SQL_VIEW_ENTRY "FROM audit WHERE object = :object AND n < :before AND (:kind IS NULL OR "    \
	  "kind = :kind) ORDER BY n DESC LIMIT :limit")
