/*
 * store_sql_erase.h - statements that remove content and leave the fact (store_erase.h), and those of the garbage
 * collection (store_gc.h).
 */
#pragma once

#include "store_sql_file.h"
#include "store_sql_space.h"

#define STORE_ERASING_COLUMNS(FIRST, NEXT, OWN)                                                                        \
	FIRST(ERASING_EXECUTION, "execution")                                                                          \
	OWN(ERASING_WHAT, "what")
enum { STORE_ERASING_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) ERASING_COLUMNS };
#define STORE_SQL_ERASING STORE_ERASING_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_GARBAGE_COLUMNS(FIRST, NEXT, OWN)                                                                        \
	FIRST(GARBAGE_COUNT, "coalesce(sum(created_us < :limit), 0)")                                                  \
	OWN(GARBAGE_BYTES, "coalesce(sum(iif(created_us < :limit, size, 0)), 0)")                                      \
	OWN(GARBAGE_YOUNG, "coalesce(sum(created_us >= :limit), 0)")                                                   \
	OWN(GARBAGE_YOUNG_BYTES, "coalesce(sum(iif(created_us < :limit, 0, size)), 0)")
enum { STORE_GARBAGE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) GARBAGE_COLUMNS };
#define STORE_SQL_GARBAGE STORE_GARBAGE_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_PAGES_COLUMNS(FIRST, NEXT, OWN)                                                                          \
	FIRST(PAGES_FREE, "(SELECT freelist_count FROM pragma_freelist_count)")                                        \
	OWN(PAGES_SIZE, "(SELECT page_size FROM pragma_page_size)")
enum { STORE_PAGES_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) PAGES_COLUMNS };
#define STORE_SQL_PAGES STORE_PAGES_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* Which runs are meant: :what is 'output' or 'content', of which the former sorts behind the latter, and is less. */
#define STORE_SQL_ERASABLE                                                                                             \
	"id > :after AND id >= :from AND id < :to AND (:owner IS NULL OR owner = :owner) AND (:conversation IS NULL "  \
	"OR conversation_name = :conversation) AND created_us < :before AND (erased IS NULL OR erased > :what) "
#define STORE_SQL_ROWS(phase_) "(SELECT count(*) FROM execution_file WHERE execution = :id AND phase = '" phase_ "')"
#define STORE_SQL_ERASED                                                                                               \
	"stdout = NULL, stdout_blob = NULL, stderr = NULL, stderr_blob = NULL, result = NULL, erased = :what, "        \
	"erased_after = coalesce(erased_after, " STORE_SQL_ROWS(                                                       \
		"after") "), erased_us = :now, erased_why = :why WHERE id = :id AND state <> 'running' AND (erased "   \
			 "IS NULL OR erased > "                                                                        \
			 ":what) RETURNING owner"
#define STORE_SQL_ERASED_FILES                                                                                         \
	"FROM execution_file WHERE execution = :id AND (:what = 'content' OR phase = 'after') ORDER BY phase, name "   \
	"LIMIT :limit"

#define STORE_ERASURE_COLUMNS(FIRST, NEXT, OWN)                                                                        \
	FIRST(ERASURE_N, "n", n)                                                                                       \
	NEXT(ERASURE_OBJECT, "object", object)                                                                         \
	NEXT(ERASURE_WHAT, "entry ->> '$.f.what'", what)
enum { STORE_ERASURE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) ERASURE_COLUMNS };
#define STORE_SQL_ERASURE STORE_ERASURE_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_ERASE(X)                                                                                      \
	X(ERASE_LIST, READ,                                                                                            \
	  "SELECT id FROM execution WHERE " STORE_SQL_ERASABLE "AND state <> 'running' ORDER BY id "                   \
	  "LIMIT :limit")                                                                                              \
	X(ERASE_COUNT, READ, "SELECT count(*) FROM execution WHERE " STORE_SQL_ERASABLE "AND state <> 'running'")      \
	X(ERASE_RUNNING, READ, "SELECT count(*) FROM execution WHERE " STORE_SQL_ERASABLE "AND state = 'running'")     \
	X(ERASE_DOUBT_TEXTS, WRITE,                                                                                    \
	  "UPDATE holding SET doubt = 1 WHERE owner = (SELECT owner FROM execution WHERE id = :id) AND blob IN "       \
	  "(SELECT stdout_blob FROM execution WHERE id = :id UNION ALL SELECT stderr_blob FROM execution WHERE id = "  \
	  ":id UNION ALL SELECT code_blob FROM execution WHERE id = :id AND :what = 'content' UNION ALL SELECT "       \
	  "stdin_blob FROM execution WHERE id = :id AND :what = 'content')")                                           \
	X(ERASE_OUTPUT, WRITE, "UPDATE execution SET " STORE_SQL_ERASED)                                               \
	X(ERASE_CONTENT, WRITE,                                                                                        \
	  "UPDATE execution SET code = NULL, code_blob = NULL, stdin = NULL, stdin_blob = NULL, args = '[]', env = "   \
	  "NULL, entry = NULL, client_address = NULL, client = NULL, caller = NULL, "                                  \
	  "erased_before = " STORE_SQL_ROWS(                                                                           \
		  "before") ", " STORE_SQL_ERASED)                                                                     \
	X(ERASE_RECOUNT, WRITE,                                                                                        \
	  "UPDATE execution SET bytes = " STORE_SQL_ASKED_BYTES("") " + " STORE_SQL_OUTPUT_BYTES(                      \
		  "") " + " STORE_SQL_BYTES("result") " + " STORE_SQL_FILES_BYTES " WHERE id = :id")                   \
	X(ERASE_EVENTS, WRITE, "DELETE FROM event WHERE session = (SELECT session FROM execution WHERE id = :id)")     \
	X(ERASE_BASELINES, WRITE, "DELETE FROM baseline WHERE execution = :id")                                        \
	X(ERASE_DOUBT_FILES, WRITE,                                                                                    \
	  "UPDATE holding SET doubt = 1 WHERE owner = (SELECT owner FROM execution WHERE id = :id) AND blob IN "       \
	  "(SELECT blob " STORE_SQL_ERASED_FILES ")")                                                                  \
	X(ERASE_FILES_KEPT, READ, /* by the conversation, as the run left them */                                      \
	  STORE_SQL_AUDIT_FILE "CROSS JOIN execution AS e ON e.conversation = c.id JOIN execution_file AS x ON "       \
			       "x.execution = e.id AND x.name = f.name AND " STORE_SQL_AS_LEFT "WHERE e.id = :id "     \
			       "AND (x.phase, x.name) IN (SELECT phase, name " STORE_SQL_ERASED_FILES ")")             \
	X(ERASE_FILES, WRITE,                                                                                          \
	  "DELETE FROM execution_file WHERE execution = :id AND (phase, name) IN (SELECT phase, "                      \
	  "name " STORE_SQL_ERASED_FILES ")")                                                                          \
	X(ERASE_CALLS, WRITE,                                                                                          \
	  "UPDATE tool_call SET arguments = 'null', arguments_hash = '', result = '', arguments_blob = NULL, "         \
	  "result_blob = NULL WHERE execution = :id AND seq IN (SELECT seq FROM tool_call WHERE execution = :id AND "  \
	  "(arguments_hash <> '' OR result <> '' OR coalesce(arguments_blob, result_blob) IS NOT NULL) ORDER BY seq "  \
	  "LIMIT :limit)")                                                                                             \
	X(ERASING_ADD, WRITE,                                                                                          \
	  "INSERT INTO erasing (execution, what) VALUES (:id, :what) ON CONFLICT (execution) DO UPDATE SET what = "    \
	  "min(what, excluded.what)")                                                                                  \
	X(ERASING_END, WRITE, "DELETE FROM erasing WHERE execution = :id")                                             \
	X(ERASING_NEXT, READ,                                                                                          \
	  "SELECT " STORE_SQL_ERASING "FROM erasing WHERE execution > :after ORDER BY execution LIMIT 1")              \
	X(ERASURE_LIST, READ, "SELECT " STORE_SQL_ERASURE "FROM audit WHERE kind = 'content.erase' ORDER BY n")        \
	/* conversations, and what else an owner has */                                                                \
	X(FORGET_LIST, READ,                                                                                           \
	  "SELECT id FROM conversation WHERE owner = :owner AND (:conversation IS NULL OR name = :conversation) AND "  \
	  "seen_us < :before AND id > :after AND NOT EXISTS (SELECT 1 FROM execution WHERE execution.conversation = "  \
	  "conversation.id AND state = 'running') LIMIT 1")                                                            \
	X(FORGET_FILES, WRITE,                                                                                         \
	  "DELETE FROM file WHERE conversation = :id AND name IN (SELECT name FROM file WHERE conversation = :id "     \
	  "ORDER BY name LIMIT :limit)")                                                                               \
	X(FORGET_CONVERSATION, WRITE,                                                                                  \
	  "DELETE FROM conversation WHERE id = :id AND NOT EXISTS (SELECT 1 FROM execution WHERE "                     \
	  "execution.conversation = conversation.id AND state = 'running') RETURNING owner, hash")                     \
	X(FORGET_EVENTS, WRITE, "DELETE FROM event WHERE session IN (SELECT id FROM session WHERE owner = :owner)")    \
	X(FORGET_TASKS, WRITE, "DELETE FROM task WHERE owner = :owner AND instance IS NULL")                           \
	X(FORGET_NAMES, WRITE, /* of conversations, in runs that were erased */                                        \
	  "UPDATE execution SET conversation_name = NULL WHERE id IN (SELECT id FROM execution WHERE owner = :owner "  \
	  "AND conversation_name IS NOT NULL AND (:conversation IS NULL OR conversation_name = :conversation) AND "    \
	  "erased = 'content' LIMIT :limit)")                                                                          \
	X(FORGET_PLACES, WRITE,                                                                                        \
	  "UPDATE sandbox SET conversation_name = '' WHERE owner = :owner AND conversation_name <> '' AND "            \
	  "(:conversation IS NULL OR conversation_name = :conversation)")                                              \
	X(FORGET_TAGS, WRITE,                                                                                          \
	  "DELETE FROM execution_tag WHERE execution IN (SELECT id FROM execution WHERE owner = :owner AND erased = "  \
	  "'content')")                                                                                                \
	X(FORGET_PLACE_NEXT, READ, /* a conversation that is gone, of which an entry still has the name */             \
	  "SELECT substr(object, 14) FROM audit JOIN audit_detail USING (n) WHERE object >= 'conversation:' AND "      \
	  "object < 'conversation;' AND (:place IS NULL OR object = 'conversation:' || :place) AND kind <> "           \
	  "'content.erase' AND entry ->> '$.p' = (SELECT id FROM principal WHERE owner = :owner) LIMIT 1")             \
	/* an owner whose space is used up */                                                                          \
	X(USAGE_ABOVE, READ, "SELECT owner FROM usage WHERE bytes > :cap AND owner > :after ORDER BY owner LIMIT 1")   \
	X(USAGE_FIRM, READ, /* without what is doubted */                                                              \
	  "SELECT coalesce((SELECT bytes FROM usage WHERE owner = :owner), 0) - coalesce((SELECT sum(size) FROM "      \
	  "holding WHERE owner = :owner AND doubt = 1), 0)")                                                           \
	/* the garbage collection */                                                                                   \
	X(BLOB_GARBAGE, READ, "SELECT " STORE_SQL_GARBAGE "FROM blob WHERE " STORE_SQL_NOT_REFERRED)                   \
	X(PAGES, WRITE, "SELECT " STORE_SQL_PAGES)                                                                     \
	X(VACUUM_SOME, WRITE, "PRAGMA incremental_vacuum(64)")
