/* store_bundle_file.h - the file of a bundle; between store_bundle.c and store_bundle_import.c. */
#pragma once

#include <sqlite3.h>

#include "store_bundle.h"

#define STORE_BUNDLE_VERSION        1
#define STORE_BUNDLE_APPLICATION_ID 0x53504255 /* "SPBU" */
extern const char store_bundle_schema[];

/* Names of all contents that rows refer to; one may be NULL. */
#define STORE_BUNDLE_BLOBS                                                                                             \
	"(SELECT code_blob AS name FROM execution UNION SELECT stdin_blob FROM execution UNION SELECT stdout_blob "    \
	"FROM execution UNION SELECT stderr_blob FROM execution UNION SELECT blob FROM execution_file)"

struct store_bundle {
	sqlite3 *db;
	char *path, *part; /* part: the file while it is written; NULL: none */
};
int store_bundle_failed(struct store_bundle *bundle, struct err *err);
int store_bundle_prepare(struct store_bundle *bundle, const char *sql, sqlite3_stmt **ret, struct err *err);
void store_bundle_statement(sqlite3_stmt **statement);
#define auto_statement __attribute__((cleanup(store_bundle_statement)))
