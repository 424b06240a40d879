/*
 * upstream_data.c - see upstream_data.h.
 *
 * Everything is relative to the descriptor of one folder, which is locked as long as it is open. Changes are made in
 * memory and as new files next to the old ones; the rename of the index is the moment at which they count. Whatever a
 * process left half-way, contents without an index or a new index without its rename, is removed by the next commit.
 */
#include "upstream_data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define FOLDER     "upstream"
#define INDEX      "index"
#define NEW_INDEX  "index.new"
#define INDEX_MAX  (UPSTREAM_DATA_INODES * (JAIL_NAME_MAX + 128))
#define NUMBER_MAX INT64_MAX
#define COPY_STEP  (64 << 10)

/* One path below /data. The index holds them as "MODE MTIME SIZE NUMBER PATH" and a NUL. */
struct kept {
	char *name;
	uint32_t mode;
	int64_t mtime_us, size, number;
};
struct upstream_data {
	int folder_fd; /* locked */
	char *server;
	struct kept *files;
	size_t count;
	int64_t number; /* of the last content */
	int failed;     /* errno of a change that could not be written; 0: none */
};

/* As root: the folder belongs to whom data_dir belongs to, the gateway. */
static int give(int parent_fd, int fd)
{
	struct stat st;

	if (geteuid() != 0)
		return 0;
	return fstat(parent_fd, &st) < 0 ? -1 : fchown(fd, st.st_uid, st.st_gid);
}

static int open_folder(int parent_fd, const char *name, bool make)
{
	bool made = make && mkdirat(parent_fd, name, 0700) == 0;

	if (make && !made && errno != EEXIST)
		return -1;
	auto_close int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 || (made && give(parent_fd, fd) < 0))
		return -1;
	return steal_fd(&fd);
}

/* -1 and errno; EWOULDBLOCK: somebody has it, or it was removed meanwhile. */
static int lock_folder(int parent_fd, const char *name, int fd)
{
	struct stat ours, there;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &ours) < 0)
		return -1;
	if (fstatat(parent_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_ino == ours.st_ino)
		return 0;
	errno = EWOULDBLOCK;
	return -1;
}

static struct kept *find(struct upstream_data *data, const char *name)
{
	for (size_t i = 0; i < data->count; i++)
		if (streq(data->files[i].name, name))
			return &data->files[i];
	return NULL;
}

static struct kept *add(struct upstream_data *data, const char *name)
{
	data->files = xrealloc(data->files, data->count + 1, sizeof(*data->files));
	data->files[data->count] = (struct kept){.name = xstrdup(name)};
	return &data->files[data->count++];
}

/* One record of the index; false: it is none. */
static bool take_record(struct upstream_data *data, const char *record)
{
	struct kept file = {.name = NULL};
	int at = 0;

	if (sscanf(record, "%" SCNo32 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %n", &file.mode, &file.mtime_us, &file.size,
		   &file.number, &at) != 4 ||
	    at == 0 || record[at] == '\0' || file.number <= 0 || file.number == NUMBER_MAX || (file.mode & ~0777U) != 0)
		return false;
	file.name = add(data, record + at)->name;
	data->files[data->count - 1] = file;
	data->number = MAX(data->number, file.number);
	return true;
}

static int read_index(struct upstream_data *data, const char *path, struct err *err)
{
	auto_free char *text = NULL;
	size_t length;

	if (faccessat(data->folder_fd, INDEX, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	int result = read_file_at(data->folder_fd, INDEX, INDEX_MAX, &text, &length, err);

	if (result < 0)
		return result;
	for (const char *record = text; record < text + length; record += strlen(record) + 1)
		if (!take_record(data, record))
			return err_set(err, ERR_CORRUPT,
				       "the index of what it kept is damaged: move %s away, and it begins anew", path);
	return 0;
}

static int open_locked(const char *data_dir, const char *server, const char *owner, struct upstream_data *data,
		       struct err *err)
{
	char server_hash[SHA256_HEX_SIZE], owner_hash[SHA256_HEX_SIZE];

	if (data_dir[0] == '\0')
		return err_set(err, ERR_UNAVAILABLE, "\"data\": \"keep\" needs data_dir in the configuration");
	sha256_hex(server, strlen(server), server_hash);
	sha256_hex(owner, strlen(owner), owner_hash);
	auto_free char *path = xasprintf("%s/" FOLDER "/%s/%s", data_dir, server_hash, owner_hash);
	auto_close int top = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int all = top < 0 ? -1 : open_folder(top, FOLDER, true);
	auto_close int servers = all < 0 ? -1 : open_folder(all, server_hash, true);

	data->folder_fd = servers < 0 ? -1 : open_folder(servers, owner_hash, true);
	if (data->folder_fd < 0)
		return err_errno(err, "opening what it kept below %s", data_dir);
	if (lock_folder(servers, owner_hash, data->folder_fd) == 0)
		return read_index(data, path, err);
	if (errno == EWOULDBLOCK)
		return err_set(err, ERR_BUSY, "what it keeps in /data is in use by another process of it");
	return err_errno(err, "locking what it kept below %s", data_dir);
}

int upstream_data_open(const char *data_dir, const char *server, const char *owner, struct upstream_data **ret,
		       struct err *err)
{
	struct upstream_data *data = xcalloc(1, sizeof(*data));
	int result;

	data->folder_fd = -1;
	data->server = xstrdup(server);
	result = open_locked(data_dir, server, owner, data, err);
	if (result < 0)
		upstream_data_close(data);
	else
		*ret = data;
	return result;
}

static void content_name(char name[24], int64_t number)
{
	snprintf(name, 24, "%" PRId64, number);
}

/* -1: it is not what the index says. */
static int open_content(const struct upstream_data *data, const struct kept *file)
{
	char name[24];
	struct stat st;

	content_name(name, file->number);
	auto_close int fd = openat(data->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size != file->size) {
		log_event(LOG_WARN, "a file that an upstream server kept is damaged and left out", "server",
			  data->server, NULL);
		return -1;
	}
	return steal_fd(&fd);
}

int upstream_data_fill(const struct upstream_data *data, struct jail *jail, struct err *err)
{
	struct jail_file files[JAIL_BATCH_FILES];
	size_t n = 0;
	int result = 0;

	for (size_t i = 0; result == 0 && i < data->count; i++) {
		const struct kept *file = &data->files[i];
		int fd = open_content(data, file);

		if (fd >= 0)
			files[n++] = (struct jail_file){file->name, file->mode, file->mtime_us, fd};
		if (n == 0 || (n < JAIL_BATCH_FILES && i + 1 < data->count))
			continue;
		result = jail_fill(jail, files, n, err);
		while (n > 0)
			close(files[--n].fd);
	}
	while (n > 0)
		close(files[--n].fd);
	return result;
}

static int store_content(struct upstream_data *data, const struct jail_change *change)
{
	auto_free char *step = xmalloc(COPY_STEP);
	char name[24];
	struct kept *file;
	ssize_t n = 0;

	content_name(name, data->number + 1);
	unlinkat(data->folder_fd, name, 0); /* of a commit that never was */
	auto_close int to = openat(data->folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0 || give(data->folder_fd, to) < 0)
		return -1;
	while ((n = read(change->fd, step, COPY_STEP)) > 0)
		if (write_all(to, step, (size_t)n) < 0)
			return -1;
	if (n < 0)
		return -1;
	file = find(data, change->name);
	if (file == NULL)
		file = add(data, change->name);
	file->mode = change->mode & 0777;
	file->mtime_us = change->mtime_us;
	file->size = change->size;
	file->number = ++data->number;
	return 0;
}

void upstream_data_change(struct upstream_data *data, const struct jail_change *change)
{
	auto_close int fd = change->fd;
	struct kept *file = find(data, change->name);

	if (change->kind == JAIL_FILE_NOT_KEPT) {
		log_event(LOG_WARN, "a file of an upstream server is not kept", "server", data->server, "why",
			  change->reason != NULL ? change->reason : "", NULL);
	} else if (change->kind == JAIL_FILE_DELETED) {
		if (file != NULL) {
			free(file->name);
			*file = data->files[--data->count];
		}
	} else if (fd >= 0 && data->failed == 0 && store_content(data, change) < 0) {
		data->failed = errno;
	}
}

static int write_index(const struct upstream_data *data)
{
	auto_buf struct buf text;

	buf_init(&text, INDEX_MAX);
	for (size_t i = 0; i < data->count; i++) {
		const struct kept *file = &data->files[i];

		buf_printf(&text, "%" PRIo32 " %" PRId64 " %" PRId64 " %" PRId64 " %s", file->mode, file->mtime_us,
			   file->size, file->number, file->name);
		buf_add(&text, "", 1);
	}
	if (text.overflow) {
		errno = EFBIG;
		return -1;
	}
	auto_close int fd =
		openat(data->folder_fd, NEW_INDEX, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || give(data->folder_fd, fd) < 0 || write_all(fd, text.data, text.length) < 0)
		return -1;
	return renameat(data->folder_fd, NEW_INDEX, data->folder_fd, INDEX);
}

static bool is_named(const struct upstream_data *data, const char *name)
{
	uint64_t number;

	if (streq(name, INDEX))
		return true;
	if (parse_u64(name, 1, NUMBER_MAX, &number) < 0)
		return false;
	for (size_t i = 0; i < data->count; i++)
		if (data->files[i].number == (int64_t)number)
			return true;
	return false;
}

/* Removes what the index does not name; without `data`, everything. */
static int remove_leftovers(int folder_fd, const struct upstream_data *data)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (list == NULL) {
		fd_close(&fd);
		return -1;
	}
	for (struct dirent *entry; (entry = readdir(list)) != NULL;)
		if (entry->d_name[0] != '.' && (data == NULL || !is_named(data, entry->d_name)) &&
		    unlinkat(folder_fd, entry->d_name, 0) < 0)
			result = -1;
	closedir(list);
	return result;
}

int upstream_data_commit(struct upstream_data *data, struct err *err)
{
	if (data->failed == 0 && write_index(data) < 0)
		data->failed = errno;
	if (data->failed != 0) {
		errno = data->failed;
		return err_errno(err, "keeping the files of %s", data->server);
	}
	if (remove_leftovers(data->folder_fd, data) < 0)
		log_event(LOG_WARN, "old files of an upstream server were not removed", "server", data->server, NULL);
	return 0;
}

void upstream_data_close(struct upstream_data *data)
{
	if (data == NULL)
		return;
	fd_close(&data->folder_fd);
	for (size_t i = 0; i < data->count; i++)
		free(data->files[i].name);
	free(data->files);
	free(data->server);
	free(data);
}

int upstream_data_forget(const char *data_dir, const char *owner, int64_t *ret_removed, int64_t *ret_busy,
			 struct err *err)
{
	auto_close int top = open(data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int all = top < 0 ? -1 : openat(top, FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result = 0;
	DIR *list = all < 0 ? NULL : fdopendir(all);
	char owner_hash[SHA256_HEX_SIZE];

	*ret_removed = *ret_busy = 0;
	if (list == NULL)
		return errno == ENOENT ? 0 : err_errno(err, "opening %s/" FOLDER, data_dir);
	sha256_hex(owner, strlen(owner), owner_hash);
	for (struct dirent *entry; result == 0 && (entry = readdir(list)) != NULL;) {
		auto_close int servers = entry->d_name[0] == '.' ? -1 : open_folder(dirfd(list), entry->d_name, false);
		auto_close int fd = servers < 0 ? -1 : open_folder(servers, owner_hash, false);

		if (fd < 0)
			continue;
		const bool removed = lock_folder(servers, owner_hash, fd) == 0 && remove_leftovers(fd, NULL) == 0 &&
				     unlinkat(servers, owner_hash, AT_REMOVEDIR) == 0;

		if (!removed && errno != EWOULDBLOCK) /* somebody uses it */
			result = err_errno(err, "removing what servers keep below %s/" FOLDER, data_dir);
		*ret_busy += !removed;
		*ret_removed += removed;
	}
	closedir(list);
	return result;
}
