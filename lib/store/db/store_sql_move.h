/*
 * store_sql_move.h - statements for an owner's move (store_bundle.h), and the columns that go along.
 */
#pragma once

#include "store_column.h"
#include "store_sql_bundle.h"

#define STORE_MOVE_TOKEN(FIRST, NEXT)                                                                                  \
	FIRST(id)                                                                                                      \
	NEXT(owner)                                                                                                    \
	NEXT(name) NEXT(scopes) NEXT(hash) NEXT(created_us) NEXT(used_us) NEXT(revoked_us) NEXT(expires_us)            \
		NEXT(results) NEXT(servers) NEXT(text_kb)
#define STORE_MOVE_FILE(FIRST, NEXT)                                                                                   \
	FIRST(conversation) NEXT(name) NEXT(blob) NEXT(media_type) NEXT(mode) NEXT(size) NEXT(mtime_us)

#define STORE_MOVE_SNIPPET(FIRST, NEXT)                                                                                \
	FIRST(owner)                                                                                                   \
	NEXT(name) NEXT(version) NEXT(language) NEXT(description) NEXT(schema) NEXT(servers) NEXT(code) NEXT(created_us)

#define STORE_OWNER_COLUMNS(FIRST, NEXT, OWN)                                                                          \
	FIRST(OWNER_NAME, "name", name)                                                                                \
	NEXT(OWNER_TOKENS,                                                                                             \
	     "(SELECT count(*) FROM token WHERE owner = o.name AND revoked_us IS NULL AND (expires_us IS NULL OR "     \
	     "expires_us > :now))",                                                                                    \
	     tokens)                                                                                                   \
	NEXT(OWNER_CONVERSATIONS, "(SELECT count(*) FROM conversation WHERE owner = o.name)", conversations)           \
	NEXT(OWNER_RUNS, "(SELECT count(*) FROM execution WHERE owner = o.name)", runs)                                \
	NEXT(OWNER_BYTES, "coalesce((SELECT bytes FROM usage WHERE owner = o.name), 0)", bytes)                        \
	NEXT(OWNER_USED, "coalesce((SELECT max(used_us) FROM token WHERE owner = o.name), 0)", used_us)                \
	OWN(OWNER_DRAINED, "EXISTS (SELECT 1 FROM drain WHERE owner IN ('*', o.name))")
enum { STORE_OWNER_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) OWNER_COLUMNS };
#define STORE_SQL_OWNER STORE_OWNER_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_MOVE(X)                                                                                       \
	X(OWNER_LIST, READ,                                                                                            \
	  "SELECT " STORE_SQL_OWNER                                                                                    \
	  "FROM (SELECT owner AS name FROM token UNION SELECT owner FROM usage) AS o ORDER BY "                        \
	  "name")                                                                                                      \
	X(MOVE_TOKENS, READ, "SELECT " BUNDLE_NAMES(STORE_MOVE_TOKEN) " FROM token WHERE owner = :owner")              \
	X(MOVE_CONVERSATIONS, READ, "SELECT name FROM conversation WHERE owner = :owner")                              \
	X(MOVE_FILES, READ,                                                                                            \
	  "SELECT conversation.name, file.name, blob, media_type, mode, size, mtime_us FROM file JOIN conversation "   \
	  "ON conversation.id = conversation WHERE owner = :owner")                                                    \
	X(MOVE_RUNS, READ,                                                                                             \
	  "SELECT execution.id, conversation.name FROM execution JOIN conversation ON conversation.id = "              \
	  "conversation WHERE execution.owner = :owner AND state <> 'running'")                                        \
	X(MOVE_SNIPPETS, READ, "SELECT " BUNDLE_NAMES(STORE_MOVE_SNIPPET) " FROM snippet WHERE owner = :owner")        \
	X(MOVE_SNIPPET_PUT, WRITE, /* what is there already stays */                                                   \
	  BUNDLE_IF_NEW("snippet", STORE_MOVE_SNIPPET))                                               \
	X(MOVE_CONVERSATION_IDS, READ, "SELECT id FROM conversation WHERE owner = :owner")                             \
	X(MOVE_TOKEN_KNOWN, READ, "SELECT revoked_us FROM token WHERE id = :id")                                       \
	X(MOVE_TOKEN_PUT, WRITE, /* one that is there may only have been revoked meanwhile */                          \
	  "INSERT INTO token (" BUNDLE_NAMES(STORE_MOVE_TOKEN) ") VALUES (" BUNDLE_VALUES(                             \
		  STORE_MOVE_TOKEN) ") ON CONFLICT (id) DO UPDATE SET revoked_us = coalesce(revoked_us, "              \
				    "excluded.revoked_us)")                                                            \
	X(MOVE_RUN_LINK, WRITE, "UPDATE execution SET conversation = :conversation WHERE id = :execution")
