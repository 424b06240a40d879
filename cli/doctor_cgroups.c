/*
 * doctor_cgroups.c - can we limit memory, processes and CPU time? Tried by making a group of our own and taking it away
 * again.
 *
 * Version 1 has a tree per controller, version 2 one tree in which controllers are handed down. A user without
 * privileges can use only what was delegated: the group this process is in, if it may write there (systemd:
 * Delegate=yes).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"
#include "lib/base/util.h"

#define MOUNTS_MAX (1024 * 1024)

struct hierarchy {
	char mount[256];  /* "" : not mounted */
	char own[512];    /* the group that we are in, below it */
};

static bool word_in(const char *list, const char *word, const char *separators)
{
	auto_free char *copy = xstrdup(list);
	char *rest = copy;

	for (char *item; (item = strsep(&rest, separators));) {
		if (streq(item, word))
			return true;
	}
	return false;
}

/* Where the tree of a version 1 controller (or with NULL, the one of version 2) is mounted. */
static void mount_find(const char *controller, char *ret, size_t size)
{
	auto_free char *mounts = NULL;
	size_t length;
	char *rest;

	*ret = '\0';
	if (read_file_at(AT_FDCWD, "/proc/self/mounts", MOUNTS_MAX, &mounts, &length, NULL))
		return;
	rest = mounts;
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *device = strsep(&line, " "), *path = strsep(&line, " "), *type = strsep(&line, " "),
		     *options = strsep(&line, " ");

		if (!device || !options)
			continue;
		if (controller ? streq(type, "cgroup") && word_in(options, controller, ",") : streq(type, "cgroup2")) {
			snprintf(ret, size, "%s", path);
			return;
		}
	}
}

/* Our own group in that tree, from lines "4:memory:/user" or "0::/user". */
static void own_find(const char *controller, char *ret, size_t size)
{
	auto_free char *groups = NULL;
	size_t length;
	char *rest;

	snprintf(ret, size, "/");
	if (read_file_at(AT_FDCWD, "/proc/self/cgroup", MOUNTS_MAX, &groups, &length, NULL))
		return;
	rest = groups;
	for (char *line; (line = strsep(&rest, "\n"));) {
		char *number = strsep(&line, ":"), *controllers = strsep(&line, ":");

		if (number && line && controllers &&
		    (controller ? word_in(controllers, controller, ",") : streq(number, "0")))
			snprintf(ret, size, "%s", line);
	}
}

static struct hierarchy hierarchy_find(const char *controller)
{
	struct hierarchy h = {0};

	mount_find(controller, h.mount, sizeof(h.mount));
	own_find(controller, h.own, sizeof(h.own));
	return h;
}

/* Makes a group below ours and removes it; 0 or an errno. Root falls back to the top, as the jailer does. */
static int group_try(const struct hierarchy *h)
{
	const char *const parents[] = {h->own, geteuid() == 0 ? "" : NULL};
	int error = ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(parents) && parents[i]; i++) {
		auto_free char *path = xasprintf("%s%s/sallyport-doctor-%d", h->mount, parents[i], getpid());

		if (!mkdir(path, 0700)) {
			rmdir(path);
			return 0;
		}
		error = errno;
	}
	return error;
}

static const char *const wanted[] = {"memory", "pids", "cpu"};

/* Version 2: all controllers must be handed to our group. */
static int version2_check(const struct hierarchy *h, char *lacking, size_t size)
{
	auto_free char *own = xasprintf("%s%s/cgroup.controllers", h->mount, h->own);
	auto_free char *line = doctor_read_line(own);

	*lacking = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		size_t used = strlen(lacking);

		if (!line || !word_in(line, wanted[i], " "))
			snprintf(lacking + used, size - used, "%s%s", used ? ", " : "", wanted[i]);
	}
	return *lacking ? ENODEV : group_try(h);
}

static int version1_check(char *lacking, size_t size)
{
	int error = 0;

	*lacking = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		struct hierarchy h = hierarchy_find(wanted[i]);
		int failed = *h.mount ? group_try(&h) : ENODEV;
		size_t used = strlen(lacking);

		if (failed) {
			snprintf(lacking + used, size - used, "%s%s", used ? ", " : "", wanted[i]);
			error = failed;
		}
	}
	return error;
}

static void check_swap(struct doctor *doctor)
{
	auto_free char *swaps = NULL;
	size_t length = 0;
	struct hierarchy v1 = hierarchy_find("memory"), v2 = hierarchy_find(NULL);
	auto_free char *limit1 = xasprintf("%s/memory.memsw.limit_in_bytes", v1.mount);
	auto_free char *limit2 = xasprintf("%s%s/memory.swap.max", v2.mount, v2.own);
	bool none, counted;

	if (read_file_at(AT_FDCWD, "/proc/swaps", MOUNTS_MAX, &swaps, &length, NULL)) {
		doctor_add(doctor, "swap", DOCTOR_OK, NULL, "the kernel has none");
		return;
	}
	char *second = strchr(swaps, '\n'); /* behind the titles */

	none = !second || !second[1];
	counted = (*v1.mount && !access(limit1, F_OK)) || (*v2.mount && !access(limit2, F_OK));
	doctor_add(doctor, "swap", none || counted ? DOCTOR_OK : DOCTOR_WEAKER,
		   "swapoff -a, or boot with swapaccount=1: a jail's memory limit does not count what is swapped out",
		   "%s",
		   none      ? "none in use"
		   : counted ? "in use, and limited by cgroups"
			     : "in use, and not limited by cgroups");
}

void doctor_cgroups(struct doctor *doctor)
{
	enum doctor_state without = doctor->config->jailer.weaker_limits ? DOCTOR_WEAKER : DOCTOR_MISSING;
	struct hierarchy v2 = hierarchy_find(NULL);
	char lacking[64] = "", lacking1[64] = "";
	int error = *v2.mount ? version2_check(&v2, lacking, sizeof(lacking)) : ENODEV;

	if (!error) {
		doctor_add(doctor, "cgroup", DOCTOR_OK, NULL, "version 2: memory, pids and cpu in %s%s", v2.mount,
			   v2.own);
	} else if (!version1_check(lacking1, sizeof(lacking1))) {
		doctor_add(doctor, "cgroup", DOCTOR_OK, NULL, "version 1: memory, pids and cpu");
	} else if (*v2.mount && !*lacking) {
		doctor_add(doctor, "cgroup", without,
			   "systemd-run --user --scope -p Delegate=yes …, or start the jailer as root; else "
			   "jailer.weaker_limits",
			   "version 2, not delegated: %s%s: %s", v2.mount, v2.own, strerror(error));
	} else {
		doctor_add(doctor, "cgroup", without,
			   "start the jailer as root, or have them delegated; else jailer.weaker_limits",
			   "not usable for us: %s", *lacking1 ? lacking1 : lacking);
	}
	check_swap(doctor);
}
