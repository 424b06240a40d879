/*
 * cgroup_v2.c - the unified hierarchy. See cgroup_internal.h.
 *
 * Two rules of v2 shape this file. A cgroup with processes of its own cannot have children with controllers (the root is exempt), and
 * who moves a process needs write access to the common ancestor of both places. So the instance's directory gets a child "jailer", into
 * which the jailer moves itself before it drops its privileges; groups are its brothers.
 *
 * Where: the cgroup that the jailer was started in, if it is there alone (systemd's Delegate=yes, or a container of its own): its
 * controllers can then be switched on for children. Else, as root, the top of the hierarchy.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/util.h"
#include "cgroup_internal.h"

#define PERIOD_US 100000
#define ENABLE    "+memory +pids +cpu"
#define LEAF      "jailer"

static bool has_controllers(int dir, const char *file)
{
	char text[CGROUP_VALUE], padded[CGROUP_VALUE + 2];

	if (cgroup_text(dir, file, text))
		return false;
	text[strcspn(text, "\n")] = '\0';
	snprintf(padded, sizeof(padded), " %s ", text);
	return strstr(padded, " memory ") && strstr(padded, " pids ") && strstr(padded, " cpu ");
}

static int enable(int dir, const char *what, struct err *err)
{
	if (has_controllers(dir, "cgroup.subtree_control"))
		return 0;
	if (cgroup_write(dir, "cgroup.subtree_control", ENABLE))
		return err_errno(err, "switching memory, pids and cpu on for children of %s", what);
	return 0;
}

/* The own cgroup: everything in it (that is us, else the kernel refuses to enable controllers) moves to a leaf first. */
static int open_own(const char *mount, int *ret, struct err *err)
{
	char own[512];

	if (cgroup_own_path("", own, sizeof(own)) || own[0] == '\0')
		return err_set(err, ERR_UNAVAILABLE, "this process has no v2 cgroup of its own");
	auto_free char *path = xasprintf("%s/%s", mount, own);
	auto_close int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !has_controllers(dir, "cgroup.controllers"))
		return err_set(err, ERR_UNAVAILABLE, "memory, pids and cpu are not delegated to %s", path);
	auto_close int leaf = cgroup_make_dir(dir, LEAF, geteuid(), getegid());
	if (leaf < 0 || cgroup_write_number(leaf, "cgroup.procs", getpid()))
		return err_errno(err, "moving to a leaf of %s", path);
	int result = enable(dir, path, err);
	if (result) {
		/* Somebody else is in there: back again, as if we had not tried. */
		cgroup_write_number(dir, "cgroup.procs", getpid());
		unlinkat(dir, LEAF, AT_REMOVEDIR);
		return result;
	}
	*ret = steal_fd(&dir);
	return 0;
}

static int open_top(const char *mount, int *ret, struct err *err)
{
	auto_close int dir = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0 || !has_controllers(dir, "cgroup.controllers"))
		return err_set(err, ERR_UNAVAILABLE, "%s lacks memory, pids or cpu", mount);
	int result = enable(dir, mount, err);
	if (!result)
		*ret = steal_fd(&dir);
	return result;
}

static int v2_open(struct cgroup *cgroup, const struct config *config, const struct identity *identity, struct err *err)
{
	char mount[512];
	auto_close int place = -1;

	if (cgroup_find_mount("", mount, sizeof(mount)))
		return err_set(err, ERR_UNAVAILABLE, "it is not mounted");
	int result = open_own(mount, &place, err);
	if (result && identity->mode == IDENTITY_ROOT)
		result = open_top(mount, &place, err);
	if (result)
		return result;
	auto_close int parent = cgroup_make_dir(place, config->jailer.cgroup, geteuid(), getegid());
	if (parent < 0)
		return err_errno(err, "making the cgroup %s", config->jailer.cgroup);
	result = enable(parent, config->jailer.cgroup, err);
	if (!result)
		result = cgroup_claim(cgroup, place, config, identity, err);
	if (result)
		return result;
	auto_close int leaf = cgroup_make_dir(cgroup->trees[0], LEAF, identity->host_uid, identity->host_gid);
	if (leaf < 0 || cgroup_write_number(leaf, "cgroup.procs", getpid()))
		return err_errno(err, "moving the jailer into its cgroup");
	return enable(cgroup->trees[0], "the jailer's instance", err);
}

static int v2_limit(struct cgroup_group *group, const struct cgroup_limits *limits, struct err *err)
{
	int dir = group->dirs[0];
	char share[48];

	if (limits->cpu_percent < 0)
		snprintf(share, sizeof(share), "max %d", PERIOD_US);
	else
		snprintf(share, sizeof(share), "%lld %d", (long long)limits->cpu_percent * (PERIOD_US / 100), PERIOD_US);
	if (cgroup_write_number(dir, "memory.max", limits->memory_bytes))
		return err_errno(err, "limiting memory");
	if (cgroup_write_number(dir, "memory.swap.max", 0) && errno != ENOENT)
		return err_errno(err, "turning swap off");
	if (cgroup_write_number(dir, "pids.max", limits->pids))
		return err_errno(err, "limiting processes");
	if (cgroup_write(dir, "cpu.max", share))
		return err_errno(err, "limiting the CPU share");
	return 0;
}

/* Linux 6.12 and later; before it the peak is that of the whole jail. */
static void v2_reset_peak(struct cgroup_group *group)
{
	cgroup_write_number(group->dirs[0], "memory.peak", 0);
}

static int64_t v2_cpu_us(struct cgroup_group *group)
{
	char text[CGROUP_VALUE];

	return cgroup_text(group->dirs[0], "cpu.stat", text) ? -1 : cgroup_keyed(text, "usage_usec");
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
	ret->memory_peak_bytes = MAX(cgroup_number(dir, "memory.peak"), 0);
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
};
