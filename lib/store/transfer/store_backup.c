/*
 * store_backup.c - see store_backup.h.
 *
 * The database is copied by SQLite's backup API inside a read transaction: the copy is of the moment in which that
 * began, and writers neither wait for it nor make it start again. Contents never change, so they are copied after it,
 * by what the copy names; meanwhile a shared lock on blobs/lock keeps the garbage collector from removing one.
 * Everything is synced before the new database takes the place of the old one.
 */
#include "store_backup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "lib/store/blob/store_pack.h"
#include "lib/store/db/store_query.h"
#include "lib/store/db/store_txn.h"

#define PART       "sallyport.db.part"
#define LOCK       "lock"
#define PAGES_STEP 2048
#define CHUNK      (256 * 1024)

/* -------- the database -------------------------------------------------------------------------------- */

static void database_close(sqlite3 **db)
{
	sqlite3_close(*db);
}
#define auto_database __attribute__((cleanup(database_close)))

static void scan_end(sqlite3_stmt **scan)
{
	sqlite3_finalize(*scan);
}
#define auto_scan __attribute__((cleanup(scan_end)))

static int failed_at(sqlite3 *db, const char *path, struct err *err)
{
	const int code = sqlite3_errcode(db) & 0xff;

	return err_set(err, code == SQLITE_CORRUPT || code == SQLITE_NOTADB ? ERR_CORRUPT : ERR_SYSTEM, "%s: %s", path,
		       store_sqlite_said(db));
}

static int copy_pages(sqlite3 *from, sqlite3 *to, const char *path, const struct store_backup *backup, struct err *err)
{
	sqlite3_backup *pages = sqlite3_backup_init(to, "main", from, "main");
	int result = SQLITE_OK;

	while (pages != NULL && result == SQLITE_OK) {
		result = sqlite3_backup_step(pages, PAGES_STEP);
		const int total = sqlite3_backup_pagecount(pages);

		backup->progress(backup->arg, "pages", total - sqlite3_backup_remaining(pages), total);
	}
	if (pages != NULL)
		sqlite3_backup_finish(pages);
	return result == SQLITE_DONE ? 0 : failed_at(to, path, err);
}

/* A new file of the database as it is now. */
static int copy_database(struct store *store, const char *path, const struct store_backup *backup, struct err *err)
{
	auto_free char *from_path = xasprintf("%s/" STORE_BACKUP_DATABASE, store->path);
	auto_database sqlite3 *from = NULL, *to = NULL;

	if (unlink(path) < 0 && errno != ENOENT)
		return err_errno(err, "removing %s", path);
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_errno(err, "making %s", path);
	if (sqlite3_open_v2(from_path, &from, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_busy_timeout(from, STORE_BUSY_MS) != SQLITE_OK ||
	    sqlite3_exec(from, "BEGIN; SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) != SQLITE_OK)
		return failed_at(from, from_path, err);
	if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		return failed_at(to, path, err);
	int result = copy_pages(from, to, path, backup, err);

	/* so that a copy on a read-only disk can be read */
	if (result == 0 && sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK)
		result = failed_at(to, path, err);
	if (result == 0 && fsync(fd) < 0)
		result = err_errno(err, "syncing %s", path);
	return result;
}

int store_backup_inspect(const char *path, struct store_backup_made *ret, struct err *err)
{
	static const char sql[] =
		"SELECT user_version, (SELECT count(*) FROM execution), (SELECT count(*) FROM audit), (SELECT "
		"count(*) FROM blob), (SELECT coalesce(sum(size), 0) FROM blob), (SELECT count(*) FROM "
		"pragma_foreign_key_check), (SELECT group_concat(quick_check) FROM pragma_quick_check) FROM "
		"pragma_user_version";
	enum { SCHEMA, EXECUTIONS, ENTRIES, BLOBS, BYTES, DANGLING, CHECK };
	auto_database sqlite3 *db = NULL;
	auto_scan sqlite3_stmt *scan = NULL;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, sql, -1, &scan, NULL) != SQLITE_OK || sqlite3_step(scan) != SQLITE_ROW)
		return failed_at(db, path, err);
	const char *said = (const char *)sqlite3_column_text(scan, CHECK);

	if (said == NULL || !streq(said, "ok"))
		return err_set(err, ERR_CORRUPT, "%s is damaged: %.200s", path, said != NULL ? said : "");
	if (sqlite3_column_int64(scan, DANGLING) > 0)
		return err_set(err, ERR_CORRUPT, "%s has %lld rows that name others which are missing", path,
			       (long long)sqlite3_column_int64(scan, DANGLING));
	ret->schema = sqlite3_column_int64(scan, SCHEMA);
	ret->executions = sqlite3_column_int64(scan, EXECUTIONS);
	ret->entries = sqlite3_column_int64(scan, ENTRIES);
	ret->blobs = sqlite3_column_int64(scan, BLOBS);
	ret->bytes = sqlite3_column_int64(scan, BYTES);
	return 0;
}

/* -------- contents ------------------------------------------------------------------------------------ */

/* All of `from` into `to` (-1: only read), hashed. */
static int copy_file(int from, int to, char ret[SHA256_HEX_SIZE])
{
	auto_free char *chunk = xmalloc(CHUNK);
	struct sha256 *sum = sha256_new();
	ssize_t got;
	int result = 0;

	while ((got = read(from, chunk, CHUNK)) > 0 && result == 0) {
		sha256_add(sum, chunk, (size_t)got);
		result = to < 0 ? 0 : write_all(to, chunk, (size_t)got);
	}
	int saved = errno;

	sha256_finish(sum, ret);
	errno = saved;
	return got < 0 || result < 0 ? -1 : 0;
}

int store_backup_sum(int dir, const char *name, char ret[SHA256_HEX_SIZE], struct err *err)
{
	auto_close int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 || copy_file(fd, -1, ret) < 0 ? err_errno(err, "reading %s", name) : 0;
}

/* The SHA-256 of a content in a folder of contents. */
static int content_sum(int folder, const char *sha256, char ret[SHA256_HEX_SIZE])
{
	auto_close int fd = -1;
	int64_t size;

	return store_content_open(folder, sha256, &fd, &size, NULL) < 0 ? -1 : copy_file(fd, -1, ret);
}

/* The file of a content as it is, and its name; -1. */
static int open_file(int folder, const char *sha256, char ret_path[STORE_PACKED_PATH_SIZE])
{
	store_blob_path(sha256, ret_path);
	int fd = openat(folder, ret_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	store_packed_path(sha256, ret_path);
	return openat(folder, ret_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* `copied`: the sum of the file that was copied, which is the content's where that is not packed. */
static bool is_right(const struct store_backup_blobs *blobs, const char *sha256, const char *copied)
{
	char sum[SHA256_HEX_SIZE];

	return streq(copied, sha256) || (content_sum(blobs->from_fd, sha256, sum) == 0 && streq(sum, sha256));
}

/* As it is; under its name only where its sum is right. */
static int copy_blob(const struct store_backup_blobs *blobs, const char *sha256, struct err *err)
{
	static const char part[] = "tmp-backup"; /* the folder is locked: nobody else writes here */
	char path[STORE_PACKED_PATH_SIZE], plain[SHA256_HEX_SIZE + 1], sum[SHA256_HEX_SIZE];
	char folder[3] = {sha256[0], sha256[1], '\0'};
	auto_close int from = open_file(blobs->from_fd, sha256, path);
	int result = 0;

	if (from < 0)
		return err_set(err, ERR_CORRUPT, "the content %s, which the database names, cannot be read: %s", sha256,
			       strerror(errno));
	if (mkdirat(blobs->to_fd, folder, 0750) < 0 && errno != EEXIST)
		return err_errno(err, "making the folder blobs/%s", folder);
	if (unlinkat(blobs->to_fd, part, 0) < 0 && errno != ENOENT)
		return err_errno(err, "removing blobs/%s", part);
	auto_close int to = openat(blobs->to_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);

	if (to < 0 || copy_file(from, to, sum) < 0)
		result = err_errno(err, "copying the content %s", sha256);
	else if (!is_right(blobs, sha256, sum))
		result = err_set(err, ERR_CORRUPT, "the content %s is damaged: its sum is another one", sha256);
	else if (fchmod(to, 0640) < 0 || renameat(blobs->to_fd, part, blobs->to_fd, path) < 0)
		result = err_errno(err, "keeping the content %s", sha256);
	if (result < 0)
		unlinkat(blobs->to_fd, part, 0);
	store_blob_path(sha256, plain);
	if (result == 0 && !streq(path, plain))
		unlinkat(blobs->to_fd, plain, 0); /* a damaged one: it would be the one that is read */
	return result;
}

static int need_blob(struct store_backup_blobs *blobs, const char *sha256, int64_t size, struct err *err)
{
	char sum[SHA256_HEX_SIZE];
	struct stat st;
	bool there;

	if (strlen(sha256) != SHA256_HEX_SIZE - 1 || strspn(sha256, "0123456789abcdef") != SHA256_HEX_SIZE - 1)
		return err_set(err, ERR_CORRUPT, "the database names a content '%.80s'", sha256);
	there = store_content_stat(blobs->to_fd, sha256, &st) == 0 && st.st_size == size;
	if (there && blobs->full)
		there = content_sum(blobs->to_fd, sha256, sum) == 0 && streq(sum, sha256);
	if (there)
		return 0;
	blobs->made->new_blobs++;
	blobs->made->new_bytes += size;
	return copy_blob(blobs, sha256, err);
}

int store_backup_copy_blobs(const char *database, struct store_backup_blobs *blobs, struct err *err)
{
	auto_database sqlite3 *db = NULL;
	auto_scan sqlite3_stmt *scan = NULL;
	int result = 0, step = SQLITE_DONE;

	if (sqlite3_open_v2(database, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "SELECT sha256, size FROM blob ORDER BY sha256", -1, &scan, NULL) != SQLITE_OK)
		return failed_at(db, database, err);
	while (result == 0 && (step = sqlite3_step(scan)) == SQLITE_ROW) {
		const char *sha256 = (const char *)sqlite3_column_text(scan, 0);
		const int64_t size = sqlite3_column_int64(scan, 1);

		result = need_blob(blobs, sha256 != NULL ? sha256 : "", size, err);
		blobs->done += size;
		blobs->progress(blobs->arg, "contents", blobs->done, blobs->total);
	}
	if (result == 0 && step != SQLITE_DONE)
		return failed_at(db, database, err);
	return result;
}

/* -------- the folder ---------------------------------------------------------------------------------- */

struct target {
	int dir_fd, blobs_fd, lock_fd, held_fd;
	char *path;
};

static void target_clear(struct target *target)
{
	close_pointer(&target->dir_fd);
	close_pointer(&target->blobs_fd);
	close_pointer(&target->lock_fd);
	close_pointer(&target->held_fd);
	free(target->path);
}
#define auto_target __attribute__((cleanup(target_clear)))

static bool is_below(const char *path, const char *folder)
{
	const size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static int open_target(struct store *store, const char *dir, struct target *ret, struct err *err)
{
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return err_errno(err, "making %s", dir);
	ret->path = realpath(dir, NULL);
	ret->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->dir_fd < 0 || ret->path == NULL)
		return err_errno(err, "opening %s", dir);
	if (is_below(ret->path, store->path) || is_below(store->path, ret->path))
		return err_set(err, ERR_INVALID, "a backup of %s cannot be in %s: name a folder apart from it",
			       store->path, ret->path);
	if (mkdirat(ret->dir_fd, "blobs", 0750) < 0 && errno != EEXIST)
		return err_errno(err, "making %s/blobs", ret->path);
	ret->blobs_fd = openat(ret->dir_fd, "blobs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	ret->lock_fd = openat(ret->dir_fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (ret->blobs_fd < 0 || ret->lock_fd < 0)
		return err_errno(err, "opening %s/blobs", ret->path);
	if (flock(ret->lock_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_BUSY, "another backup writes to %s", ret->path);
	/* while it is held the garbage collector removes no content */
	ret->held_fd = openat(store->blobs_fd, LOCK, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
	if (ret->held_fd < 0 || store_give(store, ret->held_fd) < 0 || flock(ret->held_fd, LOCK_SH) < 0)
		return err_errno(err, "locking %s/blobs", store->path);
	return 0;
}

static int write_manifest(const struct target *target, const struct store_backup_made *made, struct err *err)
{
	static const char part[] = STORE_BACKUP_MANIFEST ".part";
	auto_json struct json_object *object = json_object_new_object();
	auto_buf struct buf text = {0};
	char sum[SHA256_HEX_SIZE], now[CLOCK_TEXT_SIZE];
	int result = store_backup_sum(target->dir_fd, PART, sum, err);

	if (result < 0)
		return result;
	clock_text(clock_now_us(), now);
	json_add_string(object, "made", now);
	json_add_string(object, "version", SALLYPORT_VERSION);
	json_add_int(object, "schema", made->schema);
	json_add_string(object, "database", sum);
	json_add_int(object, "executions", made->executions);
	json_add_int(object, "entries", made->entries);
	json_add_int(object, "blobs", made->blobs);
	json_add_int(object, "bytes", made->bytes);
	buf_init(&text, 4096);
	json_print_pretty(&text, object);
	buf_putc(&text, '\n');
	auto_close int fd = openat(target->dir_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write_all(fd, text.data, text.length) < 0 || fsync(fd) < 0)
		return err_errno(err, "writing %s/%s", target->path, part);
	return 0;
}

static int copy_key(struct store *store, const struct target *target, struct err *err)
{
	static const char part[] = "secret.key.part"; /* an earlier backup's key stays whole */
	auto_close int fd = openat(target->dir_fd, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, 0600) < 0 ||
	    write_all(fd, store->secret, sizeof(store->secret)) < 0 || fsync(fd) < 0 ||
	    renameat(target->dir_fd, part, target->dir_fd, "secret.key") < 0)
		return err_errno(err, "writing %s/secret.key", target->path);
	return 0;
}

/* The new moment takes the place of the old one. A manifest that does not fit its database yet has its successor as a
 * part next to it; the first rename is on disk before the second, because a power cut may leave either without the
 * other. */
static int put_in_place(const struct target *target, struct err *err)
{
	if (syncfs(target->dir_fd) < 0 || renameat(target->dir_fd, PART, target->dir_fd, STORE_BACKUP_DATABASE) < 0 ||
	    fsync(target->dir_fd) < 0 ||
	    renameat(target->dir_fd, STORE_BACKUP_MANIFEST ".part", target->dir_fd, STORE_BACKUP_MANIFEST) < 0 ||
	    fsync(target->dir_fd) < 0)
		return err_errno(err, "keeping the backup in %s", target->path);
	return 0;
}

/* Contents that the new database does not name, and what a killed backup left. */
static int prune_folder(const struct target *target, const char *name, sqlite3_stmt *known, struct err *err)
{
	int fd = openat(target->blobs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (dir == NULL) {
		close_pointer(&fd);
		return 0; /* no such folder */
	}
	while (result == 0 && (entry = readdir(dir)) != NULL) {
		if (strcspn(entry->d_name, ".") != SHA256_HEX_SIZE - 3)
			continue;
		auto_free char *sha256 = xasprintf("%s%.*s", name, SHA256_HEX_SIZE - 3, entry->d_name);

		sqlite3_reset(known);
		sqlite3_bind_text(known, 1, sha256, -1, SQLITE_TRANSIENT);
		if (sqlite3_step(known) == SQLITE_DONE && unlinkat(fd, entry->d_name, 0) < 0)
			result = err_errno(err, "removing the content %s", sha256);
	}
	closedir(dir);
	return result;
}

static int prune(const struct target *target, struct err *err)
{
	auto_free char *path = xasprintf("%s/" STORE_BACKUP_DATABASE, target->path);
	auto_database sqlite3 *db = NULL;
	auto_scan sqlite3_stmt *known = NULL;
	int result = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "SELECT 1 FROM blob WHERE sha256 = ?1", -1, &known, NULL) != SQLITE_OK)
		return failed_at(db, path, err);
	for (int i = 0; result == 0 && i < 256; i++) {
		char name[3];

		snprintf(name, sizeof(name), "%02x", (unsigned)i & 0xff);
		result = prune_folder(target, name, known, err);
	}
	return result;
}

static int make(struct store *store, const struct store_backup *backup, const struct target *target,
		struct store_backup_made *ret, struct err *err)
{
	auto_free char *part = xasprintf("%s/" PART, target->path);
	struct store_backup_blobs blobs = {.from_fd = store->blobs_fd,
					   .to_fd = target->blobs_fd,
					   .full = backup->full,
					   .progress = backup->progress,
					   .arg = backup->arg,
					   .made = ret};
	int result = copy_database(store, part, backup, err);

	if (result == 0)
		result = store_backup_inspect(part, ret, err);
	blobs.total = ret->bytes;
	if (result == 0)
		result = store_backup_copy_blobs(part, &blobs, err);
	if (result == 0 && backup->check != NULL)
		result = backup->check(backup->arg, part, err);
	if (result == 0 && backup->key)
		result = copy_key(store, target, err);
	if (result == 0)
		result = write_manifest(target, ret, err);
	if (result == 0)
		result = put_in_place(target, err);
	if (result < 0)
		unlink(part);
	return result < 0 ? result : prune(target, err);
}

int store_backup(struct store *store, const struct store_backup *backup, struct store_backup_made *ret, struct err *err)
{
	auto_target struct target target = {-1, -1, -1, -1, NULL};
	struct store_audit entry;
	int result = open_target(store, backup->dir, &target, err);

	*ret = (struct store_backup_made){0};
	if (result == 0)
		result = make(store, backup, &target, ret, err);
	if (result < 0)
		return result;
	store_audit_init(&entry, STORE_AUDIT_BACKUP, "log", "audit");
	store_audit_int(&entry, "entries", ret->entries);
	store_audit_int(&entry, "executions", ret->executions);
	store_audit_int(&entry, "blobs", ret->blobs);
	return store_audit_add(store, &entry, err);
}
