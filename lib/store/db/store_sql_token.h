/*
 * store_sql_token.h - statements on tokens, and on sessions of the legacy protocol with what they follow and were sent.
 */
#pragma once

#include "store_column.h"

#define STORE_TOKEN_COLUMNS(FIRST, NEXT, OWN)                                                                          \
	FIRST(TOKEN_ID, "id", id)                                                                                      \
	NEXT(TOKEN_OWNER, "owner", owner)                                                                              \
	NEXT(TOKEN_NAME, "name", name)                                                                                 \
	NEXT(TOKEN_CREATED_US, "created_us", created_us)                                                               \
	NEXT(TOKEN_USED_US, "used_us", used_us)                                                                        \
	NEXT(TOKEN_REVOKED_US, "revoked_us", revoked_us)                                                               \
	NEXT(TOKEN_EXPIRES_US, "expires_us", expires_us)                                                               \
	NEXT(TOKEN_RESULTS, "results", results)                                                                        \
	NEXT(TOKEN_SERVERS, "servers", servers)                                                                        \
	NEXT(TOKEN_TEXT_KB, "text_kb", text_kb)                                                                        \
	NEXT(TOKEN_DRAINED_US,                                                                                         \
	     "coalesce((SELECT min(since_us) FROM drain WHERE drain.owner IN ('*', token.owner)), 0)", drained_us)     \
	OWN(TOKEN_SCOPES, "scopes")                                                                                    \
	OWN(TOKEN_HASH, "hash")
enum { STORE_TOKEN_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) TOKEN_COLUMNS };
#define STORE_SQL_TOKEN STORE_TOKEN_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_SESSION_COLUMNS(FIRST, NEXT, OWN)                                                                        \
	FIRST(SESSION_ID, "id", id)                                                                                    \
	NEXT(SESSION_TOKEN, "token", token_id)                                                                         \
	NEXT(SESSION_OWNER, "owner", owner)                                                                            \
	NEXT(SESSION_PROTOCOL, "protocol", protocol)                                                                   \
	NEXT(SESSION_CLIENT_NAME, "client_name", client_name)                                                          \
	NEXT(SESSION_CLIENT_VERSION, "client_version", client_version)                                                 \
	NEXT(SESSION_CLIENT_OFFERS, "client_offers", client_offers)                                                    \
	NEXT(SESSION_LOG_LEVEL, "coalesce(log_level, -1)", log_level)                                                  \
	NEXT(SESSION_CREATED_US, "created_us", created_us)                                                             \
	NEXT(SESSION_SEEN_US, "seen_us", seen_us)                                                                      \
	NEXT(SESSION_ENDED_US, "ended_us", ended_us)                                                                   \
	NEXT(SESSION_IDLE_FROM_US, "idle_from_us", idle_from_us)
enum { STORE_SESSION_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) SESSION_COLUMNS };
#define STORE_SQL_SESSION STORE_SESSION_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_EVENT_COLUMNS(FIRST, NEXT, OWN)                                                                          \
	FIRST(EVENT_NUMBER, "number", number)                                                                          \
	NEXT(EVENT_LAST, "last", last)                                                                                 \
	OWN(EVENT_MESSAGE, "message")
enum { STORE_EVENT_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) EVENT_COLUMNS };
#define STORE_SQL_EVENT STORE_EVENT_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_STATEMENTS_TOKEN(X)                                                                                      \
	/* tokens */                                                                                                   \
	X(TOKEN_ADD, WRITE,                                                                                            \
	  "INSERT INTO token (id, owner, name, scopes, hash, created_us, expires_us, results, servers, text_kb) "      \
	  "VALUES (:id, :owner, :name, :scopes, :hash, :now, nullif(:expires, 0), nullif(:results, ''), "              \
	  "nullif(:servers, ''), nullif(:answer, 0))")                                                                 \
	X(TOKEN_CHECK, READ, "SELECT " STORE_SQL_TOKEN "FROM token WHERE hash = :hash")                                \
	X(TOKEN_LIST, READ, "SELECT " STORE_SQL_TOKEN "FROM token ORDER BY id")                                        \
	X(TOKEN_FIND, READ, "SELECT " STORE_SQL_TOKEN "FROM token WHERE id >= :from AND id < :to LIMIT 2")             \
	X(TOKEN_REVOKE, WRITE, "UPDATE token SET revoked_us = :now WHERE id = :id AND revoked_us IS NULL")             \
	X(TOKEN_USED, WRITE, "UPDATE token SET used_us = max(coalesce(used_us, 0), :now) WHERE id = :id")              \
	/* sessions */                                                                                                 \
	X(SESSION_ADD, WRITE,                                                                                          \
	  "INSERT INTO session (id, token, owner, protocol, client_name, client_version, client_offers, "              \
	  "created_us, seen_us, idle_from_us) VALUES (:id, :token, :owner, :protocol, :client_name, :client_version, " \
	  ":client_offers, :now, :now, " STORE_SQL_SERVED ")")                                                         \
	X(SESSION_MAKE_ROOM, WRITE, /* those that ended first, then those that nobody used for longest */              \
	  "DELETE FROM session WHERE id = (SELECT id FROM session WHERE owner = :owner ORDER BY ended_us IS "          \
	  "NULL, seen_us, id LIMIT 1) AND (SELECT count(*) FROM session WHERE owner = :owner) >= :most "               \
	  "RETURNING id")                                                                                              \
	X(SESSION_FIND, READ,                                                                                          \
	  "SELECT " STORE_SQL_SESSION "FROM session WHERE id = :id AND owner = :owner AND ended_us IS NULL")           \
	X(SESSION_LOG_LEVEL, WRITE, "UPDATE session SET log_level = :level WHERE id = :id")                            \
	X(SESSION_SEEN, WRITE, "UPDATE session SET seen_us = max(seen_us, :now), idle_from_us = " STORE_SQL_SERVED     \
	  " WHERE id = :id")                                                                                           \
	X(SESSION_END, WRITE,                                                                                          \
	  "UPDATE session SET ended_us = :now WHERE id = :id AND owner = :owner AND ended_us IS NULL")                 \
	X(SESSION_EXPIRE_EVENTS, WRITE, /* before the session: it may have thousands */                                \
	  "DELETE FROM event WHERE rowid IN (SELECT event.rowid FROM session CROSS JOIN event ON session = "           \
	  "session.id WHERE ended_us IS NOT NULL OR idle_from_us < :limit LIMIT :rows)")                               \
	X(SESSION_EXPIRE, WRITE,                                                                                       \
	  "DELETE FROM session WHERE id IN (SELECT id FROM session WHERE ended_us IS NOT NULL OR idle_from_us < "      \
	  ":limit LIMIT :rows)")                                                                                       \
	X(SUBSCRIPTION_ADD, WRITE,                                                                                     \
	  "INSERT INTO subscription (session, uri) SELECT :session, :uri WHERE (SELECT count(*) FROM "                 \
	  "subscription WHERE session = :session AND uri <> :uri) < :most ON CONFLICT (session, uri) DO UPDATE "       \
	  "SET uri = excluded.uri")                                                                                    \
	X(SUBSCRIPTION_REMOVE, WRITE, "DELETE FROM subscription WHERE session = :session AND uri = :uri")              \
	X(SUBSCRIPTION_LIST, READ, "SELECT uri FROM subscription WHERE session = :session ORDER BY uri")               \
	/* events of legacy streams */                                                                                 \
	X(EVENT_ADD, WRITE,                                                                                            \
	  "INSERT INTO event (stream, number, session, last, created_us, served_us, message) VALUES (:stream, "        \
	  ":number, :session, :last, :now, " STORE_SQL_SERVED ", :message)")                                           \
	X(EVENT_LIST, READ,                                                                                            \
	  "SELECT " STORE_SQL_EVENT "FROM event WHERE stream = :stream AND session = :session AND number >= "          \
	  ":from ORDER BY number")                                                                                     \
	X(EVENT_EXPIRE, WRITE,                                                                                         \
	  "DELETE FROM event WHERE rowid IN (SELECT rowid FROM event WHERE served_us < :limit LIMIT :rows)")
