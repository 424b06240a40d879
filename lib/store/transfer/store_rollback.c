/*
 * store_rollback.c - see store_backup.h.
 *
 * The database leaves WAL mode first: SQLite does so only where nobody else has it open, and takes sallyport.db-wal and
 * -shm into the database, so that the copy never meets the log of another database. Then the copy takes its place in
 * one rename; before that the database has a second name, so that at every moment there is one and nothing is lost.
 */
#include "store_backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/util.h"

#define DATABASE     "sallyport.db"
#define GATEWAY_LOCK "gateway.lock"
#define COPY_PREFIX  DATABASE ".version-"

static void database_close(sqlite3 **db)
{
	sqlite3_close(*db);
}
#define auto_database __attribute__((cleanup(database_close)))

static int one_number(sqlite3 *db, const char *sql, int64_t *ret)
{
	sqlite3_stmt *statement = NULL;
	bool found =
		sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW;

	if (found)
		*ret = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return found ? 0 : -1;
}

/* The lock of a gateway, until the descriptor is closed. -1 in *ret: no gateway was ever here. */
static int lock_gateway(int dir, const char *data_dir, int *ret, struct err *err)
{
	auto_close int fd = openat(dir, GATEWAY_LOCK, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT)
		return err_errno(err, "opening %s/" GATEWAY_LOCK, data_dir);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_CONFLICT,
			       "a gateway serves %s: stop it first (systemctl stop sallyport-gateway.socket "
			       "sallyport-gateway)",
			       data_dir);
	*ret = steal_fd(&fd);
	return 0;
}

/* Of the database in its place; alone with it, and out of WAL mode. */
static int settle(const char *path, struct store_rollback *back, struct err *err)
{
	auto_database sqlite3 *db = NULL;
	int64_t version = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
	    one_number(db, "PRAGMA user_version", &version) < 0 ||
	    one_number(db, "SELECT count(*) FROM execution", &back->lost) < 0)
		return err_set(err, ERR_CORRUPT, "%s: %s", path, sqlite3_errmsg(db));
	if (sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
		return err_set(err, ERR_CONFLICT,
			       "%s is open in another process: end it first (sallyport run, log --follow, stdio …)",
			       path);
	back->from = (int)version;
	return 0;
}

/* The newest copy of a version below `from`: sallyport.db.version-17.20261123T101500Z. */
static int find_copy(int dir, const char *data_dir, struct store_rollback *back, struct err *err)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	char newest[STORE_ROLLBACK_NAME_SIZE] = "";
	struct dirent *entry;

	if (entries == NULL) {
		close_pointer(&fd);
		return err_errno(err, "reading %s", data_dir);
	}
	while ((entry = readdir(entries)) != NULL) {
		const char *name = entry->d_name;
		char at[20];
		int version, end = 0;

		if (sscanf(name, COPY_PREFIX "%d.%16[0-9TZ]%n", &version, at, &end) != 2 || name[end] != '\0' ||
		    version < 0 || version >= back->from || strcmp(at, newest) <= 0)
			continue;
		snprintf(newest, sizeof(newest), "%s", at);
		snprintf(back->copy, sizeof(back->copy), COPY_PREFIX "%d.%s", version, at);
		back->to = version;
	}
	closedir(entries);
	return *newest ? 0
		       : err_set(err, ERR_NOT_FOUND,
				 "%s has no copy of an older version than %d (" COPY_PREFIX
				 "…): no upgrade made one, or it "
				 "was removed; sallyport restore takes a backup",
				 data_dir, back->from);
}

static int check_copy(const char *path, struct store_rollback *back, struct err *err)
{
	auto_database sqlite3 *db = NULL;
	int64_t good = 0, version = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    one_number(db, "SELECT quick_check = 'ok' FROM pragma_quick_check", &good) < 0 || !good ||
	    one_number(db, "PRAGMA user_version", &version) < 0 || version != back->to ||
	    one_number(db, "SELECT count(*) FROM execution", &back->executions) < 0)
		return err_set(err, ERR_CORRUPT, "the copy %s is damaged: sallyport restore takes a backup", path);
	back->lost -= back->executions;
	return 0;
}

static int put_back(int dir, const char *data_dir, struct store_rollback *back, struct err *err)
{
	time_t now = time(NULL);
	char at[32];
	struct tm utc;

	strftime(at, sizeof(at), "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
	snprintf(back->set_aside, sizeof(back->set_aside), DATABASE ".undone-%d.%s", back->from, at);
	if (linkat(dir, DATABASE, dir, back->set_aside, 0) < 0 || fsync(dir) < 0)
		return err_errno(err, "keeping %s/" DATABASE " as %s", data_dir, back->set_aside);
	if (renameat(dir, back->copy, dir, DATABASE) < 0) {
		err_errno(err, "putting %s/%s in the place of " DATABASE, data_dir, back->copy);
		unlinkat(dir, back->set_aside, 0);
		return -ERR_SYSTEM;
	}
	return fsync(dir) < 0 ? err_errno(err, "syncing %s", data_dir) : 0;
}

int store_rollback(const char *data_dir, struct store_rollback *ret, struct err *err)
{
	struct store_rollback back = {0};
	auto_free char *database = xasprintf("%s/" DATABASE, data_dir);
	auto_free char *copy = NULL;
	auto_close int dir = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lock = -1;

	if (dir < 0)
		return err_errno(err, "opening %s", data_dir);
	int result = lock_gateway(dir, data_dir, &lock, err);

	if (result == 0)
		result = settle(database, &back, err);
	if (result == 0)
		result = find_copy(dir, data_dir, &back, err);
	if (result < 0)
		return result;
	copy = xasprintf("%s/%s", data_dir, back.copy);
	result = check_copy(copy, &back, err);
	if (result == 0)
		result = put_back(dir, data_dir, &back, err);
	if (result == 0)
		*ret = back;
	return result;
}
