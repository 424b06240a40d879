/*
 * run_files.c - files into a run and back: --file and --output-dir.
 *
 * Names that come back were chosen by the program that ran, so they are walked segment by segment from a directory
 * descriptor, never through a symlink, and each file is made new (O_EXCL after unlink): what is there as a link,
 * fifo or hard link is replaced, not written through.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define COPY_CHUNK (128 * 1024)

void run_files_clear(struct run_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		free(files->items[i].name);
		free(files->items[i].reason);
	}
	free(files->items);
	if (files->output_dir >= 0)
		close(files->output_dir);
	*files = (struct run_files){.output_dir = -1};
}

int run_input_open(const char *argument, struct jail_file *ret, struct err *err)
{
	const char *colon = strrchr(argument, ':');
	auto_free char *path = colon ? xstrndup(argument, (size_t)(colon - argument)) : xstrdup(argument);
	const char *slash = strrchr(argument, '/');
	const char *name = colon ? colon + 1 : slash ? slash + 1 : argument;
	auto_close int fd = -1;
	struct stat status;

	if (!*name)
		return err_set(err, ERR_INVALID, "--file %s: the name in /data is empty", argument);
	/* O_NONBLOCK: a fifo must not hold us before it is refused */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status))
		return err_errno(err, "--file %s", path);
	if (!S_ISREG(status.st_mode))
		return err_set(err, ERR_INVALID, "--file %s: is not a regular file", path);
	*ret = (struct jail_file){
		.name = name,
		.mode = status.st_mode & 0777,
		.mtime_us = status.st_mtim.tv_sec * 1000000LL + status.st_mtim.tv_nsec / 1000,
		.fd = steal_fd(&fd),
	};
	return 0;
}

/* Descriptor of the folder that `name` is in, made as needed; *ret_base is the last segment. */
static int parent_open(int root, const char *name, const char **ret_base)
{
	auto_free char *copy = xstrdup(name);
	auto_close int directory = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char *segment = copy, *slash;

	while (directory >= 0 && (slash = strchr(segment, '/'))) {
		int next;

		*slash = '\0';
		if (!*segment || streq(segment, ".") || streq(segment, "..")) {
			errno = EINVAL;
			return -1;
		}
		if (mkdirat(directory, segment, 0777) && errno != EEXIST)
			return -1;
		next = openat(directory, segment, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(directory);
		directory = next;
		segment = slash + 1;
	}
	*ret_base = name + (segment - copy);
	return steal_fd(&directory);
}

static int file_write(int root, const struct jail_change *change)
{
	const char *base = NULL;
	auto_close int directory = parent_open(root, change->name, &base);
	auto_close int fd = -1;
	auto_free char *chunk = xmalloc(COPY_CHUNK);
	ssize_t got;
	struct timespec times[2] = {
		{.tv_nsec = UTIME_OMIT},
		{.tv_sec = change->mtime_us / 1000000, .tv_nsec = change->mtime_us % 1000000 * 1000},
	};

	if (directory < 0)
		return -1;
	if (!*base || streq(base, ".") || streq(base, "..")) {
		errno = EINVAL;
		return -1;
	}
	if (unlinkat(directory, base, 0) && errno != ENOENT)
		return -1;
	fd = openat(directory, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, change->mode & 0777);
	if (fd < 0)
		return -1;
	while ((got = read(change->fd, chunk, COPY_CHUNK)) != 0) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || write_all(fd, chunk, (size_t)got))
			return -1;
	}
	return futimens(fd, times);
}

int run_folder_open(const char *path, int *ret, struct err *err)
{
	if (mkdir(path, 0777) && errno != EEXIST)
		return err_errno(err, "--output-dir %s", path);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? err_errno(err, "--output-dir %s", path) : 0;
}

int run_file_write(int root, const struct jail_change *change, struct err *err)
{
	bool plain = utf8_valid(change->name, strlen(change->name));

	for (const char *p = change->name; *p; p++)
		plain = plain && (unsigned char)*p >= 0x20 && *p != 0x7f;
	if (!plain)
		return err_set(err, ERR_INVALID, "its name is not UTF-8 or holds control characters");
	return file_write(root, change) ? err_errno(err, "writing it") : 0;
}

void run_files_add(struct run_files *files, const struct jail_change *change)
{
	auto_close int fd = change->fd;
	struct err err = ERR_INIT;
	struct run_file *file;

	if (files->count == files->size) {
		files->size = files->size ? 2 * files->size : 16;
		files->items = xrealloc(files->items, files->size, sizeof(*files->items));
	}
	file = &files->items[files->count++];
	*file = (struct run_file){
		.kind = change->kind,
		.name = xstrdup(change->name),
		.mode = change->mode,
		.mtime_us = change->mtime_us,
		.size = change->size,
		.reason = change->reason && *change->reason ? xstrdup(change->reason) : NULL,
	};
	if (files->output_dir < 0 || fd < 0)
		return;
	if (files->count > RUN_FILES_MAX)
		file->reason = xasprintf("more than %d files", RUN_FILES_MAX);
	else if (run_file_write(files->output_dir, change, &err) < 0)
		file->reason = xstrdup(err.text);
	else
		file->written = true;
}
