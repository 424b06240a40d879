/* store_suite.c - see store_suite.h. */
#include "store_suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "store_bundle_file.h"

#define BUSY_MS 10000

static const struct store_bundle_kind kind = {
	"PRAGMA application_id = 0x53505355;" STORE_BUNDLE_TABLES "CREATE TABLE suite_case ("
	"execution TEXT PRIMARY KEY,"
	"name TEXT NOT NULL,"
	"tags TEXT NOT NULL,"      /* JSON */
	"compare TEXT NOT NULL,"   /* what of the outcome counts: replay --compare */
	"normalise TEXT NOT NULL," /* what does not: replay --normalise */
	"promoted_us INTEGER NOT NULL) STRICT;",
	"a suite of sallyport promote", 0x53505355 /* "SPSU" */, 4, NULL, {STORE_BUNDLE_CALL_TEXTS}};

static const struct {
	const char *sql, *text;
} checks[] = {
	{"SELECT count(*) FROM suite_case WHERE execution NOT IN (SELECT id FROM execution)", "a case has no run"},
	{"SELECT count(*) FROM suite_case WHERE length(name) NOT BETWEEN 1 AND 256 OR length(tags) > 65536 OR NOT "
	 "json_valid(tags) OR json_type(tags) <> 'array' OR length(compare) > 1024 OR length(normalise) > 1024",
	 "a case is not as it must be"},
};

bool store_suite_is(const char *path)
{
	static const char magic[] = "SQLite format 3"; /* and its NUL */
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char start[sizeof(magic)];

	return fd >= 0 && read(fd, start, sizeof(start)) == sizeof(start) && memcmp(start, magic, sizeof(magic)) == 0;
}

static int check(struct store_bundle *suite, struct err *err)
{
	int result = store_bundle_check(suite, err);

	for (size_t i = 0; result == 0 && i < ARRAY_SIZE(checks); i++) {
		int64_t count = 0;

		result = store_bundle_number(suite, checks[i].sql, &count, err);
		if (result == 0 && count > 0)
			result = err_set(err, ERR_INVALID, "%s: %s", suite->path, checks[i].text);
	}
	return result;
}

/* Inside a transaction: a file without anything in it becomes a suite. */
static int make(struct store_bundle *suite, struct err *err)
{
	int64_t objects = 0;
	int result = store_bundle_number(suite, "SELECT count(*) FROM sqlite_schema", &objects, err);

	if (result < 0 || objects > 0)
		return result;
	suite->version = kind.version;
	return sqlite3_exec(suite->db, kind.schema, NULL, NULL, NULL) == SQLITE_OK &&
			       store_bundle_make_later(suite, suite->db) == SQLITE_OK
		       ? 0
		       : store_bundle_failed(suite, err);
}

/* Of an older version: it gets the tables that it lacks. */
static int upgrade(struct store_bundle *suite, struct err *err)
{
	if (suite->version == kind.version)
		return 0;
	suite->version = kind.version;
	return store_bundle_make_later(suite, suite->db) == SQLITE_OK ? 0 : store_bundle_failed(suite, err);
}

static int open_file(const char *path, int flags, struct store_bundle **ret, struct err *err)
{
	struct store_bundle *suite = xcalloc(1, sizeof(*suite));

	suite->kind = &kind;
	suite->path = xstrdup(path);
	*ret = suite;
	if (sqlite3_open_v2(path, &suite->db, flags, NULL) != SQLITE_OK)
		return store_bundle_failed(suite, err);
	sqlite3_busy_timeout(suite->db, BUSY_MS);
	store_bundle_guard(suite);
	return 0;
}

static int give(struct store_bundle *suite, int result, struct store_bundle **ret)
{
	if (result < 0)
		store_bundle_close(suite);
	else
		*ret = suite;
	return MIN(result, 0);
}

int store_suite_open(const char *path, struct store_bundle **ret, struct err *err)
{
	struct store_bundle *suite = NULL;
	int result = open_file(path, SQLITE_OPEN_READONLY, &suite, err);

	return give(suite, result < 0 ? result : check(suite, err), ret);
}

int store_suite_change(const char *path, struct store_bundle **ret, struct err *err)
{
	/* it has what people sent, in clear */
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct store_bundle *suite = NULL;
	int result = open_file(path, SQLITE_OPEN_READWRITE, &suite, err);

	if (fd >= 0) {
		close(fd);
		suite->part = xstrdup(path);
	}
	if (result == 0 && sqlite3_exec(suite->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
		result = sqlite3_errcode(suite->db) == SQLITE_BUSY
				 ? err_set(err, ERR_BUSY, "%s: another process is changing it", path)
				 : store_bundle_failed(suite, err);
	if (result == 0)
		result = make(suite, err);
	if (result == 0)
		result = check(suite, err);
	return give(suite, result < 0 ? result : upgrade(suite, err), ret);
}

static int has_case(struct store_bundle *suite, const char *id, struct err *err)
{
	auto_statement sqlite3_stmt *statement = NULL;
	int result = store_bundle_prepare(suite, "SELECT 1 FROM suite_case WHERE execution = ?1", &statement, err);

	if (result < 0)
		return result;
	sqlite3_bind_text(statement, 1, id, -1, SQLITE_STATIC);
	return sqlite3_step(statement) == SQLITE_ROW;
}

int store_suite_add(struct store_bundle *suite, struct store *store, const struct store_suite_case *one,
		    struct err *err)
{
	const char *const values[] = {one->id, one->name, one->tags, one->compare, one->normalise};
	auto_statement sqlite3_stmt *statement = NULL;
	int there = has_case(suite, one->id, err);
	int result = there < 0 ? there : store_bundle_add(suite, store, one->id, err);

	if (result == 0)
		result = store_bundle_prepare(
			suite,
			"INSERT INTO suite_case VALUES (?1, coalesce(?2, ?1), coalesce(?3, '[]'), "
			"coalesce(?4, 'default'), coalesce(?5, 'default'), ?6) ON CONFLICT DO UPDATE SET "
			"name = coalesce(?2, name), tags = coalesce(?3, tags), compare = coalesce(?4, compare), "
			"normalise = coalesce(?5, normalise)",
			&statement, err);
	if (result < 0)
		return result;
	for (int i = 0; i < (int)ARRAY_SIZE(values); i++)
		sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, (int)ARRAY_SIZE(values) + 1, clock_now_us());
	return sqlite3_step(statement) == SQLITE_DONE ? !there : store_bundle_failed(suite, err);
}

int store_suite_finish(struct store_bundle *suite, struct store *store, struct err *err)
{
	int result = store_bundle_add_blobs(suite, store, err);

	if (result == 0 && sqlite3_exec(suite->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		result = store_bundle_failed(suite, err);
	if (result == 0)
		free(steal(&suite->part));
	return result;
}

int store_suite_cases(struct store_bundle *suite, int (*each)(void *arg, const struct store_suite_case *one), void *arg,
		      struct err *err)
{
	auto_statement sqlite3_stmt *row = NULL;
	int result = store_bundle_prepare(
		suite, "SELECT execution, name, tags, compare, normalise FROM suite_case ORDER BY name, execution",
		&row, err);
	int step = SQLITE_DONE;

	while (result == 0 && (step = sqlite3_step(row)) == SQLITE_ROW) {
		const char *texts[5];

		for (int i = 0; i < (int)ARRAY_SIZE(texts); i++)
			texts[i] = (const char *)sqlite3_column_text(row, i);
		const struct store_suite_case one = {texts[0], texts[1], texts[2], texts[3], texts[4]};

		result = each(arg, &one);
	}
	return result == 0 && step != SQLITE_DONE ? store_bundle_failed(suite, err) : result;
}
