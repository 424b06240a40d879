/*
 * seccomp.h - the lists of system calls that guests may make, as BPF programs made once at start: one for each family
 * of runners.
 *
 * Default: EPERM. Calls on the list syscalls_reported get it by way of init, which reports them to the jailer
 * (init_deny.c). Calls that are newer than the list answer ENOSYS, so that libraries fall back to what they did before.
 * Not in it: namespaces, mounts, keys, io_uring, bpf, perf, userfaultfd, ptrace, other processes' memory, clocks,
 * modules, and every socket family but UNIX, INET, INET6 and NETLINK's ROUTE.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#include "lib/base/err.h"

/* A family of programs that run under one list. A runner file names the family of its programs ("seccomp"; BASE without
 * it) and of its compile step ("seccomp_compile"; COMPILER without it). Programs that a program starts are under the
 * same list. */
enum seccomp_family {
	SECCOMP_BASE,       /* what all of them need, and nothing of one language's own */
	SECCOMP_NATIVE,     /* C and C++, and shells, which start whatever there is: System V IPC, message queues,
			       asynchronous I/O … */
	SECCOMP_PYTHON,     /* what CPython's standard library offers, memory policies for its numerical ones */
	SECCOMP_JAVASCRIPT, /* V8 and JavaScriptCore: node, bun */
	SECCOMP_GO,
	SECCOMP_COMPILER, /* gcc, ld, go build: BASE, and no sockets but pairs */
	SECCOMP_FAMILIES,
};
extern const char *const seccomp_families[SECCOMP_FAMILIES + 1]; /* their names in runner files; ended by NULL */
enum seccomp_family seccomp_family(const char *name);            /* one of these names; SECCOMP_FAMILIES: it is none */

/* Every program begins with these rules (seccomp_guard.c); behind them comes what libseccomp makes of the lists. */
#define SECCOMP_GUARDS_MAX 512
struct seccomp_program {
	size_t n;
	size_t n_notify; /* the first so many ask init: a filter without a listener begins behind them */
	struct sock_filter code[SECCOMP_GUARDS_MAX];
};
int seccomp_guard(struct seccomp_program *ret, struct err *err);
struct seccomp_filter {
	struct sock_fprog program; /* allocated once, the caller's */
	size_t n_notify;           /* as above */
};
int seccomp_build(enum seccomp_family family, struct seccomp_filter *ret, struct err *err);
/* The name of a system call of this machine, or its number where it has none. */
void seccomp_name(int number, char *ret, size_t size);
