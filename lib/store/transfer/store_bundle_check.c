/*
 * store_bundle_check.c - is a bundle of somebody else what it says?
 *
 * The schema is compared before any statement touches a table; then every row and the hash of every content is checked.
 * store_bundle_import.c takes it in after that.
 */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "store_bundle_file.h"

#define BUNDLE_CALL_MAX "16777216" /* bytes of arguments, a result, a list of tools */

/* What must not be there; each is a count, and a sentence. */
struct none {
	const char *sql, *text;
};
static const struct none checks[] = {
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
	{"SELECT count(*) FROM tool_call WHERE execution NOT IN (SELECT id FROM execution) OR typeof(seq) <> 'integer' "
	 "OR NOT json_valid(arguments) OR length(CAST(arguments AS BLOB)) > " BUNDLE_CALL_MAX
	 " OR length(CAST(result AS BLOB)) > " BUNDLE_CALL_MAX " OR length(server) > 256 OR length(tool) > 4096",
	 "a call of a tool is not as it must be"},
	{"SELECT count(*) FROM execution_server WHERE execution NOT IN (SELECT id FROM execution) OR list NOT IN "
	 "(SELECT hash FROM tool_list) OR length(name) > 256 OR length(alias) > 256 OR length(description) > 65536",
	 "a server of a run is not as it must be"},
	{"SELECT count(*) FROM baseline_call AS c WHERE NOT EXISTS (SELECT 1 FROM baseline AS b WHERE b.execution = "
	 "c.execution AND b.generation = c.generation) OR typeof(seq) <> 'integer' OR NOT json_valid(arguments) OR "
	 "length(CAST(arguments AS BLOB)) > " BUNDLE_CALL_MAX " OR length(CAST(result AS BLOB)) > " BUNDLE_CALL_MAX
	 " OR length(server) > 256 OR length(tool) > 4096",
	 "a call of a generation is not as it must be"},
	{"SELECT count(*) FROM baseline_server AS s WHERE NOT EXISTS (SELECT 1 FROM baseline AS b WHERE b.execution = "
	 "s.execution AND b.generation = s.generation) OR list NOT IN (SELECT hash FROM tool_list) OR length(name) > "
	 "256 OR length(alias) > 256 OR length(description) > 65536",
	 "a server of a generation is not as it must be"},
	{"SELECT count(*) FROM tool_list WHERE NOT json_valid(definitions) OR length(CAST(definitions AS BLOB)) > "
	 BUNDLE_CALL_MAX,
	 "a list of tools is not as it must be"},
	{"SELECT count(*) FROM runtime WHERE NOT json_valid(description) OR length(CAST(description AS BLOB)) > "
	 "1048576",
	 "what a run ran on is not as it must be"},
	{"SELECT count(*) FROM execution WHERE runtime IS NOT NULL AND runtime NOT IN (SELECT hash FROM runtime)",
	 "what a run ran on is missing"},
	{"SELECT count(*) FROM execution WHERE sandbox IS NOT NULL AND sandbox NOT IN (SELECT id FROM sandbox)",
	 "a sandbox is missing"},
	{"SELECT count(*) FROM " STORE_BUNDLE_BLOBS " WHERE name IS NOT NULL AND name NOT IN (SELECT sha256 FROM blob)",
	 "a content is missing"},
};

/* Of the texts of calls that are contents. */
static const struct none texts[] = {
	{"SELECT count(*) FROM " STORE_BUNDLE_CALL_BLOBS " WHERE name IS NOT NULL AND name NOT IN (SELECT sha256 FROM "
	 "blob)",
	 "a content is missing"},
	{"SELECT count(*) FROM call_text AS t WHERE NOT EXISTS (SELECT 1 FROM tool_call AS c WHERE t.generation = 1 "
	 "AND c.execution = t.execution AND c.seq = t.seq AND (arguments_blob IS NULL OR arguments = 'null') AND "
	 "(result_blob IS NULL OR result = '')) AND NOT EXISTS (SELECT 1 FROM baseline_call AS c WHERE c.execution = "
	 "t.execution AND c.generation = t.generation AND c.seq = t.seq AND (arguments_blob IS NULL OR arguments = "
	 "'null') AND (result_blob IS NULL OR result = ''))",
	 "a text belongs to no call of a tool"},
	{"SELECT count(*) FROM call_text JOIN blob ON sha256 IN (arguments_blob, result_blob) WHERE length(data) > "
	 BUNDLE_CALL_MAX " OR instr(data, x'00') > 0 OR (sha256 = arguments_blob AND NOT json_valid(CAST(data AS "
	 "TEXT)))",
	 "a text of a call of a tool is not as it must be"},
};

int store_bundle_number(struct store_bundle *bundle, const char *sql, int64_t *ret, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, sql, &statement, err);

	if (result < 0)
		return result;
	if (sqlite3_step(statement) != SQLITE_ROW)
		return store_bundle_failed(bundle, err);
	*ret = sqlite3_column_int64(statement, 0);
	return 0;
}

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

static int check_schema(struct store_bundle *bundle, struct err *err)
{
	sqlite3 *ours = NULL;
	bool same = sqlite3_open_v2(":memory:", &ours, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
		    sqlite3_exec(ours, bundle->kind->schema, NULL, NULL, NULL) == SQLITE_OK &&
		    store_bundle_make_later(bundle, ours) == SQLITE_OK;
	auto_free char *wanted = schema_text(ours), *is = schema_text(bundle->db);

	sqlite3_close(ours);
	return same && streq(wanted, is) ? 0
					 : err_set(err, ERR_INVALID, "%s: its tables are not those of %s", bundle->path,
						   bundle->kind->what);
}

static int check_identity(struct store_bundle *bundle, struct err *err)
{
	int64_t application = 0, version = 0;
	int result = store_bundle_number(bundle, "PRAGMA application_id", &application, err);

	if (result == 0)
		result = store_bundle_number(bundle, "PRAGMA user_version", &version, err);
	if (result < 0)
		return result;
	if (application != bundle->kind->application_id)
		return err_set(err, ERR_INVALID, "%s is not %s", bundle->path, bundle->kind->what);
	bundle->version = (int)version;
	if (version < store_bundle_oldest(bundle->kind))
		return err_set(err, ERR_UNAVAILABLE, "%s is of version %lld, this program knows %d: write it anew",
			       bundle->path, (long long)version, bundle->kind->version);
	if (version > bundle->kind->version)
		return err_set(err, ERR_UNAVAILABLE,
			       "%s is of version %lld, this program knows %d: install a newer release", bundle->path,
			       (long long)version, bundle->kind->version);
	return check_schema(bundle, err);
}

static int check_ids(struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, "SELECT id FROM execution UNION ALL SELECT id FROM sandbox",
					  &statement, err);

	while (result == 0 && sqlite3_step(statement) == SQLITE_ROW) {
		const char *id = (const char *)sqlite3_column_text(statement, 0);

		if (!id || !id_valid(id))
			result = err_set(err, ERR_INVALID, "%s: an id is not as it must be", bundle->path);
	}
	return result;
}

/* Texts that are stored once, under their sum: another text under a name would stand for that one from then on. */
static int check_sums(struct store_bundle *bundle, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(
		bundle, "SELECT hash, definitions FROM tool_list UNION ALL SELECT hash, description FROM runtime",
		&statement, err);

	while (result == 0 && sqlite3_step(statement) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		const char *text = (const char *)sqlite3_column_text(statement, 1);
		char hash[SHA256_HEX_SIZE] = "";

		if (text)
			sha256_hex(text, (size_t)sqlite3_column_bytes(statement, 1), hash);
		if (!name || !streq(name, hash))
			result = err_set(err, ERR_CORRUPT, "%s: a text does not have its hash: it was changed",
					 bundle->path);
	}
	return result;
}

int store_bundle_each_blob(struct store_bundle *bundle, struct store *store, int64_t *ret_bytes, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(bundle, "SELECT sha256, data FROM blob", &statement, err), step = SQLITE_DONE;

	while (result == 0 && (step = sqlite3_step(statement)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);
		const void *data = sqlite3_column_blob(statement, 1);
		size_t length = (size_t)sqlite3_column_bytes(statement, 1);
		char hash[SHA256_HEX_SIZE];

		sha256_hex(data ? data : "", length, hash);
		*ret_bytes += (int64_t)length;
		if (!name || !streq(name, hash))
			result = err_set(err, ERR_CORRUPT, "%s: a content does not have its hash: it was changed",
					 bundle->path);
		else if (store)
			result = store_blob_put(store, data, length, hash, err);
	}
	return result == 0 && step != SQLITE_DONE ? store_bundle_failed(bundle, err) : result;
}

/* The count that the query gives is 0. */
static int check_none(struct store_bundle *bundle, const char *sql, const char *text, struct err *err)
{
	int64_t count = 0;
	int result = store_bundle_number(bundle, sql, &count, err);

	return result == 0 && count > 0 ? err_set(err, ERR_INVALID, "%s: %s", bundle->path, text) : result;
}

int store_bundle_check(struct store_bundle *bundle, struct err *err)
{
	int64_t bytes = 0;
	int result = check_identity(bundle, err);
	const bool with_texts = result == 0 && store_bundle_has(bundle, STORE_BUNDLE_CALL_TEXTS);

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(checks); i++)
		result = check_none(bundle, checks[i].sql, checks[i].text, err);
	for (size_t i = 0; result == 0 && with_texts && i < ARRAY_SIZE(texts); i++)
		result = check_none(bundle, texts[i].sql, texts[i].text, err);
	if (result == 0 && store_bundle_has(bundle, STORE_BUNDLE_TAGS))
		result = check_none(bundle,
				    "SELECT count(*) FROM execution_tag WHERE execution NOT IN (SELECT id FROM "
				    "execution) OR typeof(tag) <> 'text' OR length(tag) NOT BETWEEN 1 AND 64 OR "
				    "tag GLOB '*[^A-Za-z0-9._:/-]*' OR instr(CAST(tag AS BLOB), x'00') > 0",
				    "a tag is not as it must be", err);
	if (result == 0)
		result = check_ids(bundle, err);
	if (result == 0)
		result = check_sums(bundle, err);
	return result == 0 ? store_bundle_each_blob(bundle, NULL, &bytes, err) : result;
}
