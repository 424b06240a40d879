/*
 * cgroup.h - memory, processes and CPU time of a jail: one interface over cgroup v1 hierarchies, v2, and (only where
 * the configuration allows weaker limits) nothing.
 *
 * cgroup_open runs before the jailer drops what it was started with: it makes
 * <place>/<config.jailer.cgroup>/<instance>, locks it, gives it to the jailer's outer id, keeps descriptors of it, and
 * removes what dead instances left. Everything after that goes through these descriptors, so it works inside the
 * jailer's namespaces where no cgroup file system is mounted.
 *
 * A group is a directory of one jail. It serves one jail: pages that a dead jail left charged would be missing to the
 * next. Groups are made ahead (CGROUP_READY), because mkdir costs 0.1 ms.
 *
 * Live jails are frozen between runs, in a part of their group that process 1 is not in: it fills /data meanwhile.
 *
 * Facts: Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst. v1: OOM is `oom_kill` in memory.oom_control
 * (failcnt stays 0 on 6.x); attaching needs the caller's id to be the child's, so before the child changes its ids.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jail/base/identity.h"
#include "lib/base/config.h"
#include "lib/base/err.h"

#define CGROUP_READY     2
#define CGROUP_TREES     4  /* hierarchies that a group is in, at most */
#define CGROUP_GIVEN_MAX 16 /* groups that wait for an idle moment to be removed */

struct cgroup;
struct cgroup_group;

/* All of one type: cgroup_limit compares the structs as bytes, so a new limit needs no line there. */
struct cgroup_limits {
	int64_t memory_bytes;
	int64_t pids;
	int64_t cpu_percent; /* -1: none */
	int64_t background;  /* 1: its programs give way to those of all other groups; for good */
};
struct cgroup_usage {
	int64_t cpu_user_us, cpu_system_us;
	int64_t memory_peak_bytes; /* since cgroup_reset_peak; 0: the kernel does not tell */
	int64_t pids_peak;         /* the same */
	int64_t oom_kills, pids_hits;
};

/* ERR_UNAVAILABLE where none can be had and weaker limits are not allowed: names what is missing and the remedy. */
int cgroup_open(const struct config *config, const struct identity *identity, struct cgroup **ret, struct err *err);
void cgroup_close(struct cgroup *cgroup);             /* removes its groups; NULL is fine */
const char *cgroup_kind(const struct cgroup *cgroup); /* "v1", "v2", "none" */
bool cgroup_counts_tcp(const struct cgroup *cgroup);  /* does it count all that waits in TCP sockets? */
bool cgroup_limits_swap(const struct cgroup *cgroup); /* does a jail's memory limit count what is swapped out? */

int cgroup_take(struct cgroup *cgroup, struct cgroup_group **ret, struct err *err);
/* The processes in it are dead. Frees the group, in an idle moment (cgroup_prepare) or with some others; what is still
 * busy then, later. */
void cgroup_give(struct cgroup *cgroup, struct cgroup_group *group);
bool cgroup_prepared(const struct cgroup *cgroup); /* nothing is left for cgroup_prepare */
/* For idle moments: makes groups ahead, removes the busy ones. True: nothing is left to do. */
bool cgroup_prepare(struct cgroup *cgroup);

/* Sets the limits of a group, unless it has exactly these. */
int cgroup_limit(struct cgroup_group *group, const struct cgroup_limits *limits, struct err *err);
/* Descriptors to which a process writes "0" to move itself into the group: the caller's. It does so itself because the
 * kernel may keep it waiting for 10 ms (an RCU grace period under cgroup_threadgroup_rwsem), and the jailer has others
 * to serve. */
int cgroup_fds(struct cgroup_group *group, int ret[CGROUP_TREES], size_t *ret_n, struct err *err);
/* The peaks count from here on. Where the kernel cannot reset one (memory on v2 before Linux 6.12, processes
 * everywhere), it is known when it has risen since, else not: then it belongs to what ran earlier in the group. */
void cgroup_reset_peak(struct cgroup_group *group);
int cgroup_read(struct cgroup_group *group, struct cgroup_usage *ret, struct err *err);
/* CPU time used so far, user and system together; cheaper than cgroup_read. -1: cannot be read. */
int64_t cgroup_cpu_us(struct cgroup_group *group);
/* For what is about to be killed: no CPU share any more, because dying is work, too. A thousand processes within one
 * core of a machine of two take twice as long to be gone, and a group that has used its share up waits for the next
 * period before it even begins. */
void cgroup_lift_cpu(struct cgroup_group *group);

/* -------- freezing (cgroup_freezer.c) ----------------------------------------------------------------- */
/* Why no group can be frozen here and what to do about it, as the end of a sentence; NULL: it can. */
const char *cgroup_cannot_freeze(const struct cgroup *cgroup);
/* Makes the part of a group that can be frozen. *ret_group_fd: as of cgroup_fds, the caller's. *ret_events: raises
 * EPOLLPRI when cgroup_is_frozen may have changed, the caller's. */
int cgroup_freezer_make(struct cgroup_group *group, int *ret_group_fd, int *ret_events, struct err *err);
/* Begins to freeze or thaws; -1 and errno. What is frozen can be killed. */
int cgroup_freeze(struct cgroup_group *group, bool frozen);
bool cgroup_is_frozen(int events);
