/*
 * faults.h - for tests of what survives: the calls by which this process changes files, counted. At the n-th of them
 * the process is killed, or from the n-th on its disk is full.
 *
 * The functions stand in the place of the C library's, for SQLite as well. They are for children of the test's own.
 */
#pragma once

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum fault { FAULT_KILL, FAULT_FULL };
static enum fault fault_kind;
static atomic_long fault_left; /* calls up to the fault; 0: none is wanted */

/* `grows`: it needs room on the disk. True: it fails. */
static bool fault_now(bool grows)
{
	if (fault_left == 0 || (fault_kind == FAULT_FULL && !grows))
		return false;
	if (fault_left > 1) {
		atomic_fetch_sub(&fault_left, 1);
		return false;
	}
	if (fault_kind == FAULT_KILL)
		kill(getpid(), SIGKILL);
	errno = ENOSPC;
	return true;
}

#define FAULTY(name, grows, arguments, ...)                                                                            \
	long name##_faulty arguments __asm__(#name);                                                                   \
	long name##_faulty arguments                                                                                   \
	{                                                                                                              \
		return fault_now(grows) ? -1 : syscall(__VA_ARGS__);                                                   \
	}
FAULTY(write, true, (int fd, const void *data, size_t length), SYS_write, fd, data, length)
FAULTY(pwrite, true, (int fd, const void *data, size_t length, off_t at), SYS_pwrite64, fd, data, length, at)
FAULTY(pwrite64, true, (int fd, const void *data, size_t length, off_t at), SYS_pwrite64, fd, data, length, at)
FAULTY(fsync, false, (int fd), SYS_fsync, fd)
FAULTY(fdatasync, false, (int fd), SYS_fdatasync, fd)
FAULTY(syncfs, false, (int fd), SYS_syncfs, fd)
FAULTY(ftruncate, false, (int fd, off_t length), SYS_ftruncate, fd, length)
FAULTY(ftruncate64, false, (int fd, off_t length), SYS_ftruncate, fd, length)
FAULTY(mkdirat, true, (int fd, const char *name, unsigned mode), SYS_mkdirat, fd, name, mode)
FAULTY(rename, false, (const char *old, const char *new), SYS_rename, old, new)
FAULTY(renameat, false, (int from, const char *old, int to, const char *new), SYS_renameat, from, old, to, new)
FAULTY(linkat, true, (int from, const char *old, int to, const char *new, int flags), SYS_linkat, from, old, to, new,
	flags)
FAULTY(unlink, false, (const char *name), SYS_unlink, name)
FAULTY(unlinkat, false, (int fd, const char *name, int flags), SYS_unlinkat, fd, name, flags)
