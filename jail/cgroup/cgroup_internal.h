/*
 * cgroup_internal.h - what cgroup.c shares with the two kinds of hierarchy (cgroup_v1.c, cgroup_v2.c), the freezer
 * (cgroup_freezer.c), the limits of disks (cgroup_disks.c) and what all of them build on (cgroup_files.c).
 *
 * A tree is one mounted hierarchy: v1 has one for each controller (or pair of them), v2 has one for all. A group has
 * one directory in every tree, under the same name.
 */
#pragma once

#include <stddef.h>

#include "cgroup.h"

#define CGROUP_DISKS 16
#define CGROUP_VALUE 4096 /* the longest file that is read, cpu.stat and memory.stat included */

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CPUACCT, CGROUP_CONTROLLERS };

struct cgroup_kind {
	const char *name;
	/* Finds the mounts and makes the instance's directories: fills cgroup->trees, cgroup->of. */
	int (*open)(struct cgroup *cgroup, const struct config *config, const struct identity *identity,
		    struct err *err);
	int (*limit)(struct cgroup_group *group, const struct cgroup_limits *limits, struct err *err);
	bool (*reset_peak)(struct cgroup_group *group); /* of memory; false: the kernel cannot */
	int (*read)(struct cgroup_group *group, struct cgroup_usage *ret, struct err *err);
	int64_t (*cpu_us)(struct cgroup_group *group);
	int (*lift_cpu)(struct cgroup_group *group);
};
extern const struct cgroup_kind cgroup_v1, cgroup_v2;

struct cgroup_group {
	struct cgroup *cgroup;
	struct cgroup_group *next;
	char name[16];
	int dirs[CGROUP_TREES];
	int freezer;                         /* the part that can be frozen; -1 */
	char freezer_name[24];               /* its directory: what runs in it can read that */
	int peak;                            /* v2: memory.peak, once it was reset; -1 */
	struct cgroup_limits limits;         /* that it has; all 0: unknown */
	bool used;                           /* the peak was reset before */
	int64_t memory_before, pids_before; /* peaks that were reached before the reset and could not be forgotten */
};

struct cgroup {
	const struct cgroup_kind *kind; /* NULL: none */
	int trees[CGROUP_TREES + 1];    /* the instance's directory in each; one more while the freezer is claimed */
	/* and what it is in: removing it works where that is ours, too (a delegated cgroup) */
	int parents[CGROUP_TREES + 1];
	char instance[16];
	size_t n_trees;
	size_t of[CGROUP_CONTROLLERS]; /* index of the controller's tree */
	int freezer; /* the instance's directory in a v2 hierarchy next to v1 ones; -1: none, or v2 alone */
	char cannot_freeze[256];       /* why; "" */
	dev_t disks[CGROUP_DISKS];     /* that have a limit */
	size_t n_disks;
	int64_t disk_bytes; /* a second, read by one group from one disk */
	unsigned next_group;
	struct cgroup_group *ready, *busy;
	size_t n_ready, n_given; /* given: since the busy ones were tried last */
};

/* Next to v1 hierarchies: finds a v2 one to freeze in, or says in cannot_freeze why there is none. */
void cgroup_freezer_open(struct cgroup *cgroup, const struct config *config, const struct identity *identity);
void cgroup_freezer_close(struct cgroup *cgroup);
/* Removes the part of a group that can be frozen; -1: still busy. */
int cgroup_freezer_remove(struct cgroup_group *group);
#define CGROUP_FREEZER "runs" /* its name below a v2 group */

/* cgroup_files.c: small files of a directory. text: NUL-terminated, 0 or -1 with errno; number: -1 where there is none;
 * lists: is the word one of those in the file? */
int cgroup_write(int dir, const char *file, const char *text);
int cgroup_write_number(int dir, const char *file, int64_t value);
int cgroup_text(int dir, const char *file, char ret[CGROUP_VALUE]);
int64_t cgroup_number(int dir, const char *file);
bool cgroup_lists(int dir, const char *file, const char *word);
/* Leaves the processors to other groups: weight `least` in `file`, and idle where the kernel can. */
int cgroup_give_way(int dir, const char *file, int64_t least, struct err *err);
/* "key value" lines: the value of a key, 0 where it is absent. */
int64_t cgroup_keyed(const char *text, const char *key);
/* Makes directory `name` in `parent` if it is not there, opens it, gives it and its files to the ids; -1 with errno. */
int cgroup_make_dir(int parent, const char *name, uid_t uid, gid_t gid);
/* Adds a tree: directory <place>/<name>/<instance> for the jailer, in a mounted hierarchy, after clearing what dead
 * instances left. */
int cgroup_claim(struct cgroup *cgroup, int place, const struct config *config, const struct identity *identity,
		 struct err *err);
/* Own path in the hierarchy that has the controller ("" = v2), and where a mount of it is; both from /proc/self. -1:
 * none. */
int cgroup_find_mount(const char *controller, char *ret_mount, size_t size);
int cgroup_own_path(const char *controller, char *ret_path, size_t size);

/* cgroup_disks.c: v2 only. Switches io on for children of a cgroup; false: it has not got it. */
bool cgroup_disks_enable(int dir);
/* `enabled`: for the groups. Finds the disks, or says in the log why there are none. */
void cgroup_disks_open(struct cgroup *cgroup, const struct config *config, bool enabled);
void cgroup_disks_limit(struct cgroup_group *group);
