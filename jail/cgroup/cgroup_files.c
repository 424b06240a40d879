/*
 * cgroup_files.c - the files and directories of hierarchies: reading and writing small files, finding where hierarchies
 * are mounted, claiming the directory of an instance. See cgroup_internal.h.
 *
 * The directory of an instance is locked as long as its jailer lives. A jailer may have its other locks (identity.c) in
 * a folder that we do not see, as in a container that has the host's cgroups: its groups are left alone, and a jailer
 * that wants the same instance is refused.
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

#define MOUNTS_MAX (4 * 1024 * 1024)
#define DYING_US   INT64_C(5000000) /* what a killed jailer leaves has closed its descriptors by then */

int cgroup_write(int dir, const char *file, const char *text)
{
	auto_close int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);

	return fd < 0 || write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

int cgroup_write_number(int dir, const char *file, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	return cgroup_write(dir, file, text);
}

int cgroup_text(int dir, const char *file, char ret[CGROUP_VALUE])
{
	auto_close int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, CGROUP_VALUE - 1);

	if (n < 0)
		return -1;
	ret[n] = '\0';
	return 0;
}

int64_t cgroup_number(int dir, const char *file)
{
	char text[CGROUP_VALUE];
	uint64_t value;

	if (cgroup_text(dir, file, text))
		return -1;
	text[strcspn(text, "\n")] = '\0';
	return parse_u64(text, 0, INT64_MAX, &value) ? -1 : (int64_t)value;
}

int64_t cgroup_keyed(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) == 0 && line[length] == ' ')
			return strtoll(line + length + 1, NULL, 10);
	}
	return 0;
}

/* In a list that is separated by commas or blanks. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += length)
		if ((p == list || strchr(", ", p[-1])) && strchr(", \n", p[length]))
			return true;
	return false;
}

bool cgroup_lists(int dir, const char *file, const char *word)
{
	char text[CGROUP_VALUE];

	return cgroup_text(dir, file, text) == 0 && has_word(text, word);
}

int cgroup_find_mount(const char *controller, char *ret_mount, size_t size)
{
	auto_free char *text = NULL;
	size_t length;
	char *state;

	if (read_file_at(AT_FDCWD, "/proc/self/mounts", MOUNTS_MAX, &text, &length, NULL) < 0)
		return -1;
	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		char where[512], type[32], options[512];

		if (sscanf(line, "%*s %511s %31s %511s", where, type, options) != 3)
			continue;
		if (controller[0] ? streq(type, "cgroup") && has_word(options, controller) : streq(type, "cgroup2")) {
			snprintf(ret_mount, size, "%s", where);
			return 0;
		}
	}
	return -1;
}

int cgroup_own_path(const char *controller, char *ret_path, size_t size)
{
	auto_free char *text = NULL;
	size_t length;
	char *state;

	if (read_file_at(AT_FDCWD, "/proc/self/cgroup", MOUNTS_MAX, &text, &length, NULL) < 0)
		return -1;
	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		*names++ = '\0';
		*path++ = '\0';
		if (controller[0] ? has_word(names, controller) : names[0] == '\0') {
			snprintf(ret_path, size, "%s", path[0] == '/' ? path + 1 : path);
			return 0;
		}
	}
	return -1;
}

int cgroup_make_dir(int parent, const char *name, uid_t uid, gid_t gid)
{
	static const char *const files[] = {"cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control"};

	if (mkdirat(parent, name, 0755) && errno != EEXIST)
		return -1;
	auto_close int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || uid == geteuid())
		return steal_fd(&fd);
	if (fchown(fd, uid, gid))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (fchownat(fd, files[i], uid, gid, 0) && errno != ENOENT)
			log_event(LOG_WARN, "a cgroup file keeps its owner", "file", files[i], NULL);
	return steal_fd(&fd);
}

/* An idle group (Linux 5.15) is preempted at once by what wakes up in another one, one of little weight is not. An idle
 * group's weight cannot be written. */
int cgroup_give_way(int dir, const char *file, int64_t least, struct err *err)
{
	if (cgroup_number(dir, "cpu.idle") == 1)
		return 0;
	if (cgroup_write_number(dir, file, least))
		return err_errno(err, "lowering the weight of the jail");
	cgroup_write_number(dir, "cpu.idle", 1); /* an older kernel has the weight alone */
	return 0;
}

/* -------- an instance --------------------------------------------------------------------------------- */
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

/* Children of a jailer that was killed may hold its lock until they have died, too. */
static int take_instance(int parent, const char *name, const struct identity *identity, struct err *err)
{
	const int64_t until = clock_monotonic_us() + DYING_US;

	for (;;) {
		auto_close int dir = cgroup_make_dir(parent, name, identity->host_uid, identity->host_gid);

		if (dir < 0)
			return err_errno(err, "making the cgroup of instance %s", name);
		struct stat named, ours;
		bool locked = flock(dir, LOCK_EX | LOCK_NB) == 0;
		/* An instance that ends, or one that clears up, may have removed the directory meanwhile. */
		if (locked && fstatat(parent, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(dir, &ours) == 0 &&
		    named.st_ino == ours.st_ino) {
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
