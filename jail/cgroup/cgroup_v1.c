/* cgroup_v1.c - memory, pids, cpu and cpuacct as hierarchies of their own (or together, as they are mounted). See
 * cgroup_internal.h. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_internal.h"
#include "lib/base/util.h"

#define PERIOD_US       100000            /* of the CPU share, the kernel's default */
#define WEIGHT_LEAST    2                 /* of cpu.shares */
#define WEIGHT_PROCESS  INT64_C(1024)     /* of one process */
#define WEIGHT_MOST     INT64_C(262144)   /* the kernel's largest */
/* v1 counts what waits in TCP sockets apart from memory, and not at all without a limit. */
#define TCP_BUFFERS_MAX INT64_C(16777216)

static const char *const controllers[] = {"memory", "pids", "cpu", "cpuacct"};

static int dir_of(const struct cgroup_group *group, enum cgroup_controller controller)
{
	return group->dirs[group->cgroup->of[controller]];
}

/* Root makes our directory at the top of each hierarchy: limits of the account that started the jailer (of a shell's
 * session, say) are not the guests'. A user makes it in its own cgroup, if that was delegated. */
static int v1_open(struct cgroup *cgroup, const struct config *config, const struct identity *identity, struct err *err)
{
	struct stat seen[CGROUP_TREES] = {{0}};

	for (size_t c = 0; c < ARRAY_SIZE(controllers); c++) {
		char mount[512], own[512] = "";
		struct stat st;

		if (cgroup_find_mount(controllers[c], mount, sizeof(mount)))
			return err_set(err, ERR_UNAVAILABLE, "no %s controller is mounted", controllers[c]);
		if (identity->mode != IDENTITY_ROOT && cgroup_own_path(controllers[c], own, sizeof(own)))
			return err_set(err, ERR_UNAVAILABLE, "this process has no %s cgroup", controllers[c]);
		auto_free char *path = xasprintf("%s/%s", mount, own);
		auto_close int place = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (place < 0 || fstat(place, &st))
			return err_errno(err, "opening %s", path);
		size_t tree = 0; /* "cpu,cpuacct" is one hierarchy */
		while (tree < cgroup->n_trees && (seen[tree].st_dev != st.st_dev || seen[tree].st_ino != st.st_ino))
			tree++;
		cgroup->of[c] = tree;
		if (tree < cgroup->n_trees)
			continue;
		int result = cgroup_claim(cgroup, place, config, identity, err);
		if (result < 0)
			return result;
		seen[tree] = st;
	}
	/* All jails of an instance together have the weight of as many processes as can run at a time, not of one, and
	 * what holds the instances that of them all. Where that is not ours to say, the operator has said it. */
	int64_t shares = WEIGHT_PROCESS * sysconf(_SC_NPROCESSORS_ONLN);
	size_t cpu = cgroup->of[CGROUP_CPU];
	struct stat st;
	int64_t instances = fstat(cgroup->parents[cpu], &st) == 0 && st.st_nlink > 2 ? (int64_t)st.st_nlink - 2 : 1;
	if (cgroup_write_number(cgroup->parents[cpu], "cpu.shares", MIN(shares * instances, WEIGHT_MOST)) == 0)
		cgroup_write_number(cgroup->trees[cpu], "cpu.shares", shares);
	return 0;
}

static int v1_limit(struct cgroup_group *group, const struct cgroup_limits *limits, struct err *err)
{
	int memory = dir_of(group, CGROUP_MEMORY), cpu = dir_of(group, CGROUP_CPU);

	/* memory and memory+swap must never cross: down in one order, up in the other. */
	if (cgroup_write_number(memory, "memory.limit_in_bytes", limits->memory_bytes)) {
		if (cgroup_write_number(memory, "memory.memsw.limit_in_bytes", limits->memory_bytes) ||
		    cgroup_write_number(memory, "memory.limit_in_bytes", limits->memory_bytes))
			return err_errno(err, "limiting memory");
	} else if (cgroup_write_number(memory, "memory.memsw.limit_in_bytes", limits->memory_bytes) &&
		   errno != ENOENT) {
		return err_errno(err, "limiting swap");
	}
	if (cgroup_write_number(memory, "memory.swappiness", 0) && errno != ENOENT)
		return err_errno(err, "turning swap off");
	if (cgroup_write_number(memory, "memory.kmem.tcp.limit_in_bytes", MIN(limits->memory_bytes, TCP_BUFFERS_MAX)) &&
	    errno != ENOENT)
		return err_errno(err, "limiting the buffers of sockets");
	if (cgroup_write_number(dir_of(group, CGROUP_PIDS), "pids.max", limits->pids))
		return err_errno(err, "limiting processes");
	int64_t quota = limits->cpu_percent < 0 ? -1 : limits->cpu_percent * (PERIOD_US / 100);
	if (cgroup_write_number(cpu, "cpu.cfs_quota_us", quota))
		return err_errno(err, "limiting the CPU share");
	return limits->background ? cgroup_give_way(cpu, "cpu.shares", WEIGHT_LEAST, err) : 0;
}

static bool v1_reset_peak(struct cgroup_group *group)
{
	return !cgroup_write_number(dir_of(group, CGROUP_MEMORY), "memory.max_usage_in_bytes", 0);
}

static int64_t v1_cpu_us(struct cgroup_group *group)
{
	int64_t ns = cgroup_number(dir_of(group, CGROUP_CPUACCT), "cpuacct.usage");

	return ns < 0 ? -1 : ns / 1000;
}

static int v1_lift_cpu(struct cgroup_group *group)
{
	return cgroup_write_number(dir_of(group, CGROUP_CPU), "cpu.cfs_quota_us", -1);
}

static int v1_read(struct cgroup_group *group, struct cgroup_usage *ret, struct err *err)
{
	int acct = dir_of(group, CGROUP_CPUACCT), pids = dir_of(group, CGROUP_PIDS),
	    memory = dir_of(group, CGROUP_MEMORY);
	char text[CGROUP_VALUE];
	int64_t user = cgroup_number(acct, "cpuacct.usage_user"), sum = cgroup_number(acct, "cpuacct.usage");
	int64_t peak = cgroup_number(memory, "memory.max_usage_in_bytes"), most = cgroup_number(pids, "pids.peak");

	if (user < 0 || sum < 0 || peak < 0 || cgroup_text(memory, "memory.oom_control", text))
		return err_errno(err, "reading what the jail used");
	ret->cpu_user_us = MIN(user, sum) / 1000; /* the split goes by ticks, the sum is exact */
	ret->cpu_system_us = sum / 1000 - ret->cpu_user_us;
	ret->memory_peak_bytes = peak;
	ret->oom_kills = cgroup_keyed(text, "oom_kill");
	ret->pids_peak = MAX(most, 0);
	ret->pids_hits = cgroup_text(pids, "pids.events", text) ? 0 : cgroup_keyed(text, "max");
	return 0;
}

const struct cgroup_kind cgroup_v1 = {
	.name = "v1",
	.open = v1_open,
	.limit = v1_limit,
	.reset_peak = v1_reset_peak,
	.read = v1_read,
	.cpu_us = v1_cpu_us,
	.lift_cpu = v1_lift_cpu,
};
