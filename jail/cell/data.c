/*
 * data.c - see data.h.
 *
 * Three parts: making the file system (fsopen, never attached to a place of the jailer's own), walking it into a sorted
 * list, and comparing two such lists. A walk opens each directory by its whole path beneath the root, so a path that
 * was swapped for a link meanwhile is refused by the kernel; nothing of the guest is alive then anyway. What cannot be
 * kept stays in the list, with the reason: a person must hear of it.
 */
#include "data.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/beneath.h"
#include "lib/base/util.h"

struct walk {
	int root;
	struct data_tree tree;
	size_t room;
};

static int set(int fs, const char *key, int64_t value, const char *format)
{
	char text[32];

	snprintf(text, sizeof(text), format[0] == 'o' ? "%llo" : "%lld", (long long)value);
	return fsconfig(fs, FSCONFIG_SET_STRING, key, text, 0);
}

int data_make(const struct data_size *size, uid_t owner, int *ret_mount, int *ret_root, struct err *err)
{
	auto_close int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0 || set(fs, "size", size->bytes, "d") || set(fs, "nr_inodes", size->inodes, "d") ||
	    set(fs, "mode", 0755, "o") || set(fs, "uid", owner, "d") || set(fs, "gid", owner, "d") ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return err_errno(err, "making a file system for the jail");
	auto_close int mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	auto_close int root = mount < 0 ? -1 : openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_errno(err, "mounting a file system for the jail");
	*ret_mount = steal_fd(&mount);
	*ret_root = steal_fd(&root);
	return 0;
}

int data_resize(int root, const struct data_size *size)
{
	auto_close int fs = fspick(root, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);

	if (fs < 0 || set(fs, "size", size->bytes, "d") || set(fs, "nr_inodes", size->inodes, "d"))
		return -1;
	return fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0);
}

static int reconfigure(int root, const char *flag)
{
	auto_close int fs = fspick(root, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_FLAG, flag, NULL, 0))
		return -1;
	return fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0);
}

int data_make_read_only(int root)
{
	return reconfigure(root, "ro");
}

int data_make_writable(int root)
{
	return reconfigure(root, "rw");
}

static void add_entry(struct walk *walk, const char *name, const struct stat *st, const char *unkept)
{
	const char *type = S_ISREG(st->st_mode)    ? NULL
			   : S_ISLNK(st->st_mode)  ? "symbolic link"
			   : S_ISFIFO(st->st_mode) ? "named pipe"
			   : S_ISSOCK(st->st_mode) ? "socket"
						   : "device";

	if (walk->tree.count == walk->room) {
		walk->room = walk->room ? walk->room * 2 : 64;
		walk->tree.entries = xrealloc(walk->tree.entries, walk->room, sizeof(*walk->tree.entries));
	}
	walk->tree.entries[walk->tree.count++] = (struct data_entry){
		.name = xstrdup(name),
		.inode = st->st_ino,
		.size = st->st_size,
		.mtime_us = st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000,
		.changed_ns = st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.unkept = unkept ? unkept : type,
	};
}

/* Nothing of an empty folder but its name is kept; "" is none. */
static void add_folder(struct walk *walk, const char *path)
{
	if (!path[0])
		return;
	auto_free char *name = xasprintf("%s/" JAIL_FOLDER, path);

	if (strlen(name) <= JAIL_NAME_MAX)
		add_entry(walk, name, &(const struct stat){.st_mode = S_IFREG | 0644}, NULL);
}

static bool is_dots(const char *name)
{
	return streq(name, ".") || streq(name, "..");
}

static int walk_directory(struct walk *walk, const char *path, int depth);

/* One entry of the directory `path` that is open as `fd`. *long_named: one of it was too long already. */
static int walk_entry(struct walk *walk, int fd, const char *path, const char *entry, int depth, bool *long_named)
{
	struct stat st;

	if (fstatat(fd, entry, &st, AT_SYMLINK_NOFOLLOW))
		return -1;
	auto_free char *name = xasprintf("%s%s%s", path, path[0] ? "/" : "", entry);
	if (strlen(name) > JAIL_NAME_MAX) {
		/* Named by the directory that it is in, once: its own name would not fit a message. */
		if (!*long_named)
			add_entry(walk, path, &st, "the path is too long");
		*long_named = true;
	} else if (!S_ISDIR(st.st_mode)) {
		add_entry(walk, name, &st, NULL);
	} else if (depth == JAIL_LEVELS_MAX) {
		add_entry(walk, name, &st, "too many directories below each other");
	} else {
		return walk_directory(walk, name, depth + 1);
	}
	return 0;
}

/* `path` "" is the root. Depth bounds the recursion, and with it the descriptors. */
static int walk_directory(struct walk *walk, const char *path, int depth)
{
	int fd = path[0] ? beneath_open(walk->root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0)
			 : openat(walk->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	int error = list ? 0 : errno;
	bool long_named = false, empty = true;

	for (struct dirent *entry; list && !error && (errno = 0, entry = readdir(list));) {
		if (is_dots(entry->d_name))
			continue;
		empty = false;
		if (walk_entry(walk, fd, path, entry->d_name, depth, &long_named) < 0)
			error = errno;
	}
	if (!error)
		error = errno; /* a list that cannot be read to its end would say that the rest is gone */
	if (list)
		closedir(list);
	else if (fd >= 0)
		close(fd);
	if (!error)
		add_folder(walk, empty ? path : "");
	errno = error;
	return error ? -1 : 0;
}

static int by_name(const void *a, const void *b)
{
	const struct data_entry *left = a, *right = b;

	return strcmp(left->name, right->name);
}

int data_walk(int root, int64_t max_bytes, struct data_tree *ret, struct err *err)
{
	struct walk walk = {.root = root};

	if (walk_directory(&walk, "", 1)) {
		int result = err_errno(err, "reading the files of /data");

		data_clear(&walk.tree);
		return result;
	}
	if (walk.tree.count)
		qsort(walk.tree.entries, walk.tree.count, sizeof(*walk.tree.entries), by_name);
	/* In the order of the names, so that the same files are left out wherever the kernel put them. */
	for (size_t i = 0; i < walk.tree.count; i++) {
		struct data_entry *entry = &walk.tree.entries[i];

		if (!entry->unkept && entry->size > max_bytes)
			entry->unkept = "larger than the limit of /data";
		if (!entry->unkept)
			max_bytes -= entry->size;
	}
	*ret = walk.tree;
	return 0;
}

void data_clear(struct data_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++)
		free(tree->entries[i].name);
	free(tree->entries);
	*tree = (struct data_tree){.entries = NULL};
}

/* The change time says it all, but the kernel's clock for it may tick only every 4 ms: the rest is compared, too. */
size_t data_compare(const struct data_tree *before, const struct data_tree *after, struct data_change **ret)
{
	struct data_change *changes = xcalloc(before->count + after->count + 1, sizeof(*changes));
	size_t b = 0, n = 0;

	for (size_t a = 0; a < after->count || b < before->count;) {
		const struct data_entry *new = a < after->count ? &after->entries[a] : NULL;
		const struct data_entry *old = b < before->count ? &before->entries[b] : NULL;
		int order = !old ? -1 : !new ? 1 : strcmp(new->name, old->name);

		a += order <= 0;
		b += order >= 0;
		if (order > 0)
			changes[n++] = (struct data_change){JAIL_FILE_DELETED, old};
		else if (new->unkept)
			changes[n++] = (struct data_change){JAIL_FILE_NOT_KEPT, new};
		else if (order < 0)
			changes[n++] = (struct data_change){JAIL_FILE_CREATED, new};
		else if (old->inode != new->inode || old->changed_ns != new->changed_ns ||
			 old->mtime_us != new->mtime_us || old->size != new->size || old->mode != new->mode)
			changes[n++] = (struct data_change){JAIL_FILE_CHANGED, new};
	}
	*ret = changes;
	return n;
}

int data_open(int root, const struct data_entry *entry)
{
	auto_close int fd = beneath_open(root, entry->name, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0 && jail_folder(entry->name))
		return memfd_create("folder", MFD_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (!S_ISREG(st.st_mode) || st.st_ino != entry->inode) {
		errno = ESTALE;
		return -1;
	}
	return steal_fd(&fd);
}
