/*
 * root_mount.c - see root_mount.h. The mount plan is data: what is bound, copied, linked and made; the code only walks
 * the lists.
 *
 * A root is a tmpfs of ours with the system's directories bound into it, whether they are the host's or those of a
 * rootfs: nothing is ever written to, mounted on or looked up through links in a directory that another user prepared
 * (runc's CVE-2026-41579: an image whose /dev was a link).
 *
 * Built on /sys, because nothing that is bound lies below it and it is there on every host. /etc is copied (a hundred
 * small files) instead of bound: each mount costs every jail, and the host's /etc has too much that guests
 * must not see.
 */
#include "root_mount.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/base/sys.h"
#include "jail/client/jail.h"
#include "lib/base/embed.h"
#include "lib/base/util.h"

#ifndef HELPER_PROGRAM /* the Makefile says it */
#define HELPER_PROGRAM "build/bridge/mcp"
#endif
EMBED(root_mount_mcp, HELPER_PROGRAM);

#define CJK_FONT       "usr/share/fonts/truetype/wqy/wqy-microhei.ttc" /* Debian: fonts-wqy-microhei */
#define BASE           "/sys"
#define OWN_NODES      BASE "/dev"
#define COPY_DEPTH     4
#define COPY_FILE_MAX  (4 << 20)
#define ATTR_READ_ONLY (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
/* A read-only mount still allows writing to the device, but the node's timestamps cannot be changed through it. */
#define ATTR_DEVICE (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)

static const char *const directories[] = {
	"etc", "dev", "dev/shm", "proc", "tmp", "data", "code", "var", &JAIL_PROGRAMS[1], "run", "home", "home/oai",
	"kaggle", "mnt", "mnt/user-data", "opt", "opt/sallyport", "opt/sallyport/modules", NULL
};
static const char *const devices[] = {"null", "zero", "full", "random", "urandom", NULL};
/* Directories of the host's root that are links into /usr, or (on an older layout) directories of their own. */
static const char *const system_directories[] = {"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", NULL};
static const struct {
	const char *name, *target;
} links[] = {
	{"dev/fd", "/proc/self/fd"},
	{"dev/stdin", "/proc/self/fd/0"},
	{"dev/stdout", "/proc/self/fd/1"},
	{"dev/stderr", "/proc/self/fd/2"},
	{"var/tmp", "/tmp"},
	{"etc/mtab", "/proc/self/mounts"},
#define DATA_NAME(name) {name, "/data"},
	JAIL_DATA_NAMES(DATA_NAME)
};
static const struct {
	const char *name, *text;
} made_files[] = {
	{"etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:1000:1000:user:/tmp:/bin/bash\n"
		       "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
	{"etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"},
	{"etc/hosts", "127.0.0.1 localhost jail\n::1 localhost ip6-localhost ip6-loopback\n"},
	{"etc/hostname", "jail\n"},
	{"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"},
};
/* From the host's /etc as far as they are there and readable for every user: what programs need to run, nothing that
 * says whose host this is. */
static const char *const copied[] = {
	"R", "alternatives", "ca-certificates.conf", "debian_version", "fonts", "host.conf", "java-17-openjdk",
	"java-21-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "magic", "matplotlibrc",
	"mime.types", "mono/4.5", "mono/config", "os-release", "perl", "php", "protocols", "python3", "python3.11",
	"services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone", NULL
};
/* Of a rootfs, what is not bound: what is made here, what guests must not see, and what programs do not need. */
static const char *const not_bound[] = {"boot", "code", "content", "data", "dev", "etc", "home", "kaggle", "lost+found",
					"media", "mnt", "proc", "root", "run", "sys", "tmp", "var", "workspace", NULL};
/* debootstrap copies these from the host that it runs on. */
static const char *const not_copied[] = {"machine-id", "resolv.conf", "ssh", NULL};

static int failed(struct err *err, const char *what, const char *name)
{
	return err_errno(err, "preparing the jails' root: %s %s", what, name);
}

/* `source` below directory `at`, not through a link, to `target` below the root. */
static int bind_at(int at, const char *source, int root, const char *target, uint64_t attributes, struct err *err)
{
	const unsigned whole = OPEN_TREE_CLONE | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW;
	struct mount_attr attr = {.attr_set = attributes};
	auto_close int tree = open_tree(at, source, whole | OPEN_TREE_CLOEXEC);

	if (tree < 0)
		return failed(err, "binding", source);
	if (mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)))
		return failed(err, "making read-only", source);
	return move_mount(tree, "", root, target, MOVE_MOUNT_F_EMPTY_PATH) ? failed(err, "attaching", source) : 0;
}

static int make_file_of(int root, const char *name, mode_t mode, const char *bytes, size_t length, struct err *err)
{
	auto_close int fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	return fd < 0 || write_all(fd, bytes, length) ? failed(err, "writing", name) : 0;
}

static int make_file(int root, const char *name, const char *text, struct err *err)
{
	return make_file_of(root, name, 0644, text, strlen(text), err);
}

static void copy_file(int from_dir, const char *from, int to_dir, const char *to)
{
	auto_close int in = openat(from_dir, from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;

	if (in < 0 || fstat(in, &st) || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) || st.st_size > COPY_FILE_MAX)
		return;
	auto_close int out = openat(to_dir, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	off_t offset = 0;
	while (out >= 0 && sendfile(out, in, &offset, COPY_FILE_MAX) > 0)
		;
}

/* Links are copied as links: they point into /usr or /etc. What cannot be read is left out. */
static void copy_entry(int from_dir, const char *from, int to_dir, const char *to, int depth)
{
	struct stat st;
	char target[512];

	if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISREG(st.st_mode)) {
		copy_file(from_dir, from, to_dir, to);
	} else if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlinkat(from_dir, from, target, sizeof(target) - 1);

		if (n > 0) {
			target[n] = '\0';
			if (symlinkat(target, to_dir, to))
				return;
		}
	} else if (S_ISDIR(st.st_mode) && depth < COPY_DEPTH && mkdirat(to_dir, to, 0755) == 0) {
		int in = openat(from_dir, from, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		auto_close int out = openat(to_dir, to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *list = in < 0 ? NULL : fdopendir(in);

		for (struct dirent *entry; list && (entry = readdir(list));)
			if (entry->d_name[0] != '.')
				copy_entry(in, entry->d_name, out, entry->d_name, depth + 1);
		if (list)
			closedir(list);
	}
}

static int make_entries(int root, struct err *err)
{
	for (const char *const *name = directories; *name; name++)
		if (mkdirat(root, *name, 0755))
			return failed(err, "making", *name);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i].target, root, links[i].name))
			return failed(err, "linking", links[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(made_files); i++)
		if (make_file(root, made_files[i].name, made_files[i].text, err) < 0)
			return -ERR_SYSTEM;
	return make_file_of(root, &(JAIL_PROGRAMS "/mcp")[1], 0755, root_mount_mcp,
			    (size_t)((uintptr_t)root_mount_mcp_end - (uintptr_t)root_mount_mcp), err);
}

/* Where devices are bound from: nodes of ours, so that locks on /dev/null are not the host's, if we may make them and
 * use them (root of the host may, and not in every container), else the host's. */
static const char *device_nodes = "/dev";

static int make_nodes(struct err *err)
{
	bool made = true;

	if (mkdir(OWN_NODES, 0755) || mount("tmpfs", OWN_NODES, "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=755"))
		return failed(err, "mounting", OWN_NODES);
	for (const char *const *name = devices; *name && made; name++) {
		auto_free char *host = xasprintf("/dev/%s", *name), *own = xasprintf(OWN_NODES "/%s", *name);
		struct stat st;

		made = stat(host, &st) == 0 && mknod(own, S_IFCHR | 0666, st.st_rdev) == 0 && chmod(own, 0666) == 0;
		auto_close int fd = made ? open(own, O_RDWR | O_CLOEXEC) : -1;
		made = fd >= 0;
	}
	device_nodes = made ? OWN_NODES : "/dev";
	return 0;
}

static void show(struct root_mount *of, const char *path)
{
	of->shown = xrealloc(of->shown, of->n_shown + 2, sizeof(*of->shown));
	of->shown[of->n_shown++] = xasprintf("/%s", path);
	of->shown[of->n_shown] = NULL;
}

/* A directory that is a link stays one; one that is not there is left out. */
static int bind_directory(int at, const char *name, int root, struct root_mount *of, struct err *err)
{
	struct stat st;
	char link[512];
	ssize_t n = readlinkat(at, name, link, sizeof(link) - 1);

	if (n > 0) {
		link[n] = '\0';
		return symlinkat(link, root, name) ? failed(err, "linking", name) : 0;
	}
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
		return 0;
	if (mkdirat(root, name, 0755) && errno != EEXIST) /* opt is there already */
		return failed(err, "making", name);
	show(of, name);
	return bind_at(at, name, root, name, ATTR_READ_ONLY, err);
}

/* The directories of its own that a runner names, at the same place. */
static int bind_extra(int root, const struct bind_strings *binds, struct root_mount *of, struct err *err)
{
	for (size_t i = 0; i < binds->count; i++) {
		auto_free char *path = xstrdup(binds->items[i] + 1);


		for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
			*slash = '\0';
			if (mkdirat(root, path, 0755) && errno != EEXIST)
				return failed(err, "making", path);
			*slash = '/';
		}
		if (mkdirat(root, path, 0755))
			return failed(err, "making a place for", binds->items[i]);
		if (bind_at(AT_FDCWD, binds->items[i], root, path, ATTR_READ_ONLY, err) < 0)
			return -ERR_SYSTEM;
		show(of, path);
	}
	return 0;
}

/* Matplotlib draws what its own font lacks with a font for Chinese, Japanese and Korean, where the host has one. */
static int add_font(int host, int etc, struct err *err)
{
	static const char line[] = "\nfont.family: sans-serif, WenQuanYi Micro Hei\n";
	auto_close int rc = faccessat(host, CJK_FONT, R_OK, 0) == 0
				    ? openat(etc, "matplotlibrc", O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW)
				    : -1;

	return rc >= 0 && write_all(rc, line, sizeof(line) - 1) < 0 ? failed(err, "writing", "matplotlibrc") : 0;
}

static int copy_etc(int from, int to, struct err *err)
{
	for (const char *const *name = copied; *name; name++) {
		const char *slash = strchr(*name, '/');
		auto_free char *parent = slash ? xstrndup(*name, (size_t)(slash - *name)) : NULL;

		if (parent && mkdirat(to, parent, 0755) && errno != EEXIST)
			return failed(err, "making", parent);
		copy_entry(from, *name, to, *name, 0);
	}
	return 0;
}

static int fill_from_host(int root, const struct root_plan *plan, struct root_mount *of, struct err *err)
{
	auto_close int host = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int from = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int to = openat(root, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (host < 0 || from < 0 || to < 0)
		return failed(err, "opening", host < 0 ? "/" : "/etc");
	for (const char *const *name = system_directories; *name; name++)
		if (bind_directory(host, *name, root, of, err) < 0)
			return -ERR_SYSTEM;
	/* Where Node and bun look, from /code and /data. */
	if (symlinkat(ROOT_MOUNT_MODULES "/node_modules", root, "node_modules"))
		return failed(err, "linking", "node_modules");
	if (plan->modules_dir[0]) {
		if (bind_at(AT_FDCWD, plan->modules_dir, root, &ROOT_MOUNT_MODULES[1], ATTR_READ_ONLY, err) < 0)
			return -ERR_SYSTEM;
		show(of, &ROOT_MOUNT_MODULES[1]);
	}
	if (copy_etc(from, to, err) < 0 || add_font(host, to, err) < 0)
		return -ERR_SYSTEM;
	return bind_extra(root, plan->binds, of, err);
}

/* The next entry of a directory that does not begin with a dot and is not listed; NULL: none, or no directory. */
static const char *next_entry(DIR *list, const char *const *without)
{
	for (struct dirent *entry; list && (entry = readdir(list));) {
		const char *const *listed = without;

		while (*listed && !streq(*listed, entry->d_name))
			listed++;
		if (entry->d_name[0] != '.' && !*listed)
			return entry->d_name;
	}
	return NULL;
}

static void close_list(DIR **list)
{
	if (*list)
		closedir(*list);
}

static DIR *open_list(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list && fd >= 0)
		close(fd);
	return list;
}

/* Its /etc is copied as far as every user may read it; accounts and names are ours, they are there already. */
static int fill_from_rootfs(int root, const char *rootfs, struct root_mount *of, struct err *err)
{
	auto_close int from = open(rootfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	auto_close int to_etc = openat(root, "etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	__attribute__((cleanup(close_list))) DIR *top = from < 0 ? NULL : open_list(from, ".");
	__attribute__((cleanup(close_list))) DIR *etc = from < 0 ? NULL : open_list(from, "etc");
	const char *name;

	if (!top || !etc || to_etc < 0)
		return failed(err, "opening", rootfs);
	while ((name = next_entry(top, not_bound)))
		if (bind_directory(from, name, root, of, err) < 0)
			return -ERR_SYSTEM;
	while ((name = next_entry(etc, not_copied)))
		copy_entry(dirfd(etc), name, to_etc, name, 0);
	return 0;
}

int root_mount_begin(const char *hosts, struct err *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return failed(err, "keeping mounts private below", "/");
	if (mount("tmpfs", BASE, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755") || mkdir(BASE "/proc", 0755) ||
	    mkdir(BASE ROOT_MOUNT_LAYERS, 0755))
		return failed(err, "mounting", BASE);
	if (make_nodes(err) < 0)
		return -ERR_SYSTEM;
	return make_file(AT_FDCWD, BASE ROOT_MOUNT_HOSTS, hosts, err);
}

/* Asked once: where there is no such file system, each jail's mount would make the host's root look for its module. */
static bool has_overlays(int root)
{
	static int known = -1;
	const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV;

	if (known < 0 && fchdir(root) == 0) {
		known = mount("overlay", "home", "overlay", flags, "lowerdir=" ROOT_MOUNT_EMPTY ":tmp") == 0;
		if (known)
			umount2("home", MNT_DETACH);
	}
	return known > 0;
}

int root_mount_add(const struct root_plan *plan, struct root_mount *of, struct err *err)
{
	struct mount_attr read_only = {.attr_set = ATTR_READ_ONLY};
	auto_free char *path = xasprintf(BASE "%s", of->path);

	if (mkdir(path, 0755) || mount("tmpfs", path, "tmpfs", MS_NOSUID, "size=64m,mode=755"))
		return failed(err, "mounting", path);
	auto_close int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return failed(err, "opening", path);
	if (make_entries(root, err) < 0)
		return -ERR_SYSTEM;
	for (const char *const *name = devices; *name; name++) {
		auto_free char *from = xasprintf("%s/%s", device_nodes, *name), *to = xasprintf("dev/%s", *name);

		if (make_file(root, to, "", err) < 0 || bind_at(AT_FDCWD, from, root, to, ATTR_DEVICE, err) < 0)
			return -ERR_SYSTEM;
	}
	if (plan->rootfs ? fill_from_rootfs(root, plan->rootfs, of, err) : fill_from_host(root, plan, of, err))
		return -ERR_SYSTEM;
	if (mount_setattr(root, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)))
		return failed(err, "making read-only", path);
	of->n_bound = has_overlays(root) ? of->n_shown : 0;
	if (!plan->rootfs && !plan->modules_dir[0])
		show(of, &ROOT_MOUNT_MODULES[1]);
	show(of, &JAIL_PROGRAMS[1]);
	show(of, "etc");
	show(of, "proc");
	return 0;
}

void root_mount_clear(struct root_mount *root)
{
	for (size_t i = 0; i < root->n_shown; i++)
		free(root->shown[i]);
	free(root->shown);
	*root = (struct root_mount){.shown = NULL};
}

/* Away from the host's root, for good: what was not bound is not there any more. */
int root_mount_finish(struct err *err)
{
	if (mount("/proc", BASE "/proc", NULL, MS_BIND | MS_REC, NULL))
		return failed(err, "binding", "/proc");
	if (chdir(BASE) || sys_pivot_root(".", ".") || umount2(".", MNT_DETACH) || chdir("/"))
		return err_errno(err, "leaving the host's root");
	return 0;
}
