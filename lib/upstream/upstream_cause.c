/* upstream_cause.c - see upstream_cause.h. */
#include "upstream_cause.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

struct line {
	const char *text;
	size_t length;
};

static bool next_line(const char **at, const char *end, struct line *ret)
{
	while (*at < end && isspace((unsigned char)**at))
		(*at)++;
	ret->text = *at;
	while (*at < end && **at != '\n')
		(*at)++;
	ret->length = (size_t)(*at - ret->text);
	while (ret->length > 0 && isspace((unsigned char)ret->text[ret->length - 1]))
		ret->length--;
	return ret->length > 0;
}

static bool has(const struct line *line, const char *word)
{
	for (size_t i = 0; i + strlen(word) <= line->length; i++)
		if (strncasecmp(line->text + i, word, strlen(word)) == 0)
			return true;
	return false;
}

static bool begins(const struct line *line, const char *word)
{
	return line->length >= strlen(word) && strncmp(line->text, word, strlen(word)) == 0;
}

/* A frame of a stack, or the line of a program in it. */
static bool is_frame(const struct line *line)
{
	static const char *const words[] = {"at ",           "File \"", "Traceback ", "throw ",     "raise ",
					    "node:internal", "^",       "Node.js v",  "npm notice", NULL};
	size_t i = 0;

	while (words[i] && !begins(line, words[i]))
		i++;
	return words[i];
}

static bool is_cause(const struct line *line)
{
	static const char *const words[] = {
		"error:",       "exception:", "enoent",    "eacces",     "erofs",
		"no such file", "cannot ",    "not found", "could not ", "permission denied",
		"usage:",       "missing ",   "required",  "failed",     "must be ",
		"not set",      NULL};
	size_t i = 0;

	while (words[i] && !has(line, words[i]))
		i++;
	return words[i];
}

void upstream_cause(const char *errors, size_t length, struct buf *out)
{
	const char *at = errors, *end = errors + length;
	struct line line, found = {"", 0};
	bool is_it = false;

	while (next_line(&at, end, &line)) {
		if (begins(&line, "^")) { /* what was before is the program's own line */
			found.length = 0;
			is_it = false;
			continue;
		}
		if (is_it)
			break;
		if (is_frame(&line))
			continue;
		found = line;
		is_it = is_cause(&line);
	}
	utf8_printable(out, found.text, utf8_cut(found.text, found.length, UPSTREAM_CAUSE_MAX));
}

static bool is_seen(const struct line *path, const struct bind_strings *folders)
{
	static const char *const always[] = {"/usr/", "/bin/", "/lib",  "/etc/",    "/tmp",           "/data",
					     "/dev/", "/proc", "/code", "/var/bin", "/opt/sallyport", NULL};

	for (size_t i = 0; always[i]; i++)
		if (begins(path, always[i]))
			return true;
	for (size_t i = 0; i < folders->count; i++)
		if (begins(path, folders->items[i]))
			return true;
	return false;
}

size_t upstream_cause_unseen(const char *text, const struct bind_strings *folders, const char **ret)
{
	for (const char *at = text; (at = strchr(at, '/')) != NULL;) {
		const struct line path = {at, strcspn(at, " \t'\"`,;:()<>[]\n")};
		const bool absolute = at == text || strchr(" \t'\"`(=:[<", at[-1]) != NULL;

		if (absolute && path.length > 1 && at[1] != '/' && !is_seen(&path, folders)) {
			*ret = at;
			return path.length;
		}
		at += MAX(path.length, 1);
	}
	return 0;
}
