/* silent.c - see silent.h. */
#include "silent.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define BLANKS          " \t"

/* Text that runs other text, which may import anything. */
static const char *const runs_text[] = {"exec", "eval", "compile", "__builtins__"};

/* `*text` goes behind the word and the blanks after it. */
static bool take_word(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*text, word, length) != 0 || !strchr(BLANKS, (*text)[length]) || !(*text)[length])
		return false;
	*text += length + strspn(*text + length, BLANKS);
	return true;
}

/* As above, behind a dotted name whose first part is one of the list. */
static bool take_module(const char **text, const struct bind_strings *list)
{
	size_t length = strspn(*text, NAME_CHARACTERS);
	bool known = false;

	for (size_t i = 0; i < list->count && !known; i++)
		known = strlen(list->items[i]) == length && strncmp(list->items[i], *text, length) == 0;
	*text += strspn(*text, NAME_CHARACTERS ".");
	*text += strspn(*text, BLANKS);
	return known;
}

/* A line in which "import" occurs: `import a, b.c as d` or `from a.b import …`, and nothing else. */
static bool imports_silently(const struct runner *runner, const char *line)
{
	line += strspn(line, BLANKS);
	if (take_word(&line, "from"))
		return take_module(&line, &runner->silent_imports) && take_word(&line, "import") &&
		       !strstr(line, "import") && !strchr(line, ';');
	if (!take_word(&line, "import"))
		return false;
	for (;;) {
		if (!take_module(&line, &runner->silent_imports))
			return false;
		if (take_word(&line, "as")) {
			line += strspn(line, NAME_CHARACTERS);
			line += strspn(line, BLANKS);
		}
		if (*line == '\0' || *line == '#')
			return !strstr(line, "import");
		if (*line++ != ',')
			return false;
		line += strspn(line, BLANKS);
	}
}

static bool line_silent(const struct runner *runner, const char *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(runs_text); i++)
		if (strstr(line, runs_text[i]))
			return false;
	return !strstr(line, "import") || imports_silently(runner, line);
}

static bool begins_with_one(const char *line, const struct bind_strings *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (str_starts(line, list->items[i]))
			return true;
	return false;
}

static bool has_long_quotes(const char *line)
{
	return strstr(line, "\"\"\"") || strstr(line, "'''");
}

/* Is the bracket at `open` closed by the last character? One in a string counts for nothing. */
static bool closes_at_end(const char *open)
{
	size_t depth = 0;
	char quote = '\0';

	for (const char *p = open; *p; p++) {
		if (quote) {
			if (*p == '\\' && p[1])
				p++;
			else if (*p == quote)
				quote = '\0';
		} else if (strchr("'\"", *p)) {
			quote = *p;
		} else if (strchr("([{", *p)) {
			depth++;
		} else if (strchr(")]}", *p) && --depth == 0) {
			return p[1] == '\0';
		} else if (*p == '#') {
			return false;
		}
	}
	return false;
}

/* The last line that is not indented, and whether there are others behind it. */
static bool ends_silently(const struct runner *runner, const char *last, bool more)
{
	size_t length = strlen(last);

	if (length == 0 || has_long_quotes(last))
		return false;
	if (more)
		return last[length - 1] == ':' && begins_with_one(last, &runner->silent_blocks);
	return begins_with_one(last, &runner->silent_calls) && closes_at_end(strchr(last, '('));
}

bool silent_text(const struct runner *runner, const char *text, size_t length)
{
	auto_free char *copy = xstrndup(text, length);
	const char *last = "";
	bool more = false;
	char *state;

	if (strlen(copy) != length || strpbrk(copy, "\r\f"))
		return false;
	for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		if (!line_silent(runner, line))
			return false;
		for (size_t end = strlen(line); end > 0 && strchr(BLANKS, line[end - 1]); end--)
			line[end - 1] = '\0';
		if (!*line)
			continue;
		more = strchr(BLANKS, *line);
		if (more && has_long_quotes(line))
			last = "";
		else if (!more)
			last = line;
	}
	return ends_silently(runner, last, more);
}

bool silent_file(const struct runner *runner, int fd)
{
	struct stat st;

	if (fd < 0 || !runner->silent_calls.count || fstat(fd, &st) || st.st_size > SILENT_TEXT_MAX)
		return false;
	auto_free char *text = xcalloc(1, (size_t)st.st_size + 1);
	ssize_t n = pread(fd, text, (size_t)st.st_size, 0);

	return n == st.st_size && silent_text(runner, text, (size_t)n);
}
