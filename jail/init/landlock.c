/* landlock.c - see landlock.h. */
#include "landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/util.h"

/* What the headers of Debian 12 do not know yet, with the ABI that brought it. */
#define FS_TRUNCATE    (UINT64_C(1) << 14) /* 3 */
#define FS_IOCTL_DEV   (UINT64_C(1) << 15) /* 5 */
#define SCOPE_ABSTRACT (UINT64_C(1) << 0)  /* 6 */
#define SCOPE_SIGNAL   (UINT64_C(1) << 1)  /* 6 */
#define FS_OF_ABI_2    ((LANDLOCK_ACCESS_FS_REFER << 1) - 1)
#define FS_READ        (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE)
#define FS_OF_A_FILE   (FS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | FS_IOCTL_DEV)
#define FS_LEFT_TO_OTHERS                                                                                              \
	LANDLOCK_ACCESS_FS_READ_DIR /* a rule holds for all that is below: "/" could not be listed otherwise */

/* As of ABI 6; older kernels take it as long as what they do not know is zero. */
struct ruleset {
	uint64_t fs, net, scoped;
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

static int allow(int ruleset, const char *path, uint64_t access)
{
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(fd, &st))
		return -1;
	struct landlock_path_beneath_attr rule = {
		.allowed_access = S_ISDIR(st.st_mode) ? access : access & FS_OF_A_FILE,
		.parent_fd = fd,
	};
	return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

int landlock_make(int abi, const char *const *readable, const char *const *writable, int *ret_fd)
{
	struct ruleset attr = {.fs = FS_OF_ABI_2 & ~FS_LEFT_TO_OTHERS};

	*ret_fd = -1;
	if (abi < LANDLOCK_ABI_LEAST)
		return 0;
	if (abi >= 3)
		attr.fs |= FS_TRUNCATE;
	if (abi >= 5)
		attr.fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT | SCOPE_SIGNAL;
	auto_close int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0); /* close-on-exec */
	if (fd < 0)
		return -1;
	for (; *readable; readable++)
		if (allow(fd, *readable, attr.fs & FS_READ))
			return -1;
	for (; *writable; writable++)
		if (allow(fd, *writable, attr.fs))
			return -1;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int landlock_enter(int fd)
{
	return (int)syscall(SYS_landlock_restrict_self, fd, 0);
}
