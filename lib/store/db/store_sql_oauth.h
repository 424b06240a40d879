/*
 * store_sql_oauth.h - statements of our own authorization server: clients, codes, access and refresh tokens, login
 * codes; and of people whose tokens another server gave out. What /authorize, /token, /register and /revoke read goes
 * by a primary key.
 */
#pragma once

#include "store_column.h"
#include "store_sql_token.h"

#define STORE_OAUTH_CLIENT_COLUMNS(FIRST, NEXT, OWN)                                                                   \
	FIRST(OAUTH_CLIENT_ID, "id", id)                                                                               \
	NEXT(OAUTH_CLIENT_KIND, "kind", kind)                                                                          \
	NEXT(OAUTH_CLIENT_NAME, "name", name)                                                                          \
	NEXT(OAUTH_CLIENT_REDIRECTS, "redirects", redirects)                                                           \
	NEXT(OAUTH_CLIENT_SECRET, "secret_hash", secret_hash)                                                          \
	NEXT(OAUTH_CLIENT_REFRESHES, "refreshes", refreshes)                                                           \
	NEXT(OAUTH_CLIENT_CREATED, "created_us", created_us)                                                           \
	NEXT(OAUTH_CLIENT_USED, "used_us", used_us)                                                                    \
	NEXT(OAUTH_CLIENT_BLOCKED, "blocked_us", blocked_us)                                                           \
	NEXT(OAUTH_CLIENT_FETCHED, "fetched_us", fetched_us)                                                           \
	NEXT(OAUTH_CLIENT_FRESH, "fresh_us", fresh_us)
enum { STORE_OAUTH_CLIENT_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) OAUTH_CLIENT_COLUMNS };
#define STORE_SQL_OAUTH_CLIENT STORE_OAUTH_CLIENT_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_OAUTH_CODE_COLUMNS(FIRST, NEXT, OWN)                                                                     \
	FIRST(OAUTH_CODE_CLIENT, "client", client)                                                                     \
	NEXT(OAUTH_CODE_REDIRECT, "redirect", redirect)                                                                \
	NEXT(OAUTH_CODE_HOST, "host", host)                                                                            \
	NEXT(OAUTH_CODE_CHALLENGE, "challenge", challenge)                                                             \
	NEXT(OAUTH_CODE_OFFLINE, "offline", offline)                                                                   \
	NEXT(OAUTH_CODE_OWNER, "owner", owner)                                                                         \
	NEXT(OAUTH_CODE_PARENT, "parent", parent)                                                                      \
	NEXT(OAUTH_CODE_EXPIRES, "expires_us", expires_us)                                                             \
	NEXT(OAUTH_CODE_USED, "used_us", used_us)                                                                      \
	NEXT(OAUTH_CODE_TOKEN, "token", token)                                                                         \
	OWN(OAUTH_CODE_SCOPES, "scopes")
enum { STORE_OAUTH_CODE_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) OAUTH_CODE_COLUMNS };
#define STORE_SQL_OAUTH_CODE STORE_OAUTH_CODE_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* An access or refresh token, with its grant. */
#define STORE_OAUTH_TOKEN_COLUMNS(FIRST, NEXT, OWN)                                                                    \
	FIRST(OAUTH_TOKEN_KIND, "o.kind", kind)                                                                        \
	NEXT(OAUTH_TOKEN_GRANT, "o.token", grant)                                                                      \
	NEXT(OAUTH_TOKEN_PARENT, "o.parent", parent)                                                                   \
	NEXT(OAUTH_TOKEN_EXPIRES, "o.expires_us", expires_us)                                                          \
	NEXT(OAUTH_TOKEN_REPLACED, "o.replaced_us", replaced_us)                                                       \
	NEXT(OAUTH_TOKEN_PROVED, "o.proved_us", proved_us)                                                             \
	NEXT(OAUTH_TOKEN_OWNER, "t.owner", owner)                                                                      \
	NEXT(OAUTH_TOKEN_REVOKED, "t.revoked_us", revoked_us)                                                          \
	NEXT(OAUTH_TOKEN_ENDS, "t.expires_us", ends_us)                                                                \
	NEXT(OAUTH_TOKEN_CLIENT, "g.client", client)                                                                   \
	NEXT(OAUTH_TOKEN_OFFLINE, "g.offline", offline)                                                                \
	OWN(OAUTH_TOKEN_SCOPES, "t.scopes")
enum { STORE_OAUTH_TOKEN_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) OAUTH_TOKEN_COLUMNS };
#define STORE_SQL_OAUTH_TOKEN STORE_OAUTH_TOKEN_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

/* What a login code is for. */
enum { OAUTH_LOGIN_OWNER, OAUTH_LOGIN_SCOPES };

/* What the check of an access token reads behind the columns of its grant's row of token. */
enum { OAUTH_CHECK_SCOPES = TOKEN_COLUMNS, OAUTH_CHECK_EXPIRES, OAUTH_CHECK_UNPROVED };

#define STORE_GRANT_COLUMNS(FIRST, NEXT, OWN)                                                                          \
	FIRST(GRANT_ISSUER, "issuer", issuer)                                                                          \
	NEXT(GRANT_CLIENT, "client", client)                                                                           \
	NEXT(GRANT_HOST, "host", host)
enum { STORE_GRANT_COLUMNS(COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) GRANT_COLUMNS };
#define STORE_SQL_GRANT STORE_GRANT_COLUMNS(COLUMN_SQL, COLUMN_SQL_NEXT, COLUMN_SQL_NEXT) " "

#define STORE_SQL_DAY     "86400000000"   /* microseconds */
#define STORE_SQL_WEEK    "604800000000"
#define STORE_SQL_90_DAYS "7776000000000"

#define STORE_STATEMENTS_OAUTH(X)                                                                                      \
	/* grants */                                                                                                   \
	X(GRANT_FIND, READ,                                                                                            \
	  "SELECT " STORE_SQL_TOKEN "FROM token WHERE id = (SELECT token FROM oauth_grant WHERE issuer = :issuer AND " \
	  "subject = :subject AND client = :client AND owner = :owner AND issuer <> '')")                              \
	X(GRANT_COUNT, READ, "SELECT count(*) FROM oauth_grant WHERE issuer = :issuer AND issuer <> ''")               \
	X(GRANT_ADD, WRITE,                                                                                            \
	  "INSERT INTO oauth_grant (token, issuer, subject, client, owner, parent, host, offline) VALUES (:token, "    \
	  ":issuer, :subject, :client, :owner, :parent, :host, :offline)")                                             \
	X(GRANT_SHOW, READ, "SELECT " STORE_SQL_GRANT "FROM oauth_grant WHERE token = :token")                         \
	X(GRANT_OF_PARENT, READ,                                                                                       \
	  "SELECT id FROM oauth_grant CROSS JOIN token ON id = oauth_grant.token WHERE parent = :id AND revoked_us "   \
	  "IS NULL LIMIT 1")                                                                                           \
	X(GRANT_OF_CLIENT, READ,                                                                                       \
	  "SELECT id FROM oauth_grant CROSS JOIN token ON id = oauth_grant.token WHERE client = :id AND issuer = '' "  \
	  "AND revoked_us IS NULL LIMIT 1")                                                                            \
	X(GRANT_SURPLUS, READ, /* those of an owner that were not used for longest, beyond :most */                    \
	  "SELECT id FROM oauth_grant AS g CROSS JOIN token ON id = g.token WHERE g.owner = :owner AND issuer = '' "   \
	  "AND revoked_us IS NULL AND expires_us > :now ORDER BY coalesce(used_us, created_us) DESC, id DESC LIMIT 1 " \
	  "OFFSET :most")                                                                                              \
	/* clients */                                                                                                  \
	X(OAUTH_CLIENT_FIND, READ, "SELECT " STORE_SQL_OAUTH_CLIENT "FROM oauth_client WHERE id = :id")                \
	X(OAUTH_CLIENT_LIST, READ,                                                                                     \
	  "SELECT " STORE_SQL_OAUTH_CLIENT "FROM oauth_client ORDER BY kind, used_us, created_us")                     \
	X(OAUTH_CLIENT_PUT, WRITE, /* a document that was fetched again */                                             \
	  "INSERT INTO oauth_client (id, kind, name, redirects, secret_hash, refreshes, created_us, fetched_us, "      \
	  "fresh_us) VALUES (:id, :kind, :name, :redirects, nullif(:secret, ''), :refreshes, :now, nullif(:fetched, "  \
	  "0), nullif(:fresh, 0)) ON CONFLICT (id) DO UPDATE SET name = excluded.name, redirects = "                   \
	  "excluded.redirects, refreshes = excluded.refreshes, fetched_us = excluded.fetched_us, fresh_us = "          \
	  "excluded.fresh_us WHERE kind = 'document'")                                                                 \
	X(OAUTH_CLIENT_SAME, READ, /* registered already, and nobody used it yet */                                    \
	  "SELECT " STORE_SQL_OAUTH_CLIENT "FROM oauth_client WHERE kind = 'registered' AND used_us IS NULL AND "      \
	  "blocked_us IS NULL AND name = :name AND redirects = :redirects AND refreshes = :refreshes LIMIT 1")         \
	X(OAUTH_CLIENT_COUNT, READ, "SELECT count(*) FROM oauth_client WHERE kind = :kind")                            \
	X(OAUTH_CLIENT_MAKE_ROOM, WRITE,                                                                               \
	  "DELETE FROM oauth_client WHERE id = (SELECT id FROM oauth_client WHERE kind = :kind AND used_us IS NULL "   \
	  "AND blocked_us IS NULL ORDER BY created_us LIMIT 1)")                                                       \
	X(OAUTH_CLIENT_USED, WRITE,                                                                                    \
	  "UPDATE oauth_client SET used_us = max(coalesce(used_us, 0), :now) WHERE id = :id")                          \
	X(OAUTH_CLIENT_BLOCK, WRITE,                                                                                   \
	  "UPDATE oauth_client SET blocked_us = coalesce(blocked_us, :now) WHERE id = :id")                            \
	X(OAUTH_CLIENT_REMOVE, WRITE, "DELETE FROM oauth_client WHERE id = :id")                                       \
	X(OAUTH_CLIENT_EXPIRE, WRITE,                                                                                  \
	  "DELETE FROM oauth_client WHERE id IN (SELECT id FROM oauth_client AS c WHERE kind IN ('document', "         \
	  "'registered') AND blocked_us IS NULL AND created_us < :limit - " STORE_SQL_DAY " AND coalesce(fetched_us, " \
	  "0) < :limit - " STORE_SQL_WEEK " AND (used_us IS NULL OR used_us < :limit - " STORE_SQL_90_DAYS ") AND "    \
	  "NOT EXISTS (SELECT 1 FROM oauth_grant AS g CROSS JOIN token ON token.id = g.token WHERE g.client = c.id "   \
	  "AND g.issuer = '' AND revoked_us IS NULL AND expires_us > :limit) LIMIT :rows)")                            \
	/* codes */                                                                                                    \
	X(OAUTH_CODE_ADD, WRITE,                                                                                       \
	  "INSERT INTO oauth_code (hash, client, redirect, host, challenge, scopes, offline, owner, parent, "          \
	  "expires_us) VALUES (:hash, :client, :redirect, :host, :challenge, :scopes, :offline, :owner, :parent, "     \
	  ":expires)")                                                                                                 \
	X(OAUTH_CODE_SURPLUS, WRITE,                                                                                   \
	  "DELETE FROM oauth_code WHERE hash IN (SELECT hash FROM oauth_code WHERE owner = :owner AND used_us IS "     \
	  "NULL ORDER BY expires_us DESC LIMIT -1 OFFSET :most)")                                                      \
	X(OAUTH_CODE_FIND, READ, "SELECT " STORE_SQL_OAUTH_CODE "FROM oauth_code WHERE hash = :hash")                  \
	X(OAUTH_CODE_USE, WRITE,                                                                                       \
	  "UPDATE oauth_code SET used_us = :now, token = :token WHERE hash = :hash AND used_us IS NULL")               \
	X(OAUTH_CODE_EXPIRE, WRITE,                                                                                    \
	  "DELETE FROM oauth_code WHERE hash IN (SELECT hash FROM oauth_code WHERE expires_us < :limit - "             \
	  STORE_SQL_DAY " LIMIT :rows)")                                                                               \
	/* access and refresh tokens */                                                                                \
	X(OAUTH_TOKEN_ADD, WRITE,                                                                                      \
	  "INSERT INTO oauth_token (hash, token, kind, scopes, parent, created_us, expires_us) VALUES (:hash, "        \
	  ":token, :kind, :scopes, :parent, :now, :expires)")                                                          \
	X(OAUTH_TOKEN_CHECK, READ,                                                                                     \
	  "SELECT " STORE_SQL_TOKEN ", (SELECT scopes FROM oauth_token WHERE hash = :hash), (SELECT expires_us FROM "  \
	  "oauth_token WHERE hash = :hash), (SELECT p.hash FROM oauth_token AS o CROSS JOIN oauth_token AS p ON "      \
	  "p.hash = o.parent WHERE o.hash = :hash AND p.proved_us IS NULL) FROM token WHERE id = (SELECT token FROM "  \
	  "oauth_token WHERE hash = :hash AND kind = 'access')")                                                       \
	X(OAUTH_TOKEN_FIND, READ,                                                                                      \
	  "SELECT " STORE_SQL_OAUTH_TOKEN "FROM oauth_token AS o CROSS JOIN token AS t ON t.id = o.token CROSS JOIN "  \
	  "oauth_grant AS g ON g.token = o.token WHERE o.hash = :hash")                                                \
	X(OAUTH_TOKEN_REPLACE, WRITE,                                                                                  \
	  "UPDATE oauth_token SET replaced_us = coalesce(replaced_us, :now) WHERE hash = :hash")                       \
	X(OAUTH_TOKEN_PROVE, WRITE,                                                                                    \
	  "UPDATE oauth_token SET proved_us = :now WHERE hash = :hash AND proved_us IS NULL")                          \
	X(OAUTH_TOKEN_RETIRE, WRITE, /* the others that were made from the same one */                                 \
	  "UPDATE oauth_token SET replaced_us = coalesce(replaced_us, :now), proved_us = coalesce(proved_us, :now) "   \
	  "WHERE parent = :parent AND kind = 'refresh' AND hash <> :hash")                                             \
	X(OAUTH_TOKEN_SURPLUS, WRITE,                                                                                  \
	  "DELETE FROM oauth_token WHERE hash IN (SELECT hash FROM oauth_token WHERE parent = :parent AND kind = "     \
	  ":kind AND replaced_us IS NULL ORDER BY created_us DESC LIMIT -1 OFFSET :most)")                             \
	X(OAUTH_TOKEN_END, WRITE, "UPDATE oauth_token SET expires_us = min(expires_us, :now) WHERE hash = :hash")      \
	X(OAUTH_TOKEN_EXPIRE, WRITE,                                                                                   \
	  "DELETE FROM oauth_token WHERE hash IN (SELECT hash FROM oauth_token WHERE expires_us < :limit - "           \
	  STORE_SQL_WEEK " LIMIT :rows)")                                                                              \
	/* login codes */                                                                                              \
	X(OAUTH_LOGIN_ADD, WRITE,                                                                                      \
	  "INSERT INTO oauth_login (hash, owner, scopes, created_us, expires_us) VALUES (:hash, :owner, :scopes, "     \
	  ":now, :expires)")                                                                                           \
	X(OAUTH_LOGIN_FIND, READ,                                                                                      \
	  "SELECT owner, scopes FROM oauth_login WHERE hash = :hash AND used_us IS NULL AND expires_us > :now")        \
	X(OAUTH_LOGIN_USE, WRITE,                                                                                      \
	  "UPDATE oauth_login SET used_us = :now WHERE hash = :hash AND used_us IS NULL AND expires_us > :now")        \
	X(OAUTH_LOGIN_EXPIRE, WRITE,                                                                                   \
	  "DELETE FROM oauth_login WHERE hash IN (SELECT hash FROM oauth_login WHERE expires_us < :limit - "           \
	  STORE_SQL_DAY " LIMIT :rows)")
