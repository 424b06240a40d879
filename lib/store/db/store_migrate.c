/*
 * store_migrate.c - see store_migrate.h.
 *
 * The order: take the right to write (BEGIN IMMEDIATE; another process that wants to migrate waits here), look at the
 * version again, check the room, copy by SQLite's backup API over a connection of its own (it reads what was committed
 * before; nobody can write meanwhile), sync the copy, run the steps, commit, name the copy. A copy without its name is
 * that of an upgrade which did not end: the next attempt makes it anew. Where the upgrade was killed behind the commit,
 * the next start gives the copy its name.
 *
 * The steps are for tables and indexes. Triggers and views hold nothing: they go before the first step, and come as
 * schema.sql has them behind the last.
 *
 * Room: the copy is as large as the database, and a step that touches every row writes as much to the log once more.
 */
#include "store_migrate.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define PART     "sallyport.db.copy-part"
#define MEGABYTE (1024 * 1024)
#define SPARE    (4 * MEGABYTE) /* beyond twice the database */
#define VERSION_OFFSET 60 /* of user_version in the header of SQLite's file format, big-endian */

static int exec(struct store_conn *conn, const char *sql, struct err *err)
{
	int result = sqlite3_exec(conn->db, sql, NULL, NULL, NULL);

	return result == SQLITE_OK ? 0 : store_conn_error(conn, result, err);
}

static int64_t pragma(struct store_conn *conn, const char *sql)
{
	sqlite3_stmt *statement;
	int64_t value = -1;

	if (sqlite3_prepare_v2(conn->db, sql, -1, &statement, NULL) == SQLITE_OK &&
	    sqlite3_step(statement) == SQLITE_ROW)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

static int check_room(struct store *store, struct store_conn *conn, struct err *err)
{
	int64_t size = pragma(conn, "PRAGMA page_count") * pragma(conn, "PRAGMA page_size");
	int64_t wanted = 2 * size + SPARE;
	struct statvfs space;

	if (fstatvfs(store->dir_fd, &space) < 0)
		return err_errno(err, "asking for the space in %s", store->path);
	int64_t room = (int64_t)space.f_bavail * (int64_t)space.f_frsize;

	if (room >= wanted)
		return 0;
	return err_set(
		err, ERR_SYSTEM,
		"%.0f MiB must be free in %s for a copy and the changes, and %.0f MiB are: make room on that disk, "
		"outside of this folder, and start again",
		(double)wanted / MEGABYTE, store->path, (double)room / MEGABYTE);
}

/* All pages of the database into the file at `path`, which is there and empty. */
static int copy_pages(struct store_conn *conn, const char *path, struct err *err)
{
	sqlite3 *to = NULL, *from = NULL;
	int result = sqlite3_open_v2(sqlite3_db_filename(conn->db, "main"), &from, SQLITE_OPEN_READONLY, NULL);

	if (result == SQLITE_OK)
		result = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL);
	sqlite3_backup *backup = result == SQLITE_OK ? sqlite3_backup_init(to, "main", from, "main") : NULL;

	if (backup != NULL) {
		result = sqlite3_backup_step(backup, -1);
		if (result == SQLITE_DONE)
			result = SQLITE_OK;
		int finished = sqlite3_backup_finish(backup);

		result = result == SQLITE_OK ? finished : result;
	} else if (result == SQLITE_OK) {
		result = sqlite3_errcode(to);
	}
	if (result != SQLITE_OK)
		err_set(err, ERR_SYSTEM, "copying the database to %s: %s", path,
			to != NULL ? store_sqlite_said(to) : sqlite3_errstr(result));
	sqlite3_close(to);
	sqlite3_close(from);
	return result == SQLITE_OK ? 0 : -ERR_SYSTEM;
}

/* On disk under the name PART when it returns. */
static int make_copy(struct store *store, struct store_conn *conn, struct err *err)
{
	auto_free char *path = xasprintf("%s/%s", store->path, PART);

	if (unlinkat(store->dir_fd, PART, 0) < 0 && errno != ENOENT)
		return err_errno(err, "removing %s", path);
	auto_close int fd = openat(store->dir_fd, PART, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || store_give(store, fd) < 0)
		return err_errno(err, "making %s", path);
	int result = copy_pages(conn, path, err);

	return result == 0 && (fsync(fd) < 0 || fsync(store->dir_fd) < 0)
		       ? err_errno(err, "keeping the copy %s", path)
		       : result;
}

/* Behind the commit: the copy gets its name, by the version in the header of its database. */
static int name_copy(struct store *store, struct err *err)
{
	auto_close int fd = openat(store->dir_fd, PART, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const time_t now = time(NULL);
	uint32_t version;
	char at[32], name[80];
	struct tm utc;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(err, "opening %s/" PART, store->path);
	if (pread(fd, &version, sizeof(version), VERSION_OFFSET) != sizeof(version)) {
		unlinkat(store->dir_fd, PART, 0); /* not of an upgrade: not even a header */
		return 0;
	}
	strftime(at, sizeof(at), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
	snprintf(name, sizeof(name), "sallyport.db.version-%u.%s", (unsigned)be32toh(version), at);
	if (renameat(store->dir_fd, PART, store->dir_fd, name) < 0 || fsync(store->dir_fd) < 0)
		return err_errno(err, "naming the copy %s/" PART, store->path);
	log_event(LOG_WARN, "database upgraded", "copy", name, NULL);
	return 0;
}

/* Runs the texts that the query finds in `from` on `conn`. */
static int exec_each(struct store_conn *conn, sqlite3 *from, const char *query, struct err *err)
{
	sqlite3_stmt *statement = NULL;
	int result = sqlite3_prepare_v2(from, query, -1, &statement, NULL), failed = 0;
	auto_buf struct buf texts;

	buf_init(&texts, SIZE_MAX);
	while (result == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
		buf_printf(&texts, "%s;", (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement); /* before the schema changes that it reads */
	if (result != SQLITE_OK)
		failed = err_set(err, ERR_INTERNAL, "looking at the schema: %s", sqlite3_errmsg(from));
	else if (texts.length > 0)
		failed = exec(conn, texts.data, err);
	return failed;
}

static int drop_derived(struct store_conn *conn, struct err *err)
{
	return exec_each(conn, conn->db,
			 "SELECT 'DROP ' || type || ' ' || name FROM sqlite_schema WHERE type IN ('trigger', 'view')",
			 err);
}

static int make_derived(struct store_conn *conn, struct err *err)
{
	sqlite3 *fresh = NULL;
	int failed = drop_derived(conn, err); /* steps may make some, too */

	if (failed < 0)
		return failed;
	if (sqlite3_open(":memory:", &fresh) != SQLITE_OK ||
	    sqlite3_exec(fresh, store_schema, NULL, NULL, NULL) != SQLITE_OK)
		failed = err_set(err, ERR_INTERNAL, "schema.sql: %s", sqlite3_errmsg(fresh));
	else
		failed = exec_each(conn, fresh, "SELECT sql FROM sqlite_schema WHERE type IN ('trigger', 'view')", err);
	sqlite3_close(fresh);
	return failed;
}

/* The step that comes next for the database; without statements: it needs none. */
static int next_step(struct store_conn *conn, const struct store_step *steps, const struct store_step **ret,
		     struct err *err)
{
	const int version = (int)pragma(conn, "PRAGMA user_version");

	while (steps->statements != NULL && steps->from != version)
		steps++;
	*ret = steps;
	return steps->from == version ? 0 : store_schema_refuse(version, err);
}

/* Inside the transaction. */
static int run_steps(struct store *store, struct store_conn *conn, const struct store_step *steps, struct err *err)
{
	const struct store_step *step;
	int result = next_step(conn, steps, &step, err);

	if (result < 0 || step->statements == NULL)
		return result; /* another process was faster */
	const int version = step->from;

	result = check_room(store, conn, err);
	if (result == 0)
		result = make_copy(store, conn, err);
	if (result == 0)
		result = drop_derived(conn, err);
	for (; result == 0 && step->statements != NULL; step++) {
		auto_free char *text = xasprintf("%s; PRAGMA user_version = %d", step->statements, step->from + 1);

		result = exec(conn, text, err);
	}
	if (result == 0)
		result = make_derived(conn, err);
	if (result < 0)
		unlinkat(store->dir_fd, PART, 0);
	return result < 0 ? err_wrap(err, "upgrading the database from version %d, which is left as it was", version)
			  : 0;
}

int store_migrate(struct store *store, struct store_conn *conn, const struct store_step *steps, struct err *err)
{
	struct err ignored = ERR_INIT;
	const struct store_step *step;
	int result = next_step(conn, steps, &step, err);

	if (result == 0 && step->statements == NULL)
		return name_copy(store, err);
	if (result == 0)
		result = exec(conn, "BEGIN IMMEDIATE", err);
	if (result < 0)
		return result;
	result = run_steps(store, conn, steps, err);
	if (result == 0)
		result = exec(conn, "COMMIT", err);
	if (result < 0)
		exec(conn, "ROLLBACK", &ignored);
	return result < 0 ? result : name_copy(store, err);
}
