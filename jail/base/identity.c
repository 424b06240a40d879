/*
 * identity.c - see identity.h. Runs before the jailer drops what it was started with.
 *
 * Claiming comes first, and decides by what the process is: root takes a slice of a range that is otherwise unused; a
 * user with lines in /etc/subuid and /etc/subgid, and the two helpers that may write such maps, a slice of its range;
 * any other user has its own id only. The lock is what makes a slice one's own: it is held as long as the process
 * lives, by a descriptor that no child keeps, so a jailer that was killed frees its slice at once, and a jailer that
 * finds the lock free may clear what was left.
 *
 * The maps of the outer namespace can only be written from outside of it, by a process with the privilege that the
 * jailer is about to give up: the id-map helper does it (idmap.c), with the function here.
 */
#include "identity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/util.h"

#define ROOT_LOCK_DIR      "/run/sallyport-jailer" /* not the gateway's /run/sallyport, which is its account's */
#define SUBID_FILE_MAX     (1024 * 1024)
#define INSTANCES_PER_USER 4096 /* where ids do not limit them */

extern char **environ;

const char *identity_mode_text(enum identity_mode mode)
{
	static const char *const texts[] = {"root", "rootless", "single-id"};

	return texts[mode];
}

/* Directory of the locks, the caller's own and closed to others; as a user below XDG_RUNTIME_DIR, else /tmp. */
static int open_lock_dir(uid_t uid, int *ret, struct err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	auto_free char *path = NULL;

	if (uid == 0)
		path = xstrdup(ROOT_LOCK_DIR);
	else if (runtime && runtime[0] == '/' && access(runtime, W_OK) == 0)
		path = xasprintf("%s/sallyport", runtime);
	else
		path = xasprintf("/tmp/sallyport-%u", uid);
	/* Root's also holds the socket, for others to reach; the locks in it are closed to them. */
	if (mkdir(path, uid == 0 ? 0755 : 0700) && errno != EEXIST)
		return err_errno(err, "making the directory of locks %s", path);
	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		return err_errno(err, "opening the directory of locks %s", path);
	if (st.st_uid != uid || (st.st_mode & 022))
		return err_set(err, ERR_DENIED,
			       "%s, where the jailer keeps its locks, belongs to another user or others may write: "
			       "%s",
			       path, uid == 0 ? "as root: chown root " ROOT_LOCK_DIR " && chmod 755 " ROOT_LOCK_DIR
					      : "set XDG_RUNTIME_DIR to a directory of this user alone");
	*ret = steal_fd(&fd);
	return 0;
}

/* 0: *ret_fd holds it. -1: another process does. */
static int lock_instance(int directory, int instance, int *ret_fd)
{
	char name[32];

	snprintf(name, sizeof(name), "%d.lock", instance);
	auto_close int fd = openat(directory, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
		return -1;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int claim_instance(struct identity *identity, int instances, struct err *err)
{
	for (int i = 0; i < instances; i++)
		if (lock_instance(identity->lock_dir, i, &identity->lock_fd) == 0) {
			struct stat st;

			identity->instance = i;
			/* The file has the pid as long as its jailer lives; one that was killed leaves it there. */
			identity->found_dead = fstat(identity->lock_fd, &st) == 0 && st.st_size > 0;
			if (ftruncate(identity->lock_fd, 0) == 0)
				dprintf(identity->lock_fd, "%d\n", getpid());
			return 0;
		}
	return err_set(err, ERR_LIMIT,
		       "all %d instances of the jailer are in use: stop one, or give it more ids (jailer.id_count)",
		       instances);
}

bool identity_abandoned(const struct identity *identity, int instance, int *ret_lock)
{
	return instance != identity->instance && lock_instance(identity->lock_dir, instance, ret_lock) == 0;
}

/* First range of the user in /etc/subuid or /etc/subgid ("name:first:count") that holds a slice. */
static int find_sub_range(const char *path, const char *user, uid_t uid, uint64_t *ret_first, uint64_t *ret_count)
{
	auto_free char *text = NULL;
	auto_free char *number = xasprintf("%u", uid);
	size_t length;
	char *state;

	if (read_file_at(AT_FDCWD, path, SUBID_FILE_MAX, &text, &length, NULL) < 0)
		return -1;
	for (char *line = strtok_r(text, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		char *first = strchr(line, ':'), *count = first ? strchr(first + 1, ':') : NULL;
		uint64_t from, n;

		if (!count)
			continue;
		*first++ = '\0';
		*count++ = '\0';
		if ((streq(line, number) || (user && streq(line, user))) &&
		    parse_u64(first, 1, UINT32_MAX, &from) == 0 &&
		    parse_u64(count, IDENTITY_SUB_SLICE, UINT32_MAX, &n) == 0) {
			*ret_first = from;
			*ret_count = n;
			return 0;
		}
	}
	return -1;
}

static const char *find_helper(const char *name)
{
	static const char *const directories[] = {"/usr/bin", "/bin", "/usr/local/bin"};
	static char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
		snprintf(path, sizeof(path), "%s/%s", directories[i], name);
		if (access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

static int claim_as_user(struct identity *identity, struct err *err)
{
	struct passwd *user = getpwuid(identity->started_uid);
	uint64_t first_uid, n_uid, first_gid, n_gid;

	identity->host_uid = identity->started_uid;
	identity->host_gid = identity->started_gid;
	if (find_helper("newuidmap") && find_helper("newgidmap") &&
	    !find_sub_range("/etc/subuid", user ? user->pw_name : NULL, identity->started_uid, &first_uid, &n_uid) &&
	    !find_sub_range("/etc/subgid", user ? user->pw_name : NULL, identity->started_uid, &first_gid, &n_gid)) {
		identity->mode = IDENTITY_ROOTLESS;
		identity->ids = IDENTITY_SUB_SLICE;
		if (claim_instance(identity, (int)(MIN(n_uid, n_gid) / (IDENTITY_SUB_SLICE)), err) < 0)
			return -ERR_LIMIT;
		identity->sub_uid = (uid_t)first_uid + (uid_t)identity->instance * IDENTITY_SUB_SLICE;
		identity->sub_gid = (gid_t)first_gid + (gid_t)identity->instance * IDENTITY_SUB_SLICE;
		return 0;
	}
	identity->mode = IDENTITY_SINGLE;
	identity->ids = 1;
	return claim_instance(identity, INSTANCES_PER_USER, err);
}

int identity_claim(const struct config *config, struct identity *ret, struct err *err)
{
	struct identity identity = IDENTITY_INIT;

	identity.started_uid = geteuid();
	identity.started_gid = getegid();
	int result = open_lock_dir(identity.started_uid, &identity.lock_dir, err);
	if (result == 0 && identity.started_uid == 0) {
		uint32_t base = config->jailer.id_base ? (uint32_t)config->jailer.id_base : IDENTITY_BASE;
		int64_t count = config->jailer.id_count ? config->jailer.id_count : IDENTITY_COUNT;

		identity.mode = IDENTITY_ROOT;
		identity.ids = (unsigned)MIN(count, IDENTITY_SLICE);
		if (identity.ids < 3)
			result = err_set(err, ERR_INVALID,
					 "jailer.id_count must be 3 or more, better 65536 for each jailer");
		else
			result = claim_instance(&identity, (int)(count / identity.ids), err);
		identity.host_uid = base + (uint32_t)identity.instance * identity.ids;
		identity.host_gid = identity.host_uid;
	} else if (result == 0) {
		result = claim_as_user(&identity, err);
	}
	if (result < 0)
		identity_clear(&identity);
	else
		*ret = identity;
	return result;
}

void identity_clear(struct identity *identity)
{
	if (identity->lock_fd >= 0) {
		/* Best effort: what stays there makes the next start say that this one died. */
		(void)!ftruncate(identity->lock_fd, 0);
		close(identity->lock_fd);
	}
	fd_close(&identity->lock_dir);
	*identity = IDENTITY_INIT;
}

static int write_proc(pid_t pid, const char *file, const char *text, struct err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write_all(fd, text, strlen(text)))
		return err_errno(err, "writing %s of the jailer's user namespace", file);
	return 0;
}

static int run_helper(const char *name, pid_t pid, uid_t own, uid_t sub, struct err *err)
{
	char text[5][16];
	const char *path = find_helper(name);

	snprintf(text[0], sizeof(text[0]), "%d", pid);
	snprintf(text[1], sizeof(text[1]), "%u", own);
	snprintf(text[2], sizeof(text[2]), "%u", sub);
	snprintf(text[3], sizeof(text[3]), "%d", IDENTITY_SUB_SLICE - 1);
	char zero[] = "0", one[] = "1";
	char *argv[] = {text[4], text[0], zero, text[1], one, one, text[2], text[3], NULL};
	snprintf(text[4], sizeof(text[4]), "%s", name);
	pid_t child;
	int status = 0, failure = path ? posix_spawn(&child, path, NULL, NULL, argv, environ) : ENOENT;
	if (failure) {
		errno = failure;
		return err_errno(err, "starting %s", name);
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		return err_set(err, ERR_UNAVAILABLE, "%s refuses the range %u:%s: check /etc/subuid and /etc/subgid",
			       name, sub, text[3]);
	return 0;
}

int identity_write_maps(const struct identity *identity, pid_t pid, struct err *err)
{
	auto_free char *uids = NULL;
	auto_free char *gids = NULL;

	if (identity->mode == IDENTITY_ROOTLESS) {
		int result = run_helper("newuidmap", pid, identity->host_uid, identity->sub_uid, err);

		return result < 0 ? result : run_helper("newgidmap", pid, identity->host_gid, identity->sub_gid, err);
	}
	uids = xasprintf("0 %u %u\n", identity->host_uid, identity->ids);
	gids = xasprintf("0 %u %u\n", identity->host_gid, identity->ids);
	/* Without privilege over the group range the kernel wants setgroups forbidden first. */
	if (identity->mode == IDENTITY_SINGLE && write_proc(pid, "setgroups", "deny", err) < 0)
		return -ERR_SYSTEM;
	int result = write_proc(pid, "gid_map", gids, err);
	return result < 0 ? result : write_proc(pid, "uid_map", uids, err);
}

int identity_become(const struct identity *identity, struct err *err)
{
	int death_signal = 0;

	/* A supervisor that started us with a death signal (setpriv --pdeathsig) means it: the change of ids would
	 * clear it. */
	prctl(PR_GET_PDEATHSIG, &death_signal, 0, 0, 0);
	if (identity->mode != IDENTITY_SINGLE && setgroups(0, NULL))
		return err_errno(err, "dropping the supplementary groups");
	if (setresgid(0, 0, 0) || setresuid(0, 0, 0))
		return err_errno(err, "becoming the 0 of the jailer's user namespace");
	if (prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0))
		return err_errno(err, "keeping the death signal");
	/* The change of ids made us undumpable, and then /proc/PID/uid_map of our children belongs to the host's root.
	 */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return err_errno(err, "keeping /proc usable");
	return 0;
}
