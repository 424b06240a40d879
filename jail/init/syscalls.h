/* syscalls.h - names of system calls for seccomp.c: what a guest may call, and what does not exist for it. */
#pragma once

extern const char *const syscalls_allowed[]; /* to all families, without looking at arguments; ended by NULL */
/* To the families of the mask (1 << enum seccomp_family); refused and reported in the others. */
struct syscalls_choice {
	const char *name;
	unsigned families;
};
extern const struct syscalls_choice syscalls_by_family[];
extern const char *const syscalls_absent[];      /* ENOSYS: newer than the programs need, or never to be tried again */
extern const char *const syscalls_reported[];    /* refused, and named in the result */
extern const char *const syscalls_idle[];        /* say that they worked and do nothing */
extern const char *const syscalls_unsupported[]; /* EOPNOTSUPP: as on a file system that does not have it */

/* Calls beyond those that libseccomp 2.5.4 has names for; they get ENOSYS by number. */
#define SYSCALLS_FIRST_UNKNOWN 456
#define SYSCALLS_LAST_UNKNOWN  511
