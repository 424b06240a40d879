/* snippets.c - see snippets.h. */
#include "snippets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"

#define NAME_BYTES  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
#define NAMES_SHOWN 20 /* in an error */

static bool name_valid(const char *name)
{
	size_t length = strlen(name);

	return length > 0 && length <= SNIPPET_NAME_MAX && name[0] != '.' && strspn(name, NAME_BYTES) == length;
}

/* Bytes of the name without the extension. */
static size_t base_length(const char *file)
{
	const char *dot = strrchr(file, '.');

	return dot ? (size_t)(dot - file) : strlen(file);
}

/* The files' names, sorted. */
struct names {
	char (*items)[SNIPPET_NAME_MAX + 1];
	size_t count;
	int folder;
};

static void names_clear(struct names *names)
{
	free(names->items);
	close_pointer(&names->folder);
}
#define auto_names __attribute__((cleanup(names_clear)))

/* By the name without extension first: those that share one stand together. */
static int compare(const void *a, const void *b)
{
	size_t length_a = base_length(a), length_b = base_length(b);
	int order = memcmp(a, b, MIN(length_a, length_b));

	if (order == 0)
		order = (length_a > length_b) - (length_a < length_b);
	return order ? order : strcmp(a, b);
}

/* A regular file of this folder itself; links are not followed. */
static bool is_snippet(int folder, const char *name)
{
	struct stat st;

	return name_valid(name) && base_length(name) < strlen(name) &&
	       fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size <= SNIPPET_BYTES_MAX;
}

static int names_read(const struct config *config, struct names *ret, struct err *err)
{
	const char *path = config->tools.snippets_dir;

	if (!path || !*path)
		return err_set(err, ERR_NOT_FOUND,
			       "this server has no snippets (tools.snippets_dir is not set)");
	ret->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->folder < 0)
		return err_errno(err, "the folder of the snippets cannot be read");
	int again = fcntl(ret->folder, F_DUPFD_CLOEXEC, 3);
	DIR *folder = again < 0 ? NULL : fdopendir(again);

	if (!folder) {
		int result = err_errno(err, "the folder of the snippets cannot be read");

		close_pointer(&again);
		return result;
	}
	ret->items = xcalloc(SNIPPETS_MAX, sizeof(*ret->items));
	for (const struct dirent *entry; ret->count < SNIPPETS_MAX && (entry = readdir(folder));)
		if (is_snippet(ret->folder, entry->d_name))
			snprintf(ret->items[ret->count++], sizeof(*ret->items), "%s", entry->d_name);
	closedir(folder);
	qsort(ret->items, ret->count, sizeof(*ret->items), compare);
	return 0;
}

static bool base_is(const char *file, const char *name)
{
	return strlen(name) == base_length(file) && memcmp(file, name, strlen(name)) == 0;
}

static int unknown(const struct names *names, struct err *err)
{
	auto_buf struct buf known = {0};

	buf_init(&known, ERR_TEXT_SIZE);
	for (size_t i = 0; i < MIN(names->count, (size_t)NAMES_SHOWN); i++)
		buf_printf(&known, "%s%.*s", i ? ", " : "", (int)base_length(names->items[i]), names->items[i]);
	return err_set(err, ERR_NOT_FOUND, "snippet_name: unknown snippet; the server has: %s%s",
		       known.length ? known.data : "none", names->count > NAMES_SHOWN ? " and more" : "");
}

/* The file that `name` means. */
static int find(const struct names *names, const char *name, const char **ret, struct err *err)
{
	const char *found = NULL;

	for (size_t i = 0; i < names->count; i++) {
		const char *file = names->items[i];

		if (streq(file, name)) {
			*ret = file;
			return 0;
		}
		if (!base_is(file, name))
			continue;
		if (found)
			return err_set(err, ERR_CONFLICT,
				       "snippet_name: there are %s and %s: name one with its extension", found, file);
		found = file;
	}
	if (!found)
		return unknown(names, err);
	*ret = found;
	return 0;
}

int snippet_read(const struct config *config, const char *name, struct snippet *ret, struct err *err)
{
	auto_names struct names names = {.folder = -1};
	struct snippet snippet = {0};
	const char *file = NULL;
	struct stat st;
	int result = names_read(config, &names, err);

	if (result < 0 || (result = find(&names, name, &file, err)) < 0 || !file)
		return result;
	/* It may have been replaced since it was listed, so what was opened counts. */
	auto_close int fd = openat(names.folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, "the snippet %s cannot be read", file);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_NOT_FOUND, "the snippet %s is not a regular file", file);
	result = read_fd(fd, SNIPPET_BYTES_MAX, &snippet.text, &snippet.length, err);
	if (result < 0)
		return err_wrap(err, "the snippet %s", file);
	snprintf(snippet.file, sizeof(snippet.file), "%s", file);
	*ret = snippet;
	ret->extension = ret->file + base_length(ret->file);
	return 0;
}

void snippet_clear(struct snippet *snippet)
{
	free(snippet->text);
	*snippet = (struct snippet){0};
}

int snippet_list(const struct config *config, const char *prefix, int (*each)(void *arg, const char *name), void *arg,
		 struct err *err)
{
	auto_names struct names names = {.folder = -1};
	char before[SNIPPET_NAME_MAX + 1] = "";
	int result = names_read(config, &names, err);

	for (size_t i = 0; result >= 0 && i < names.count; i++) {
		char name[SNIPPET_NAME_MAX + 1];

		snprintf(name, sizeof(name), "%.*s", (int)base_length(names.items[i]), names.items[i]);
		if (!str_starts(name, prefix) || streq(name, before))
			continue;
		snprintf(before, sizeof(before), "%s", name);
		result = each(arg, name);
	}
	return MIN(result, 0);
}
