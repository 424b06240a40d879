/*
 * workspace_walk.c - what is in the folder, and what of it is left alone; see workspace.h.
 *
 * The walk opens every folder beneath the one above it (beneath.h), so a folder that somebody exchanges for a link in
 * the meantime is not followed. It stops at the first file that is too many: the folder of the first level that has
 * most of them until then is in the error, as the likely one to be named in .sallyportignore. Bytes are counted to the
 * end, because the largest file is what the error names.
 */
#include "workspace_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/beneath.h"
#include "lib/base/utf8.h"
#include "workspace_guard.h"

#define PREFIX ".sallyport-"
#define SUFFIX ".tmp"
#define SHOWN  256

/* -------- what is left alone -------------------------------------------------------------------------- */

/* A trailing "/": folders only; a "/" elsewhere: the pattern is of the whole path; else of a name in any folder. */
static int add_rule(struct workspace *workspace, char *line, size_t number, struct err *err)
{
	size_t length = strlen(line);

	while (length > 0 && strchr(" \t\r", line[length - 1]))
		line[--length] = '\0';
	if (length == 0 || *line == '#')
		return 0;
	if (*line == '!' || strstr(line, "**"))
		return err_set(err, ERR_INVALID,
			       WORKSPACE_IGNORE " line %zu: \"!\" and \"**\" have no meaning here; a name without "
						"\"/\" is found in every folder",
			       number);
	if (workspace->n_rules == WORKSPACE_RULES_MAX)
		return err_set(err, ERR_LIMIT, WORKSPACE_IGNORE " has more than %d patterns", WORKSPACE_RULES_MAX);
	struct workspace_rule rule = {.folder = line[length - 1] == '/'};

	if (rule.folder)
		line[--length] = '\0';
	rule.whole = strchr(line, '/') != NULL;
	rule.pattern = xstrdup(*line == '/' ? line + 1 : line);
	workspace->rules = xrealloc(workspace->rules, workspace->n_rules + 1, sizeof(rule));
	workspace->rules[workspace->n_rules++] = rule;
	return 0;
}

void workspace_rules_clear(struct workspace *workspace)
{
	for (size_t i = 0; i < workspace->n_rules; i++)
		free(workspace->rules[i].pattern);
	free(steal(&workspace->rules));
	workspace->n_rules = 0;
}

int workspace_rules_read(struct workspace *workspace, struct err *err)
{
	auto_close int fd = beneath_open(workspace->fd, WORKSPACE_IGNORE, O_RDONLY | O_NONBLOCK, 0);
	auto_free char *text = NULL;
	size_t length, number = 0;

	workspace_rules_clear(workspace);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_errno(err, "%s/" WORKSPACE_IGNORE " cannot be read (a link is not followed)",
				 workspace->path);
	int result = read_fd(fd, WORKSPACE_IGNORE_MAX, &text, &length, err);

	if (result < 0)
		return err_wrap(err, "reading " WORKSPACE_IGNORE);
	for (char *line = text, *end; result == 0 && line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		result = add_rule(workspace, line, ++number, err);
	}
	return result;
}

bool workspace_temporary(const char *name)
{
	const size_t length = strlen(name);

	return str_starts(name, PREFIX) && length > strlen(SUFFIX) && streq(name + length - strlen(SUFFIX), SUFFIX);
}

bool workspace_ignores(const struct workspace *workspace, const char *path, bool folder)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (workspace_guard_git(name) || workspace_guard_same(name, WORKSPACE_IGNORE) || workspace_temporary(name))
		return true;
	for (size_t i = 0; i < workspace->n_rules; i++) {
		const struct workspace_rule *rule = &workspace->rules[i];

		if ((folder || !rule->folder) &&
		    fnmatch(rule->pattern, rule->whole ? path : name, rule->whole ? FNM_PATHNAME : 0) == 0)
			return true;
	}
	return false;
}

bool workspace_ignores_path(const struct workspace *workspace, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_free char *folder = xstrndup(path, (size_t)(slash - path));

		if (workspace_ignores(workspace, folder, true))
			return true;
	}
	return workspace_ignores(workspace, path, false);
}

/* -------- the walk ------------------------------------------------------------------------------------ */

struct walk {
	struct workspace *workspace;
	struct workspace_list *list;
	size_t seen; /* files and folders */
	int64_t bytes, largest;
	char top[SHOWN], most[SHOWN], largest_name[SHOWN]; /* folders of the first level: this one, the fullest */
	size_t top_begin, n_most;
	struct err *err;
};

static void show(const char *name, char ret[SHOWN])
{
	auto_buf struct buf shown = {0};

	buf_init(&shown, 4096);
	utf8_printable(&shown, name, strnlen(name, SHOWN / 4));
	snprintf(ret, SHOWN, "%s%s", shown.data, strlen(name) > SHOWN / 4 ? "…" : "");
}

/* The folder of the first level that was just left, or is being walked. */
static void count_top(struct walk *walk)
{
	if (*walk->top && walk->seen - walk->top_begin > walk->n_most) {
		walk->n_most = walk->seen - walk->top_begin;
		memcpy(walk->most, walk->top, sizeof(walk->most));
	}
	walk->top[0] = '\0';
}

static int too_many(struct walk *walk)
{
	count_top(walk);
	return err_set(walk->err, ERR_LIMIT,
		       "the workspace has more than %zu files and folders, and a program's /data holds so many "
		       "(limits.data_inodes)%s%s%s",
		       walk->workspace->files_max, *walk->most ? "; most are in \"" : "", walk->most,
		       *walk->most ? "\": name what programs do not need in " WORKSPACE_IGNORE
				   : ": name what programs do not need in " WORKSPACE_IGNORE);
}

/* Temporary names of a process that is not there any more. */
static void remove_leftover(const struct walk *walk, int folder, const char *name)
{
	uint64_t pid;
	auto_free char *digits = xstrndup(name + strlen(PREFIX), strcspn(name + strlen(PREFIX), "-"));

	if (!walk->workspace->swept && parse_u64(digits, 1, INT32_MAX, &pid) == 0 && kill((pid_t)pid, 0) < 0 &&
	    errno == ESRCH)
		unlinkat(folder, name, 0);
}

static int walk_folder(struct walk *walk, int fd /* taken over */, const char *path, int level);

static int enter(struct walk *walk, int folder, const char *name, const char *path, int level)
{
	int fd = beneath_open(folder, name, O_RDONLY | O_DIRECTORY, 0);
	char shown[SHOWN];

	show(path, shown);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV))
		return 0; /* it went, or is none of ours */
	if (fd < 0)
		return err_errno(walk->err, "the folder \"%s\" of the workspace cannot be read", shown);
	if (level >= JAIL_LEVELS_MAX) {
		close(fd);
		return err_set(walk->err, ERR_LIMIT,
			       "the folder \"%s\" of the workspace is more than %d levels deep: name one of them "
			       "in " WORKSPACE_IGNORE,
			       shown, JAIL_LEVELS_MAX - 1);
	}
	if (level == 1) {
		show(name, walk->top);
		walk->top_begin = walk->seen;
	}
	int result = walk_folder(walk, fd, path, level);

	if (level == 1)
		count_top(walk);
	return result;
}

static int look(struct walk *walk, int folder, const char *name, const char *path, int level)
{
	struct stat status;

	if (workspace_temporary(name))
		remove_leftover(walk, folder, name);
	if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_errno(walk->err, "a file of the workspace cannot be seen");
	const bool is_folder = S_ISDIR(status.st_mode);

	if ((!is_folder && !S_ISREG(status.st_mode)) || workspace_ignores(walk->workspace, path, is_folder))
		return 0;
	if (++walk->seen > walk->workspace->files_max)
		return too_many(walk);
	if (strlen(path) > JAIL_NAME_MAX) {
		char shown[SHOWN];

		show(path, shown);
		return err_set(walk->err, ERR_LIMIT,
			       "a path of the workspace is longer than %d bytes: name \"%s\" or a folder of it in "
			       "" WORKSPACE_IGNORE,
			       JAIL_NAME_MAX, shown);
	}
	if (is_folder)
		return enter(walk, folder, name, path, level + 1);
	struct workspace_file *file = workspace_list_add(walk->list, path);

	file->mark = workspace_mark_of(&status);
	file->mode = status.st_mode & 0777;
	file->links = status.st_nlink;
	if (status.st_size > walk->largest) {
		walk->largest = status.st_size;
		show(path, walk->largest_name);
	}
	walk->bytes += MIN(status.st_size, INT64_MAX / 2 - walk->bytes);
	return 0;
}

static int walk_folder(struct walk *walk, int fd, const char *path, int level)
{
	DIR *folder = fdopendir(fd);
	int result = 0;

	if (!folder) {
		close(fd);
		return err_errno(walk->err, "a folder of the workspace cannot be read");
	}
	for (const struct dirent *entry; result == 0 && (entry = readdir(folder));) {
		if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
			continue;
		auto_free char *below = xasprintf("%s%s%s", path, *path ? "/" : "", entry->d_name);

		result = look(walk, fd, entry->d_name, below, level);
	}
	closedir(folder);
	return result;
}

static int by_inode(const void *a, const void *b)
{
	const struct workspace_mark *x = &(*(struct workspace_file *const *)a)->mark;
	const struct workspace_mark *y = &(*(struct workspace_file *const *)b)->mark;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return (x->ino > y->ino) - (x->ino < y->ino);
}

/* A file with more names than the workspace has of it is a link to something outside: left alone like other links. */
static void drop_outside_links(struct workspace_list *list)
{
	auto_free struct workspace_file **linked = xcalloc(list->count + 1, sizeof(struct workspace_file *));
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].links > 1)
			linked[count++] = &list->items[i];
	qsort(linked, count, sizeof(struct workspace_file *), by_inode);
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && by_inode(&linked[i], &linked[end]) == 0; end++)
			;
		for (size_t k = i; end - i < linked[i]->links && k < end; k++)
			free(steal(&linked[k]->name));
	}
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i].name)
			list->items[kept++] = list->items[i];
	list->count = kept;
}

int workspace_walk(struct workspace *workspace, struct workspace_list *ret, struct err *err)
{
	struct walk walk = {.workspace = workspace, .list = ret, .err = err};
	int fd = beneath_open(workspace->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	int result = fd < 0 ? err_errno(err, "the workspace %s cannot be read", workspace->path)
			    : walk_folder(&walk, fd, "", 0);

	if (result == 0 && walk.bytes > workspace->bytes_max)
		result = err_set(err, ERR_LIMIT,
				 "the workspace has more than %lld MiB of files, and a program's /data holds so many (limits.data_mb); the largest is \"%s\" (%lld bytes): name what programs do not need in "
				 WORKSPACE_IGNORE,
				 (long long)(workspace->bytes_max >> 20), walk.largest_name, (long long)walk.largest);
	workspace->swept |= result == 0;
	drop_outside_links(ret);
	workspace_list_sort(ret);
	return result;
}

void workspace_temporary_name(struct workspace *workspace, char ret[64])
{
	snprintf(ret, 64, PREFIX "%d-%u" SUFFIX, (int)getpid(), workspace->temporary++);
}
