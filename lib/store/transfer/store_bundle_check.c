/*
 * store_bundle_check.c - checks a bundle that comes from elsewhere.
 *
 * The schema is compared before any statement touches a table; then every row and the hash of every content is checked.
 * store_bundle_import.c takes the bundle in after that.
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_token.h"
#include "store_bundle_file.h"

#define BUNDLE_CALL_MAX "16777216" /* bytes of arguments, a result, a list of tools */
/* Of a row of tool_call or baseline_call; a text that is a content is not in the row, too. */
#define BUNDLE_BAD_CALL                                                                                                \
	"typeof(seq) <> 'integer' OR NOT json_valid(arguments) OR length(CAST(arguments AS BLOB)) > " BUNDLE_CALL_MAX  \
	" OR length(CAST(result AS BLOB)) > " BUNDLE_CALL_MAX " OR length(server) > 256 OR length(tool) > 4096 OR "    \
	"(arguments_blob IS NOT NULL AND arguments IS NOT 'null') OR (result_blob IS NOT NULL AND result IS NOT '')"
#define BUNDLE_CALL_TEXTS                                                                                              \
	"(SELECT arguments_blob, result_blob FROM tool_call UNION ALL SELECT arguments_blob, result_blob FROM "        \
	"baseline_call)"

/* Rows that must not be there: their count, and what to say of them. */
static const struct {
	const char *sql, *text;
} checks[] = {
	{"SELECT count(*) FROM pragma_quick_check WHERE quick_check <> 'ok'", "the file is damaged"},
	{"SELECT count(*) FROM execution WHERE typeof(id) <> 'text' OR state NOT IN ('finished', 'interrupted') OR "
	 "owner "
	 "NOT GLOB '[a-z0-9]*' OR owner GLOB '*[^a-z0-9-]*' OR length(owner) > 32 OR typeof(language) <> 'text' OR "
	 "length(language) > 31 OR length(conversation_name) > 512 OR NOT json_valid(args) OR NOT json_valid(limits) "
	 "OR "
	 "(env IS NOT NULL AND NOT json_valid(env)) OR (result IS NOT NULL AND NOT json_valid(result))",
	 "a run is not as it must be"},
	{"SELECT count(*) FROM execution WHERE json_type(args) <> 'array' OR json_type(limits) <> 'object' OR "
	 "json_type(env) <> 'object' OR json_type(result) <> 'object' OR EXISTS (SELECT 1 FROM json_each(args) WHERE "
	 "type <> 'text') OR EXISTS (SELECT 1 FROM json_each(env) WHERE type NOT IN ('text', 'null', 'false') OR key "
	 "= '' OR instr(key, '=') > 0)",
	 "a run is not as it must be"},
	{"SELECT count(*) FROM execution WHERE length(CAST(code AS BLOB)) > 65536 OR length(CAST(stdin AS BLOB)) > "
	 "65536 "
	 "OR length(CAST(stdout AS BLOB)) > 65536 OR length(CAST(stderr AS BLOB)) > 65536 OR length(args) > 1048576 OR "
	 "length(limits) > 65536 OR length(env) > 1048576 OR length(result) > 1048576",
	 "a run is larger than it may be"},
	{"SELECT count(*) FROM execution WHERE entry IS NOT NULL AND " STORE_BUNDLE_BAD_PATH("entry"),
	 "a path leads out of /data"},
	{"SELECT count(*) FROM execution_file WHERE " STORE_BUNDLE_BAD_PATH("name"), "a path leads out of /data"},
	{"SELECT count(*) FROM execution_file JOIN blob ON sha256 = blob WHERE blob IS NOT NULL AND size IS NOT "
	 "length(data)",
	 "the size of a file is not that of its content"},
	{"SELECT count(*) FROM execution_file WHERE execution NOT IN (SELECT id FROM execution)",
	 "a file belongs to no run"},
	{"SELECT count(*) FROM baseline WHERE execution NOT IN (SELECT id FROM execution) OR typeof(generation) <> "
	 "'integer' OR length(CAST(stdout AS BLOB)) > 65536 OR length(CAST(stderr AS BLOB)) > 65536 OR "
	 "length(CAST(author AS BLOB)) > 256 OR length(CAST(reason AS BLOB)) > 4096",
	 "a generation is not as it must be"},
	{"SELECT count(*) FROM baseline_file WHERE " STORE_BUNDLE_BAD_PATH("name"), "a path leads out of /data"},
	{"SELECT count(*) FROM baseline_file AS f WHERE NOT EXISTS (SELECT 1 FROM baseline AS b WHERE b.execution = "
	 "f.execution AND b.generation = f.generation)",
	 "a file belongs to no generation"},
	{"SELECT count(*) FROM tool_call WHERE execution NOT IN (SELECT id FROM execution) OR " BUNDLE_BAD_CALL,
	 "a call of a tool is not as it must be"},
	{"SELECT count(*) FROM execution_server WHERE execution NOT IN (SELECT id FROM execution) OR list NOT IN "
	 "(SELECT hash FROM tool_list) OR length(name) > 256 OR length(alias) > 256 OR length(description) > 65536",
	 "a server of a run is not as it must be"},
	{"SELECT count(*) FROM baseline_call AS c WHERE NOT EXISTS (SELECT 1 FROM baseline AS b WHERE b.execution = "
	 "c.execution AND b.generation = c.generation) OR " BUNDLE_BAD_CALL,
	 "a call of a generation is not as it must be"},
	{"SELECT count(*) FROM baseline_server AS s WHERE NOT EXISTS (SELECT 1 FROM baseline AS b WHERE b.execution = "
	 "s.execution AND b.generation = s.generation) OR list NOT IN (SELECT hash FROM tool_list) OR length(name) > "
	 "256 OR length(alias) > 256 OR length(description) > 65536",
	 "a server of a generation is not as it must be"},
	{"SELECT count(*) FROM tool_list WHERE NOT json_valid(definitions) OR length(CAST(definitions AS BLOB)) "
	 "> " BUNDLE_CALL_MAX,
	 "a list of tools is not as it must be"},
	{"SELECT count(*) FROM runtime WHERE NOT json_valid(description) OR length(CAST(description AS BLOB)) > "
	 "1048576",
	 "what a run ran on is not as it must be"},
	{"SELECT count(*) FROM execution WHERE runtime IS NOT NULL AND runtime NOT IN (SELECT hash FROM runtime)",
	 "what a run ran on is missing"},
	{"SELECT count(*) FROM execution WHERE sandbox IS NOT NULL AND sandbox NOT IN (SELECT id FROM sandbox)",
	 "a sandbox is missing"},
	{"SELECT count(*) FROM " STORE_SQL_NAMED " WHERE name IS NOT NULL AND name NOT IN (SELECT sha256 FROM blob)",
	 "a content is missing"},
	{"SELECT count(*) FROM " BUNDLE_CALL_TEXTS " JOIN blob ON sha256 IN (arguments_blob, result_blob) WHERE "
	 "length(data) > " BUNDLE_CALL_MAX " OR instr(data, x'00') > 0 OR (sha256 = arguments_blob AND NOT "
	 "json_valid(CAST(data AS TEXT)))",
	 "a text of a call of a tool is not as it must be"},
	{"SELECT count(*) FROM execution_tag WHERE execution NOT IN (SELECT id FROM execution) OR typeof(tag) <> "
	 "'text' "
	 "OR length(tag) NOT BETWEEN 1 AND 64 OR tag GLOB '*[^A-Za-z0-9._:/-]*' OR instr(CAST(tag AS BLOB), x'00') > 0",
	 "a tag is not as it must be"},
	/* an owner who moves: without one the tables are empty */
	{"SELECT count(*) > 1 FROM owner", "it has several owners"},
	{"SELECT count(*) FROM conversation WHERE NOT EXISTS (SELECT 1 FROM owner)", "a conversation has no owner"},
	{"SELECT count(*) FROM token WHERE owner IS NOT (SELECT name FROM owner) OR length(id) IS NOT 36 OR "
	 "length(hash) IS NOT 64 OR typeof(name) <> 'text' OR typeof(scopes) <> 'text'",
	 "a token is not as it must be"},
	{"SELECT count(*) FROM snippet WHERE owner IS NOT (SELECT name FROM owner) OR typeof(version) <> 'integer' OR "
	 "version < 1 OR name IS NULL OR name GLOB '*[^A-Za-z0-9_-]*' OR length(name) NOT BETWEEN 1 AND 64 OR "
	 "length(CAST(description AS BLOB)) > 1024 OR length(CAST(code AS BLOB)) > 65536 OR length(CAST(schema AS "
	 "BLOB)) > 16384 OR length(CAST(servers AS BLOB)) > 65536 OR NOT json_valid(schema) OR NOT "
	 "json_valid(servers) OR typeof(language) <> 'text' OR length(language) > 31",
	 "a snippet is not as it must be"},
	{"SELECT count(*) FROM execution JOIN owner ON execution.owner IS NOT name", "a run is another owner's"},
	{"SELECT count(*) FROM file WHERE conversation NOT IN (SELECT name FROM conversation) OR blob NOT IN (SELECT "
	 "sha256 FROM blob) OR typeof(mode) <> 'integer' OR mode NOT BETWEEN 0 AND 511 OR " STORE_BUNDLE_BAD_PATH(
		 "name"),
	 "a file is not as it must be"},
	{"SELECT count(*) FROM file JOIN blob ON sha256 = blob WHERE size IS NOT length(data)",
	 "the size of a file is not that of its content"},
	{"SELECT count(*) FROM run WHERE execution NOT IN (SELECT id FROM execution) OR conversation NOT IN (SELECT "
	 "name FROM conversation)",
	 "a run's conversation is missing"},
	/* a suite */
	{"SELECT count(*) FROM suite_case WHERE execution NOT IN (SELECT id FROM execution)", "a case has no run"},
	{"SELECT count(*) FROM suite_case WHERE length(name) NOT BETWEEN 1 AND 256 OR length(tags) > 65536 OR NOT "
	 "json_valid(tags) OR json_type(tags) <> 'array' OR length(compare) > 1024 OR length(normalise) > 1024",
	 "a case is not as it must be"},
};

/* Everything that a schema says, in the order of names. */
static char *schema_text(sqlite3 *db)
{
	auto_statement sqlite3_stmt *statement = NULL;
	char *text = NULL;

	if (sqlite3_prepare_v2(db,
			       "SELECT group_concat(type || ' ' || name || ' ' || coalesce(sql, ''), char(10)) FROM "
			       "(SELECT * FROM sqlite_schema ORDER BY name)",
			       -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_text(statement, 0))
		text = xstrdup((const char *)sqlite3_column_text(statement, 0));
	return text ? text : xstrdup("");
}

static int check_identity(struct store_bundle *bundle, struct err *err)
{
	int64_t application = 0, version = 0;
	sqlite3 *ours = NULL;
	int result = store_bundle_number(bundle, "PRAGMA application_id", &application, err);

	if (result == 0)
		result = store_bundle_number(bundle, "PRAGMA user_version", &version, err);
	if (result < 0)
		return result;
	if (application != STORE_BUNDLE_APPLICATION)
		return err_set(err, ERR_INVALID,
			       "%s is not a bundle of this release: make it again with sallyport export or promote",
			       bundle->path);
	if (version != STORE_BUNDLE_VERSION)
		return err_set(err, ERR_UNAVAILABLE, "%s is of version %lld, this program knows %d: %s", bundle->path,
			       (long long)version, STORE_BUNDLE_VERSION,
			       version < STORE_BUNDLE_VERSION ? "write it anew" : "install a newer release");
	const bool same = sqlite3_open_v2(":memory:", &ours, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
			  sqlite3_exec(ours, store_bundle_schema, NULL, NULL, NULL) == SQLITE_OK;
	auto_free char *wanted = schema_text(ours), *is = schema_text(bundle->db);

	sqlite3_close(ours);
	return same && streq(wanted, is)
		       ? 0
		       : err_set(err, ERR_INVALID, "%s: its tables are not those of a bundle", bundle->path);
}

static int check_ids(struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, "SELECT id FROM execution UNION ALL SELECT id FROM sandbox", NULL,
					  &statement, err);

	while (result == 0 && (result = store_bundle_next(bundle, statement, err)) > 0) {
		const char *id = (const char *)sqlite3_column_text(statement, 0);

		result = id && id_valid(id) ? 0
					    : err_set(err, ERR_INVALID, "%s: an id is not as it must be", bundle->path);
	}
	return result;
}

/* Is the first column the hash of the second, a text or a content? */
static int check_hash(struct store_bundle *bundle, sqlite3_stmt *row, const char *what, struct err *err)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	const void *data = sqlite3_column_blob(row, 1);
	char hash[SHA256_HEX_SIZE];

	sha256_hex(data ? data : "", (size_t)sqlite3_column_bytes(row, 1), hash);
	return name && streq(name, hash)
		       ? 0
		       : err_set(err, ERR_CORRUPT, "%s: %s does not have its hash: it was changed", bundle->path, what);
}

/* Texts that are stored once, under their hash: another text under a hash would replace the right one from then on. */
static int check_shared(struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(
		bundle, "SELECT hash, definitions FROM tool_list UNION ALL SELECT hash, description FROM runtime", NULL,
		&row, err);

	while (result == 0 && (result = store_bundle_next(bundle, row, err)) > 0)
		result = check_hash(bundle, row, "a text", err);
	return result;
}

int store_bundle_each_blob(struct store_bundle *bundle, struct store *store, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, "SELECT sha256, data FROM blob", NULL, &row, err);

	while (result == 0 && (result = store_bundle_next(bundle, row, err)) > 0) {
		const void *data = sqlite3_column_blob(row, 1);
		char hash[SHA256_HEX_SIZE];

		result = check_hash(bundle, row, "a content", err);
		if (result == 0 && store)
			result = store_blob_put(store, data, (size_t)sqlite3_column_bytes(row, 1), hash, err);
	}
	return result;
}

static int check_owner(struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(bundle, "SELECT name FROM owner", NULL, &row, err);

	if (result == 0)
		result = store_bundle_next(bundle, row, err);
	if (result <= 0)
		return result;
	if (!store_owner_valid((const char *)sqlite3_column_text(row, 0)))
		return err_set(err, ERR_INVALID, "%s: its owner has no valid name", bundle->path);
	bundle->owner = xstrdup((const char *)sqlite3_column_text(row, 0));
	return 0;
}

int store_bundle_check(struct store_bundle *bundle, struct err *err)
{
	int result = check_identity(bundle, err);

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(checks); i++) {
		int64_t count = 0;

		result = store_bundle_number(bundle, checks[i].sql, &count, err);
		if (result == 0 && count > 0)
			result = err_set(err, ERR_INVALID, "%s: %s", bundle->path, checks[i].text);
	}
	if (result == 0)
		result = check_owner(bundle, err);
	if (result == 0)
		result = check_ids(bundle, err);
	if (result == 0)
		result = check_shared(bundle, err);
	return result == 0 ? store_bundle_each_blob(bundle, NULL, err) : result;
}
