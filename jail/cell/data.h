/*
 * data.h - a jail's /data: a tmpfs of its own, made and read by the jailer through descriptors.
 *
 * No path of a guest is ever followed: everything is opened beneath the directory's descriptor without links of any
 * kind and on the same file system. Reading happens when nothing of the guest is alive. Number and bytes are bounded by
 * the tmpfs' own limits, depth and length of names here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "jail/client/jail.h"
#include "lib/base/err.h"

struct data_size {
	int64_t bytes, inodes;
};
/* A new tmpfs that belongs to uid `owner` and its gid, not attached anywhere: *ret_mount for move_mount, *ret_root to
 * read it by. */
int data_make(const struct data_size *size, uid_t owner, int *ret_mount, int *ret_root, struct err *err);
/* Other limits for one that is not used yet; -1 and errno. */
int data_resize(int root, const struct data_size *size);
/* From now on nothing in it can be changed, by any process. */
int data_make_read_only(int root);
int data_make_writable(int root); /* again */

struct data_entry {
	char *name;
	uint64_t inode;
	int64_t size, mtime_us, changed_ns;
	uint32_t mode;      /* type and permissions */
	const char *unkept; /* why it cannot be kept, or NULL */
};
struct data_tree { /* everything except directories, in the order of the names; of an empty one a JAIL_FOLDER */
	struct data_entry *entries;
	size_t count;
};
/* `max_bytes`: files beyond it together are unkept (sparse ones; others do not fit the tmpfs). */
int data_walk(int root, int64_t max_bytes, struct data_tree *ret, struct err *err);
void data_clear(struct data_tree *tree);

struct data_change {
	enum jail_change_kind kind;
	const struct data_entry *entry; /* of `after`, or for JAIL_FILE_DELETED of `before` */
};
/* What became of `before`, in the order of the names; *ret is the caller's (free) and points into the trees. */
size_t data_compare(const struct data_tree *before, const struct data_tree *after, struct data_change **ret);
/* Read-only descriptor of a regular file that the walk found; -1 with errno. */
int data_open(int root, const struct data_entry *entry);
