/*
 * store_sql_file.h - statements on conversations, their files and blobs.
 */
#pragma once

#include "store_column.h"

#define STORE_CONVERSATION_COLUMNS(FIRST, NEXT, OWN)                                                                   \
	FIRST(CONVERSATION_ID, "id", row)                                                                              \
	NEXT(CONVERSATION_OWNER, "owner", owner)                                                                       \
	NEXT(CONVERSATION_NAME, "name", name)                                                                          \
	NEXT(CONVERSATION_HASH, "hash", hash)                                                                          \
	NEXT(CONVERSATION_CREATED_US, "created_us", created_us)                                                        \
	NEXT(CONVERSATION_SEEN_US, "seen_us", seen_us)                                                                 \
	NEXT(CONVERSATION_BYTES, "bytes", bytes)
enum { EXPIRED_OWNER, EXPIRED_HASH }; /* of CONVERSATION_EXPIRE */
enum { STORE_CONVERSATION_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) CONVERSATION_COLUMNS };
#define STORE_SQL_CONVERSATION STORE_CONVERSATION_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_FILE_COLUMNS(FIRST, NEXT, OWN)                                                                           \
	FIRST(FILE_BLOB, "blob", blob)                                                                                 \
	OWN(FILE_NAME, "name")                                                                                         \
	NEXT(FILE_MEDIA_TYPE, "media_type", media_type)                                                                \
	NEXT(FILE_MODE, "mode", mode)                                                                                  \
	NEXT(FILE_SIZE, "size", size)                                                                                  \
	NEXT(FILE_MTIME_US, "mtime_us", mtime_us)
enum { STORE_FILE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) FILE_COLUMNS };
#define STORE_SQL_FILE STORE_FILE_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* Behind the columns of a file. */
#define STORE_OWNER_FILE_COLUMNS(FIRST, NEXT, OWN) NEXT(OWNER_FILE_CONVERSATION, "conversation_name", conversation)
enum {
	OWNER_FILE_AFTER = FILE_COLUMNS - 1,
	STORE_OWNER_FILE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) OWNER_FILE_COLUMNS
};
#define STORE_SQL_OWNER_FILE STORE_OWNER_FILE_COLUMNS(COLUMN_SQL_NEXT, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* Behind the columns of a file, too. The run that left it so: the last one that made or changed this name, where the
 * content is still that one's. */
#define STORE_LISTED_FILE_COLUMNS(FIRST, NEXT, OWN)                                                                    \
	NEXT(LISTED_OWNER, "owner", owner)                                                                             \
	NEXT(LISTED_CONVERSATION, "conversation_name", conversation)                                                   \
	NEXT(LISTED_RUN,                                                                                               \
	     "(SELECT max(execution.id) FROM execution_file AS left_by JOIN execution ON execution.id = "              \
	     "left_by.execution WHERE left_by.blob = file.blob AND left_by.name = file.name AND phase = 'after' AND "  \
	     "execution.conversation = place)",                                                                        \
	     run)
enum {
	LISTED_FILE_AFTER = FILE_COLUMNS - 1,
	STORE_LISTED_FILE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) LISTED_FILE_COLUMNS
};
#define STORE_SQL_LISTED_FILE STORE_LISTED_FILE_COLUMNS(COLUMN_SQL_NEXT, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* Names of all contents that rows refer to; one may be NULL. */
#define STORE_SQL_NAMED                                                                                                \
	"(SELECT code_blob AS name FROM execution UNION SELECT stdin_blob FROM execution UNION SELECT stdout_blob "    \
	"FROM execution UNION SELECT stderr_blob FROM execution UNION SELECT blob FROM execution_file UNION SELECT "   \
	"stdout_blob FROM baseline UNION SELECT stderr_blob FROM baseline UNION SELECT arguments_blob FROM tool_call " \
	"UNION SELECT result_blob FROM tool_call UNION SELECT arguments_blob FROM baseline_call UNION SELECT "         \
	"result_blob FROM baseline_call UNION SELECT blob FROM file)"

#define STORE_SQL_NOT_REFERRED                                                                                         \
	"NOT EXISTS (SELECT 1 FROM file WHERE file.blob = sha256) "                                                    \
	"AND NOT EXISTS (SELECT 1 FROM execution_file WHERE execution_file.blob = sha256) "                            \
	"AND NOT EXISTS (SELECT 1 FROM execution WHERE code_blob = sha256) "                                           \
	"AND NOT EXISTS (SELECT 1 FROM execution WHERE stdin_blob = sha256) "                                          \
	"AND NOT EXISTS (SELECT 1 FROM execution WHERE stdout_blob = sha256) "                                         \
	"AND NOT EXISTS (SELECT 1 FROM execution WHERE stderr_blob = sha256) "                                         \
	"AND NOT EXISTS (SELECT 1 FROM baseline WHERE stdout_blob = sha256) "                                          \
	"AND NOT EXISTS (SELECT 1 FROM baseline WHERE stderr_blob = sha256) "                                          \
	"AND NOT EXISTS (SELECT 1 FROM tool_call WHERE arguments_blob = sha256) "                                      \
	"AND NOT EXISTS (SELECT 1 FROM tool_call WHERE result_blob = sha256) "                                         \
	"AND NOT EXISTS (SELECT 1 FROM baseline_call WHERE arguments_blob = sha256) "                                  \
	"AND NOT EXISTS (SELECT 1 FROM baseline_call WHERE result_blob = sha256)"

#define STORE_SQL_SERVED "coalesce(:served, (SELECT served_us FROM uptime WHERE one = 1))"

/* The files before (:after is 0) or after the run :id; what was lost changed nothing. */
#define STORE_SQL_UNDO                                                                                                \
	"FROM (SELECT name, blob, coalesce(media_type, 'application/octet-stream') AS media_type, mode, size, "        \
	"mtime_us FROM execution_file AS kept WHERE execution = :id AND blob IS NOT NULL AND iif(:after, phase = "     \
	"'after' OR NOT EXISTS (SELECT 1 FROM execution_file AS later WHERE later.execution = :id AND later.phase = "  \
	"'after' AND later.name = kept.name AND later.change <> 'lost'), phase = 'before')) AS state "

#define STORE_STATEMENTS_FILE(X)                                                                                       \
	/* conversations and files */                                                                                  \
	X(CONVERSATION_TOUCH, WRITE,                                                                                   \
	  "INSERT INTO conversation (owner, name, hash, created_us, seen_us, idle_from_us) VALUES (:owner, :name, "    \
	  ":hash, :now, :now, " STORE_SQL_SERVED ") ON CONFLICT (owner, name) DO UPDATE SET "                          \
	  "seen_us = max(seen_us, excluded.seen_us), idle_from_us = max(idle_from_us, excluded.idle_from_us) "         \
	  "RETURNING " STORE_SQL_CONVERSATION)                                                                         \
	X(CONVERSATION_SEEN, WRITE,                                                                                    \
	  "UPDATE conversation SET seen_us = max(seen_us, :now), idle_from_us = max(idle_from_us, " STORE_SQL_SERVED   \
	  ") WHERE id = :id")                                                                                          \
	X(CONVERSATION_FIND, READ,                                                                                     \
	  "SELECT " STORE_SQL_CONVERSATION "FROM conversation WHERE owner = :owner AND name = :name")                  \
	X(CONVERSATION_LARGE, READ,                                                                                    \
	  "SELECT count(*) > :most FROM (SELECT 1 FROM file WHERE conversation = (SELECT id FROM conversation WHERE "  \
	  "owner = :owner AND name = :name) LIMIT :most + 1)")                                                         \
	X(CONVERSATION_BY_HASH, READ, "SELECT " STORE_SQL_CONVERSATION "FROM conversation WHERE hash = :hash")         \
	X(CONVERSATION_IDLE, READ,                                                                                     \
	  "SELECT id FROM conversation WHERE idle_from_us < :limit AND NOT EXISTS (SELECT 1 FROM execution WHERE "     \
	  "execution.conversation = conversation.id AND state = 'running')")                                           \
	X(CONVERSATION_EXPIRE, WRITE, /* asks again: it may have been used since it was listed */                      \
	  "DELETE FROM conversation WHERE id = :id AND idle_from_us < :limit AND NOT EXISTS (SELECT 1 FROM execution " \
	  "WHERE execution.conversation = conversation.id AND state = 'running') "     \
	  "RETURNING owner, hash")                     \
	X(CONVERSATION_DETACH, WRITE, /* what the removal of its row does, in parts */                                 \
	  "UPDATE execution SET conversation = NULL WHERE id IN (SELECT id FROM execution WHERE conversation = :id "   \
	  "AND state <> 'running' LIMIT :rows)")                                                                       \
	X(CONVERSATION_OWNER, READ, "SELECT owner FROM conversation WHERE id = :conversation")                         \
	X(FILE_FIND, READ, "SELECT " STORE_SQL_FILE "FROM file WHERE conversation = :conversation AND name = :name")   \
	X(CONVERSATION_FILES, READ,                                                                                    \
	  "SELECT " STORE_SQL_FILE "FROM file WHERE conversation = :conversation AND name > :name ORDER BY name "      \
	  "LIMIT :limit")                                                                                              \
	X(CONVERSATION_RUNS, READ,                                                                                     \
	  "SELECT 1 FROM execution WHERE conversation = :conversation AND state = 'running' LIMIT 1")                  \
	X(FILE_BELOW, READ,                                                                                            \
	  "SELECT 1 FROM file WHERE conversation = :conversation AND name > :from AND name < :to UNION ALL "           \
	  "SELECT 1 FROM file WHERE conversation = :conversation AND name > CAST(:from AS BLOB) AND name < "           \
	  "CAST(:to AS BLOB) LIMIT 1")                                                                                 \
	X(FILE_PUT, WRITE,                                                                                             \
	  "INSERT INTO file (conversation, name, blob, media_type, mode, size, mtime_us) VALUES (:conversation, "      \
	  ":name, :blob, :media_type, :mode, :size, :mtime) ON CONFLICT (conversation, name) DO UPDATE SET blob "      \
	  "= excluded.blob, media_type = excluded.media_type, mode = excluded.mode, size = excluded.size, "            \
	  "mtime_us = excluded.mtime_us")                                                                              \
	X(FILE_LIST, READ,                                                                                             \
	  "SELECT " STORE_SQL_FILE STORE_SQL_LISTED_FILE "FROM (SELECT id AS place, owner, name AS conversation_name " \
	  "FROM conversation WHERE (:owner IS NULL OR owner = :owner) AND (:conversation IS NULL OR name = "           \
	  ":conversation)) CROSS JOIN file ON conversation = place ORDER BY owner, conversation_name, name")           \
	X(FILE_DELETE, WRITE, "DELETE FROM file WHERE conversation = :conversation AND name = :name")                  \
	X(FILES_DELETE, WRITE, /* a file, or all below a folder */                                                     \
	  "DELETE FROM file WHERE conversation = :conversation AND name IN (VALUES (:name) UNION ALL "         \
	  "SELECT name FROM file WHERE conversation = :conversation AND name > :from AND name < :to UNION "    \
	  "ALL SELECT name FROM file WHERE conversation = :conversation AND name > CAST(:from AS BLOB) AND "   \
	  "name < CAST(:to AS BLOB))")                                                                         \
	/* going back to the files of a run */                                                                         \
	X(UNDO_WHOLE, READ,                                                                                           \
	  "SELECT 1 FROM execution WHERE id = :id AND state <> 'running' AND erased IS NULL")                          \
	X(UNDO_FILES, READ, "SELECT " STORE_SQL_FILE STORE_SQL_UNDO)                                                 \
	X(UNDO_MORE, READ, /* bytes that the owner is charged more, before what is removed */                         \
	  "SELECT coalesce(sum(:row * NOT EXISTS (SELECT 1 FROM file WHERE conversation = :conversation AND "          \
	  "file.name = state.name) + size * NOT EXISTS (SELECT 1 FROM holding WHERE owner = :owner AND "               \
	  "holding.blob = state.blob)), 0) " STORE_SQL_UNDO)                                                          \
	X(UNDO_REMOVE, WRITE,                                                                                         \
	  "DELETE FROM file WHERE conversation = :conversation AND name NOT IN (SELECT name " STORE_SQL_UNDO          \
	  ") RETURNING " STORE_SQL_FILE)                                                                               \
	X(UNDO_PUT, WRITE,                                                                                            \
	  "INSERT INTO file (conversation, " STORE_SQL_FILE ") SELECT :conversation, " STORE_SQL_FILE STORE_SQL_UNDO  \
	  "WHERE NOT EXISTS (SELECT 1 FROM file WHERE conversation = :conversation AND file.name = state.name AND "    \
	  "file.blob = state.blob AND file.media_type = state.media_type AND file.mode = state.mode AND file.size = "  \
	  "state.size AND file.mtime_us = state.mtime_us) ON CONFLICT (conversation, name) DO UPDATE SET blob = "      \
	  "excluded.blob, media_type = excluded.media_type, mode = excluded.mode, size = excluded.size, mtime_us = "   \
	  "excluded.mtime_us RETURNING " STORE_SQL_FILE)                                                               \
	/* blobs */                                                                                                    \
	X(BLOB_ADD, WRITE, "INSERT OR IGNORE INTO blob (sha256, size, created_us) VALUES (:sha256, :size, :now)")      \
	X(BLOB_SIZE, READ, "SELECT size FROM blob WHERE sha256 = :sha256")                                             \
	X(BLOB_UNUSED, READ, "SELECT sha256 FROM blob WHERE created_us < :limit AND " STORE_SQL_NOT_REFERRED)          \
	X(BLOB_DELETE, WRITE, "DELETE FROM blob WHERE sha256 = :sha256 AND " STORE_SQL_NOT_REFERRED)
