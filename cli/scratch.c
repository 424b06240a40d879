/*
 * scratch.c - see cli.h.
 *
 * A child waits for the end of this process at a pipe whose other end only this process holds, and then removes the
 * folder. So an interrupt, a signal and kill -9 leave nothing behind.
 *
 * Where the child is killed as well (a group of processes, a container, the power) the folder stays. Both hold a lock
 * on it, so the next start of this user removes every folder of that kind whose lock is free.
 */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

#define PREFIX   "sallyport-scratch-"
#define ATTEMPTS 8 /* another start may take a new folder for one that was left, until it is locked */

/* What cannot be removed stays, the rest goes. */
static void remove_all(char *path)
{
	char *const paths[] = {path, NULL};
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	const FTSENT *entry;

	while (walk && (entry = fts_read(walk))) {
		if (entry->fts_info == FTS_D)
			chmod(entry->fts_accpath, 0700); /* a package may have folders that are read-only */
		else
			remove(entry->fts_accpath);
	}
	if (walk)
		fts_close(walk);
}

/* The folder, locked; -1: it is somebody else's, in use, or gone. */
static int lock_folder(const char *path)
{
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat held, named;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &held) || lstat(path, &named) ||
	    held.st_ino != named.st_ino || held.st_dev != named.st_dev || held.st_uid != geteuid())
		return -1;
	return steal_fd(&fd);
}

static void remove_leftovers(const char *base)
{
	DIR *list = opendir(base);
	const struct dirent *entry;

	while (list && (entry = readdir(list))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		auto_free char *path = xasprintf("%s/%s", base, entry->d_name);
		auto_close int lock = lock_folder(path);

		if (lock >= 0)
			remove_all(path);
	}
	if (list)
		closedir(list);
}

/* The child; it holds none of our descriptors but the lock, or a reader of our output would wait for it. */
_Noreturn static void wait_and_remove(int pipe_fd, int lock, char *path)
{
	const int low = MIN(pipe_fd, lock), high = MAX(pipe_fd, lock);
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if ((low == 0 || close_range(0, (unsigned)low - 1, 0) == 0) &&
	    (high == low + 1 || close_range((unsigned)low + 1, (unsigned)high - 1, 0) == 0) &&
	    close_range((unsigned)high + 1, ~0U, 0) == 0) {
		while (read(pipe_fd, &byte, 1) > 0)
			;
		remove_all(path);
	}
	_exit(0);
}

/* A new folder, and its lock; NULL with err set. */
static char *make_folder(const char *base, int *ret_lock, struct err *err)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		auto_free char *path = xasprintf("%s/" PREFIX "XXXXXX", base);

		if (!mkdtemp(path)) {
			err_errno(err, "making a folder %s", path);
			return NULL;
		}
		*ret_lock = lock_folder(path);
		if (*ret_lock >= 0)
			return steal(&path);
	}
	err_set(err, ERR_SYSTEM, "making a folder in %s: each new one was removed at once", base);
	return NULL;
}

int cli_scratch(char **ret, struct err *err)
{
	const char *base = getenv("TMPDIR");
	auto_close int lock = -1;
	int ends[2];

	if (!base || *base != '/')
		base = "/tmp";
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_errno(err, "making a pipe");
	auto_close int end = ends[0];
	auto_close int ours = ends[1];
	remove_leftovers(base);
	auto_free char *path = make_folder(base, &lock, err);

	if (!path)
		return -(int)err->code;
	pid_t child = fork();

	if (child < 0) {
		err_errno(err, "starting a process");
		rmdir(path);
		return -(int)err->code;
	}
	if (child == 0)
		wait_and_remove(end, lock, path);
	steal_fd(&ours); /* stays open until we are gone, and so does the lock */
	steal_fd(&lock);
	*ret = steal(&path);
	return 0;
}
