/*
 * cgroup.c - the part of cgroups that both versions share: making, limiting, reading and removing groups. See cgroup.h.
 *
 * Groups are numbered and never used twice. A group that cannot be removed yet (the kernel is still taking its last
 * process down) waits in `busy` and is tried again whenever the jailer is idle, and after some more at the latest.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_internal.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define NAME_TRIES 1000 /* groups that a dead instance left busy and that have to be stepped over */

static void close_trees(struct cgroup *cgroup)
{
	for (size_t i = 0; i < cgroup->n_trees; i++) {
		unlinkat(cgroup->parents[i], cgroup->instance, AT_REMOVEDIR); /* while it is locked */
		close(cgroup->trees[i]);
		close(cgroup->parents[i]);
	}
	cgroup->n_trees = 0;
}

int cgroup_open(const struct config *config, const struct identity *identity, struct cgroup **ret, struct err *err)
{
	static const struct cgroup_kind *const kinds[] = {&cgroup_v2, &cgroup_v1};
	struct err why[ARRAY_SIZE(kinds)] = {ERR_INIT, ERR_INIT};
	struct cgroup *cgroup = xcalloc(1, sizeof(*cgroup));

	cgroup->freezer = -1;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		cgroup->n_trees = 0;
		if (!kinds[i]->open(cgroup, config, identity, &why[i])) {
			cgroup->kind = kinds[i];
			if (cgroup->kind == &cgroup_v1)
				cgroup_freezer_open(cgroup, config, identity);
			*ret = cgroup;
			return 0;
		}
		close_trees(cgroup);
	}
	if (config->jailer.weaker_limits) {
		snprintf(cgroup->cannot_freeze, sizeof(cgroup->cannot_freeze),
			 "there is no cgroup: start the jailer as root, or delegate one to its user (systemd: "
			 "Delegate=yes)");
		*ret = cgroup;
		return 0;
	}
	free(cgroup);
	return err_set(err, ERR_UNAVAILABLE,
		       "no cgroup to limit memory, processes and CPU time (v2: %s; v1: %s): start the jailer as root, "
		       "or delegate a cgroup to this user (systemd: Delegate=yes), "
		       "or accept weaker limits with jailer.weaker_limits",
		       why[0].text, why[1].text);
}

bool cgroup_limits_swap(const struct cgroup *cgroup)
{
	int dir = cgroup->kind ? cgroup->trees[cgroup->of[CGROUP_MEMORY]] : -1;

	return dir >= 0 && (faccessat(dir, "memory.swap.max", F_OK, 0) == 0 ||
			    faccessat(dir, "memory.memsw.limit_in_bytes", F_OK, 0) == 0);
}

bool cgroup_counts_tcp(const struct cgroup *cgroup)
{
	return cgroup->kind == &cgroup_v2;
}

const char *cgroup_kind(const struct cgroup *cgroup)
{
	return cgroup->kind ? cgroup->kind->name : "none";
}

static void group_free(struct cgroup_group *group)
{
	for (size_t i = 0; i < group->cgroup->n_trees; i++)
		fd_close(&group->dirs[i]);
	fd_close(&group->peak);
	fd_close(&group->freezer);
	free(group);
}

/* 0: removed, -1: still busy. */
static int group_remove(struct cgroup_group *group)
{
	int result = cgroup_freezer_remove(group);

	for (size_t i = 0; i < group->cgroup->n_trees; i++)
		if (unlinkat(group->cgroup->trees[i], group->name, AT_REMOVEDIR) && errno != ENOENT)
			result = -1;
	return result;
}

/* 0, or -1 with errno: EEXIST when there is a group of that name. Its counters belong to its own jail: no other jail
 * enters it. */
static int make_group(struct cgroup_group *group)
{
	for (size_t i = 0; i < group->cgroup->n_trees; i++) {
		int tree = group->cgroup->trees[i];
		bool made = mkdirat(tree, group->name, 0755) == 0;

		if (made)
			group->dirs[i] = openat(tree, group->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (group->dirs[i] >= 0)
			continue;
		int error = errno;
		for (size_t undo = 0; undo < i + made; undo++)
			unlinkat(group->cgroup->trees[undo], group->name, AT_REMOVEDIR);
		errno = error;
		return -1;
	}
	return 0;
}

static int group_new(struct cgroup *cgroup, struct cgroup_group **ret, struct err *err)
{
	for (int try = 0;; try++) {
		struct cgroup_group *group = xcalloc(1, sizeof(*group));

		*group = (struct cgroup_group){.cgroup = cgroup, .peak = -1, .freezer = -1};
		for (size_t i = 0; i < CGROUP_TREES; i++)
			group->dirs[i] = -1;
		snprintf(group->name, sizeof(group->name), "%u", cgroup->next_group++);
		if (!make_group(group)) {
			cgroup_disks_limit(group);
			*ret = group;
			return 0;
		}
		int error = errno;
		group_free(group);
		errno = error;
		if (error != EEXIST || try == NAME_TRIES)
			return err_errno(err, "making a cgroup for the jail");
	}
}

int cgroup_take(struct cgroup *cgroup, struct cgroup_group **ret, struct err *err)
{
	if (!cgroup->ready)
		return group_new(cgroup, ret, err);
	*ret = cgroup->ready;
	cgroup->ready = (*ret)->next;
	cgroup->n_ready--;
	return 0;
}

static void remove_busy(struct cgroup *cgroup)
{
	cgroup->n_given = 0;
	for (struct cgroup_group **link = &cgroup->busy; *link;) {
		struct cgroup_group *group = *link;

		if (group_remove(group)) {
			link = &group->next;
			continue;
		}
		*link = group->next;
		group_free(group);
	}
}

void cgroup_give(struct cgroup *cgroup, struct cgroup_group *group)
{
	group->next = cgroup->busy;
	cgroup->busy = group;
	/* Under load there may be no idle moment for long, and each holds descriptors. */
	if (++cgroup->n_given == CGROUP_GIVEN_MAX)
		remove_busy(cgroup);
}

bool cgroup_prepared(const struct cgroup *cgroup)
{
	return cgroup->n_ready >= CGROUP_READY && !cgroup->busy;
}

bool cgroup_prepare(struct cgroup *cgroup)
{
	remove_busy(cgroup);
	while (cgroup->n_ready < CGROUP_READY) {
		struct cgroup_group *group;

		if (group_new(cgroup, &group, NULL) < 0)
			return false;
		group->next = cgroup->ready;
		cgroup->ready = group;
		cgroup->n_ready++;
	}
	return !cgroup->busy;
}

void cgroup_close(struct cgroup *cgroup)
{
	if (!cgroup)
		return;
	while (cgroup->ready) {
		struct cgroup_group *group = cgroup->ready;

		cgroup->ready = group->next;
		cgroup_give(cgroup, group);
	}
	for (struct cgroup_group *group = cgroup->busy, *next; group; group = next) {
		next = group->next;
		group_remove(group);
		group_free(group);
	}
	cgroup_freezer_close(cgroup);
	close_trees(cgroup);
	free(cgroup);
}

int cgroup_limit(struct cgroup_group *group, const struct cgroup_limits *limits, struct err *err)
{
	if (!group->cgroup->kind || memcmp(&group->limits, limits, sizeof(*limits)) == 0)
		return 0;
	int result = group->cgroup->kind->limit(group, limits, err);

	if (result < 0)
		memset(&group->limits, 0, sizeof(group->limits)); /* nothing is known of them */
	else
		group->limits = *limits;
	return result;
}

int cgroup_fds(struct cgroup_group *group, int ret[CGROUP_TREES], size_t *ret_n, struct err *err)
{
	size_t n = 0;

	for (; n < group->cgroup->n_trees; n++) {
		ret[n] = openat(group->dirs[n], "cgroup.procs", O_WRONLY | O_CLOEXEC);
		if (ret[n] < 0) {
			int result = err_errno(err, "opening the jail's cgroup");

			while (n > 0)
				close(ret[--n]);
			return result;
		}
	}
	*ret_n = n;
	return 0;
}

void cgroup_reset_peak(struct cgroup_group *group)
{
	struct cgroup_usage now = {.pids_peak = 0};

	if (!group->cgroup->kind)
		return;
	group->memory_before = group->pids_before = 0;
	bool reset = group->cgroup->kind->reset_peak(group);
	/* Before the first program there was only the set-up. */
	if (group->used && group->cgroup->kind->read(group, &now, NULL) == 0) {
		group->memory_before = reset ? 0 : now.memory_peak_bytes;
		group->pids_before = now.pids_peak;
	}
	group->used = true;
}

int cgroup_read(struct cgroup_group *group, struct cgroup_usage *ret, struct err *err)
{
	*ret = (struct cgroup_usage){.pids_peak = 0};
	int result = group->cgroup->kind ? group->cgroup->kind->read(group, ret, err) : 0;
	if (ret->memory_peak_bytes <= group->memory_before)
		ret->memory_peak_bytes = 0;
	if (ret->pids_peak <= group->pids_before)
		ret->pids_peak = 0;
	return result;
}

void cgroup_lift_cpu(struct cgroup_group *group)
{
	group->limits = (struct cgroup_limits){.pids = 0};
	if (group->cgroup->kind && group->cgroup->kind->lift_cpu(group))
		log_event(LOG_WARN, "a jail dies within its CPU share", "why", strerror(errno), NULL);
}

int64_t cgroup_cpu_us(struct cgroup_group *group)
{
	return group->cgroup->kind ? group->cgroup->kind->cpu_us(group) : -1;
}
