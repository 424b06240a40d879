/* sys.h - system calls that glibc 2.36 has no function for. As the kernel defines them: -1 and errno. */
#pragma once

#include <linux/openat2.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

/* Raw: the child continues with a copy of the caller's memory; only for single-threaded programs. */
static inline pid_t sys_clone3(struct clone_args *args)
{
	return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

static inline int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int sys_openat2(int directory, const char *path, struct open_how *how)
{
	return (int)syscall(SYS_openat2, directory, path, how, sizeof(*how));
}
