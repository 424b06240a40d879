/*
 * store_audit_check.c - rows, files and contents against the audit log: the scans of store_audit_read.h.
 *
 * Rows that were there before the log began have no entries. Its first entry says how many; a row that is older than it
 * belongs to them, and more rows than it counted are a finding. Conversations are found by a hash of their address,
 * which SQL cannot compute, so the hashes of those that are there are kept in memory, sorted.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/blob/store_pack.h"
#include "lib/store/db/store_txn.h"
#include "store_audit_row.h"
#include "store_audit_scan.h"

#define OPENED STORE_AUDIT_BEGAN

struct check {
	struct store_audit_reader *reader;
	store_audit_finding finding;
	void *arg;
	int64_t checked;
	struct err *err;
};

static int report(struct check *check, int64_t n, const char *before, const char *id, const char *behind)
{
	char text[256];

	snprintf(text, sizeof(text), "%s%.120s%s", before, id, behind);
	return check->finding(check->arg, n, text);
}

/* Each statement gives ids (and entries) that do not fit. Those that look something up for each run or entry are
 * applied only where reading has shown that something is amiss (store_audit_rows_odd), or that content was erased. */
enum when { ALWAYS, WHEN_ODD, WHEN_ERASED };
static const struct {
	enum when when;
	const char *sql, *before, *behind; /* the id is between the two */
} rules[] = {
	{WHEN_ODD,
	 "SELECT id, -1 FROM execution WHERE created_us >= " OPENED
	 " AND NOT EXISTS (SELECT 1 FROM audit WHERE object = "
	 "'execution:' || id AND kind = 'run.begin')",
	 "execution ", " is in no entry: its row was inserted past the log"},
	{WHEN_ODD,
	 "SELECT id, -1 FROM execution WHERE state <> 'running' AND finished_us >= " OPENED " AND NOT EXISTS (SELECT 1 "
	 "FROM audit WHERE object = 'execution:' || id AND kind = 'run.end')",
	 "no entry says that execution ", " ended"},
	{ALWAYS,
	 "SELECT id, -1 FROM token WHERE created_us >= " OPENED " AND NOT EXISTS (SELECT 1 FROM audit WHERE object = "
	 "'token:' || id AND kind = 'token.add')",
	 "token ", " is in no entry: its row was inserted past the log"},
	{ALWAYS,
	 "SELECT id, -1 FROM token WHERE (revoked_us >= " OPENED
	 " OR (revoked_us IS NOT NULL AND EXISTS (SELECT 1 FROM "
	 "audit WHERE object = 'token:' || id AND kind = 'token.add'))) AND NOT EXISTS (SELECT 1 FROM audit WHERE "
	 "object = 'token:' || id AND kind = 'token.revoke')",
	 "no entry says that token ", " was revoked"},
	{ALWAYS,
	 "SELECT substr(object, 7), n FROM audit WHERE object >= 'token:' AND object < 'token;' AND kind = "
	 "'token.revoke' AND NOT EXISTS (SELECT 1 FROM token WHERE id = substr(object, 7) AND revoked_us IS NOT NULL)",
	 "token ", " was revoked, and its row does not say so"},
	{ALWAYS,
	 "SELECT object, max(n) FROM audit WHERE object >= 'token:' AND object < 'token;' AND kind IN ('token.add', "
	 "'token.revoke') GROUP BY object, kind HAVING count(*) > 1",
	 "", " has an entry twice"},
	{WHEN_ODD,
	 "SELECT object, max(n) FROM audit WHERE kind IN ('run.begin', 'run.end') GROUP BY object, kind HAVING "
	 "count(*) > 1",
	 "", " has an entry twice"},
	{ALWAYS,
	 "SELECT id, -1 FROM conversation WHERE bytes <> (SELECT coalesce(sum(size), 0) FROM file WHERE conversation = "
	 "id)",
	 "the bytes of conversation ", " are not those of its files"},
	{ALWAYS,
	 "SELECT execution.id, -1 FROM execution JOIN conversation ON conversation.id = execution.conversation WHERE "
	 "conversation.owner <> execution.owner OR conversation.name <> conversation_name",
	 "execution ", " names another conversation than its row"},
	{WHEN_ODD,
	 "SELECT execution, -1 FROM tool_call WHERE EXISTS (SELECT 1 FROM audit WHERE object = 'execution:' || "
	 "execution) "
	 "GROUP BY execution HAVING count(*) > (SELECT count(*) FROM audit WHERE object = 'execution:' || execution "
	 "AND "
	 "kind = 'call')",
	 "execution ", " has more calls of tools than entries say"},
	{ALWAYS,
	 "SELECT conversation, -1 FROM file WHERE NOT EXISTS (SELECT 1 FROM conversation WHERE id = file.conversation)",
	 "files of conversation ", " have no conversation"},
	{WHEN_ODD,
	 "SELECT DISTINCT execution, -1 FROM execution_file WHERE NOT EXISTS (SELECT 1 FROM execution WHERE id = "
	 "execution_file.execution)",
	 "files of execution ", " have no run"},
	{ALWAYS,
	 "SELECT id, -1 FROM execution WHERE erased IS NOT NULL AND NOT EXISTS (SELECT 1 FROM audit WHERE object = "
	 "'execution:' || id AND kind = 'content.erase')",
	 "the content of execution ", " is said to be erased, and no entry says by whom"},
	{WHEN_ERASED,
	 "SELECT substr(object, 11), max(n) FROM audit WHERE kind = 'content.erase' AND object >= 'execution:' AND "
	 "object < 'execution;' AND EXISTS (SELECT 1 FROM execution WHERE id = substr(object, 11) AND erased IS NULL) "
	 "GROUP BY object",
	 "the content of execution ", " was erased, and its row does not say so"},
	/* An imported run is older, too, and so is the token of an owner who moved in; both have entries. */
	{ALWAYS,
	 "SELECT 'audit', -1 WHERE (SELECT count(*) FROM execution WHERE created_us < " OPENED
	 " AND NOT EXISTS (SELECT 1 FROM audit WHERE object = 'execution:' || execution.id)) > coalesce((SELECT entry "
	 "->> '$.f.executions' FROM audit WHERE n = 0 AND json_valid(entry)), 0)",
	 "there are more executions from before the ", " log than it found when it began"},
	{ALWAYS,
	 "SELECT 'audit', -1 WHERE (SELECT count(*) FROM token WHERE created_us < " OPENED
	 " AND NOT EXISTS (SELECT 1 FROM audit WHERE object = 'token:' || token.id AND kind = 'token.add')) > coalesce((SELECT entry ->> "
	 "'$.f.tokens' FROM audit WHERE n = 0 AND json_valid(entry)), 0)",
	 "there are more tokens from before the ", " log than it found when it began"},
	{WHEN_ODD,
	 "SELECT n, n FROM audit_detail WHERE NOT EXISTS (SELECT 1 FROM audit WHERE audit.n = audit_detail.n)",
	 "there are details of entry ", ", which does not exist"},
};

/* -------- conversations ------------------------------------------------------------------------------- */

struct places {
	char (*items)[SHA256_HEX_SIZE];
	size_t count;
};

static void places_clear(struct places *places)
{
	free(places->items);
}
#define auto_places __attribute__((cleanup(places_clear)))

static int compare_places(const void *a, const void *b)
{
	return memcmp(a, b, SHA256_HEX_SIZE);
}

/* Does an entry about the object have these details? Its own place among the object's entries is left to the tree. */
static int has_details(struct check *check, const struct store_audit *entry)
{
	auto_query struct query q = query_begin(check->reader->conn, SQL_AUDIT_HAS_DETAIL);

	query_bind_text(&q, ":object", entry->object);
	query_bind_text(&q, ":detail", entry->details.data);
	return query_next(&q, check->err);
}

/* Is this conversation from before the log, so that entries say nothing of its row, and not of each file? */
static int is_older(struct check *check, const char *object)
{
	int made = store_audit_has(check->reader, object, "conversation.new", -1, check->err);

	return made < 0 ? made : !made;
}

static int check_conversation(struct check *check, struct query *row, int64_t opened, struct places *places)
{
	struct store_audit entry;
	int there = 0;

	store_audit_from_conversation(row, &entry);
	store_audit_close_details(&entry.details);
	memcpy(places->items[places->count++], strchr(entry.object, ':') + 1, SHA256_HEX_SIZE);
	if (query_int(row, AUDIT_CONVERSATION_CREATED) < opened)
		there = is_older(check, entry.object);
	if (there == 0)
		there = has_details(check, &entry);
	store_audit_clear(&entry);
	if (there == 0)
		there = report(check, -1, "conversation ", query_text(row, AUDIT_CONVERSATION_ID),
			       " is in no entry, or was altered");
	return MIN(there, 0);
}

/* Those that entries say were made, and that are neither there nor said to be gone. */
static int check_gone(struct check *check, const struct places *places)
{
	auto_scan sqlite3_stmt *scan = NULL;
	int result =
		store_audit_scan(check->reader,
				 "SELECT object, n FROM audit AS made WHERE object >= 'conversation:' AND object < "
				 "'conversation;' AND kind = 'conversation.new' AND NOT EXISTS "
				 "(SELECT 1 FROM audit WHERE object = made.object AND n > made.n AND kind IN "
				 "('conversation.expire', 'content.erase'))",
				 &scan, check->err);

	while (result == 0 && (result = store_audit_scan_next(check->reader, scan, check->err)) > 0) {
		char place[SHA256_HEX_SIZE] = "";

		result = 0;
		snprintf(place, sizeof(place), "%s", store_audit_scan_text(scan, 0) + strlen("conversation:"));
		if (bsearch(place, places->items, places->count, sizeof(*places->items), compare_places) == NULL)
			result = report(check, sqlite3_column_int64(scan, 1), "the row of conversation:", place,
					" is gone");
	}
	return result;
}

static int check_conversations(struct check *check)
{
	auto_places struct places places = {0};
	int64_t count = 0, opened = 0;
	int result = store_audit_scan_number(check->reader, "SELECT count(*) FROM conversation", &count, check->err),
	    found;

	if (result == 0)
		result = store_audit_scan_number(check->reader, "SELECT " OPENED, &opened, check->err);
	if (result < 0)
		return result;
	places.items = xcalloc((size_t)count + 1, sizeof(*places.items));
	auto_query struct query row = query_begin(check->reader->conn, SQL_AUDIT_CONVERSATIONS);

	while (result == 0 && (found = query_next(&row, check->err)) != 0)
		result = found < 0 ? found : check_conversation(check, &row, opened, &places);
	qsort(places.items, places.count, sizeof(*places.items), compare_places);
	return result < 0 ? result : check_gone(check, &places);
}

int store_audit_check_rows(struct store_audit_reader *reader, store_audit_finding finding, void *arg,
			   int64_t *ret_checked, struct err *err)
{
	struct check check = {.reader = reader, .finding = finding, .arg = arg, .err = err};
	const bool odd = store_audit_rows_odd(reader) || reader->lone_details;
	int result = store_audit_scan_number(
		reader,
		"SELECT (SELECT count(*) FROM execution) + (SELECT count(*) FROM token) + (SELECT count(*) FROM "
		"conversation)",
		&check.checked, err);

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(rules); i++) {
		auto_scan sqlite3_stmt *scan = NULL;

		if (!odd && (rules[i].when == WHEN_ODD || (rules[i].when == WHEN_ERASED && !reader->erasures)))
			continue;
		result = store_audit_scan(reader, rules[i].sql, &scan, err);
		while (result == 0 && (result = store_audit_scan_next(reader, scan, err)) > 0)
			result = report(&check, sqlite3_column_int64(scan, 1), rules[i].before,
					store_audit_scan_text(scan, 0), rules[i].behind);
	}
	if (result == 0)
		result = check_conversations(&check);
	*ret_checked = check.checked;
	return result;
}

/* -------- files --------------------------------------------------------------------------------------- */

static int check_file(struct check *check, struct query *row)
{
	struct store_audit entry;
	char name[128];
	auto_query struct query left = query_begin(check->reader->conn, SQL_AUDIT_FILE_LEFT); /* by a run */

	query_bind_int(&left, ":conversation", query_int(row, AUDIT_FILE_CONVERSATION));
	query_bind_value(&left, ":name", sqlite3_column_value(row->statement, AUDIT_FILE_NAME));
	int there = query_next(&left, check->err);

	if (there == 0) {
		store_audit_from_file(row, &entry);
		store_audit_close_details(&entry.details);
		there = has_details(check, &entry);
		if (there == 0)
			there = is_older(check, entry.object);
		store_audit_clear(&entry);
	}
	if (there != 0)
		return MIN(there, 0);
	snprintf(name, sizeof(name), "%.60s of conversation %lld", query_text(row, AUDIT_FILE_NAME),
		 (long long)query_int(row, AUDIT_FILE_CONVERSATION));
	return report(check, -1, "the file ", name, " is not as it was put, nor as a run left it");
}

int store_audit_check_files(struct store_audit_reader *reader, store_audit_finding finding, void *arg,
			    int64_t *ret_checked, struct err *err)
{
	struct check check = {.reader = reader, .finding = finding, .arg = arg, .err = err};
	auto_query struct query row = query_begin(reader->conn, SQL_AUDIT_CONVERSATION_FILES);
	int result = 0, found;

	while (result == 0 && (found = query_next(&row, err)) != 0) {
		result = found < 0 ? found : check_file(&check, &row);
		check.checked++;
	}
	*ret_checked = check.checked;
	return result;
}

/* -------- contents ------------------------------------------------------------------------------------ */

#define CHUNK (256 * 1024)

/* The SHA-256 of the rest of a file; -1: it cannot be read. */
static int sum_file(int fd, int64_t *ret_size, char ret[SHA256_HEX_SIZE])
{
	auto_free char *chunk = xmalloc(CHUNK);
	struct sha256 *sum = sha256_new();
	ssize_t got = -1;

	*ret_size = 0;
	while ((got = read(fd, chunk, CHUNK)) > 0) {
		sha256_add(sum, chunk, (size_t)got);
		*ret_size += got;
	}
	sha256_finish(sum, ret);
	return got < 0 ? -1 : 0;
}

static int check_blob(struct check *check, int folder, const char *sha256, int64_t size)
{
	auto_close int fd = -1;
	char sum[SHA256_HEX_SIZE];
	int64_t is = 0;

	if (strlen(sha256) != SHA256_HEX_SIZE - 1)
		return report(check, -1, "", sha256, " is not the name of a content");
	int opened = store_content_open(folder, sha256, &fd, &is, NULL);

	if (opened == -ERR_CORRUPT)
		return report(check, -1, "the content ", sha256, " was altered");
	if (opened < 0 || sum_file(fd, &is, sum) < 0)
		return report(check, -1, "the content ", sha256, " is missing");
	if (!streq(sum, sha256))
		return report(check, -1, "the content ", sha256, " was altered");
	return is == size ? 0 : report(check, -1, "the size of content ", sha256, " is not the one of its row");
}

/* Those without a row: nothing else would look at their files. */
static int check_named(struct check *check)
{
	auto_scan sqlite3_stmt *scan = NULL;
	int result = store_audit_scan(check->reader,
				      "SELECT name FROM " STORE_SQL_NAMED
				      " WHERE name IS NOT NULL EXCEPT SELECT sha256 FROM blob",
				      &scan, check->err);

	while (result == 0 && (result = store_audit_scan_next(check->reader, scan, check->err)) > 0)
		result = report(check, -1, "the row of content ", store_audit_scan_text(scan, 0), " is gone");
	return result;
}

int store_audit_check_blobs(struct store_audit_reader *reader, const struct store_audit_blobs *blobs,
			    store_audit_finding finding, int64_t *ret_checked, struct err *err)
{
	struct check check = {.reader = reader, .finding = finding, .arg = blobs->arg, .err = err};
	auto_scan sqlite3_stmt *scan = NULL;
	auto_close int folder = open(blobs->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* -1: all are missing */
	int64_t total = 0, done = 0;
	int result = store_audit_scan_number(reader, "SELECT coalesce(sum(size), 0) FROM blob", &total, err);

	if (result == 0)
		result = store_audit_scan(reader, "SELECT sha256, size FROM blob ORDER BY sha256", &scan, err);
	while (result == 0 && (result = store_audit_scan_next(reader, scan, err)) > 0) {
		const int64_t size = sqlite3_column_int64(scan, 1);

		result = check_blob(&check, folder, store_audit_scan_text(scan, 0), size);
		done += size;
		check.checked++;
		if (result == 0)
			result = blobs->progress(blobs->arg, done, total);
	}
	if (result == 0)
		result = check_named(&check);
	*ret_checked = check.checked;
	return result;
}
