/*
 * init_beside.c - the program stands in /code, its files in /data, and to the program both are one folder.
 *
 * Before a run, names of /data that /code does not have are links there: require('./x'), include, `__file__` and
 * `dirname "$0"` lead to the conversation's files. After it, what the program wrote next to itself is moved to /data,
 * where it is kept. What was there before, and names that begin with a dot, are ours and are left alone.
 *
 * What runs in the jail may change both folders meanwhile (a live one): nothing is followed, and what goes wrong is the
 * program's own loss, as a file would be that it removes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init.h"
#include "lib/base/beneath.h"
#include "lib/base/util.h"

#define SHOWN_MAX  1000 /* links */
#define MOVED_MAX  4096 /* files */
#define LEVELS     16   /* of folders next to the program */
#define LEFT_LOOK  1000 /* entries of /tmp that are looked at */
#define LEFT_NAMES 3
#define CLOCK_NS   20000000 /* by which the clock that stamps files may be behind */

/* What interpreters put there. */
static const char *const caches[] = {"node_modules", "__pycache__"};

/* What was in /code before the run: the program, what was built of it, the tools' modules. */
static struct {
	char **names;
	size_t count;
} before;

static bool is_own(const char *name)
{
	bool own = name[0] == '.';

	for (size_t i = 0; i < ARRAY_SIZE(caches); i++)
		own = own || streq(caches[i], name);
	for (size_t i = 0; i < before.count; i++)
		own = own || streq(before.names[i], name);
	return own;
}

static DIR *open_list(int root, const char *path)
{
	int fd = beneath_open(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	DIR *list = fd < 0 ? NULL : fdopendir(fd);

	if (!list)
		close_pointer(&fd);
	return list;
}

static void close_list(DIR **list)
{
	if (*list)
		closedir(*list);
}
#define auto_list __attribute__((cleanup(close_list)))

/* All of them (/code has few inodes): a name that is missing here would be taken for the program's. Links are those of
 * an earlier run to /data. */
static void note_own(int code)
{
	auto_list DIR *list = code < 0 ? NULL : open_list(code, ".");

	for (size_t i = 0; i < before.count; i++)
		free(before.names[i]);
	before.count = 0;
	for (struct dirent *entry; list && (entry = readdir(list));) {
		if (entry->d_name[0] == '.' || entry->d_type == DT_LNK)
			continue;
		before.names = xrealloc(before.names, before.count + 1, sizeof(*before.names));
		before.names[before.count++] = xstrdup(entry->d_name);
	}
}

void init_beside_show(void)
{
	auto_close int code = open(JAIL_CODE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int data = open("/data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_list DIR *list = code < 0 || data < 0 ? NULL : open_list(data, ".");
	int left = SHOWN_MAX;

	note_own(code);
	for (struct dirent *entry; list && left > 0 && (entry = readdir(list));) {
		auto_free char *to = is_own(entry->d_name) ? NULL : xasprintf("/data/%s", entry->d_name);

		if (!to)
			continue;
		if (symlinkat(to, code, entry->d_name) && errno != EEXIST)
			return; /* what was built is read-only; or there is no room */
		left--;
	}
}

/* -------- back ---------------------------------------------------------------------------------------- */

struct moving {
	int code, data;
	int left;
};

static bool move_file(const struct moving *moving, const char *name, const struct stat *st)
{
	auto_close int from = beneath_open(moving->code, name, O_RDONLY | O_NONBLOCK, 0);
	const int64_t mtime_us = st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000;

	return from >= 0 && init_put_file(moving->data, name, st->st_mode & 0777, mtime_us, from) == 0 &&
	       unlinkat(moving->code, name, 0) == 0;
}

static bool stays(const char *entry, const char *name, int level)
{
	return streq(entry, ".") || streq(entry, "..") || strlen(name) > JAIL_NAME_MAX ||
	       (level == 0 && is_own(name));
}

static void move_folder(struct moving *moving, const char *path, int level)
{
	auto_list DIR *list = open_list(moving->code, *path ? path : ".");

	for (struct dirent *entry; list && moving->left > 0 && (entry = readdir(list));) {
		auto_free char *name = xasprintf("%s%s%s", path, *path ? "/" : "", entry->d_name);
		struct stat st;

		if (stays(entry->d_name, name, level) ||
		    fstatat(dirfd(list), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(st.st_mode) && level < LEVELS) {
			move_folder(moving, name, level + 1);
			unlinkat(moving->code, name, AT_REMOVEDIR);
		} else if (S_ISREG(st.st_mode)) {
			moving->left--;
			move_file(moving, name, &st);
		}
	}
}

void init_beside_take(void)
{
	auto_close int code = open(JAIL_CODE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_close int data = open("/data", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct moving moving = {code, data, MOVED_MAX};

	if (code >= 0 && data >= 0)
		move_folder(&moving, "", 0);
}

/* -------- /tmp ---------------------------------------------------------------------------------------- */

/* What interpreters and libraries put there for themselves, by the beginning of the name. */
static bool is_scratch(const char *name)
{
	static const char *const begins[] = {".",    "tmp",    "matplotlib", "fontconfig", "bun",   "hsperfdata", "go-",
					     "pymp", "joblib", "pip-",       "npm-",       "node-", "plotly",     "cc",
					     "Rtmp", "rustc",  "mono-",      "v8-",        NULL};
	size_t i = 0;

	while (begins[i] && !str_starts(name, begins[i]))
		i++;
	return begins[i];
}

static int64_t changed_ns(const struct stat *st)
{
	return (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec;
}

void init_beside_left(int64_t since_us, char *ret, size_t size)
{
	auto_close int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_list DIR *list = tmp < 0 ? NULL : open_list(tmp, ".");
	int left = LEFT_LOOK, count = 0;
	size_t length = 0;

	ret[0] = '\0';
	for (struct dirent *entry; list && left-- > 0 && (entry = readdir(list));) {
		struct stat st;

		if (is_scratch(entry->d_name) || fstatat(tmp, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)) || changed_ns(&st) < since_us * 1000 - CLOCK_NS)
			continue;
		if (++count <= LEFT_NAMES)
			length +=
				(size_t)snprintf(ret + length, size - MIN(length, size), "%s%.40s%s",
						 count > 1 ? ", " : "", entry->d_name, S_ISDIR(st.st_mode) ? "/" : "");
	}
	if (count > LEFT_NAMES)
		snprintf(ret + length, size - MIN(length, size), " and %d more", count - LEFT_NAMES);
}
