/*
 * cgroup_claim.c - claims the directory of an instance in a hierarchy, and clears what dead instances left. See
 * cgroup_internal.h.
 *
 * The directory is locked as long as its jailer lives. A jailer may have its other locks (identity.c) in a folder that
 * we do not see, as in a container that has the host's cgroups: its groups are left alone, and who wants the same
 * instance is refused.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_internal.h"
#include "lib/base/log.h"
#include "lib/base/util.h"

#define DYING_US INT64_C(5000000) /* what a killed jailer leaves has closed its descriptors by then */

/* What a dead instance left. Its guests die with it; a group whose last process is still being taken down stays for the
 * next start. */
static void remove_groups(int instance)
{
	DIR *list = fdopendir(openat(instance, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	for (struct dirent *entry; list && (entry = readdir(list));) {
		auto_free char *freezer = xasprintf("%s/" CGROUP_FREEZER, entry->d_name);

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		unlinkat(instance, freezer, AT_REMOVEDIR);
		unlinkat(instance, entry->d_name, AT_REMOVEDIR);
	}
	if (list)
		closedir(list);
}

static void clear_abandoned(int parent, const struct identity *identity)
{
	DIR *list = fdopendir(openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	for (struct dirent *entry; list && (entry = readdir(list));) {
		uint64_t instance;
		auto_close int lock = -1;

		if (entry->d_type != DT_DIR || parse_u64(entry->d_name, 0, INT32_MAX, &instance) ||
		    !identity_abandoned(identity, (int)instance, &lock))
			continue;
		auto_close int dir = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB))
			continue;
		remove_groups(dir);
		unlinkat(parent, entry->d_name, AT_REMOVEDIR);
		log_event(LOG_INFO, "removed the cgroups of a dead instance", "instance", entry->d_name, NULL);
	}
	if (list)
		closedir(list);
}

/* Is it still there? Who clears up or ends removes it. */
static bool is_named(int parent, const char *name, int dir)
{
	struct stat there, ours;

	return fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && fstat(dir, &ours) == 0 &&
	       there.st_ino == ours.st_ino;
}

/* Children of a jailer that was killed may hold its lock until they have died, too. */
static int take_instance(int parent, const char *name, const struct identity *identity, struct err *err)
{
	const int64_t until = clock_monotonic_us() + DYING_US;

	for (;;) {
		auto_close int dir = cgroup_make_dir(parent, name, identity->host_uid, identity->host_gid);

		if (dir < 0)
			return err_errno(err, "making the cgroup of instance %s", name);
		bool locked = flock(dir, LOCK_EX | LOCK_NB) == 0;
		if (locked && is_named(parent, name, dir)) {
			remove_groups(dir);
			return steal_fd(&dir);
		}
		if (!locked && clock_monotonic_us() > until)
			return err_set(err, ERR_UNAVAILABLE,
				       "another jailer, which keeps its locks in another folder, has the cgroup of "
				       "instance %s: give this one cgroups and ids of its own (jailer.cgroup, "
				       "jailer.id_base)",
				       name);
		poll(NULL, 0, 10);
	}
}

int cgroup_claim(struct cgroup *cgroup, int place, const struct config *config, const struct identity *identity,
		 struct err *err)
{
	auto_close int parent = cgroup_make_dir(place, config->jailer.cgroup, geteuid(), getegid());

	if (parent < 0)
		return err_errno(err, "making the cgroup %s", config->jailer.cgroup);
	clear_abandoned(parent, identity);
	snprintf(cgroup->instance, sizeof(cgroup->instance), "%d", identity->instance);
	int dir = take_instance(parent, cgroup->instance, identity, err);
	if (dir < 0)
		return dir;
	cgroup->trees[cgroup->n_trees] = dir;
	cgroup->parents[cgroup->n_trees++] = steal_fd(&parent);
	return 0;
}
