/*
 * doctor_namespaces.c - can a user namespace be made here, and everything else inside of it?
 *
 * Each question is tried in a child of its own, which is what a jailer would do: a user namespace first, with our own
 * id mapped to root, then the other namespace, then a mount in it. That finds what no switch tells: AppArmor lets the
 * namespace be made and takes its capabilities away; a container masks parts of /proc, and then no new /proc may be
 * mounted.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "lib/base/util.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

#define BOUNDED_BYTES (64 * 1024)
#define BOUNDED_FILES 16

static int file_put(const char *path, const char *text)
{
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : write_all(fd, text, strlen(text));
}

/* A user namespace in which we are root; 0 or -1 with errno. */
static int become_root_inside(void)
{
	char uid_map[32], gid_map[32];

	snprintf(uid_map, sizeof(uid_map), "0 %u 1\n", geteuid());
	snprintf(gid_map, sizeof(gid_map), "0 %u 1\n", getegid());
	if (unshare(CLONE_NEWUSER))
		return -1;
	if (file_put("/proc/self/setgroups", "deny") && errno != ENOENT)
		return -1;
	return file_put("/proc/self/uid_map", uid_map) || file_put("/proc/self/gid_map", gid_map) ? -1 : 0;
}

/* Status of a child that was forked by us: its exit code is an errno, 0 is success. */
static int child_errno(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

/* What happens after the namespaces were made, in a child; 0 or an errno. */
static int mount_tmpfs(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return errno;
	return mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") ? errno : 0;
}

/* What /data and /tmp of a jail are limited with: bytes and files of a tmpfs, which need no quotas of the host's disk.
 */
static int mount_bounded(void)
{
	static const char block[2 * BOUNDED_BYTES];
	char options[64], path[32];
	int error = 0;

	snprintf(options, sizeof(options), "size=%d,nr_inodes=%d", BOUNDED_BYTES, BOUNDED_FILES);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, options))
		return errno;
	auto_close int file = open("/tmp/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0 || write(file, block, sizeof(block)) != BOUNDED_BYTES)
		return ENOTSUP;
	for (int i = 0; i < BOUNDED_FILES && !error; i++) {
		snprintf(path, sizeof(path), "/tmp/%d", i);
		error = mkdir(path, 0700) ? errno : 0;
	}
	return error == ENOSPC ? 0 : ENOTSUP;
}

/* A jail's is inside of the jailer's. */
static int nested(void)
{
	return become_root_inside() ? errno : 0;
}

static int mount_proc(void)
{
	pid_t child = fork(); /* the first process of the new pid namespace */

	if (child < 0)
		return errno;
	if (child)
		return child_errno(child);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(errno);
	_exit(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ? errno : 0);
}

/* 0 or the errno of the first step that failed. */
static int try_inside(int flags, int (*then)(void))
{
	pid_t child = fork();

	if (child < 0)
		return errno;
	if (child)
		return child_errno(child);
	if (become_root_inside() || (flags && unshare(flags)))
		_exit(errno);
	_exit(then ? then() : 0);
}

static const char *user_remedy(void)
{
	auto_free char *clone_switch = doctor_read_line("/proc/sys/kernel/unprivileged_userns_clone");
	auto_free char *most = doctor_read_line("/proc/sys/user/max_user_namespaces");
	auto_free char *apparmor = doctor_read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");

	if (clone_switch && streq(clone_switch, "0"))
		return "sysctl kernel.unprivileged_userns_clone=1, or start the jailer as root";
	if (most && streq(most, "0"))
		return "sysctl user.max_user_namespaces=65536";
	if (apparmor && streq(apparmor, "1"))
		return "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with userns for "
		       "sallyport-jailer";
	return "allow user namespaces: in a container its seccomp profile forbids them, in a kernel CONFIG_USER_NS is "
	       "missing";
}

static void check_apparmor(struct doctor *doctor)
{
	auto_free char *value = doctor_read_line("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
	bool restricted = value && streq(value, "1") && geteuid() != 0;

	doctor_add(doctor, "AppArmor", restricted ? DOCTOR_WEAKER : DOCTOR_OK,
		   "sysctl kernel.apparmor_restrict_unprivileged_userns=0", "%s",
		   !value       ? "has no switch for user namespaces here"
		   : restricted ? "restricts user namespaces"
				: "allows them");
}

void doctor_namespaces(struct doctor *doctor)
{
	static const struct {
		const char *name;
		int flags;
		int (*then)(void);
		enum doctor_state without;
		const char *remedy;
	} checks[] = {
		{"user namespace", 0, NULL, DOCTOR_MISSING, NULL},
		{"nested namespace", 0, nested, DOCTOR_MISSING, NULL},
		{"mount namespace", CLONE_NEWNS, mount_tmpfs, DOCTOR_MISSING, NULL},
		{"quotas", CLONE_NEWNS, mount_bounded, DOCTOR_MISSING,
		 "use a kernel whose tmpfs keeps to size= and nr_inodes="},
		{"pid namespace", CLONE_NEWNS | CLONE_NEWPID, mount_proc, DOCTOR_MISSING,
		 "in a container: its /proc must not be masked (docker: --security-opt systempaths=unconfined)"},
		{"net namespace", CLONE_NEWNET, NULL, DOCTOR_MISSING, NULL},
		{"ipc namespace", CLONE_NEWIPC, NULL, DOCTOR_MISSING, NULL},
		{"uts namespace", CLONE_NEWUTS, NULL, DOCTOR_MISSING, NULL},
		{"cgroup namespace", CLONE_NEWCGROUP, NULL, DOCTOR_MISSING, NULL},
		{"time namespace", CLONE_NEWTIME, NULL, DOCTOR_WEAKER,
		 "install a kernel of at least 5.6 with CONFIG_TIME_NS"},
	};

	fflush(NULL); /* children must not print what waits in our buffers */
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		int error = try_inside(checks[i].flags, checks[i].then);

		doctor_add(doctor, checks[i].name, error ? checks[i].without : DOCTOR_OK,
			   checks[i].remedy ? checks[i].remedy : user_remedy(), "%s",
			   !error ? "works" : strerror(error));
	}
	check_apparmor(doctor);
}
