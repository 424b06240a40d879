/*
 * scratch.c - see scratch.h.
 *
 * A child waits for the end of this process at a pipe whose other end only this process holds, and then removes the
 * folder. So an interrupt, a signal and kill -9 leave nothing behind.
 */
#include "scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	remove(path);
	return 0; /* what cannot be removed stays, the rest goes */
}

/* The child; it holds none of our descriptors, or a reader of our output would wait for it. */
_Noreturn static void wait_and_remove(int pipe_fd, const char *path)
{
	sigset_t all;
	char byte;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	if ((pipe_fd == 0 || close_range(0, (unsigned)pipe_fd - 1, 0) == 0) &&
	    close_range((unsigned)pipe_fd + 1, ~0U, 0) == 0) {
		while (read(pipe_fd, &byte, 1) > 0)
			;
		nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	}
	_exit(0);
}

int scratch_folder(char **ret, struct err *err)
{
	const char *base = getenv("TMPDIR");
	auto_free char *path = xasprintf("%s/sallyport-XXXXXX", base && *base == '/' ? base : "/tmp");
	int ends[2];

	if (!mkdtemp(path))
		return err_errno(err, "making a folder %s", path);
	if (pipe2(ends, O_CLOEXEC) < 0) {
		rmdir(path);
		return err_errno(err, "making a pipe");
	}
	pid_t child = fork();

	if (child == 0)
		wait_and_remove(ends[0], path);
	close(ends[0]); /* the other end stays open until we are gone */
	if (child < 0) {
		close(ends[1]);
		rmdir(path);
		return err_errno(err, "starting a process");
	}
	*ret = steal(&path);
	return 0;
}
