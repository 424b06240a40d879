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
	 "CREATE TABLE oauth_grant (token TEXT PRIMARY KEY REFERENCES token (id), issuer TEXT NOT NULL, subject "
	 "TEXT NOT NULL, client TEXT NOT NULL, owner TEXT NOT NULL) STRICT, WITHOUT ROWID; "
	 "CREATE UNIQUE INDEX oauth_grant_by_subject ON oauth_grant (issuer, subject, client, owner)"},
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
