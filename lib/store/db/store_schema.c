/* store_schema.c - see store_schema.h; the Makefile makes the included text from schema.sql. */
#include "store_schema.h"

#include <stddef.h>
#include <string.h>

#include "lib/base/util.h"

const char store_schema[] =
#include "schema_sql.inc"
	;

char *store_schema_view(const char *name)
{
	auto_free char *head = xasprintf("\nCREATE VIEW %s AS\n", name);
	const char *text = strstr(store_schema, head) + strlen(head);

	return xstrndup(text, strcspn(text, ";"));
}

#define NEWEST 27

const int store_schema_newest = NEWEST;

const struct store_step store_schema_steps[] = {
	{25, "ALTER TABLE execution ADD COLUMN client_address TEXT; ALTER TABLE execution ADD COLUMN client TEXT; "
	 "ALTER TABLE execution ADD COLUMN secrets INTEGER; "
	 "CREATE INDEX execution_by_request ON execution (request_id) WHERE request_id IS NOT NULL"},
	{26, "ALTER TABLE execution ADD COLUMN door TEXT; ALTER TABLE execution ADD COLUMN caller TEXT; "
	 "ALTER TABLE execution ADD COLUMN grading INTEGER CHECK (grading = 1); "
	 "CREATE TABLE oauth_grant (token TEXT PRIMARY KEY REFERENCES token (id), issuer TEXT NOT NULL, "
	 "subject TEXT NOT NULL, client TEXT NOT NULL, owner TEXT NOT NULL, parent TEXT REFERENCES token "
	 "(id), host TEXT NOT NULL DEFAULT '', offline INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID; "
	 "CREATE UNIQUE INDEX oauth_grant_by_subject ON oauth_grant (issuer, subject, client, owner) WHERE "
	 "issuer <> ''; CREATE INDEX oauth_grant_by_owner ON oauth_grant (owner); CREATE INDEX "
	 "oauth_grant_by_client ON oauth_grant (client); CREATE INDEX oauth_grant_by_parent ON oauth_grant "
	 "(parent) WHERE parent IS NOT NULL; CREATE TABLE oauth_client (id TEXT PRIMARY KEY, kind TEXT NOT "
	 "NULL CHECK (kind IN ('document', 'registered', 'manual')), name TEXT NOT NULL, redirects TEXT NOT "
	 "NULL, secret_hash TEXT, refreshes INTEGER NOT NULL, created_us INTEGER NOT NULL, used_us INTEGER, "
	 "blocked_us INTEGER, fetched_us INTEGER, fresh_us INTEGER) STRICT, WITHOUT ROWID; CREATE INDEX "
	 "oauth_client_by_kind ON oauth_client (kind, used_us, created_us); CREATE TABLE oauth_code (hash "
	 "TEXT PRIMARY KEY CHECK (length(hash) = 64), client TEXT NOT NULL, redirect TEXT NOT NULL, host TEXT "
	 "NOT NULL, challenge TEXT NOT NULL, scopes TEXT NOT NULL, offline INTEGER NOT NULL, owner TEXT NOT "
	 "NULL, parent TEXT REFERENCES token (id), expires_us INTEGER NOT NULL, used_us INTEGER, token TEXT "
	 "REFERENCES token (id)) STRICT, WITHOUT ROWID; CREATE INDEX oauth_code_by_owner ON oauth_code "
	 "(owner, expires_us); CREATE INDEX oauth_code_by_expiry ON oauth_code (expires_us); CREATE TABLE "
	 "oauth_token (hash TEXT PRIMARY KEY CHECK (length(hash) = 64), token TEXT NOT NULL REFERENCES "
	 "oauth_grant (token), kind TEXT NOT NULL CHECK (kind IN ('access', 'refresh')), scopes TEXT NOT "
	 "NULL, parent TEXT, created_us INTEGER NOT NULL, expires_us INTEGER NOT NULL, replaced_us INTEGER, "
	 "proved_us INTEGER) STRICT, WITHOUT ROWID; CREATE INDEX oauth_token_by_parent ON oauth_token "
	 "(parent, kind, created_us) WHERE parent IS NOT NULL; CREATE INDEX oauth_token_by_expiry ON "
	 "oauth_token (expires_us); CREATE TABLE oauth_login (hash TEXT PRIMARY KEY CHECK (length(hash) = "
	 "64), owner TEXT NOT NULL, scopes TEXT NOT NULL, created_us INTEGER NOT NULL, expires_us INTEGER NOT "
	 "NULL, used_us INTEGER) STRICT, WITHOUT ROWID; CREATE INDEX oauth_login_by_expiry ON oauth_login "
	 "(expires_us); ALTER TABLE token ADD COLUMN text_kb INTEGER CHECK (text_kb BETWEEN 2 AND 64)"},
	{NEWEST, NULL},
};

int store_schema_refuse(int64_t version, struct err *err)
{
	if (version == 0)
		return err_set(err, ERR_NOT_FOUND, "the database is empty: the gateway fills it when it starts");
	if (version > store_schema_newest)
		return err_set(err, ERR_UNAVAILABLE,
			       "the database is of version %lld, this program knows versions up to %d: install the "
			       "newer release",
			       (long long)version, store_schema_newest);
	if (version < store_schema_steps[0].from)
		return err_set(err, ERR_UNAVAILABLE,
			       "the database is of version %lld, from before the first release, and this program "
			       "upgrades version %d and newer: open it with the program that wrote it, or give this one "
			       "a data_dir of its own",
			       (long long)version, store_schema_steps[0].from);
	return err_set(
		err, ERR_UNAVAILABLE,
		"the database is of version %lld, and this program works with version %d: start the gateway of this release, which upgrades it and keeps a copy (if it is starting now, try again in a moment)",
		(long long)version, store_schema_newest);
}
