/* workspace_guard.c - see workspace_guard.h. */
#include "workspace_guard.h"

#include <fnmatch.h>
#include <string.h>

#include "lib/base/embed.h"
#include "lib/base/util.h"

EMBED(guard_list, "lib/job/workspace_guard.list");

#define SEGMENTS_MAX 256 /* of a path; a deeper one is held */
#define NEW          "new "

/* Bytes at `at` that some file system leaves out when it compares names: HFS+ (git's next_hfs_char), U+200C to U+200F,
 * U+202A to U+202E, U+206A to U+206F, U+FEFF. */
static size_t ignored(const char *at)
{
	const unsigned char *c = (const unsigned char *)at;

	if (c[0] == 0xe2 && c[1] == 0x80 && ((c[2] >= 0x8c && c[2] <= 0x8f) || (c[2] >= 0xaa && c[2] <= 0xae)))
		return 3;
	if (c[0] == 0xe2 && c[1] == 0x81 && c[2] >= 0xaa && c[2] <= 0xaf)
		return 3;
	return c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf ? 3 : 0;
}

/* A segment as the most careless file system takes it, in its own place. */
static void fold(char *segment)
{
	char *to = segment;

	for (const char *at = segment; *at && *at != ':'; at++) {
		const size_t left_out = ignored(at);

		if (left_out) {
			at += left_out - 1;
		} else if (str_starts(at, "\u212a")) { /* the sign for kelvin is a k, */
			*to++ = 'k';
			at += strlen("\u212a") - 1;
		} else if (str_starts(at, "\u017f")) { /* the long s an s */
			*to++ = 's';
			at += strlen("\u017f") - 1;
		} else {
			*to++ = *at >= 'A' && *at <= 'Z' ? (char)(*at + 'a' - 'A') : *at;
		}
	}
	while (to > segment && (to[-1] == '.' || to[-1] == ' '))
		to--;
	*to = '\0';
}

bool workspace_guard_same(const char *name, const char *plain)
{
	auto_free char *folded = xstrdup(name);

	fold(folded);
	return streq(folded, plain);
}

bool workspace_guard_git(const char *name)
{
	auto_free char *folded = xstrdup(name);

	fold(folded);
	return streq(folded, ".git") || (str_starts(folded, "git~") && strspn(folded + 4, "0123456789") > 0);
}

/* The path in segments, folded. */
struct segments {
	char *text;
	const char *items[SEGMENTS_MAX];
	size_t count;
};

static bool split(const char *path, struct segments *ret)
{
	*ret = (struct segments){.text = xstrdup(path)};
	for (char *at = ret->text, *next; at; at = next) {
		if (ret->count == SEGMENTS_MAX)
			return false;
		next = strchr(at, '/');
		if (next)
			*next++ = '\0';
		fold(at);
		ret->items[ret->count++] = at;
	}
	return true;
}

/* Do the segments from `from` on begin with the pattern's? Sets *ret_length to how many these are. */
static bool matches_at(const struct segments *path, size_t from, const char *pattern, size_t *ret_length)
{
	size_t length = 0;

	for (const char *end; *pattern; pattern = *end ? end + 1 : end) {
		end = strchrnul(pattern, '/');
		auto_free char *segment = xstrndup(pattern, (size_t)(end - pattern));

		if (from + length == path->count || fnmatch(segment, path->items[from + length], FNM_CASEFOLD) != 0)
			return false;
		length++;
	}
	*ret_length = length;
	return length > 0;
}

static bool matches(const struct segments *path, const char *pattern)
{
	const bool folder = *pattern && pattern[strlen(pattern) - 1] == '/';
	size_t length;

	for (size_t i = 0; i < path->count; i++)
		if (matches_at(path, i, pattern, &length) &&
		    (folder ? i + length < path->count : i + length == path->count))
			return true;
	return false;
}

static bool matches_any(const struct segments *path, const struct bind_strings *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		if (matches(path, patterns->items[i]))
			return true;
	return false;
}

/* The list of the tree. */
static enum workspace_guard find(const struct segments *path)
{
	enum workspace_guard found = WORKSPACE_FREE;

	for (const char *line = guard_list, *end; line < guard_list_end && found != WORKSPACE_HELD; line = end + 1) {
		end = strchrnul(line, '\n');
		const bool new = str_starts(line, NEW);
		const char *begin = new ? line + strlen(NEW) : line;
		auto_free char *pattern = xstrndup(begin, (size_t)(end - begin));

		if (*pattern && *pattern != '#' && matches(path, pattern))
			found = new ? WORKSPACE_HELD_NEW : WORKSPACE_HELD;
	}
	return found;
}

enum workspace_guard workspace_guard(const struct config *config, const char *path, bool in_repository)
{
	struct segments segments;
	enum workspace_guard found = WORKSPACE_HELD;

	if (split(path, &segments)) {
		if (matches_any(&segments, &config->workspace.allow) ||
		    matches_any(&segments, &config->workspace_folder.allow))
			found = WORKSPACE_FREE;
		else if (!in_repository && !matches_any(&segments, &config->workspace.hold))
			found = find(&segments);
	}
	free(segments.text);
	return found;
}
