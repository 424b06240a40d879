/* layers.c - see layers.h. Which overlays there are is what directories there are in a tmpfs of the jailer's. */
#include "layers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/base/sys.h"
#include "lib/base/util.h"

#define FLAGS    (MS_RDONLY | MS_NOSUID | MS_NODEV)
#define NAMES_US INT64_C(1000000)

void layers_path(char path[LAYERS_PATH_SIZE], size_t slot, size_t i)
{
	snprintf(path, LAYERS_PATH_SIZE, ROOT_MOUNT_LAYERS "/%zu.%zu", slot, i);
}

/* The kernel wants two lower directories, and what it says of the whole, free space too, it takes from the first: an
 * empty one of the root mount, so that no guest learns how full the host's disk is. */
int layers_mount(const char *root, const char *directory, const char *at)
{
	char layers[2 * PATH_MAX];

	errno = EINVAL;
	if (strpbrk(directory, ":,\\")) /* they have a meaning for the kernel */
		return -1;
	snprintf(layers, sizeof(layers), "lowerdir=%s/" ROOT_MOUNT_EMPTY ":%s/%s", root, root, directory);
	return mount("overlay", at, "overlay", FLAGS, layers);
}

/* Without the directory, init knows that there is no overlay. */
static int make(const struct root_mount *usual, size_t i, const char *at)
{
	if (mkdir(at, 0755))
		return -1;
	if (layers_mount(usual->path, usual->shown[i] + 1, at) == 0)
		return 0;
	int error = errno;
	rmdir(at);
	errno = error;
	return error == EINVAL ? 0 : -1;
}

/* The kernel drops what is cached of a file system's names whenever it is mounted anew. What cannot be renewed is made
 * again. */
static int renew(const struct root_mount *usual, size_t i, const char *at)
{
	if (access(at, F_OK))
		return 0;
	auto_close int fs = fspick(AT_FDCWD, at, FSPICK_CLOEXEC | FSPICK_NO_AUTOMOUNT);
	if (fs >= 0 && fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) == 0 &&
	    fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) == 0)
		return 0;
	fd_close(&fs);
	return umount2(at, MNT_DETACH) || rmdir(at) ? -1 : make(usual, i, at);
}

typedef int each_layer(const struct root_mount *usual, size_t i, const char *at);

static int for_set(struct layers *layers, const struct root_mount *usual, size_t slot, each_layer *step,
		   struct err *err)
{
	char at[LAYERS_PATH_SIZE];

	for (size_t i = 0; i < usual->n_bound; i++) {
		layers_path(at, slot, i);
		if (step(usual, i, at))
			return err_errno(err, "making an overlay of %s", usual->shown[i]);
	}
	layers->looked_us[slot] = clock_monotonic_us();
	return 0;
}

int layers_init(struct layers *layers, const struct root_mount *usual, struct err *err)
{
	int result = 0;

	if (!usual->n_bound)
		return 0;
	if (mount("tmpfs", ROOT_MOUNT_LAYERS, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=755"))
		return err_errno(err, "mounting %s", ROOT_MOUNT_LAYERS);
	for (size_t slot = 0; slot < LAYERS_SLOTS && result == 0; slot++)
		result = for_set(layers, usual, slot, make, err);
	return result;
}

int layers_renew(struct layers *layers, const struct root_mount *usual, size_t slot, struct err *err)
{
	if (clock_monotonic_us() - layers->looked_us[slot] < NAMES_US)
		return 0;
	return for_set(layers, usual, slot, renew, err);
}

const char *layers_missing(const struct root_mount *usual)
{
	char at[LAYERS_PATH_SIZE];

	if (!usual->n_bound)
		return "/usr";
	for (size_t i = 0; i < usual->n_bound; i++) {
		layers_path(at, 0, i);
		if (access(at, F_OK))
			return usual->shown[i];
	}
	return NULL;
}
