/*
 * normalise.c - see normalise.h.
 *
 * Most normalisers are one pattern (POSIX extended) and the text that takes the place of its first group, or of the
 * whole where it has none; they are applied line by line, so that a line without end costs nothing. The others are
 * functions: newlines and lines look at the whole text, times must know whether a time is one of this run, sets,
 * floats and JSON are read and printed in one form.
 */
#include "normalise.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "normalise_file.h"
#include "normalise_value.h"

#define GROUPS 3

/* What replaces a match; NULL: the match stays. The caller's. */
typedef char *replace(const char *match, size_t length, const struct normalise_window *window);
typedef void whole(const char *data, size_t length, struct buf *ret);

static char *replace_time(const char *match, size_t length, const struct normalise_window *window)
{
	return normalise_time_within(match, length, window->begin_us - NORMALISE_SLACK_US,
				     window->end_us + NORMALISE_SLACK_US)
		       ? xstrdup("[TIME]")
		       : NULL;
}

static char *replace_float(const char *match, size_t length, const struct normalise_window *window)
{
	auto_free char *text = xstrndup(match, length);

	(void)window;
	return xasprintf("%.9g", strtod(text, NULL));
}

static char *replace_set(const char *match, size_t length, const struct normalise_window *window)
{
	(void)window;
	return normalise_set(match, length);
}

static void newlines(const char *data, size_t length, struct buf *ret)
{
	size_t kept = ret->length;

	for (size_t i = 0; i < length; i++) {
		if (data[i] == '\r' && (i + 1 == length || data[i + 1] == '\n'))
			continue;
		if (data[i] == '\n') { /* blanks at the end of a line */
			while (ret->length > kept && strchr(" \t", ret->data[ret->length - 1]))
				ret->length--;
			kept = ret->length + 1;
		}
		buf_putc(ret, data[i]);
	}
	while (ret->length > 0 && strchr(" \t\n", ret->data[ret->length - 1]))
		ret->length--;
}

#define CLOCK "[0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
static const struct {
	const char *name;
	int version;
	bool on;
	const char *pattern, *text; /* the text, or … */
	replace *replace;           /* … what makes it */
	whole *whole;               /* instead of a pattern */
	const char *about;
} table[NORMALISERS] = {
	[NORMALISE_NEWLINES] = {.name = "newlines",
				.about = "carriage returns, blanks at the end of lines and of the text",
				.version = 1,
				.on = true,
				.whole = newlines},
	[NORMALISE_ANSI] = {.name = "ansi",
			    .about = "escape sequences of terminals",
			    .version = 1,
			    .on = true,
			    .pattern = "\033(\\[[0-9;?]*[ -/]*[@-~]|\\][^\007\033]*(\007|\033\\\\)|[@-Z^_])",
			    .text = ""},
	[NORMALISE_ADDRESSES] = {.name = "addresses",
				 .about = "addresses in memory: 0x7f00deadbeef",
				 .version = 1,
				 .on = true,
				 .pattern = "\\b0x[0-9a-fA-F]{6,16}\\b",
				 .text = "[ADDRESS]"},
	[NORMALISE_PATHS] =
		{.name = "paths",
		 .about = "names of temporary files",
		 .version = 1,
		 .on = true,
		 .pattern = "(/tmp|/var/tmp|/dev/shm)/(tmp[A-Za-z0-9_]{6,12}|[A-Za-z0-9_-]*[.-][A-Za-z0-9_]{6,12})",
		 .text = "[PATH]"},
	[NORMALISE_PIDS] = {.name = "pids",
			    .about = "process ids: pid 12, /proc/99",
			    .version = 1,
			    .on = true,
			    .pattern = "(\\b[Pp][Ii][Dd]|\\b[Pp]rocess|/proc)[] =:#/\"']{1,4}[0-9]+",
			    .text = "[PID]"},
	[NORMALISE_UUIDS] = {.name = "uuids",
			     .about = "UUIDs",
			     .version = 1,
			     .on = true,
			     .pattern = "\\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\\b",
			     .text = "[UUID]"},
	[NORMALISE_TIMES] = {.name = "times",
			     .about = "times and dates within the run's own window",
			     .version = 1,
			     .on = true,
			     .pattern = "\\b([A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-3][0-9] " CLOCK " [0-9]{4}"
					"|[0-9]{4}-[01][0-9]-[0-3][0-9]([T ]" CLOCK
					"([.,][0-9]+)?(Z|[-+][0-2][0-9]:?[0-5][0-9])?)?"
					"|" CLOCK "([.,][0-9]+)?|[0-9]{10,19}(\\.[0-9]+)?)",
			     .replace = replace_time},
	[NORMALISE_DURATIONS] =
		{.name = "durations",
		 .about = "durations: 1.25 ms, 3 seconds",
		 .version = 1,
		 .on = true,
		 .pattern = "\\b([0-9]+m)?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)? ?"
			    "(ns|us|µs|ms|s|secs?|nsec|usec|msec|((nano|micro|milli)?seconds?)|minutes?)\\b",
		 .text = "[DURATION]"},
	[NORMALISE_SETS] = {.name = "sets",
			    .about = "the order of sets in braces",
			    .version = 1,
			    .on = true,
			    .pattern = "\\{[^][{}:]+\\}",
			    .replace = replace_set},
	[NORMALISE_FLOATS] = {.name = "floats",
			      .about = "digits of floating-point numbers beyond the ninth",
			      .version = 1,
			      .pattern = "-?[0-9]+(\\.[0-9]+)?[eE][-+]?[0-9]+|-?[0-9]+\\.[0-9]+",
			      .replace = replace_float},
	[NORMALISE_JSON] = {.name = "json",
			    .about = "the order of members and blanks of JSON",
			    .version = 1,
			    .whole = normalise_json},
	[NORMALISE_LINES] = {.name = "lines", .about = "the order of lines", .version = 1, .whole = normalise_lines},
};

int normalise_count(void)
{
	return NORMALISERS + (int)normalise_file_count();
}

const char *normalise_name(int which)
{
	return which < NORMALISERS ? table[which].name : normalise_file_name((size_t)(which - NORMALISERS));
}

const char *normalise_about(int which)
{
	return which < NORMALISERS ? table[which].about : normalise_file_pattern((size_t)(which - NORMALISERS));
}

unsigned normalise_defaults(void)
{
	unsigned which = 0;

	for (int i = 0; i < normalise_count(); i++)
		which |= i >= NORMALISERS || table[i].on ? NORMALISE_BIT(i) : 0;
	return which;
}

static int find(const char *name, size_t length, unsigned *ret)
{
	const unsigned all = NORMALISE_BIT(normalise_count()) - 1;
	const char *const words[] = {"default", "all", "none"};
	const unsigned values[] = {normalise_defaults(), all, 0};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strlen(words[i]) == length && memcmp(words[i], name, length) == 0) {
			*ret = values[i];
			return 0;
		}
	}
	for (int i = 0; i < normalise_count(); i++) {
		if (strlen(normalise_name(i)) == length && memcmp(normalise_name(i), name, length) == 0) {
			*ret = NORMALISE_BIT(i);
			return 0;
		}
	}
	return -1;
}

int normalise_parse(const char *list, unsigned *ret, struct err *err)
{
	/* A list that only takes away takes away from the defaults. */
	unsigned which = *list == '-' ? normalise_defaults() : 0;

	while (*list) {
		size_t length = strcspn(list, ",");
		bool less = *list == '-';
		unsigned one = 0;

		if (find(list + less, length - less, &one) < 0)
			return err_set(err, ERR_INVALID, "there is no normaliser \"%.*s\": see sallyport normalisers",
				       (int)MIN(length, (size_t)64), list);
		which = less ? which & ~one : which | one;
		list += length + (list[length] == ',');
	}
	*ret = which;
	return 0;
}

void normalise_version(unsigned which, struct buf *ret)
{
	const char *comma = "";

	for (int i = 0; i < normalise_count(); i++) {
		if (!(which & NORMALISE_BIT(i)))
			continue;
		buf_puts(ret, comma);
		if (i < NORMALISERS)
			buf_printf(ret, "%s/%d", table[i].name, table[i].version);
		else
			normalise_file_identity((size_t)(i - NORMALISERS), ret);
		comma = ",";
	}
}

/* One line with a pattern. */
static void line_pattern(int i, const regex_t *regex, const struct normalise_text *line, struct buf *ret)
{
	regmatch_t match[GROUPS];
	size_t at = 0;

	while (at < line->length && line->length <= NORMALISE_LINE_MAX) {
		match[0] = (regmatch_t){.rm_so = (regoff_t)at, .rm_eo = (regoff_t)line->length};
		if (regexec(regex, line->data, GROUPS, match, REG_STARTEND) != 0 || match[0].rm_eo <= match[0].rm_so)
			break;
		size_t start = (size_t)match[0].rm_so, end = (size_t)match[0].rm_eo;
		auto_free char *made = table[i].replace
					       ? table[i].replace(line->data + start, end - start, &line->window)
					       : xstrdup(table[i].text);

		buf_add(ret, line->data + at, start - at);
		if (made)
			buf_puts(ret, made);
		else
			buf_add(ret, line->data + start, end - start);
		at = end;
	}
	buf_add(ret, line->data + at, line->length - at);
}

/* `regex` NULL: one of a file. */
static void by_lines(int i, const regex_t *regex, const struct normalise_text *text, struct buf *ret)
{
	size_t at = 0;

	while (at < text->length) {
		const char *end = memchr(text->data + at, '\n', text->length - at);
		struct normalise_text line = {
			text->data + at, end ? (size_t)(end + 1 - text->data) - at : text->length - at, text->window};

		if (regex)
			line_pattern(i, regex, &line, ret);
		else if (line.length > NORMALISE_LINE_MAX)
			buf_add(ret, line.data, line.length);
		else
			normalise_file_apply((size_t)(i - NORMALISERS), line.data, line.length, ret);
		at += line.length;
	}
}

static void apply(int i, const struct normalise_text *text, struct buf *ret)
{
	regex_t regex;

	if (i >= NORMALISERS) {
		by_lines(i, NULL, text, ret);
		return;
	}
	if (table[i].whole) {
		table[i].whole(text->data, text->length, ret);
		return;
	}
	if (regcomp(&regex, table[i].pattern, REG_EXTENDED) != 0)
		abort();
	by_lines(i, &regex, text, ret);
	regfree(&regex);
}

void normalise(unsigned which, const struct normalise_text *text, struct buf *ret)
{
	auto_buf struct buf now = {0};
	struct normalise_text left;

	buf_init(&now, NORMALISE_TEXT_MAX);
	buf_add(&now, text->data, text->length);
	for (int i = 0; i < normalise_count(); i++) {
		struct buf next;

		if (!(which & NORMALISE_BIT(i)))
			continue;
		buf_init(&next, NORMALISE_TEXT_MAX);
		left = (struct normalise_text){now.data, now.length, text->window};
		if (now.length > 0)
			apply(i, &left, &next);
		buf_clear(&now);
		now = next;
	}
	buf_add(ret, now.data, now.length);
}

static bool equal(unsigned which, const struct normalise_text *a, const struct normalise_text *b)
{
	auto_buf struct buf one = {0}, other = {0};

	buf_init(&one, NORMALISE_TEXT_MAX);
	buf_init(&other, NORMALISE_TEXT_MAX);
	normalise(which, a, &one);
	normalise(which, b, &other);
	return one.length == other.length && (one.length == 0 || memcmp(one.data, other.data, one.length) == 0);
}

bool normalise_equal(unsigned which, const struct normalise_text *a, const struct normalise_text *b,
		     unsigned *ret_hidden_by)
{
	if (!equal(which, a, b))
		return false;
	for (int i = normalise_count() - 1; i >= 0; i--) {
		unsigned fewer = which & ~NORMALISE_BIT(i);

		if (fewer != which && equal(fewer, a, b))
			which = fewer;
	}
	*ret_hidden_by = which;
	return true;
}
