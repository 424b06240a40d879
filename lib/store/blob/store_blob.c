/*
 * store_blob.c - the blob folder, and the folder of partial output.
 *
 * A blob is a file blobs/ab/cdef… named by the SHA-256 of its bytes. It is written next to its place (blobs/tmp-…),
 * synced, renamed, and the folder is synced: under its name there is never anything but the whole content. Two writers
 * of the same content are no trouble, the second rename puts the same bytes in place. A blob that is there with the
 * right size is not written again.
 *
 * Between the writing of a blob and the commit of the first row that names it nothing in the database protects it. So
 * the garbage collector leaves every file alone that was made or asked for in the last hours (its mtime says so, and a
 * put brings it up to date), and holds the lock blobs/lock while it looks and removes; a put holds it shared from the
 * look at an existing file to its touch. A transaction that names a blob looks once more whether the file is there.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_blob.h"
#include "store_blob_internal.h"
#include "store_pack.h"

#define COPY_STEP  (64 * 1024)
#define FOLDERS    256
#define LOCK_NAME  "lock"
#define TMP_PREFIX "tmp-"
/* A file younger than this may be another writer's whose rename is not synced yet; an older one is on disk. */
#define SETTLED_US     (60 * 1000000ll)
#define TMP_NAME_SIZE  (sizeof(TMP_PREFIX) + ID_SIZE)

/* The mode as wanted whatever the umask is. A setgid bit that was inherited stays; the kernel takes it away with any
 * chmod by an account that is not in the group (chmod(2)), so nothing is changed where nothing need be. */
static int set_mode(int fd, mode_t mode)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	return (st.st_mode & 0777) == mode ? 0 : fchmod(fd, mode | (st.st_mode & S_ISGID));
}

int store_folder_open(struct store *store, const char *name, mode_t mode, int *ret_fd, struct err *err)
{
	bool made = store->mode != STORE_READ && mkdirat(store->dir_fd, name, mode) == 0;

	if (!made && store->mode != STORE_READ && errno != EEXIST)
		return err_errno(err, "making %s/%s", store->path, name);
	int fd = openat(store->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_errno(err, "opening %s/%s", store->path, name);
	if (made && (set_mode(fd, mode) < 0 || store_give(store, fd) < 0)) {
		err_errno(err, "making %s/%s", store->path, name);
		close(fd);
		return -ERR_SYSTEM;
	}
	*ret_fd = fd;
	return 0;
}

static bool sha256_valid(const char *text)
{
	return strlen(text) == SHA256_HEX_SIZE - 1 && strspn(text, "0123456789abcdef") == SHA256_HEX_SIZE - 1;
}

/* flock belongs to the open file: every user opens the lock anew, so that threads do not share it. */
static int lock_blobs(struct store *store, int how, struct err *err)
{
	int fd = openat(store->blobs_fd, LOCK_NAME, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || store_give(store, fd) < 0 || flock(fd, how) < 0) {
		err_errno(err, "locking %s/blobs", store->path);
		close_pointer(&fd);
		return -1;
	}
	return fd;
}

/* Two-digit folder of a blob, made where it is missing. */
static int open_folder(struct store *store, const char *sha256, struct err *err)
{
	char name[3] = {sha256[0], sha256[1], '\0'};
	bool made = mkdirat(store->blobs_fd, name, 0750) == 0;

	if (!made && errno != EEXIST)
		return err_errno(err, "making %s/blobs/%s", store->path, name);
	int fd = openat(store->blobs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 &&
	    (!made || (set_mode(fd, 0750) == 0 && store_give(store, fd) == 0 && fsync(store->blobs_fd) == 0)))
		return fd;
	err_errno(err, "opening %s/blobs/%s", store->path, name);
	close_pointer(&fd);
	return -1;
}

/* 1: it is there, whole and durable, and the garbage collector knows that it is wanted; 0: it is not. */
static int is_there(int folder, const char *name, struct err *err)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	int64_t age = clock_now_us() - st.st_mtim.tv_sec * 1000000ll;
	int failed = age < SETTLED_US ? fsync(folder) : utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW);

	return failed == 0 ? 1 : err_errno(err, "keeping blob %s", name);
}

/* The same of a content; of one that may be packed in either form. */
static int content_is_there(struct store *store, int folder, const char *sha256, int64_t size, bool packable,
			    struct err *err)
{
	char name[STORE_PACKED_PATH_SIZE];
	struct stat st;
	auto_close int lock = lock_blobs(store, LOCK_SH, err);

	if (lock < 0)
		return -ERR_SYSTEM;
	if (fstatat(folder, sha256 + 2, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size == size)
		return is_there(folder, sha256 + 2, err);
	if (!packable || store_content_stat(store->blobs_fd, sha256, &st) < 0 || st.st_size != size)
		return 0;
	snprintf(name, sizeof(name), "%s" STORE_PACKED, sha256 + 2);
	return is_there(folder, name, err);
}

static int keep(struct store *store, int tmp, const char *tmp_name, const char *sha256, const char *suffix,
		struct err *err)
{
	char name[STORE_PACKED_PATH_SIZE];
	auto_close int folder = open_folder(store, sha256, err);

	snprintf(name, sizeof(name), "%s%s", sha256 + 2, suffix);
	if (folder < 0)
		return -ERR_SYSTEM;
	if (fchmod(tmp, 0640) < 0 || store_give(store, tmp) < 0 || fsync(tmp) < 0 ||
	    renameat(store->blobs_fd, tmp_name, folder, name) < 0 || fsync(folder) < 0)
		return err_errno(err, "writing a blob in %s/blobs", store->path);
	return 0;
}

/* What is read for a blob: a descriptor or bytes. */
struct source {
	int fd;
	const void *data;
	int64_t length; /* of data; the limit where it is a descriptor */
	bool packable;
};

/* Copies the source to tmp (-1: only reads it), hashing; -ERR_LIMIT when there is more than the limit. */
static int copy(struct source source, int tmp, char ret_sha256[SHA256_HEX_SIZE], int64_t *ret_size, struct err *err)
{
	auto_free char *buffer = source.data == NULL ? xmalloc(COPY_STEP) : NULL;
	struct sha256 *digest = sha256_new();
	int64_t at = 0;
	int failed = 0;

	while (failed == 0) {
		const void *data = buffer;
		ssize_t got = source.length - at;

		if (source.data != NULL)
			data = (const char *)source.data + at;
		else
			got = pread(source.fd, buffer, COPY_STEP, at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			failed = err_errno(err, "reading what is to be kept");
		if (got <= 0)
			break;
		at += got;
		sha256_add(digest, data, (size_t)got);
		if (at > source.length)
			failed = err_set(err, ERR_LIMIT, "larger than %lld bytes", (long long)source.length);
		else if (tmp >= 0 && write_all(tmp, data, (size_t)got) < 0)
			failed = err_errno(err, "writing a blob");
	}
	sha256_finish(digest, failed == 0 ? ret_sha256 : NULL);
	if (failed == 0)
		*ret_size = at;
	return failed;
}

static int new_tmp(struct store *store, char *ret_name, size_t size, struct err *err)
{
	char id[ID_SIZE];

	id_new(id);
	snprintf(ret_name, size, TMP_PREFIX "%s", id);
	int fd = openat(store->blobs_fd, ret_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		err_errno(err, "writing a blob in %s/blobs", store->path);
	return fd;
}

/* 1: the content in tmp is kept, packed; 0: that does not pay. */
static int keep_packed(struct store *store, int tmp, const char *sha256, struct err *err)
{
	char name[TMP_NAME_SIZE];
	auto_close int packed = new_tmp(store, name, sizeof(name), err);
	bool pays = false;
	int result = packed < 0 ? -ERR_SYSTEM : 0;

	if (result == 0 && store_pack(tmp, packed, &pays) < 0)
		result = err_errno(err, "packing a blob in %s/blobs", store->path);
	if (result == 0 && pays)
		result = keep(store, packed, name, sha256, STORE_PACKED, err);
	if (packed >= 0 && (result < 0 || !pays))
		unlinkat(store->blobs_fd, name, 0);
	return result < 0 ? result : pays;
}

static int write_new(struct store *store, struct source source, char sha256[SHA256_HEX_SIZE], int64_t *ret_size,
		     struct err *err)
{
	char name[TMP_NAME_SIZE];
	auto_close int tmp = new_tmp(store, name, sizeof(name), err);

	if (tmp < 0)
		return -ERR_SYSTEM;
	/* Hashed again while it is copied: what is kept has the name of its own bytes even if the source changed
	 * meanwhile. */
	int result = copy(source, tmp, sha256, ret_size, err);
	int packed = result == 0 && source.packable ? keep_packed(store, tmp, sha256, err) : 0;

	if (result == 0 && packed == 0)
		result = keep(store, tmp, name, sha256, "", err);
	if (result < 0 || packed != 0)
		unlinkat(store->blobs_fd, name, 0);
	return MIN(result, packed);
}

static int put(struct store *store, struct source source, char ret_sha256[SHA256_HEX_SIZE], int64_t *ret_size,
	       struct err *err)
{
	char sha256[SHA256_HEX_SIZE];
	int64_t size = 0;
	int failed = store->mode == STORE_READ ? err_set(err, ERR_DENIED, "the record is open for reading only")
					       : copy(source, -1, sha256, &size, err);

	if (failed < 0)
		return failed;
	auto_close int folder = open_folder(store, sha256, err);

	/* A plain one is read before a packed one: where there is one already, damaged or not, it is put in order. */
	source.packable = source.packable && faccessat(folder, sha256 + 2, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	int there = folder < 0 ? -ERR_SYSTEM
			       : content_is_there(store, folder, sha256, size, source.packable, err);

	if (there == 0)
		there = write_new(store, source, sha256, &size, err);
	if (there < 0)
		return there;
	memcpy(ret_sha256, sha256, sizeof(sha256));
	if (ret_size != NULL)
		*ret_size = size;
	return 0;
}

int store_blob_put_output(struct store *store, int fd, char ret_sha256[SHA256_HEX_SIZE], int64_t *ret_size,
			  struct err *err)
{
	return put(store, (struct source){.fd = fd, .length = INT64_MAX, .packable = true}, ret_sha256, ret_size, err);
}

int store_blob_put_fd(struct store *store, int fd, int64_t max, char ret_sha256[SHA256_HEX_SIZE], int64_t *ret_size,
		      struct err *err)
{
	return put(store, (struct source){.fd = fd, .length = max}, ret_sha256, ret_size, err);
}

int store_blob_put(struct store *store, const void *data, size_t length, char ret_sha256[SHA256_HEX_SIZE],
		   struct err *err)
{
	return put(store, (struct source){.fd = -1, .data = length > 0 ? data : "", .length = (int64_t)length},
		   ret_sha256, NULL, err);
}

/* Size in the blob's row; -1: no row (yet). */
static int known_size(struct store *store, const char *sha256, int64_t *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_BLOB_SIZE, err);

	query_bind_text(&q, ":sha256", sha256);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	*ret = found > 0 ? query_int(&q, 0) : -1;
	return 0;
}

int store_blob_open(struct store *store, const char *sha256, int *ret_fd, int64_t *ret_size, struct err *err)
{
	char path[STORE_BLOB_PATH_SIZE];
	auto_close int fd = -1;
	int64_t size = -1, is = 0;

	if (!sha256_valid(sha256))
		return err_set(err, ERR_NOT_FOUND, "no such blob");
	store_blob_path(sha256, path);
	/* Before the row: a content that has one stays. */
	int opened = store_content_open(store->blobs_fd, sha256, &fd, &is, err);

	if (opened < 0 && opened != -ERR_NOT_FOUND)
		return opened;
	int failed = known_size(store, sha256, &size, err);

	if (failed < 0)
		return failed;
	if (opened < 0 && size < 0)
		return err_set(err, ERR_NOT_FOUND, "no such blob: %s", sha256);
	if (opened < 0)
		return err_set(err, ERR_CORRUPT,
			       "the file of blob %s is missing: restore blobs/%s (or its .gz) from a backup", sha256,
			       path);
	if (size >= 0 && is != size)
		return err_set(err, ERR_CORRUPT,
			       "the file of blob %s has %lld bytes and must have %lld: restore blobs/%s from a backup",
			       sha256, (long long)is, (long long)size, path);
	*ret_fd = steal_fd(&fd);
	if (ret_size != NULL)
		*ret_size = is;
	return 0;
}

int store_txn_blob(struct store_txn *txn, const char *sha256, int64_t size, struct err *err)
{
	struct stat st;

	if (!sha256_valid(sha256))
		return err_set(err, ERR_INTERNAL, "not the name of a blob: '%.80s'", sha256);
	if (store_content_stat(txn->store->blobs_fd, sha256, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, "blob %s is not in the blob folder", sha256);
	if (size >= 0 && st.st_size != size)
		return err_set(err, ERR_CORRUPT, "blob %s has %lld bytes, not %lld", sha256, (long long)st.st_size,
			       (long long)size);
	auto_query struct query q = query_begin(txn->conn, SQL_BLOB_ADD);

	query_bind_text(&q, ":sha256", sha256);
	query_bind_int(&q, ":size", st.st_size);
	query_bind_int(&q, ":now", store_txn_now(txn));
	return query_run(&q, NULL, err);
}

bool store_blob_fresh(struct store *store, const char *sha256, int64_t limit_us)
{
	struct stat st;

	return store_content_stat(store->blobs_fd, sha256, &st) == 0 && st.st_mtim.tv_sec * 1000000ll >= limit_us;
}

/* Removes blobs/FOLDER/NAME if it is old and has no row. */
static int collect_one(struct store *store, int folder, const char *path, const char *sha256, struct store_blob_gc *gc,
		       struct err *err)
{
	struct stat st;
	int64_t size = -1;
	auto_close int lock = lock_blobs(store, LOCK_EX, err);

	if (lock < 0)
		return -ERR_SYSTEM;
	if (fstatat(folder, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0; /* gone meanwhile */
	int failed = sha256 != NULL ? known_size(store, sha256, &size, err) : 0;

	if (failed < 0 || size >= 0)
		return failed;
	if (st.st_mtim.tv_sec * 1000000ll >= gc->limit_us) {
		gc->young++;
		gc->young_bytes += st.st_size;
		return 0;
	}
	if (!gc->dry && unlinkat(folder, path, 0) < 0)
		return err_errno(err, "removing blob %s", path);
	gc->removed++;
	gc->bytes += st.st_size;
	return 0;
}

/* The name of a content's file, without the suffix of one that is packed. */
static bool is_content(char *name)
{
	size_t length = strlen(name), suffix = strlen(STORE_PACKED);

	if (length > suffix && streq(name + length - suffix, STORE_PACKED))
		name[length - suffix] = '\0';
	return sha256_valid(name);
}

static int collect_folder(struct store *store, const char *name, struct store_blob_gc *gc, struct err *err)
{
	bool top = streq(name, ".");
	int fd = openat(store->blobs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	int64_t folders = 0;
	int failed = 0;

	if (dir == NULL) {
		close_pointer(&fd);
		return err_errno(err, "reading %s/blobs/%s", store->path, name);
	}
	while (failed == 0 && (entry = readdir(dir)) != NULL) {
		char sha256[NAME_MAX + 3];

		snprintf(sha256, sizeof(sha256), "%s%s", name, entry->d_name);
		if (top && str_starts(entry->d_name, TMP_PREFIX)) { /* of a process that was killed */
			failed = collect_one(store, fd, entry->d_name, NULL, gc, err);
		} else if (top && strlen(entry->d_name) == 2 && strspn(entry->d_name, "0123456789abcdef") == 2) {
			failed = store_hurried(store, err);
			if (failed == 0)
				failed = collect_folder(store, entry->d_name, gc, err);
			if (gc->progress != NULL)
				gc->progress(gc->arg, "files", ++folders, FOLDERS);
		} else if (!top && is_content(sha256)) {
			failed = collect_one(store, fd, entry->d_name, sha256, gc, err);
		}
	}
	closedir(dir);
	return failed;
}

int store_blob_any(struct store *store, bool *ret, struct err *err)
{
	bool any = false;

	for (int i = 0; i <= 0xff && !any; i++) {
		char name[12];
		struct dirent *entry;

		snprintf(name, sizeof(name), "%02x", i);
		int fd = openat(store->blobs_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

		if (dir == NULL && errno == ENOENT)
			continue;
		if (dir == NULL) {
			close_pointer(&fd);
			return err_errno(err, "reading %s/blobs/%s", store->path, name);
		}
		while (!any && (entry = readdir(dir)) != NULL)
			any = entry->d_name[0] != '.';
		closedir(dir);
	}
	*ret = any;
	return 0;
}

int store_blob_collect(struct store *store, struct store_blob_gc *gc, struct err *err)
{
	return collect_folder(store, ".", gc, err);
}

static int running_name(const char *id, const char *suffix, char *ret, size_t size, struct err *err)
{
	if (!id_valid(id) || (!streq(suffix, "out") && !streq(suffix, "err") && !streq(suffix, "calls")))
		return err_set(err, ERR_INTERNAL, "not a name for partial output");
	snprintf(ret, size, "%s.%s", id, suffix);
	return 0;
}

int store_running_open(struct store *store, const char *id, const char *suffix, int *ret_fd, struct err *err)
{
	char name[ID_SIZE + 6];

	if (running_name(id, suffix, name, sizeof(name), err) != 0)
		return -ERR_INTERNAL;
	auto_close int fd = openat(store->running_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || store_give(store, fd) < 0)
		return err_errno(err, "making %s/running/%s", store->path, name);
	*ret_fd = steal_fd(&fd);
	return 0;
}

void store_running_remove(struct store *store, const char *id)
{
	static const char *const suffixes[] = {"out", "err", "calls"};
	char name[ID_SIZE + 6];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (running_name(id, suffixes[i], name, sizeof(name), NULL) == 0)
			unlinkat(store->running_fd, name, 0);
}
