/* sys.c - see sys.h. */
#include "sys.h"

#include <sys/syscall.h>
#include <unistd.h>

pid_t sys_clone3(struct clone_args *args)
{
	return (pid_t)syscall(SYS_clone3, args, sizeof(*args));
}

int sys_pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int sys_openat2(int directory, const char *path, struct open_how *how)
{
	return (int)syscall(SYS_openat2, directory, path, how, sizeof(*how));
}
