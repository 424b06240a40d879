/*
 * template.h - the roots that jails see, mounted once in the jailer's own minimal mount namespace.
 *
 * A root is a small tmpfs with read-only binds of the system's directories, five device nodes, a made-up /etc and empty mount points.
 * There is one with the host's /usr for every runner that asks for nothing else, and one of its own for each runner that names a
 * rootfs or directories of its own. A jail takes its root by one recursive bind (17 us instead of 160 for a dozen binds). The jailer
 * itself pivots into a root that holds nothing but these and /proc: no other host path can be reached from it, or from a jail, by any
 * mistake later on.
 *
 *     template_begin, template_add for each root, template_finish
 *
 * in a new mount namespace over which we hold CAP_SYS_ADMIN. What may be named as rootfs or bind: rootfs.h.
 */
#pragma once

#include <stddef.h>

#include "../lib/bind.h"
#include "../lib/err.h"

#define TEMPLATE_PATH    "/t" /* of the root with the host's /usr; that of the runner in place K is TEMPLATE_PATH and K */
#define TEMPLATE_MODULES "/opt/sallyport/modules"
#define TEMPLATE_HOSTS   "/hosts" /* beside it: the /etc/hosts of jails with network */

#define TEMPLATE_ROOT_PATH 24
struct template_root {
	char path[TEMPLATE_ROOT_PATH]; /* where the jailer finds it; "" = not made */
	char **shown;                  /* what of it guests may read, ended by NULL: the second fence is made of it (fence.h) */
	size_t n_shown;
};
struct template_plan {
	const char *rootfs;               /* directory whose system it shows; NULL: the host's */
	const char *modules_dir;          /* bound at TEMPLATE_MODULES ("" = none); not with a rootfs */
	const struct bind_strings *binds; /* directories of the host, shown read-only at the same place; not with a rootfs */
};

/* `hosts`: the text of TEMPLATE_HOSTS. */
int template_begin(const char *hosts, struct err *err);
/* `root` comes with its path. Failed or not, template_root_clear frees it. */
int template_add(const struct template_plan *plan, struct template_root *root, struct err *err);
void template_root_clear(struct template_root *root);
int template_finish(struct err *err); /* the host's root is gone after it */
