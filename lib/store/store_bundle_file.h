/* store_bundle_file.h - the file of a bundle; between store_bundle.c and store_bundle_import.c. */
#pragma once

#include <sqlite3.h>

#include "store_bundle.h"
#include "store_sql_bundle.h"

/* The tables of a bundle; a suite (store_suite.h) has them too, and one more. */
/* clang-format off */
#define STORE_BUNDLE_COLUMN(name)      #name " ANY"
#define STORE_BUNDLE_COLUMN_NEXT(name) ", " #name " ANY"
#define STORE_BUNDLE_COLUMNS(list)     list(STORE_BUNDLE_COLUMN, STORE_BUNDLE_COLUMN_NEXT)
#define STORE_BUNDLE_TABLES                                                                                            \
	"CREATE TABLE execution (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_EXECUTION) ", env ANY, PRIMARY KEY (id)) STRICT;" \
	"CREATE TABLE execution_file (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_FILE)                                        \
	", PRIMARY KEY (execution, phase, name)) STRICT;"                                                              \
	"CREATE TABLE baseline (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_BASELINE)                                          \
	", PRIMARY KEY (execution, generation)) STRICT;"                                                               \
	"CREATE TABLE baseline_file (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_BASELINE_FILE)                                \
	", PRIMARY KEY (execution, generation, name)) STRICT;"                                                         \
	"CREATE TABLE sandbox (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_SANDBOX) ", PRIMARY KEY (id)) STRICT;"              \
	"CREATE TABLE blob (sha256 TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;"
/* clang-format on */
struct store_bundle_kind {
	const char *schema, *what; /* all of it; "a bundle of sallyport export" */
	int application_id, version;
};

/* Names of all contents that rows refer to; one may be NULL. */
#define STORE_BUNDLE_BLOBS                                                                                             \
	"(SELECT code_blob AS name FROM execution UNION SELECT stdin_blob FROM execution UNION SELECT stdout_blob "    \
	"FROM execution UNION SELECT stderr_blob FROM execution UNION SELECT blob FROM execution_file "    \
	"UNION SELECT stdout_blob FROM baseline UNION SELECT stderr_blob FROM baseline)"

struct store_bundle {
	const struct store_bundle_kind *kind;
	sqlite3 *db;
	char *path, *part; /* part: the file while it is written; NULL: none */
	bool leave_env;
};
int store_bundle_failed(struct store_bundle *bundle, struct err *err);
/* Nothing that the file says is run as code. */
void store_bundle_guard(struct store_bundle *bundle);
/* Everything that store_bundle_open promises. */
int store_bundle_check(struct store_bundle *bundle, struct err *err);
int store_bundle_number(struct store_bundle *bundle, const char *sql, int64_t *ret, struct err *err);
/* The contents that rows refer to and that are not there yet. */
int store_bundle_add_blobs(struct store_bundle *bundle, struct store *store, struct err *err);
int store_bundle_prepare(struct store_bundle *bundle, const char *sql, sqlite3_stmt **ret, struct err *err);
void store_bundle_statement(sqlite3_stmt **statement);
#define auto_statement __attribute__((cleanup(store_bundle_statement)))
