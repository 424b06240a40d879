/*
 * landlock.h - Landlock: a second layer of access control for the files of a jail, where the kernel has it (2 or later;
 * 1 forbids every rename between directories).
 *
 * The mount namespace decides what a guest sees. Landlock decides by itself, again, what it may open: what the root
 * shows, to read and execute; /tmp, /data, /code and /dev, to write. A descriptor of a directory of the host that leaks
 * into a jail (runc's CVE-2024-21626), a mount that should not be there: nothing below it can be opened. From ABI 6 on
 * guests also cannot signal anything outside of their own program, nor reach its abstract sockets. Listing directories
 * and the network are left to the other layers.
 *
 * Made once a jail by its init, entered by each program before seccomp. In a live jail each run would be a scope of its
 * own, and could not end what an earlier one left running: there it is made without scopes (the pid and network
 * namespaces bound both anyway). Facts: landlock(7).
 */
#pragma once

#define LANDLOCK_ABI_LEAST    2
#define LANDLOCK_ABI_UNSCOPED 5 /* the last one without scopes of signals and sockets */

/* What the kernel offers; 0: nothing, or not enabled. */
int landlock_abi(void);
/* Paths that are not there are left out; both lists are ended by NULL. 0, or -1 and errno. *ret_fd: -1 where `abi` is
 * too little. */
int landlock_make(int abi, const char *const *readable, const char *const *writable, int *ret_fd);
/* For the calling thread and what it starts, for ever; needs no_new_privs. -1 and errno. Allocates nothing. */
int landlock_enter(int fd);
