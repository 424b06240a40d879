/*
 * store_results.c - see store_results.h.
 *
 * One connection under a lock: a result is a row, written when a program has run, so nobody waits for it. The
 * write-ahead log makes it survive the process without a sync.
 */
#include "store_results.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

#define APPLICATION_ID 0x53505245 /* "SPRE" */
#define VERSION        2
#define BUSY_MS        10000

/* Of what the run put out; NULL: not compared, or too long to be normalised. */
#define SUMS                                                                                                           \
	"stdout TEXT, stdout_normalised TEXT, "                                                                        \
	"stderr TEXT, stderr_normalised TEXT"

static const char schema[] = "BEGIN IMMEDIATE;"
			     "PRAGMA application_id = 0x53505245;"
			     "PRAGMA user_version = 2;"
			     "CREATE TABLE result ("
			     "execution TEXT NOT NULL CHECK (length(execution) = 36),"
			     "key TEXT NOT NULL CHECK (length(key) = 64)," /* what else the result depends on */
			     "class TEXT NOT NULL,"
			     "recorded TEXT NOT NULL,"
			     "now TEXT NOT NULL,"
			     "report TEXT NOT NULL CHECK (substr(report, 1, 1) = '{')," SUMS ","
			     "PRIMARY KEY (execution, key)) STRICT, WITHOUT ROWID;"
			     "CREATE TABLE shard (" /* whose results these are: the last row counts */
			     "id INTEGER PRIMARY KEY,"
			     "key TEXT NOT NULL,"
			     "number INTEGER NOT NULL,"
			     "count INTEGER NOT NULL CHECK (number BETWEEN 1 AND count)) STRICT;"
			     "COMMIT";

enum sql { PUT, GET, SHARD_PUT, SHARD_GET, STATEMENTS };
static const char *const texts[STATEMENTS] = {
	[PUT] = "INSERT OR REPLACE INTO result (execution, key, class, recorded, now, report, stdout, "
		"stdout_normalised, stderr, stderr_normalised) VALUES (?1, ?2, ?3, ?4, ?5, ?6, nullif(?7, ''), "
		"nullif(?8, ''), nullif(?9, ''), nullif(?10, ''))",
	[GET] = "SELECT class, recorded, now, report FROM result WHERE execution = ?1 AND key = ?2",
	[SHARD_PUT] = "INSERT INTO shard (key, number, count) VALUES (?1, ?2, ?3)",
	[SHARD_GET] = "SELECT key, number, count FROM shard ORDER BY id DESC LIMIT 1",
};

struct store_results {
	char *path;
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENTS];
	pthread_mutex_t lock;
	int64_t lost; /* results that could not be put */
	struct err why;
};

static int failed(struct store_results *results, struct err *err)
{
	const int cause = sqlite3_errcode(results->db);
	enum err_code code = cause == SQLITE_NOTADB    ? ERR_INVALID
			     : cause == SQLITE_CORRUPT ? ERR_CORRUPT
						       : ERR_SYSTEM;

	return err_set(err, code, "%s: %s", results->path, sqlite3_errmsg(results->db));
}

static int number(struct store_results *results, const char *sql, int64_t *ret, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	int result = sqlite3_prepare_v2(results->db, sql, -1, &statement, NULL);

	if (result == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
		*ret = sqlite3_column_int64(statement, 0);
	else
		result = SQLITE_ERROR;
	sqlite3_finalize(statement);
	return result == SQLITE_OK ? 0 : failed(results, err);
}

static int check(struct store_results *results, struct err *err)
{
	int64_t application = 0, version = 0, objects = 0;
	int result;

	if ((result = number(results, "PRAGMA application_id", &application, err)) < 0 ||
	    (result = number(results, "PRAGMA user_version", &version, err)) < 0 ||
	    (result = number(results, "SELECT count(*) FROM sqlite_schema", &objects, err)) < 0)
		return result;
	if (application == 0 && version == 0 && objects == 0)
		return sqlite3_exec(results->db, schema, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(results, err);
	if (application != APPLICATION_ID)
		return err_set(err, ERR_INVALID, "%s has no results of a replay: it is left alone", results->path);
	return version == VERSION ? 0
				  : err_set(err, ERR_UNAVAILABLE,
					    "%s is of version %lld, this program knows %d: name another file",
					    results->path, (long long)version, VERSION);
}

/* What root makes in somebody's folder is that one's. */
static void give(const char *path)
{
	auto_free char *folder = xstrdup(path);
	char *slash = strrchr(folder, '/');
	struct stat st;

	if (slash)
		slash[slash == folder] = '\0';
	if (geteuid() == 0 && stat(slash ? folder : ".", &st) == 0 && st.st_uid != 0 &&
	    lchown(path, st.st_uid, st.st_gid) < 0)
		return; /* the owner cannot go on with it, and gets that error then */
}

static int configure(struct store_results *results, struct err *err)
{
	sqlite3_busy_timeout(results->db, BUSY_MS);
	sqlite3_db_config(results->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(results->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(results->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(results->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	/* A small cache: a result is written once, and read at most once. */
	if (sqlite3_exec(results->db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; PRAGMA cache_size = -256",
			 NULL, NULL, NULL) != SQLITE_OK)
		return failed(results, err);
	int result = check(results, err);

	for (int i = 0; result == 0 && i < STATEMENTS; i++)
		if (sqlite3_prepare_v3(results->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &results->statements[i],
				       NULL) != SQLITE_OK)
			result = failed(results, err);
	return result;
}

int store_results_open(const char *path, bool make, struct store_results **ret, struct err *err)
{
	struct store_results *results = xcalloc(1, sizeof(*results));
	bool there = access(path, F_OK) == 0;
	int result;

	pthread_mutex_init(&results->lock, NULL);
	results->path = xstrdup(path);
	if (sqlite3_open_v2(path, &results->db, SQLITE_OPEN_READWRITE | (make ? SQLITE_OPEN_CREATE : 0), NULL) ==
	    SQLITE_OK)
		result = configure(results, err);
	else
		result = failed(results, err);
	if (result < 0) {
		store_results_close(results);
		return result;
	}
	if (!there)
		give(path);
	*ret = results;
	return 0;
}

void store_results_close(struct store_results *results)
{
	if (!results)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(results->statements[i]);
	sqlite3_close(results->db);
	pthread_mutex_destroy(&results->lock);
	free(results->path);
	free(results);
}

static sqlite3_stmt *begin(struct store_results *results, enum sql which, const char *const *values, int count)
{
	sqlite3_stmt *statement = results->statements[which];

	pthread_mutex_lock(&results->lock);
	for (int i = 0; i < count; i++)
		sqlite3_bind_text(statement, i + 1, values[i], -1, SQLITE_STATIC);
	return statement;
}

/* Ends what begin began; `step` is what the last step said. */
static int end(struct store_results *results, sqlite3_stmt *statement, int step, struct err *err)
{
	int result = step == SQLITE_DONE ? 0 : step == SQLITE_ROW ? 1 : failed(results, err);

	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	pthread_mutex_unlock(&results->lock);
	return result;
}

int store_results_put(struct store_results *results, const char *execution, const char *key,
		      const struct store_result *result, struct err *err)
{
	const char *const values[] = {execution,
				      key,
				      result->class,
				      result->recorded,
				      result->now,
				      result->report,
				      result->output.raw,
				      result->output.normalised,
				      result->errors.raw,
				      result->errors.normalised};
	struct err failure = ERR_INIT;
	sqlite3_stmt *statement = begin(results, PUT, values, ARRAY_SIZE(values));
	int done = end(results, statement, sqlite3_step(statement), &failure);

	if (done < 0) {
		pthread_mutex_lock(&results->lock);
		if (results->lost++ == 0)
			results->why = failure;
		pthread_mutex_unlock(&results->lock);
		if (err)
			*err = failure;
	}
	return done;
}

int64_t store_results_lost(struct store_results *results, struct err *ret_why)
{
	pthread_mutex_lock(&results->lock);
	int64_t lost = results->lost;
	if (lost > 0)
		*ret_why = results->why;
	pthread_mutex_unlock(&results->lock);
	return lost;
}

static void copy(sqlite3_stmt *statement, int column, char *ret, size_t size)
{
	snprintf(ret, size, "%s", (const char *)sqlite3_column_text(statement, column));
}

int store_results_get(struct store_results *results, const char *execution, const char *key, struct store_result *ret,
		      struct err *err)
{
	const char *const values[] = {execution, key};
	sqlite3_stmt *statement = begin(results, GET, values, ARRAY_SIZE(values));
	int step = sqlite3_step(statement);

	if (step == SQLITE_ROW) {
		copy(statement, 0, ret->class, sizeof(ret->class));
		copy(statement, 1, ret->recorded, sizeof(ret->recorded));
		copy(statement, 2, ret->now, sizeof(ret->now));
		ret->report = xstrdup((const char *)sqlite3_column_text(statement, 3));
	}
	return end(results, statement, step, err);
}

int store_results_shard(struct store_results *results, const struct store_shard *shard, struct err *err)
{
	const char *const values[] = {shard->key};
	sqlite3_stmt *statement = begin(results, SHARD_PUT, values, ARRAY_SIZE(values));

	sqlite3_bind_int(statement, 2, shard->number);
	sqlite3_bind_int(statement, 3, shard->count);
	return end(results, statement, sqlite3_step(statement), err);
}

int store_results_shard_read(struct store_results *results, struct store_shard *ret, struct err *err)
{
	sqlite3_stmt *statement = begin(results, SHARD_GET, NULL, 0);
	int step = sqlite3_step(statement);

	if (step == SQLITE_ROW) {
		copy(statement, 0, ret->key, sizeof(ret->key));
		ret->number = sqlite3_column_int(statement, 1);
		ret->count = sqlite3_column_int(statement, 2);
	}
	return end(results, statement, step, err);
}
