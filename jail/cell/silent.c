/*
 * silent.c - see silent.h.
 *
 * The text is cut into lines, and each line has a veto: an import that is not known to be harmless, a word that runs
 * text or gives names by their text, the name of a silent call where it is not called. What no line forbids is decided
 * by the last line that is not indented: a call of print that ends with the line, or the head of a block. A
 * veto by mistake (the word in a comment or a string) costs 2 ms; a missing one would hide a value or a figure.
 * In JavaScript, whose imports draw nothing, the last line alone decides.
 * This runs in the jailer, in front of each program, so it copies the text once and looks at it once.
 */
#include "silent.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/client/jail.h"
#include "lib/base/util.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define BLANKS          " \t"

#define MODULE_MAX      64 /* bytes of a module's name */

/* Text that runs other text, which may import anything, or that gives names by their text. */
static const char *const runs_text[] = {"exec",    "eval",    "compile", "builtins", "globals",
					"locals(", "vars(", "setattr", "__dict__"};
/* Where a module may be found. */
static const char *const module_files[] = {"", ".py", ".pyc", ".so"};

struct program {
	const struct runner *runner;
	int data;
};

/* `*text` goes behind the word and the blanks after it. */
static bool take_word(const char **text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(*text, word, length) != 0 || !strchr(BLANKS, (*text)[length]) || !(*text)[length])
		return false;
	*text += length + strspn(*text + length, BLANKS);
	return true;
}

/* May the conversation's files or packages have a module of this name? */
static bool is_shadowed(const struct program *program, const char *module)
{
	char path[MODULE_MAX + 8];
	struct stat st;

	if (program->data < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(module_files); i++) {
		snprintf(path, sizeof(path), "%s%s", module, module_files[i]);
		if (fstatat(program->data, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	}
	return fstatat(program->data, JAIL_PACKAGES, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* As above, behind a dotted name whose first part is one of the runner's modules. */
static bool take_module(const char **text, const struct program *program)
{
	const struct bind_strings *list = &program->runner->silent_imports;
	size_t length = strspn(*text, NAME_CHARACTERS);
	bool known = false;

	for (size_t i = 0; i < list->count && length < MODULE_MAX && !known; i++)
		known = strlen(list->items[i]) == length && strncmp(list->items[i], *text, length) == 0 &&
			!is_shadowed(program, list->items[i]);
	*text += strspn(*text, NAME_CHARACTERS ".");
	*text += strspn(*text, BLANKS);
	return known;
}

/* A line in which "import" occurs: `import a, b.c as d` or `from a.b import …`, and nothing else. */
static bool imports_silently(const struct program *program, const char *line)
{
	line += strspn(line, BLANKS);
	if (take_word(&line, "from"))
		return take_module(&line, program) && take_word(&line, "import") &&
		       !strstr(line, "import") && !strchr(line, ';');
	if (!take_word(&line, "import"))
		return false;
	for (;;) {
		if (!take_module(&line, program))
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

/* Does `at`, somewhere in the line, stand behind this word? */
static bool is_behind(const char *line, const char *at, const char *word)
{
	const size_t length = strlen(word);

	while (at > line && strchr(BLANKS, at[-1]))
		at--;
	return (size_t)(at - line) >= length && strncmp(at - length, word, length) == 0;
}

/* Is the name of a silent call there, and not called? */
static bool takes_name(const struct runner *runner, const char *line)
{
	for (size_t i = 0; i < runner->silent_calls.count; i++) {
		const char *call = runner->silent_calls.items[i];
		const size_t length = strcspn(call, "(");

		for (const char *at = line; *at; at++) {
			if (strncmp(at, call, length) != 0 || (at > line && strchr(NAME_CHARACTERS, at[-1])) ||
			    strspn(at + length, NAME_CHARACTERS) > 0)
				continue;
			if (at[length] != '(' || is_behind(line, at, "def") || is_behind(line, at, "class"))
				return true;
		}
	}
	return false;
}

static bool line_silent(const struct program *program, const char *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(runs_text); i++)
		if (strstr(line, runs_text[i]))
			return false;
	return !takes_name(program->runner, line) && (!strstr(line, "import") || imports_silently(program, line));
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

/* Is the last line a call that begins so? It may be indented and have a semicolon behind it. */
static bool ends_in_call(const struct runner *runner, char *text)
{
	size_t length = strlen(text);

	while (length > 0 && strchr(BLANKS "\n;", text[length - 1]))
		text[--length] = '\0';
	const char *line = strrchr(text, '\n') ? strrchr(text, '\n') + 1 : text;
	line += strspn(line, BLANKS);
	const char *open = strchr(line, '(');

	return open && begins_with_one(line, &runner->silent_ends) && closes_at_end(open);
}

bool silent_text(const struct runner *runner, const char *text, size_t length, int data)
{
	const struct program program = {runner, data};
	auto_free char *copy = xstrndup(text, length);
	const char *last = "";
	bool more = false;
	char *state;

	if (strlen(copy) != length || strpbrk(copy, "\r\f"))
		return false;
	if (runner->silent_ends.count > 0)
		return ends_in_call(runner, copy);
	for (char *line = strtok_r(copy, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
		if (!line_silent(&program, line))
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

bool silent_file(const struct runner *runner, int fd, int data)
{
	struct stat st;
	const bool tells = runner->silent_calls.count > 0 || runner->silent_ends.count > 0;

	if (fd < 0 || !tells || fstat(fd, &st) || st.st_size > SILENT_TEXT_MAX)
		return false;
	auto_free char *text = xcalloc(1, (size_t)st.st_size + 1);
	ssize_t n = pread(fd, text, (size_t)st.st_size, 0);

	return n == st.st_size && silent_text(runner, text, (size_t)n, data);
}
