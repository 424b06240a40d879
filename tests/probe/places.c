/* places.c - probes F06 to F22, E03, H12, H13: ways out of the root, other people's places, trees and files of silly
 * sizes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe.h"

#define WIDE    1000000
#define DEEP    30000
#define SHALLOW 1000 /* Landlock walks up from every file that is opened: a tree costs its depth squared */

static void dot_dot(void)
{
	struct stat root, up;
	char path[512] = "";
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < 60; i++)
		strcat(path, "../");
	holds(stat("/", &root) == 0 && stat(path, &up) == 0 && up.st_ino == root.st_ino && up.st_dev == root.st_dev,
	      "%s is another root", path);
	holds(fstatat(fd, "..", &up, 0) == 0 && up.st_ino == root.st_ino, "the root has something above it");
	strcat(path, "etc/shadow");
	refused(open(path, O_RDONLY | O_CLOEXEC), "open %s", path);
	refused(openat(fd, "../root", O_RDONLY | O_CLOEXEC), "open ../root from the root");
	refused(open("/proc/self/root/../root", O_RDONLY | O_CLOEXEC), "open /proc/self/root/../root");
	refused(open("/proc/self/cwd/../root", O_RDONLY | O_CLOEXEC), "open /proc/self/cwd/../root");
}

/* As deep as the limit on inodes lets us: then it must be refused, and the tree is the jailer's to walk. */
static void deep_tree(void)
{
	int depth = 0;

	holds(chdir("/data") == 0, "no /data");
	while (depth < DEEP && mkdir("d", 0700) == 0 && chdir("d") == 0)
		depth++;
	holds(depth > 1000 && (depth == DEEP || errno == ENOSPC), "a tree %d deep in /data ended with %s", depth,
	      strerror(errno));
	holds(chdir("/tmp") == 0, "no /tmp");
	for (depth = 0; depth < SHALLOW && mkdir("d", 0700) == 0 && chdir("d") == 0;)
		depth++;
	holds(depth == SHALLOW, "a tree only %d deep in /tmp", depth);
}

static void wide(const char *dir)
{
	char path[64];
	int n = 0, fd = 0;

	for (; n < WIDE && fd >= 0; n++) {
		snprintf(path, sizeof(path), "%s/%d", dir, n);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			close(fd);
	}
	holds(fd < 0 && errno == ENOSPC, "%d files in %s, then %s", n, dir, strerror(errno));
}

static void wide_data(void)
{
	wide("/data");
}

static void wide_others(void)
{
	wide("/tmp");
	wide("/dev/shm");
}

static void sys(void)
{
	static const char *const paths[] = {"/sys/kernel", "/sys/fs/cgroup", "/sys/kernel/debug", "/sys/class/net",
					    "/proc/bus",   "/proc/acpi/x",   "/proc/scsi/x",      "/proc/fs/nfsd"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		refused(open(paths[i], O_RDONLY | O_CLOEXEC) >= 0 && opendir(paths[i]) && errno != ENOENT ? 0 : -1,
			"open %s", paths[i]);
	refused(open("/sys", O_RDONLY | O_CLOEXEC), "open /sys");
	refused(mount("sysfs", "/tmp", "sysfs", 0, NULL), "mount of sysfs");
}

/* Where the server keeps what it has: no name leads there. */
static void others_data(void)
{
	static const char *const paths[] = {
		"/var/lib/sallyport",         "/var/lib/sallyport-dev", "/run/sallyport",
		"/run/sallyport-jailer",
		"/run/sallyport/jailer.sock", "/etc/sallyport",         "/etc/sallyport.conf",
		"/data/../var/lib/sallyport", "/data/../../data/other", "/data/..data",
		"/proc/1/cwd/blobs",          "/proc/1/root/data",      "/code/../code/other",
		"/tmp/../tmp/.sallyport",     "/opt/sallyport/blobs",   "/opt/sallyport/store.db"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		refused(open(paths[i], O_RDONLY | O_CLOEXEC), "open %s", paths[i]);
	DIR *list = opendir("/data");
	for (struct dirent *entry; list && (entry = readdir(list));)
		holds(entry->d_name[0] == '.' || strcmp(entry->d_name, "probe") == 0, "/data/%s is there",
		      entry->d_name);
}

/* What is attached read-only, also through a descriptor that was opened without a mode. */
static void read_only_attached(void)
{
	static const char *const files[] = {"/opt/sallyport/modules", "/usr/bin/env", "/etc/hosts", "/etc/passwd"};
	char again[64];

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_PATH | O_CLOEXEC);

		snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
		refused(open(again, O_WRONLY | O_CLOEXEC), "open %s for writing through its descriptor", files[i]);
		refused(open(again, O_RDWR | O_CLOEXEC), "open %s for reading and writing through its descriptor",
			files[i]);
		refused(truncate(again, 0), "truncate %s through its descriptor", files[i]);
		refused(chmod(again, 0777), "chmod %s through its descriptor", files[i]);
		refused(syscall(SYS_fchmodat, fd, "", 0777, AT_EMPTY_PATH), "fchmodat of %s", files[i]);
		close(fd);
	}
	refused(open("/opt/sallyport/modules/" PROBE_MARK, O_WRONLY | O_CREAT | O_CLOEXEC, 0600),
		"create a file in the modules");
}

static void sparse(void)
{
	int fd = open("/data/sparse", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	signal(SIGXFSZ, SIG_IGN);
	refused(ftruncate(fd, 1L << 60), "a file of an exbibyte");
	refused(ftruncate(fd, 1L << 40), "a file of a tebibyte");
	refused(fallocate(fd, 0, 0, 10L << 30), "10 GiB allocated");
	refused(pwrite(fd, "x", 1, 1L << 50) >= 0 ? 0 : -1, "write at a pebibyte");
	holds(pwrite(fd, "own", 3, 0) == 3 && fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1) == 0,
	      "no hole in an own file");
	holds(ftruncate(fd, 1 << 20) == 0, "no sparse file of a mebibyte");
}

/* /data itself is a mount that was there before this program: it cannot be swapped for something else. */
static void swap_target(void)
{
	refused(rename("/data", "/tmp/data"), "rename /data");
	refused(rmdir("/data"), "rmdir /data");
	refused(unlink("/data"), "unlink /data");
	refused(symlink("/etc", "/data"), "symlink at /data");
	refused(syscall(SYS_renameat2, AT_FDCWD, "/data", AT_FDCWD, "/tmp", 2 /* RENAME_EXCHANGE */),
		"exchange /data with /tmp");
	refused(mount("/tmp", "/data", NULL, MS_BIND, NULL), "bind over /data");
}

static void unlock_read_only(void)
{
	static const char *const paths[] = {"/opt/sallyport/modules", "/code", "/usr", "/etc", "/"};
	struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		refused(mount(NULL, paths[i], NULL, MS_REMOUNT | MS_BIND, NULL), "remount %s writable", paths[i]);
		refused(mount(NULL, paths[i], NULL, MS_REMOUNT, NULL), "remount the file system of %s", paths[i]);
		refused(syscall(SYS_mount_setattr, AT_FDCWD, paths[i], 0, &attr, sizeof(attr)), "mount_setattr %s",
			paths[i]);
	}
}

/* Keys that people leave lying about. */
static void credentials(void)
{
	static const char *const homes[] = {"/root", "/home/user", "/tmp", "/data", "/code", "/", "/etc"};
	static const char *const names[] = {
		".netrc", ".ssh",    ".aws/credentials", ".config/gcloud", ".kube/config",  ".docker/config.json",
		".npmrc", ".pypirc", ".git-credentials", ".env",           ".bash_history", ".pgpass"};
	static const char *const files[] = {"/etc/environment", "/etc/default", "/etc/ssl/private", "/etc/docker",
					    "/etc/kubernetes",  "/etc/cloud",   "/var/run/secrets", "/run/secrets",
					    "/etc/krb5.keytab", "/etc/netrc",   "/etc/npmrc",       "/etc/pip.conf"};
	char path[128];

	for (size_t h = 0; h < sizeof(homes) / sizeof(homes[0]); h++)
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
			snprintf(path, sizeof(path), "%s/%s", homes[h], names[n]);
			refused(access(path, F_OK), "%s is there", path);
		}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		refused(access(files[i], F_OK), "%s is there", files[i]);
}

const struct probe probes_places[] = {
	PROBE("E03", "keys and passwords in files", credentials),
	PROBE("F06", "leave the root by ..", dot_dot),
	PROBE_TERMS("F11", "a tree of 30,000 directories in each other", deep_tree, "left=* wall_ms=60000 heavy=1"),
	PROBE_TERMS("F12", "a million files in one directory", wide_data, "kept=* heavy=1"),
	PROBE("F17", "the kernel's objects in /sys", sys),
	PROBE("F18", "other people's data", others_data),
	PROBE("F19", "write what is attached read-only", read_only_attached),
	PROBE_TERMS("F22", "sparse files, huge allocations, holes", sparse, "kept=sparse"),
	PROBE("H12", "put something else in the place of /data", swap_target),
	PROBE("H13", "unlock what is attached read-only", unlock_read_only),
	PROBE_TERMS("R09", "a million files outside of /data", wide_others, "memory_mb=256 heavy=1"),
	{0},
};
