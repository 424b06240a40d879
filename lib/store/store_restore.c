/*
 * store_restore.c - from a backup to a data folder; see store_backup.h.
 *
 * A lock on the folder keeps a second restore away. A file `restoring`, which names the backup's database, marks the
 * folder until the end: a gateway finds no database next to contents and refuses to start, and the next attempt goes on
 * with what is there. The database comes last, under its name only after it was compared with the manifest, and its
 * contents with their names. A restore that was killed behind that has its entry in the log and its mark to do; a
 * gateway that starts takes the mark away.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/store/db/store_schema.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/transfer/store_backup.h"

#define MARK         STORE_RESTORE_MARK
#define PART         "sallyport.db.part"
#define MANIFEST_MAX (64 * 1024)

struct folders {
	int from_fd, to_fd, from_blobs_fd, to_blobs_fd;
	uid_t uid;
	gid_t gid;
};

static void folders_clear(struct folders *folders)
{
	close_pointer(&folders->from_fd);
	close_pointer(&folders->to_fd);
	close_pointer(&folders->from_blobs_fd);
	close_pointer(&folders->to_blobs_fd);
}
#define auto_folders __attribute__((cleanup(folders_clear)))

/* 0: there is nothing in it, or what a restore left that did not end. */
static int check_empty(const struct folders *folders, const char *path, struct err *err)
{
	int fd = openat(folders->to_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool empty = true, marked = faccessat(folders->to_fd, MARK, F_OK, 0) == 0;

	if (dir == NULL) {
		close_pointer(&fd);
		return err_errno(err, "reading %s", path);
	}
	while ((entry = readdir(dir)) != NULL)
		empty = empty && (streq(entry->d_name, ".") || streq(entry->d_name, ".."));
	closedir(dir);
	return empty || marked ? 0
			       : err_set(err, ERR_CONFLICT,
					 "%s is not empty: move what is there away, nothing is overwritten", path);
}

static int open_folders(const struct store_restore *restore, struct folders *ret, struct err *err)
{
	struct stat st;

	ret->from_fd = open(restore->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->from_fd < 0)
		return err_errno(err, "opening the backup %s", restore->dir);
	ret->from_blobs_fd = openat(ret->from_fd, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->from_blobs_fd < 0)
		return err_errno(err, "%s is not a backup: opening its folder blobs", restore->dir);
	if (mkdir(restore->data_dir, 0750) < 0 && errno != EEXIST)
		return err_errno(err, "making %s", restore->data_dir);
	ret->to_fd = open(restore->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->to_fd < 0 || fstat(ret->to_fd, &st) < 0)
		return err_errno(err, "opening %s", restore->data_dir);
	ret->uid = st.st_uid;
	ret->gid = st.st_gid;
	if (flock(ret->to_fd, LOCK_EX | LOCK_NB) < 0)
		return err_set(err, ERR_BUSY, "another restore writes to %s: wait until it has ended",
			       restore->data_dir);
	return check_empty(ret, restore->data_dir, err);
}

/* What root makes belongs to the owner of the folder, as everywhere. */
static int give(const struct folders *folders, int fd)
{
	return geteuid() != 0 || folders->uid == 0 ? 0 : fchown(fd, folders->uid, folders->gid);
}

/* What a manifest says of its database. */
static int read_manifest(const struct store_restore *restore, const struct folders *folders, const char *name,
			 char ret_sum[SHA256_HEX_SIZE], struct err *err)
{
	auto_free char *text = NULL;
	auto_json struct json_object *manifest = NULL;
	struct json_object *schema;
	size_t length;
	int result = read_file_at(folders->from_fd, name, MANIFEST_MAX, &text, &length, err);

	if (result == 0)
		result = json_parse(text, length, &manifest, err);
	if (result < 0)
		return err_wrap(err, "%s/%s", restore->dir, name);
	const char *sum = json_get_string(manifest, "database");

	schema = json_get(manifest, "schema", json_type_int);
	if (sum == NULL || schema == NULL)
		return err_set(err, ERR_CORRUPT, "%s/%s names no database", restore->dir, name);
	const int64_t version = json_object_get_int64(schema);

	if (version < store_schema_steps[0].from || version > store_schema_newest) {
		store_schema_refuse(version, err);
		return err_wrap(err, "%s/%s", restore->dir, name);
	}
	snprintf(ret_sum, SHA256_HEX_SIZE, "%s", sum);
	return 0;
}

/* A backup that was killed between its two renames left the new manifest as a part. */
static int check_manifest(const struct store_restore *restore, const struct folders *folders,
			  char ret_sum[SHA256_HEX_SIZE], struct err *err)
{
	char wanted[SHA256_HEX_SIZE], next[SHA256_HEX_SIZE], *sum = ret_sum;
	int result = read_manifest(restore, folders, STORE_BACKUP_MANIFEST, wanted, err);

	if (result == 0)
		result = store_backup_sum(folders->from_fd, STORE_BACKUP_DATABASE, sum, err);
	if (result < 0 || streq(sum, wanted))
		return result;
	if (read_manifest(restore, folders, STORE_BACKUP_MANIFEST ".part", next, NULL) == 0 && streq(sum, next))
		return 0;
	return err_set(err, ERR_CORRUPT,
		       "the database of %s is not the one of its manifest: it was altered, or damaged", restore->dir);
}

static int copy_named(const struct folders *folders, int from_dir, const char *from, const char *to, struct err *err)
{
	auto_close int in = openat(from_dir, from, O_RDONLY | O_CLOEXEC);
	auto_close int out = openat(folders->to_fd, to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char chunk[16384];
	ssize_t got = -1;

	if (in < 0)
		return err_errno(err, "opening %s", from);
	while (out >= 0 && (got = read(in, chunk, sizeof(chunk))) > 0)
		if (write_all(out, chunk, (size_t)got) < 0)
			return err_errno(err, "writing %s", to);
	explicit_bzero(chunk, sizeof(chunk));
	if (out < 0 || got < 0 || give(folders, out) < 0 || fsync(out) < 0)
		return err_errno(err, "writing %s", to);
	return 0;
}

static int restore_key(const struct store_restore *restore, const struct folders *folders, struct err *err)
{
	if (restore->key != NULL)
		return copy_named(folders, AT_FDCWD, restore->key, "secret.key", err);
	if (faccessat(folders->from_fd, "secret.key", F_OK, 0) < 0)
		return err_set(
			err, ERR_NOT_FOUND,
			"the backup has no secret.key, and downloads and sealed values need it: name the file by "
			"--key");
	return copy_named(folders, folders->from_fd, "secret.key", "secret.key", err);
}

static int restore_blobs(const struct store_restore *restore, struct folders *folders, const char *database,
			 struct store_backup_made *made, struct err *err)
{
	struct store_backup_blobs blobs = {.from_fd = folders->from_blobs_fd,
					   .total = made->bytes,
					   .full = true,
					   .progress = restore->progress,
					   .arg = restore->arg,
					   .made = made};
	struct stat st;

	if (mkdirat(folders->to_fd, "blobs", 0750) < 0 && errno != EEXIST)
		return err_errno(err, "making %s/blobs", restore->data_dir);
	folders->to_blobs_fd = openat(folders->to_fd, "blobs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folders->to_blobs_fd < 0 || fstat(folders->to_blobs_fd, &st) < 0 ||
	    fchmod(folders->to_blobs_fd, 0750 | (st.st_mode & S_ISGID)) < 0)
		return err_errno(err, "opening %s/blobs", restore->data_dir);
	blobs.to_fd = folders->to_blobs_fd;
	return store_backup_copy_blobs(database, &blobs, err);
}

/* Folders and contents belong to whom the data folder belongs. */
static int give_blobs(const struct folders *folders, struct err *err)
{
	char name[3];

	for (int i = -1; i < 256; i++) {
		snprintf(name, sizeof(name), i < 0 ? "." : "%02x", (unsigned)i & 0xff);
		int fd = openat(folders->to_blobs_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
		struct dirent *entry;

		if (dir == NULL) {
			close_pointer(&fd);
			continue;
		}
		int failed = give(folders, fd);

		while (failed == 0 && i >= 0 && geteuid() == 0 && folders->uid != 0 && (entry = readdir(dir)) != NULL)
			if (entry->d_name[0] != '.')
				failed = fchownat(fd, entry->d_name, folders->uid, folders->gid, AT_SYMLINK_NOFOLLOW);
		closedir(dir);
		if (failed < 0)
			return err_errno(err, "giving the contents to their owner");
	}
	return 0;
}

static int mark(const struct folders *folders, const char *sum, struct err *err)
{
	auto_close int fd = openat(folders->to_fd, MARK, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd < 0 || write_all(fd, sum, strlen(sum)) < 0 || fsync(fd) < 0 || fsync(folders->to_fd) < 0
		       ? err_errno(err, "marking the folder")
		       : 0;
}

/* 1: an earlier attempt with this backup put the database in its place, and only the rest is to be done; 0: there is no
 * database yet. */
static int is_in_place(const struct store_restore *restore, const struct folders *folders, const char *sum,
		       struct err *err)
{
	auto_free char *marked = NULL;
	size_t length;

	int version = 0;

	/* A gateway of an earlier release that refused to start left an empty one. */
	if (faccessat(folders->to_fd, STORE_BACKUP_DATABASE, F_OK, 0) < 0 ||
	    (store_schema_version(restore->data_dir, &version, NULL) == 0 && version == 0))
		return 0;
	if (read_file_at(folders->to_fd, MARK, SHA256_HEX_SIZE, &marked, &length, NULL) == 0 && streq(marked, sum))
		return 1;
	return err_set(err, ERR_CONFLICT, "%s has a database: move what is there away, nothing is overwritten",
		       restore->data_dir);
}

static int log_restore(const struct store_restore *restore, const struct store_backup_made *made, struct err *err)
{
	struct store_audit entry;
	struct store *store;

	if (made->schema != store_schema_newest)
		return 0; /* the gateway upgrades it at its start; a log of that version may not exist */
	int result = store_open(restore->data_dir, STORE_WRITE, &store, err);

	if (result < 0)
		return result;
	store_audit_init(&entry, STORE_AUDIT_RESTORE, "log", "audit");
	store_audit_int(&entry, "entries", made->entries);
	store_audit_int(&entry, "executions", made->executions);
	result = store_audit_add(store, &entry, err);
	store_close(store);
	return result;
}

static int restore_all(const struct store_restore *restore, struct folders *folders, const char *sum,
		       struct store_backup_made *made, struct err *err)
{
	auto_free char *part = xasprintf("%s/" PART, restore->data_dir);
	int result = mark(folders, sum, err);

	if (result == 0)
		result = restore_key(restore, folders, err);
	if (result == 0)
		result = copy_named(folders, folders->from_fd, STORE_BACKUP_DATABASE, PART, err);
	if (result == 0)
		result = store_backup_inspect(part, made, err);
	if (result == 0)
		result = restore_blobs(restore, folders, part, made, err);
	if (result == 0)
		result = give_blobs(folders, err);
	if (result == 0 && restore->check != NULL)
		result = restore->check(restore->arg, part, err);
	if (result == 0 &&
	    (syncfs(folders->to_fd) < 0 || renameat(folders->to_fd, PART, folders->to_fd, STORE_BACKUP_DATABASE) < 0 ||
	     fsync(folders->to_fd) < 0))
		result = err_errno(err, "putting the database in its place in %s", restore->data_dir);
	return result;
}

int store_restore(const struct store_restore *restore, struct store_backup_made *ret, struct err *err)
{
	auto_folders struct folders folders = {-1, -1, -1, -1, 0, 0};
	struct store_backup_made made = {0};
	char sum[SHA256_HEX_SIZE];
	int result = open_folders(restore, &folders, err);

	if (result == 0)
		result = check_manifest(restore, &folders, sum, err);
	if (result == 0)
		result = is_in_place(restore, &folders, sum, err);
	if (result == 0) {
		result = restore_all(restore, &folders, sum, &made, err);
	} else if (result > 0) { /* opening it for writing first undoes what was cut off */
		auto_free char *database = xasprintf("%s/" STORE_BACKUP_DATABASE, restore->data_dir);
		struct store *store;

		if (store_open(restore->data_dir, STORE_WRITE, &store, NULL) == 0)
			store_close(store); /* of an older version it cannot be opened, and was not written */
		result = store_backup_inspect(database, &made, err);
	}
	if (result == 0)
		result = log_restore(restore, &made, err);
	if (result == 0 && ((unlinkat(folders.to_fd, MARK, 0) < 0 && errno != ENOENT) || fsync(folders.to_fd) < 0))
		result = err_errno(err, "taking the mark away from %s", restore->data_dir);
	if (result == 0)
		*ret = made;
	return result;
}
