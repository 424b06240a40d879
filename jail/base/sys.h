/* sys.h - system calls that glibc 2.36 has no function for. As the kernel defines them: -1 and errno. */
#pragma once

#include <linux/openat2.h>
#include <linux/sched.h>
#include <stddef.h>
#include <sys/types.h>

/* Raw: the child goes on with a copy of the caller's memory; only for single-threaded programs. */
pid_t sys_clone3(struct clone_args *args);
int sys_pivot_root(const char *new_root, const char *put_old);
int sys_openat2(int directory, const char *path, struct open_how *how);
