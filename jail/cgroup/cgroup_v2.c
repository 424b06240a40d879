/*
 * cgroup_v2.c - the unified hierarchy. See cgroup_internal.h.
 *
 * Two rules of v2 shape this file. A cgroup with processes of its own cannot have children with controllers (the root
 * is exempt), and a process that moves another needs write access to the common ancestor of both places. So the
 * instance's directory gets a child "jailer", into which the jailer moves itself before it drops its privileges; groups
 * are its brothers. (It cannot leave that child, so an instance that ended leaves two empty directories, which systemd
 * or the next start removes.)
 *
 * The place, above the instances, is the first of these that will do:
 *   1. the cgroup that the jailer was started in, if no other process is in it: a unit of its own, Delegate=yes
 *   2. as a user: the parent of that cgroup, if it was delegated to the user: then it holds cgroups, not processes (a
 *      login session)
 *   3. as a user: the cgroup that the jailer was started in, if it was delegated to the user: other processes in it
 *      move to a leaf (a scope with Delegate=yes, in which a shell starts us); next time, that leaf makes it case 2
 *   4. as root: the top of what is mounted; in a container that is the container's own cgroup, and processes in it move
 *      to a leaf
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_internal.h"
#include "lib/base/util.h"

#define PERIOD_US    100000
#define WEIGHT_LEAST 1 /* of cpu.weight */
#define ENABLE       "+memory +pids +cpu"
#define LEAF         "jailer"
#define OTHERS_LEAF  "others"
#define EMPTY_ROUNDS 100 /* processes that fork are chased no longer than this */

static bool has_controllers(int dir, const char *file)
{
	return cgroup_lists(dir, file, "memory") && cgroup_lists(dir, file, "pids") && cgroup_lists(dir, file, "cpu");
}

static int enable(int dir, const char *what, struct err *err)
{
	if (has_controllers(dir, "cgroup.subtree_control"))
		return 0;
	if (cgroup_write(dir, "cgroup.subtree_control", ENABLE))
		return err_errno(err, "switching memory, pids and cpu on for children of %s", what);
	return 0;
}

/* Does the cgroup have the controllers, and may we make cgroups in it and move processes into them? */
static bool given(int dir)
{
	static const char *const files[] = {".", "cgroup.procs", "cgroup.subtree_control"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (faccessat(dir, files[i], W_OK, AT_EACCESS))
			return false;
	return has_controllers(dir, "cgroup.controllers");
}

/* Moves all processes of a cgroup to a leaf of it. Those that the kernel keeps (its own threads in the true root,
 * processes of a foreign pid namespace, listed as 0) stay, and make enable fail where they matter. */
static int make_empty(int dir, const char *path, struct err *err)
{
	auto_close int leaf = cgroup_make_dir(dir, OTHERS_LEAF, geteuid(), getegid());
	char text[CGROUP_VALUE];

	if (leaf < 0)
		return err_errno(err, "making a leaf in %s", path);
	for (int round = 0; round < EMPTY_ROUNDS; round++) {
		if (cgroup_text(dir, "cgroup.procs", text))
			return err_errno(err, "reading the processes of %s", path);
		if (!text[0])
			return 0;
		/* Whole lines only: the last one may have been cut. */
		for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			if (cgroup_write(leaf, "cgroup.procs", line) && errno != ESRCH)
				return err_errno(err, "moving process %s to a leaf of %s", line, path);
		}
	}
	return err_set(err, ERR_BUSY, "processes keep appearing in %s", path);
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* For a user: the cgroup of this process, `dir`, or the one above. */
static int find_users_place(const char *path, bool has_parent, int *dir, int *ret, struct err *err)
{
	auto_free char *above = xasprintf("%s/..", path);
	auto_close int parent = has_parent ? open_dir(above) : -1;

	if (parent >= 0 && given(parent)) {
		*ret = steal_fd(&parent);
		return 0;
	}
	if (*dir < 0 || !given(*dir))
		return err_set(err, ERR_UNAVAILABLE, "memory, pids and cpu are not delegated to this user in %s", path);
	int result = make_empty(*dir, path, err);
	if (result == 0)
		*ret = steal_fd(dir);
	return result;
}

/* Finds the place: see the top of the file. */
static int find_place(const char *mount, const struct identity *identity, int *ret, struct err *err)
{
	char own[512], processes[CGROUP_VALUE], our_pid[32];

	if (cgroup_own_path("", own, sizeof(own)) || strstr(own, ".."))
		return err_set(err, ERR_UNAVAILABLE, "this process has no v2 cgroup below %s", mount);
	auto_free char *path = xasprintf("%s/%s", mount, own);
	auto_close int dir = open_dir(path);
	snprintf(our_pid, sizeof(our_pid), "%d\n", getpid());
	if (dir >= 0 && given(dir) && cgroup_text(dir, "cgroup.procs", processes) == 0 && streq(processes, our_pid)) {
		*ret = steal_fd(&dir);
		return 0;
	}
	if (identity->mode != IDENTITY_ROOT)
		return find_users_place(path, own[0] != '\0', &dir, ret, err);
	auto_close int top = open_dir(mount);
	if (top < 0 || !given(top))
		return err_set(err, ERR_UNAVAILABLE, "%s lacks memory, pids or cpu, or cannot be written to", mount);
	/* Only the true root has no such file, and may keep its processes. */
	int result = faccessat(top, "cgroup.type", F_OK, 0) == 0 ? make_empty(top, mount, err) : 0;
	if (result == 0)
		*ret = steal_fd(&top);
	return result;
}

static int v2_open(struct cgroup *cgroup, const struct config *config, const struct identity *identity, struct err *err)
{
	char mount[512];
	auto_close int place = -1;

	if (cgroup_find_mount("", mount, sizeof(mount)))
		return err_set(err, ERR_UNAVAILABLE, "it is not mounted");
	int result = find_place(mount, identity, &place, err);
	if (result == 0)
		result = cgroup_claim(cgroup, place, config, identity, err);
	if (result < 0)
		return result;
	/* Only when the jailer is out of the way can controllers be switched on, from the top down. */
	auto_close int leaf = cgroup_make_dir(cgroup->trees[0], LEAF, identity->host_uid, identity->host_gid);
	if (leaf < 0 || cgroup_write_number(leaf, "cgroup.procs", getpid()))
		return err_errno(err, "moving the jailer into its cgroup");
	result = enable(place, "the cgroup that was given to it", err);
	if (result == 0)
		result = enable(cgroup->parents[0], config->jailer.cgroup, err);
	if (result == 0)
		result = enable(cgroup->trees[0], "the jailer's instance", err);
	if (result == 0)
		cgroup_disks_open(cgroup, config,
				  cgroup_disks_enable(place) && cgroup_disks_enable(cgroup->parents[0]) &&
					  cgroup_disks_enable(cgroup->trees[0]));
	return result;
}

static int v2_limit(struct cgroup_group *group, const struct cgroup_limits *limits, struct err *err)
{
	int dir = group->dirs[0];
	char share[48];

	if (limits->cpu_percent < 0)
		snprintf(share, sizeof(share), "max %d", PERIOD_US);
	else
		snprintf(share, sizeof(share), "%lld %d", (long long)limits->cpu_percent * (PERIOD_US / 100),
			 PERIOD_US);
	if (cgroup_write_number(dir, "memory.max", limits->memory_bytes))
		return err_errno(err, "limiting memory");
	if (cgroup_write_number(dir, "memory.swap.max", 0) && errno != ENOENT)
		return err_errno(err, "turning swap off");
	if (cgroup_write_number(dir, "pids.max", limits->pids))
		return err_errno(err, "limiting processes");
	if (cgroup_write(dir, "cpu.max", share))
		return err_errno(err, "limiting the CPU share");
	return limits->background ? cgroup_give_way(dir, "cpu.weight", WEIGHT_LEAST, err) : 0;
}

/* Linux 6.12 and later, and then for the descriptor alone to which it was written: the group keeps it. */
static bool v2_reset_peak(struct cgroup_group *group)
{
	static const char any[] = "reset\n";

	if (group->peak < 0)
		group->peak = openat(group->dirs[0], "memory.peak", O_RDWR | O_CLOEXEC);
	return group->peak >= 0 && write(group->peak, any, sizeof(any) - 1) > 0;
}

static int64_t v2_cpu_us(struct cgroup_group *group)
{
	char text[CGROUP_VALUE];

	return cgroup_text(group->dirs[0], "cpu.stat", text) ? -1 : cgroup_keyed(text, "usage_usec");
}

static int v2_lift_cpu(struct cgroup_group *group)
{
	return cgroup_write(group->dirs[0], "cpu.max", "max");
}

static int v2_read(struct cgroup_group *group, struct cgroup_usage *ret, struct err *err)
{
	int dir = group->dirs[0];
	char text[CGROUP_VALUE];

	if (cgroup_text(dir, "cpu.stat", text))
		return err_errno(err, "reading what the jail used");
	ret->cpu_user_us = cgroup_keyed(text, "user_usec");
	ret->cpu_system_us = cgroup_keyed(text, "system_usec");
	if (cgroup_text(dir, "memory.events", text))
		return err_errno(err, "reading what the jail used");
	ret->oom_kills = cgroup_keyed(text, "oom_kill");
	char peak[32];
	ssize_t n = group->peak < 0 ? -1 : pread(group->peak, peak, sizeof(peak) - 1, 0);
	peak[MAX(n, 0)] = '\0';
	/* Linux 5.19 and later; where it was reset, only its descriptor knows. */
	ret->memory_peak_bytes = n > 0 ? strtoll(peak, NULL, 10) : MAX(cgroup_number(dir, "memory.peak"), 0);
	ret->pids_peak = MAX(cgroup_number(dir, "pids.peak"), 0);
	ret->pids_hits = cgroup_text(dir, "pids.events", text) ? 0 : cgroup_keyed(text, "max");
	return 0;
}

const struct cgroup_kind cgroup_v2 = {
	.name = "v2",
	.open = v2_open,
	.limit = v2_limit,
	.reset_peak = v2_reset_peak,
	.read = v2_read,
	.cpu_us = v2_cpu_us,
	.lift_cpu = v2_lift_cpu,
};
