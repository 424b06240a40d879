/*
 * cgroup_freezer.c - freezing what a live jail has running, between its runs. See cgroup.h.
 *
 * It is always the freezer of a v2 hierarchy. That of v1 was rejected: what it has frozen cannot be killed before it is
 * thawed, so the processes of a jailer that was killed itself would stay frozen for ever, as nothing would thaw
 * them. v2 kills what is frozen. Its freezer belongs to no controller, so it is there also where all controllers are in
 * v1 hierarchies, as long as the v2 one is mounted next to them (systemd's "hybrid" layout):
 *
 *     v2 alone      <group>/runs             process 1 stays in <group>; nothing is switched on for its children, so
 *                                            both may have some
 *     v1 and v2     <own cgroup in v2>/<config.jailer.cgroup>/<instance>/runs-<random>      process 1 stays in
 *     <instance>, with the jailer
 *
 * The guest sees the last path component in /proc/self/cgroup. It is random because a counter would reveal the number
 * of jails.
 *
 * A process that moves another must be allowed to write to what both places have in common: so next to v1 the jailer
 * moves itself into its instance's directory at the start, as on v2. It stays in there until it ends; the next start
 * removes the directory.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup_internal.h"
#include "lib/base/util.h"

/* Below our own cgroup, also as root: what started us (systemd) may rely on finding us there. */
static int claim(struct cgroup *cgroup, const struct config *config, const struct identity *identity, struct err *err)
{
	char mount[512], own[512];

	if (cgroup_find_mount("", mount, sizeof(mount)))
		return err_set(err, ERR_UNAVAILABLE, "no cgroup2 is mounted next to the v1 hierarchies: mount one");
	if (cgroup_own_path("", own, sizeof(own)) || strstr(own, ".."))
		return err_set(err, ERR_UNAVAILABLE, "the jailer has no v2 cgroup below %s", mount);
	auto_free char *path = xasprintf("%s/%s", mount, own);
	auto_close int place = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (place < 0 || faccessat(place, ".", W_OK, AT_EACCESS) || faccessat(place, "cgroup.procs", W_OK, AT_EACCESS))
		return err_set(err, ERR_UNAVAILABLE,
			       "the v2 cgroup %s is not the jailer's: start it as root, or delegate it", path);
	size_t trees = cgroup->n_trees;
	int result = cgroup_claim(cgroup, place, config, identity, err);
	if (result < 0)
		return result;
	/* No tree that jails enter when they are made. */
	cgroup->freezer = cgroup->trees[trees];
	close(cgroup->parents[trees]);
	cgroup->n_trees = trees;
	if (cgroup_write_number(cgroup->freezer, "cgroup.procs", getpid()))
		return err_errno(err, "moving the jailer into %s/%s/%s", path, config->jailer.cgroup, cgroup->instance);
	return 0;
}

void cgroup_freezer_open(struct cgroup *cgroup, const struct config *config, const struct identity *identity)
{
	struct err why = ERR_INIT;

	if (claim(cgroup, config, identity, &why) == 0)
		return;
	cgroup_freezer_close(cgroup);
	snprintf(cgroup->cannot_freeze, sizeof(cgroup->cannot_freeze), "%.255s", why.text);
}

void cgroup_freezer_close(struct cgroup *cgroup)
{
	fd_close(&cgroup->freezer);
}

const char *cgroup_cannot_freeze(const struct cgroup *cgroup)
{
	return cgroup->cannot_freeze[0] ? cgroup->cannot_freeze : NULL;
}

static int freezer_parent(const struct cgroup_group *group)
{
	return group->cgroup->freezer >= 0 ? group->cgroup->freezer : group->dirs[0];
}

int cgroup_freezer_make(struct cgroup_group *group, int *ret_group_fd, int *ret_events, struct err *err)
{
	const char *why = cgroup_cannot_freeze(group->cgroup);
	uint64_t number = 0;

	if (why)
		return err_set(err, ERR_UNAVAILABLE, "%s", why);
	if (group->cgroup->freezer >= 0 && getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return err_errno(err, "making a cgroup to freeze");
	snprintf(group->freezer_name, sizeof(group->freezer_name),
		 number ? CGROUP_FREEZER "-%016" PRIx64 : CGROUP_FREEZER, number);
	/* Not one that is there: a dead instance's processes may still be in it. */
	if (mkdirat(freezer_parent(group), group->freezer_name, 0755))
		return err_errno(err, "making a cgroup to freeze");
	group->freezer = openat(freezer_parent(group), group->freezer_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group->freezer < 0)
		return err_errno(err, "opening the cgroup to freeze");
	auto_close int group_fd = openat(group->freezer, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	auto_close int events = openat(group->freezer, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (group_fd < 0 || events < 0)
		return err_errno(err, "opening the cgroup to freeze");
	*ret_group_fd = steal_fd(&group_fd);
	*ret_events = steal_fd(&events);
	return 0;
}

int cgroup_freezer_remove(struct cgroup_group *group)
{
	if (group->freezer < 0)
		return 0;
	return unlinkat(freezer_parent(group), group->freezer_name, AT_REMOVEDIR) && errno != ENOENT ? -1 : 0;
}

int cgroup_freeze(struct cgroup_group *group, bool frozen)
{
	return cgroup_write_number(group->freezer, "cgroup.freeze", frozen);
}

/* Reading also asks the kernel that the next change is news to us. */
bool cgroup_is_frozen(int events)
{
	char text[CGROUP_VALUE];
	ssize_t n = pread(events, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = '\0';
	return cgroup_keyed(text, "frozen") == 1;
}
