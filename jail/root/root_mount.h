/*
 * root_mount.h - the roots that jails see, mounted once in the jailer's own minimal mount namespace.
 *
 * A root is a small tmpfs with read-only binds of the system's directories, five device nodes, a made-up /etc and empty
 * mount points. There is one with the host's /usr for every runner that asks for nothing else, and one of its own for
 * each runner that names a rootfs or directories of its own. A jail takes its root by one recursive bind (17 us instead
 * of 160 for a dozen binds). The jailer itself pivots into a root that holds nothing but these and /proc: no other host
 * path can be reached from it, or from a jail, by any mistake later on.
 *
 *     root_mount_begin, root_mount_add for each root, root_mount_finish
 *
 * in a new mount namespace over which we hold CAP_SYS_ADMIN. What may be named as rootfs or bind: rootfs.h.
 */
#pragma once

#include <stddef.h>

#include "lib/base/bind.h"
#include "lib/base/err.h"

#define ROOT_MOUNT_PATH    "/t" /* of the root with the host's /usr; that of runner K is ROOT_MOUNT_PATH and K */
#define ROOT_MOUNT_MODULES "/opt/sallyport/modules"
#define ROOT_MOUNT_EMPTY   "run"    /* of every root: a directory that is empty */
#define ROOT_MOUNT_HOSTS   "/hosts"  /* next to it: the /etc/hosts of jails with network */
#define ROOT_MOUNT_LAYERS  "/layers" /* next to it: an empty directory, for layers.h */

#define ROOT_MOUNT_PATH_SIZE 24
struct root_mount {
	char path[ROOT_MOUNT_PATH_SIZE]; /* where the jailer finds it; "" = not made */
	char **shown; /* what of it guests may read, ended by NULL: Landlock is made of it (landlock.h) */
	size_t n_shown;
	size_t n_bound; /* the first so many are directories of the host or a rootfs: jails overlay them (layers.h) */
};
struct root_plan {
	const char *rootfs;      /* directory whose system it shows; NULL: the host's */
	const char *modules_dir; /* bound at ROOT_MOUNT_MODULES ("" = none); not with a rootfs */
	const struct bind_strings
		*binds; /* directories of the host, shown read-only at the same place; not with a rootfs */
};

/* `hosts`: the text of ROOT_MOUNT_HOSTS. */
int root_mount_begin(const char *hosts, struct err *err);
/* `root` comes with its path. Failed or not, root_mount_clear frees it. */
int root_mount_add(const struct root_plan *plan, struct root_mount *root, struct err *err);
void root_mount_clear(struct root_mount *root);
int root_mount_finish(struct err *err); /* the host's root is gone after it */
