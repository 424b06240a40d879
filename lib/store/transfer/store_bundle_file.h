/* store_bundle_file.h - the file of a bundle; between store_bundle.c, _check.c and _import.c. */
#pragma once

#include <sqlite3.h>

#include "lib/store/db/store_query.h"
#include "lib/store/db/store_sql_bundle.h"
#include "store_bundle.h"

struct store_txn;

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
	"CREATE TABLE runtime (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_RUNTIME) ", PRIMARY KEY (hash)) STRICT;"            \
	"CREATE TABLE tool_list (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_TOOL_LIST) ", PRIMARY KEY (hash)) STRICT;"        \
	"CREATE TABLE execution_server (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_SERVER)                                    \
	", PRIMARY KEY (execution, position)) STRICT;"                                                                 \
	"CREATE TABLE tool_call (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_CALL)                                             \
	", PRIMARY KEY (execution, seq)) STRICT;"                                                                      \
	"CREATE TABLE baseline_server (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_BASELINE_SERVER)                            \
	", PRIMARY KEY (execution, generation, position)) STRICT;"                                                     \
	"CREATE TABLE baseline_call (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_BASELINE_CALL)                                \
	", PRIMARY KEY (execution, generation, seq)) STRICT;"                                                          \
	"CREATE TABLE sandbox (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_SANDBOX) ", PRIMARY KEY (id)) STRICT;"              \
	"CREATE TABLE blob (sha256 TEXT PRIMARY KEY, data BLOB NOT NULL) STRICT;"
/* clang-format on */
/* The log of those runs (store_bundle_audit.h). */
#define STORE_BUNDLE_AUDIT_TABLES                                                                                      \
	"CREATE TABLE audit (n INTEGER PRIMARY KEY, at_us ANY, kind ANY, object ANY, entry ANY, salt ANY, detail ANY, "\
	"proof ANY) STRICT;"                                                                                           \
	"CREATE TABLE audit_head (size INTEGER PRIMARY KEY, root ANY, checkpoint ANY) STRICT;"
/* Tables that came later, each with a version of its own. */
#define STORE_BUNDLE_TAG_TABLE                                                                                         \
	"CREATE TABLE IF NOT EXISTS execution_tag (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_TAG)                            \
	", PRIMARY KEY (execution, tag)) STRICT;"
#define STORE_BUNDLE_CALL_TEXT_TABLE                                                                                   \
	"CREATE TABLE IF NOT EXISTS call_text (" STORE_BUNDLE_COLUMNS(STORE_BUNDLE_CALL_TEXT)                          \
	", PRIMARY KEY (execution, generation, seq)) STRICT;"
enum store_bundle_table { STORE_BUNDLE_TAGS = 1, STORE_BUNDLE_CALL_TEXTS }; /* in the order in which they came */
struct store_bundle_kind {
	const char *schema, *what; /* without those tables; "a bundle of sallyport export" */
	int application_id, version;            /* the newest, which has all of `later` … */
	const char *more_blobs;                 /* a query for contents besides STORE_BUNDLE_BLOBS; NULL: none */
	enum store_bundle_table later[2];       /* … and each version before lacks the last one; 0: no more. All of
						   these versions are read */
};

/* Names of all contents that rows refer to; one may be NULL. */
#define STORE_BUNDLE_BLOBS                                                                                             \
	"(SELECT code_blob AS name FROM execution UNION SELECT stdin_blob FROM execution UNION SELECT stdout_blob "    \
	"FROM execution UNION SELECT stderr_blob FROM execution UNION SELECT blob FROM execution_file "                \
	"UNION SELECT stdout_blob FROM baseline UNION SELECT stderr_blob FROM baseline)"
#define STORE_BUNDLE_CALL_BLOBS "(SELECT arguments_blob AS name FROM call_text UNION SELECT result_blob FROM call_text)"

/* A condition: the column is no path below /data. */
#define STORE_BUNDLE_BAD_PATH(name)                                                                                    \
	"(length(" name ") > 4096 OR '/' || CAST(" name " AS TEXT) || '/' LIKE '%/../%' OR '/' || CAST(" name          \
	" AS TEXT) || '/' LIKE '%/./%' OR '/' || CAST(" name " AS TEXT) || '/' LIKE '%//%' OR instr(CAST(" name        \
	" AS BLOB), x'00') > 0)"

struct store_bundle {
	const struct store_bundle_kind *kind;
	sqlite3 *db;
	char *path, *part; /* part: the file while it is written; NULL: none */
	bool leave_env;
	int version;
};
int store_bundle_oldest(const struct store_bundle_kind *kind); /* version that is read */
bool store_bundle_has(const struct store_bundle *bundle, enum store_bundle_table table);
/* The tables that its version has and the file lacks, and that version. */
int store_bundle_make_later(const struct store_bundle *bundle, sqlite3 *db);
int store_bundle_failed(struct store_bundle *bundle, struct err *err);
/* A file of this kind, to be written by store_bundle_add and _finish; one to be read, checked. */
int store_bundle_create(const char *path, const struct store_bundle_kind *kind, struct store_bundle **ret,
			struct err *err);
int store_bundle_read(const char *path, const struct store_bundle_kind *kind, struct store_bundle **ret,
		      struct err *err);
/* The rows that the query with :owner or :id gives, into the bundle by the statement. Returns how many. */
int store_bundle_carry(struct store_bundle *bundle, struct query *from, const char *insert, struct err *err);
/* Nothing that the file says is run as code. */
void store_bundle_guard(struct store_bundle *bundle);
/* Everything that store_bundle_open promises. */
int store_bundle_check(struct store_bundle *bundle, struct err *err);
/* Each content, whose bytes must have its name; into the store, if there is one. */
int store_bundle_each_blob(struct store_bundle *bundle, struct store *store, int64_t *ret_bytes, struct err *err);
int store_bundle_number(struct store_bundle *bundle, const char *sql, int64_t *ret, struct err *err);
/* The contents that rows refer to and that are not there yet. */
int store_bundle_add_blobs(struct store_bundle *bundle, struct store *store, struct err *err);
/* The way in, in three steps: is there room; the contents, before the rows; the rows, in a transaction. */
int store_bundle_check_room(struct store_bundle *bundle, struct store *store, struct err *err);
int store_bundle_import_blobs(struct store_bundle *bundle, struct store *store, struct err *err);
int store_bundle_import_rows(struct store_txn *txn, struct store_bundle *bundle, struct store_carried *ret,
			     struct err *err);
/* The row that `row` is at, but for the column `but` (NULL: all of it), by the names of its columns. */
void store_bundle_bind_row(struct query *to, sqlite3_stmt *row, const char *but);
int store_bundle_prepare(struct store_bundle *bundle, const char *sql, sqlite3_stmt **ret, struct err *err);
void store_bundle_statement(sqlite3_stmt **statement);
#define auto_statement __attribute__((cleanup(store_bundle_statement)))
