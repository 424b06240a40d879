/* files.c - probes F01 to F19: the file system that a guest sees. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe.h"

/* Names of other sandboxes (JAIL_DATA_NAMES), also in folders of their own; a folder that is not there has none. */
static bool only_links_to_data(const char *folder, int depth)
{
	DIR *list = opendir(folder);
	bool all = true;

	for (struct dirent *entry; all && list && (entry = readdir(list));) {
		char path[512], target[8] = "";

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (readlink(path, target, sizeof(target) - 1) < 0)
			all = depth > 0 && entry->d_type == DT_DIR && only_links_to_data(path, depth - 1);
		else
			all = strcmp(target, "/data") == 0;
	}
	if (list)
		closedir(list);
	return all;
}

static void read_secrets(void)
{
	static const char *const paths[] = {"/etc/shadow",
					    "/etc/gshadow",
					    "/root",
					    "/root/.ssh/id_rsa",
					    "/etc/ssh",
					    "/etc/sudoers",
					    "/etc/ssl/private",
					    "/etc/machine-id",
					    "/var/lib",
					    "/var/log",
					    "/var/run/docker.sock",
					    "/run/dbus",
					    "/sys",
					    "/sys/fs/cgroup",
					    "/boot",
					    "/work",
					    "/lib/modules/x",
					    "/dev/kmsg",
					    "/dev/mem",
					    "/dev/kvm",
					    "/dev/vda",
					    "/dev/tty",
					    "/dev/ptmx",
					    "/dev/pts"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		refused(open(paths[i], O_RDONLY | O_CLOEXEC), "open %s", paths[i]);
	static const char *const places[] = {"/home", "/mnt", "/kaggle"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		holds(only_links_to_data(places[i], 2), "%s has more than links to /data", places[i]);
}

static void write_read_only(void)
{
	static const char *const dirs[] = {"/",    "/usr", "/usr/bin", "/etc",  "/opt", "/opt/sallyport/modules",
					   "/dev", "/var", "/run",     "/home", "/proc"};
	static const char *const files[] = {"/usr/bin/env", "/etc/passwd", "/usr/lib/x86_64-linux-gnu/libc.so.6",
					    "/bin/sh"};
	char path[256];

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/probe", dirs[i]);
		refused(open(path, O_WRONLY | O_CREAT, 0600), "create %s", path);
		refused(mkdir(path, 0700), "mkdir %s", path);
		refused(symlink("x", path), "symlink %s", path);
		refused(rename("/tmp", path), "rename to %s", path);
		refused(chmod(dirs[i], 0777), "chmod %s", dirs[i]);
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		refused(open(files[i], O_WRONLY), "open %s for writing", files[i]);
		refused(truncate(files[i], 0), "truncate %s", files[i]);
		refused(unlink(files[i]), "unlink %s", files[i]);
		refused(chmod(files[i], 0777), "chmod %s", files[i]);
		refused(utimensat(AT_FDCWD, files[i], NULL, 0), "touch %s", files[i]);
		refused(setxattr(files[i], "user.x", "x", 1, 0), "setxattr %s", files[i]);
	}
}

static void shared_mapping(void)
{
	int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);

	holds(fd >= 0, "cannot open /usr/bin/env for reading");
	refused((long)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
		"writable shared mapping of a read-only file");
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	refused(mprotect(map, 4096, PROT_READ | PROT_WRITE), "mprotect of a shared mapping to writable");
	refused(open("/proc/self/mem", O_RDWR), "open /proc/self/mem for writing");
}

static void remount(void)
{
	static const char *const paths[] = {"/", "/usr", "/data", "/code", "/tmp", "/proc", "/etc", "/dev/null"};
	struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		refused(mount(NULL, paths[i], NULL, MS_REMOUNT | MS_BIND, NULL), "remount %s", paths[i]);
		refused(syscall(SYS_mount_setattr, AT_FDCWD, paths[i], 0, &attr, sizeof(attr)), "mount_setattr %s",
			paths[i]);
		refused(umount2(paths[i], MNT_DETACH), "umount %s", paths[i]);
		refused(mount("tmpfs", paths[i], "tmpfs", 0, NULL), "mount on %s", paths[i]);
	}
}

static void break_chroot(void)
{
	struct stat root, above;

	mkdir("/tmp/c", 0700);
	refused(chroot("/tmp/c"), "chroot");
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 1000; i++) {
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		close(fd);
		fd = up;
	}
	holds(stat("/", &root) == 0 && fstat(fd, &above) == 0 && root.st_ino == above.st_ino &&
		      root.st_dev == above.st_dev,
	      "a thousand times .. leaves the root");
	refused(open("/../../../../etc/shadow", O_RDONLY), "open /../../../../etc/shadow");
	refused(openat(fd, "../../work", O_RDONLY), "open ../../work from the root");
}

static void devices(void)
{
	const struct {
		mode_t type;
		unsigned major, minor;
	} wanted[] = {{S_IFBLK, 254, 0}, {S_IFBLK, 8, 0}, {S_IFCHR, 1, 1}, {S_IFCHR, 1, 3}, {S_IFCHR, 10, 200}};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		refused(mknod("/data/device", wanted[i].type | 0666, makedev(wanted[i].major, wanted[i].minor)),
			"mknod %u:%u in /data", wanted[i].major, wanted[i].minor);
		refused(mknod("/tmp/device", wanted[i].type | 0666, makedev(wanted[i].major, wanted[i].minor)),
			"mknod %u:%u in /tmp", wanted[i].major, wanted[i].minor);
	}
}

static void set_user_id(void)
{
	static const char capability[20] = {0x01, 0, 0, 2, (char)0xff, (char)0xff, (char)0xff, (char)0xff};
	int fd = open("/data/setuid", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);

	fchmod(fd, 06755);
	refused(fchown(fd, 0, 0), "chown to 0");
	refused(fchown(fd, 1, 1), "chown to 1");
	refused(fsetxattr(fd, "security.capability", capability, sizeof(capability), 0), "setcap");
	refused(setuid(0), "setuid(0)");
	refused(setresuid(-1, 0, -1), "setresuid(0)");
	refused(setgid(0), "setgid(0)");
}

static void hard_links(void)
{
	refused(link("/usr/bin/env", "/data/env"), "link of /usr/bin/env to /data");
	refused(link("/etc/passwd", "/tmp/passwd"), "link of /etc/passwd to /tmp");
	close(open("/data/a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	refused(link("/data/a", "/tmp/a"), "link from /data to /tmp");
}

static void by_handle(void)
{
	char handle[128] = {8};
	int id;

	refused(syscall(SYS_name_to_handle_at, AT_FDCWD, "/data", handle, &id, 0), "name_to_handle_at");
	refused(syscall(SYS_open_by_handle_at, AT_FDCWD, handle, 0), "open_by_handle_at");
}

static void device_list(void)
{
	static const char *const expected[] = {"null", "zero", "full",  "random", "urandom",
					       "shm",  "fd",   "stdin", "stdout", "stderr"};
	DIR *list = opendir("/dev");

	for (struct dirent *entry; list && (entry = readdir(list));) {
		bool known = entry->d_name[0] == '.';

		for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
			known = known || strcmp(expected[i], entry->d_name) == 0;
		holds(known, "/dev/%s is there", entry->d_name);
	}
	holds(list, "/dev cannot be read");
	/* The nodes are the host's. What is in them can be read and written, what the host knows of them cannot be
	 * changed. */
	for (size_t i = 0; i < 5; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/dev/%s", expected[i]);
		holds(open(path, O_RDWR | O_CLOEXEC) >= 0, "%s cannot be opened", path);
		refused_with(utimensat(AT_FDCWD, path, NULL, 0), EROFS, "set the times of %s", path);
		refused_with(chmod(path, 0666), EROFS, "change the mode of %s", path);
	}
	refused(utimensat(AT_FDCWD, "/proc/keys", NULL, 0), "set the times of /dev/null, which covers /proc/keys");
}

const struct probe probes_files[] = {
	PROBE("F01", "read what is the host's", read_secrets),
	PROBE("F02", "write where it is read-only", write_read_only),
	PROBE("F03", "write through a shared mapping", shared_mapping),
	PROBE("F04", "remount, unmount, mount over", remount),
	PROBE("F05", "leave the root", break_chroot),
	PROBE("F07", "make device nodes", devices),
	PROBE_TERMS("F08", "set user id, capabilities of files, other ids", set_user_id, "kept=setuid"),
	PROBE_TERMS("F09", "hard links across file systems", hard_links, "kept=a"),
	PROBE("F14", "open by handle", by_handle),
	PROBE("F16", "list of /dev", device_list),
	{0},
};
