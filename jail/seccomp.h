/*
 * seccomp.h - the list of system calls that a guest may make, as a BPF program made once at start.
 *
 * Default: EPERM. Calls on the list syscalls_reported get it by way of init, which tells the jailer (init_deny.c). Calls that are newer
 * than the list answer ENOSYS, so that libraries fall back to what they did before. Not in it: namespaces, mounts, keys, io_uring, bpf,
 * perf, userfaultfd, ptrace, other processes' memory, clocks, modules, and every socket family but UNIX, INET, INET6 and NETLINK's ROUTE.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "../lib/err.h"

/* The program; allocated once, the caller's. */
int seccomp_build(struct sock_fprog *ret, struct err *err);
/* The name of a system call of this machine, or its number where it has none. */
void seccomp_name(int number, char *ret, size_t size);
