/*
 * rootfs.h - directories of the host that runner files name (`rootfs`, `binds`): which of them guests may be shown.
 *
 * Guests can read all that is readable for every user of the host below such a directory, so a runner file must not be
 * able to show them the wrong one by a slip: refused are places that hold secrets, what contains such a place, homes,
 * folders whose name begins with a dot, links, and directories that others than root and the jailer's user can change.
 * The reasons are sentences and name the remedy.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"

/* `state_dir`: database and files of the server, never to be seen ("" = not known). Errors: ERR_INVALID with `member`.
 */
int rootfs_check_bind(const char *member, const char *path, const char *state_dir, struct err *err);
/* The same for a whole root file system, which must look like one. */
int rootfs_check(const char *member, const char *path, const char *state_dir, struct err *err);
/* Is `path`, as a program in the rootfs sees it, a file that every user may execute? NULL: the host's root. */
bool rootfs_has(const char *rootfs, const char *path);
