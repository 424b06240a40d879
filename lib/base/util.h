/*
 * util.h - the few macros and helpers that every other file uses.
 *
 * Ownership is written with the cleanup attribute: a variable marked auto_free, auto_close … is given back when it goes
 * out of scope; steal() hands it on instead. File descriptors start at -1 and are tested with `< 0` (0 is a valid
 * descriptor). Nothing here prints or exits, except that running out of memory aborts (xmalloc and friends): there is
 * nothing sensible a request handler can do then, and the supervisor starts the program again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "banned.h"
#include "err.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The struct that *pointer is the member of. */
#define container_of(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* steal(&p): the value of *p, which becomes NULL (or, for descriptors with steal_fd, -1). */
#define steal(pp)                    \
	({                               \
		typeof(*(pp)) stolen_ = *(pp); \
		*(pp) = NULL;                \
		stolen_;                     \
	})
static inline int steal_fd(int *fd)
{
	int stolen = *fd;

	*fd = -1;
	return stolen;
}

/* The pointer without its const, for an interface that takes a plain pointer and does not write to it. Not for freeing:
 * an owner holds a plain pointer. */
static inline void *unconst(const void *pointer)
{
	return (void *)(uintptr_t)pointer;
}

void free_pointer(void *pointer_to_pointer);
void close_pointer(const int *fd); /* keeps errno; for auto_close */
void fd_close(int *fd);            /* closes it if it is one and makes it -1; keeps errno */
void fclose_pointer(FILE **file);

#define auto_free __attribute__((cleanup(free_pointer)))
#define auto_close __attribute__((cleanup(close_pointer)))
#define auto_fclose __attribute__((cleanup(fclose_pointer)))

/* memory.c: memory that is there or the program aborts. xasprintf's result is the caller's. */
void *xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *old, size_t count, size_t size) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
/* The bytes, which may hold NULs, and a NUL behind them. */
char *xmemdup(const void *data, size_t length) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *text, size_t length) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

static inline bool streq(const char *a, const char *b)
{
	return __builtin_strcmp(a, b) == 0;
}
bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);
#define STR_NEAR_MAX 64 /* longer words are compared exactly */
/* Are they the same but for letter case or up to two typing errors? For "did you mean …". */
bool str_near(const char *a, const char *b);

/* A decimal number within [min, max], the whole string; 0 or -1 (nothing is set). No sign, no blanks, no octal. */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
/* FNV-1a of what `hash` stands for (FNV1A_BEGIN: nothing) and the bytes: quick, and not a guard against forgery. */
#define FNV1A_BEGIN UINT64_C(0xcbf29ce484222325)
uint64_t fnv1a(uint64_t hash, const void *data, size_t length);

/* The whole file below directory `at` (AT_FDCWD: a path), at most `max` bytes, NUL added behind `*ret_length` bytes.
 * ERR_NOT_FOUND: there is none. */
int read_file_at(int at, const char *path, size_t max, char **ret, size_t *ret_length, struct err *err);
/* All of fd from its current position, same rules. */
int read_fd(int fd, size_t max, char **ret, size_t *ret_length, struct err *err);
/* The path to which a new file is renamed in order to replace this one: links are followed. *ret_special: there is
 * something that is not a regular file (a terminal, a pipe, /dev/null), which must not be replaced. The caller's. */
char *path_to_replace(const char *path, bool *ret_special);
/* Writes all of it, taking up after EINTR and short writes; 0 or -1 with errno. */
int write_all(int fd, const void *data, size_t length);
/* A new anonymous file (memfd, CLOEXEC) that holds the data, positioned at 0; -1 with errno. */
int memfd_with(const char *name, const void *data, size_t length);
/* First of all in a program: opens /dev/null as 0, 1 and 2 where the process that started us left them closed. Else the
 * next file or socket would have that number, and get what is meant for standard output and error. 0 or -1 with errno.
 * */
int fill_standard_fds(void);

/* Microseconds: since the epoch (UTC), and of the monotonic clock for deadlines. */
int64_t clock_now_us(void);
int64_t clock_monotonic_us(void);
/* "2026-11-21T08:11:09.123456Z"; buffer of at least CLOCK_TEXT_SIZE. */
#define CLOCK_TEXT_SIZE 32
void clock_text(int64_t us, char buffer[CLOCK_TEXT_SIZE]);
