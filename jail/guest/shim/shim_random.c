/*
 * shim_random.c - random bytes of a deterministic run, from the kernel, the processor and /dev: see shim.h.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim.h"

#define RANDOM_BYTES (1 << 20) /* that /dev/urandom has each time it is opened */

/* Of each thread, so that one's values do not depend on how often another asked before it. */
static __thread uint64_t sequence __attribute__((tls_model("initial-exec")));
static __thread pid_t sequence_of __attribute__((tls_model("initial-exec"))); /* 0: not begun; a fork begins anew */

/* splitmix64 */
static uint64_t next_random(void)
{
	pid_t thread = gettid();

	if (sequence_of != thread) {
		sequence_of = thread;
		sequence = (uint64_t)thread << 32;
	}
	uint64_t mixed = sequence;

	sequence += UINT64_C(0x9e3779b97f4a7c15);
	mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ (mixed >> 31);
}

static void fill_random(void *to, size_t size)
{
	for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
		uint64_t bytes = next_random();

		memcpy((char *)to + at, &bytes, size - at < sizeof(bytes) ? size - at : sizeof(bytes));
	}
}

EXPORT ssize_t getrandom(void *to, size_t size, unsigned flags)
{
	(void)flags;
	fill_random(to, size);
	return (ssize_t)size;
}

EXPORT int getentropy(void *to, size_t size)
{
	fill_random(to, size);
	return 0;
}

EXPORT uint32_t arc4random(void)
{
	return (uint32_t)next_random();
}

EXPORT void arc4random_buf(void *to, size_t size)
{
	fill_random(to, size);
}

/* std::random_device::_M_getval(), which asks the processor. */
EXPORT unsigned shim_random_device(void *device) __asm__("_ZNSt13random_device9_M_getvalEv");
unsigned shim_random_device(void *device)
{
	(void)device;
	return (unsigned)next_random();
}

static int open_random(int flags)
{
	int fd = memfd_create("random", (flags & O_CLOEXEC) ? MFD_CLOEXEC : 0);
	uint64_t bytes[512];

	for (size_t written = 0; fd >= 0 && written < RANDOM_BYTES; written += sizeof(bytes)) {
		fill_random(bytes, sizeof(bytes));
		if (write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes))
			break;
	}
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static int is_random(const char *path, int flags)
{
	return (flags & O_ACCMODE) == O_RDONLY && path &&
	       (strcmp(path, "/dev/urandom") == 0 || strcmp(path, "/dev/random") == 0);
}

#define MODE_OF(flags)                                                                                                 \
	mode_t mode = 0;                                                                                               \
	if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                         \
		va_list list;                                                                                          \
		va_start(list, flags);                                                                                 \
		mode = va_arg(list, mode_t);                                                                           \
		va_end(list);                                                                                          \
	}

EXPORT int open(const char *path, int flags, ...) /* inherited, if its caller says so */
{
	REAL(open)
	MODE_OF(flags)

	return is_random(path, flags) ? open_random(flags) : real(path, flags, mode);
}

EXPORT int openat(int directory, const char *path, int flags, ...) /* inherited likewise */
{
	REAL(openat)
	MODE_OF(flags)

	return is_random(path, flags) ? open_random(flags) : real(directory, path, flags, mode);
}

EXPORT FILE *fopen(const char *restrict path, const char *restrict how) /* inherited likewise */
{
	REAL(fopen)

	return *how == 'r' && !strchr(how, '+') && is_random(path, O_RDONLY)
		       ? fdopen(open_random(strchr(how, 'e') ? O_CLOEXEC : 0), how)
		       : real(path, how);
}

/* The same under their other names; the ones with _2 are what _FORTIFY_SOURCE makes of them. */
EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));
EXPORT int openat64(int directory, const char *path, int flags, ...) __attribute__((alias("openat")));
EXPORT FILE *fopen64(const char *restrict path, const char *restrict how) __attribute__((alias("fopen")));
EXPORT int __open_2(const char *path, int flags);
EXPORT int __open64_2(const char *path, int flags);
EXPORT int __openat_2(int directory, const char *path, int flags);
EXPORT int __openat64_2(int directory, const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return open(path, flags, 0); /* inherited, if its caller says so */
}
int __open64_2(const char *path, int flags)
{
	return open(path, flags, 0); /* inherited, if its caller says so */
}
int __openat_2(int directory, const char *path, int flags)
{
	return openat(directory, path, flags, 0); /* inherited, if its caller says so */
}
int __openat64_2(int directory, const char *path, int flags)
{
	return openat(directory, path, flags, 0); /* inherited, if its caller says so */
}
