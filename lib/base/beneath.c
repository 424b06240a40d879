/* beneath.c - see beneath.h. */
#include "beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

int beneath_open(int directory, const char *path, int flags, mode_t mode)
{
	const struct open_how how = {
		.flags = (unsigned)flags | O_CLOEXEC | O_NOFOLLOW,
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV,
	};

	return (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
}
