/*
 * workspace_internal.h - what the files of the workspace share; nobody else includes it.
 *
 *   workspace.c         opening; reading: the folder against what was read before
 *   workspace_list.c    lists of files, and the marks by which a file is known to be as it was
 *   workspace_sync.c    the conversation's files become those of the folder
 *   workspace_walk.c    what is in the folder, and what is left alone
 *   workspace_write.c   files put in place and removed, next to other writers
 */
#pragma once

#include <sys/stat.h>

#include "workspace.h"

#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"

/* By which a file is known to be as it was. */
struct workspace_mark {
	dev_t dev;
	ino_t ino;
	int64_t size, mtime_ns, ctime_ns;
};
struct workspace_mark workspace_mark_of(const struct stat *status);
bool workspace_mark_same(const struct workspace_mark *a, const struct workspace_mark *b);
bool workspace_settled(const struct stat *status); /* did the file settle before now? */

struct workspace_file {
	char *name;
	struct workspace_mark mark;
	uint32_t mode;
	nlink_t links;
	char blob[SHA256_HEX_SIZE];
	/* Its last change was long enough before it was read: a later one changes the mark. */
	bool settled;
};
/* By name, as memcmp orders them. */
struct workspace_list {
	struct workspace_file *items;
	size_t count;
};
struct workspace_file *workspace_list_add(struct workspace_list *list, const char *name); /* at the end */
struct workspace_file *workspace_list_find(const struct workspace_list *list, const char *name);
void workspace_list_sort(struct workspace_list *list);
void workspace_list_clear(struct workspace_list *list);
#define auto_workspace_list __attribute__((cleanup(workspace_list_clear)))

struct workspace_rule {
	char *pattern;
	bool folder, whole; /* folders only; the pattern is of the whole path */
};
/* A change that could not be carried out yet. */
struct workspace_late {
	char *name, blob[SHA256_HEX_SIZE];
	struct workspace_change change; /* its texts are the above */
};

struct workspace {
	const struct config *config;
	struct store *store;
	const char *path, *owner, *conversation;
	char place[SHA256_HEX_SIZE];
	int fd;
	struct workspace_mark folder; /* of the path: dev and ino count */
	int64_t bytes_max;
	size_t files_max;
	struct workspace_list base;          /* as it was read, or written by us */
	struct workspace_names repositories; /* folders of `base` that have a file HEAD; "": the workspace itself */
	struct workspace_rule *rules;
	size_t n_rules;
	struct workspace_late *late;
	size_t n_late;
	unsigned temporary; /* number of the next temporary name */
	bool swept;         /* temporary names of processes that are gone were removed */
};

/* workspace_walk.c */
int workspace_rules_read(struct workspace *workspace, struct err *err);
void workspace_rules_clear(struct workspace *workspace);
bool workspace_ignores(const struct workspace *workspace, const char *path, bool folder); /* by its last segment */
bool workspace_ignores_path(const struct workspace *workspace, const char *path); /* the file, or a folder above it */
/* All files that count, with marks and modes, without contents; sorted. */
int workspace_walk(struct workspace *workspace, struct workspace_list *ret, struct err *err);
bool workspace_temporary(const char *name); /* is it one of workspace_write's? */

/* workspace_sync.c: `ret`: the names that changed */
int workspace_sync(struct workspace *workspace, const struct workspace_list *now, struct workspace_names *ret,
		   struct err *err);

/* workspace_write.c */
void workspace_temporary_name(struct workspace *workspace, char ret[64]);
/* Those that are late, once more; what is left is in `late`. */
void workspace_write_late(struct workspace *workspace);
bool workspace_is_late(const struct workspace *workspace, const char *name);
