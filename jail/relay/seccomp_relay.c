/*
 * seccomp_relay.c - what the egress relay and its resolvers may still do (relay.h). Loaded by each of them into itself,
 * for good.
 *
 * The relay reads what guests and servers send: it can use the descriptors that it was given, and make TCP and UDP
 * sockets. It cannot open a file, make a process, signal or trace anybody, or make memory executable. A resolver runs
 * the C library's own code, which reads files and loads modules, on names only. Everything else answers EPERM, so that
 * a library of tomorrow fails softly.
 */
#include <errno.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "lib/base/util.h"
#include "relay_internal.h"

#define LOW_32 0xffffffffu

/* Of both. */
static const char *const common[] = {
	"read",         "write",      "close",       "recvfrom",       "recvmsg",      "sendto",
	"sendmsg",      "connect",    "getsockname", "getpeername",    "getsockopt",   "setsockopt",
	"brk",          "munmap",     "mremap",      "madvise",        "futex",        "clock_gettime",
	"gettimeofday", "getrandom",  "getpid",      "rt_sigprocmask", "rt_sigreturn", "restart_syscall",
	"sigaltstack", /* AddressSanitizer before it ends */
	"exit",         "exit_group", NULL};
static const char *const relay_only[] = {"accept4", "shutdown", "epoll_ctl", "epoll_wait", "epoll_pwait", NULL};
static const char *const resolver_only[] = {
	"openat", "open", "newfstatat", "fstat", "stat", "lstat", "statx", "statfs", "access", "faccessat", "lseek",
	"pread64", "readlink", "readlinkat", "getdents64", "fcntl", "poll", "ppoll", "bind", "sendmmsg", "writev",
	"uname", "getuid", "geteuid", "getgid", "getegid", "gettid", "sched_yield", "sysinfo", "prlimit64",
	"rt_sigaction", "mmap", "mprotect", "set_robust_list", "rseq", "time", "clock_nanosleep", NULL
};

static int allow_names(scmp_filter_ctx filter, const char *const *names)
{
	for (; *names; names++) {
		int number = seccomp_syscall_resolve_name(*names);

		if (number >= 0 && seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0))
			return -1;
	}
	return 0;
}

static int allow_values(scmp_filter_ctx filter, int call, unsigned argument, const uint32_t *values, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct scmp_arg_cmp compare = SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, LOW_32, values[i]);

		if (seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, call, 1, &compare))
			return -1;
	}
	return 0;
}

static int fill(scmp_filter_ctx filter, bool resolver)
{
	static const uint32_t outward[] = {AF_INET, AF_INET6}, local[] = {AF_UNIX, AF_NETLINK}, waiting[] = {FIONREAD};
	const struct scmp_arg_cmp not_executable = SCMP_CMP(2, SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);

	if (allow_names(filter, common) || allow_names(filter, resolver ? resolver_only : relay_only))
		return -1;
	if (allow_values(filter, SCMP_SYS(socket), 0, outward, ARRAY_SIZE(outward)))
		return -1;
	if (resolver)
		return allow_values(filter, SCMP_SYS(socket), 0, local, ARRAY_SIZE(local)) ||
				       allow_values(filter, SCMP_SYS(ioctl), 1, waiting, ARRAY_SIZE(waiting))
			       ? -1
			       : 0;
	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, &not_executable) ||
			       seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, &not_executable)
		       ? -1
		       : 0;
}

int relay_seccomp(bool resolver)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int result = filter ? fill(filter, resolver) : -1;

	if (result == 0 && seccomp_load(filter) < 0)
		result = -1;
	if (filter)
		seccomp_release(filter);
	return result;
}
