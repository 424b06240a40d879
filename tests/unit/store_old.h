/*
 * store_old.h - a made-up older schema for the tests of upgrades: statements that make it out of today's, and the step
 * that leads back.
 */
#pragma once

#include "lib/store/db/store_migrate.h"

#define STORE_OLD "26" /* today's version less one; both versions of the step go up with it */

/* From today's schema to the made-up older one: a table, columns, indexes and triggers fewer. */
static const char store_old_sql[] =
	"DROP VIEW limit_hit; DROP VIEW denial; DROP VIEW call;"
	"DROP TRIGGER tool_call_held; DROP TRIGGER tool_call_left; DROP INDEX tool_call_by_arguments_blob;"
	"DROP INDEX tool_call_by_result_blob; DROP INDEX baseline_call_by_arguments_blob;"
	"DROP INDEX baseline_call_by_result_blob; DROP TABLE drain;"
	"ALTER TABLE tool_call DROP COLUMN arguments_blob; ALTER TABLE tool_call DROP COLUMN result_blob;"
	"ALTER TABLE baseline_call DROP COLUMN arguments_blob; ALTER TABLE baseline_call DROP COLUMN result_blob;"
	"PRAGMA user_version = " STORE_OLD;

static const struct store_step store_old_steps[] = {
	{26,
	 "CREATE TABLE drain (owner TEXT PRIMARY KEY, reason TEXT NOT NULL, since_us INTEGER NOT NULL) STRICT, WITHOUT "
	 "ROWID;"
	 "ALTER TABLE tool_call ADD COLUMN arguments_blob TEXT REFERENCES blob (sha256) CHECK "
	 "(arguments_blob IS NULL OR arguments = 'null');"
	 "ALTER TABLE tool_call ADD COLUMN result_blob TEXT REFERENCES blob (sha256) CHECK (result_blob IS "
	 "NULL OR result = '');"
	 "CREATE INDEX tool_call_by_arguments_blob ON tool_call (arguments_blob) WHERE arguments_blob "
	 "IS NOT NULL;"
	 "CREATE INDEX tool_call_by_result_blob ON tool_call (result_blob) WHERE result_blob IS NOT NULL;"
	 "ALTER TABLE baseline_call ADD COLUMN arguments_blob TEXT REFERENCES blob (sha256) CHECK "
	 "(arguments_blob IS NULL OR arguments = 'null');"
	 "ALTER TABLE baseline_call ADD COLUMN result_blob TEXT REFERENCES blob (sha256) CHECK (result_blob IS "
	 "NULL OR result = '');"
	 "CREATE INDEX baseline_call_by_arguments_blob ON baseline_call (arguments_blob) WHERE arguments_blob "
	 "IS NOT NULL;"
	 "CREATE INDEX baseline_call_by_result_blob ON baseline_call (result_blob) WHERE result_blob IS NOT NULL"},
	{27, NULL},
};
