/*
 * cgroup_disks.c - how fast a jail reads from the host's disks. What a jail writes is memory, but /usr, a rootfs and
 * binds are the host's files: a guest that reads all of them keeps the disk busy and drops from the page cache what
 * others need. No other limit counts that. See cgroup_internal.h.
 *
 * The controller `io` of v2 is an extra: a jailer that was not given it runs all the same and the log says so. Each
 * group has the limit for every disk that the host has mounted when the jailer starts, because any of them can be below
 * what a root binds. The kernel limits whole disks, not partitions.
 *
 * Facts: Documentation/admin-guide/cgroup-v2.rst, "IO Interface Files"; proc_pid_mountinfo(5).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cgroup_internal.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define MOUNTS_MAX (4 * 1024 * 1024)
#define MEGABYTE   1000000

bool cgroup_disks_enable(int dir)
{
	return cgroup_lists(dir, "cgroup.subtree_control", "io") ||
	       (cgroup_lists(dir, "cgroup.controllers", "io") &&
		cgroup_write(dir, "cgroup.subtree_control", "+io") == 0);
}

/* A disk, or the one that a partition is of. */
static void add(struct cgroup *cgroup, dev_t disk)
{
	auto_free char *folder = xasprintf("/sys/dev/block/%u:%u", major(disk), minor(disk));
	auto_free char *partition = xasprintf("%s/partition", folder), *path = xasprintf("%s/../dev", folder);
	auto_free char *text = NULL;
	size_t length;
	unsigned high, low;

	if (access(partition, F_OK) == 0 && read_file_at(AT_FDCWD, path, 64, &text, &length, NULL) == 0 &&
	    sscanf(text, "%u:%u", &high, &low) == 2)
		disk = makedev(high, low);
	for (size_t i = 0; i < cgroup->n_disks; i++)
		if (cgroup->disks[i] == disk)
			return;
	if (cgroup->n_disks < CGROUP_DISKS)
		cgroup->disks[cgroup->n_disks++] = disk;
}

void cgroup_disks_open(struct cgroup *cgroup, const struct config *config, bool enabled)
{
	auto_free char *text = NULL;
	size_t length;
	char *state;

	if (!config->jailer.disk_read_mb)
		return;
	if (!enabled) {
		log_event(LOG_INFO, "reading from disks is not limited: the io controller is not delegated", NULL);
		return;
	}
	if (read_file_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTS_MAX, &text, &length, NULL) < 0)
		return;
	/* "ID PARENT MAJOR:MINOR ROOT AT OPTIONS … - TYPE SOURCE OPTIONS". Some file systems have a number of their own
	 * with major 0: their device is the source, if it is one. */
	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		const char *behind = strstr(line, " - ");
		unsigned high, low;
		char source[512];
		struct stat st;

		if (sscanf(line, "%*u %*u %u:%u", &high, &low) != 2)
			continue;
		if (high)
			add(cgroup, makedev(high, low));
		else if (behind && sscanf(behind, " - %*s %511s", source) == 1 && source[0] == '/' &&
			 stat(source, &st) == 0 && S_ISBLK(st.st_mode))
			add(cgroup, st.st_rdev);
	}
	cgroup->disk_bytes = config->jailer.disk_read_mb * MEGABYTE;
}

void cgroup_disks_limit(struct cgroup_group *group)
{
	struct cgroup *cgroup = group->cgroup;

	for (size_t i = 0; i < cgroup->n_disks; i++) {
		auto_free char *limit = xasprintf("%u:%u rbps=%lld", major(cgroup->disks[i]), minor(cgroup->disks[i]),
						  (long long)cgroup->disk_bytes);

		if (cgroup_write(group->dirs[0], "io.max", limit) == 0)
			continue;
		log_event(LOG_WARN, "a disk has no limit", "limit", limit, "why", strerror(errno), NULL);
		cgroup->disks[i--] = cgroup->disks[--cgroup->n_disks]; /* it is gone, or takes none: not asked again */
	}
}
