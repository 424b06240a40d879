/*
 * normalise.c - see normalise.h.
 *
 * Most normalisers are one pattern (POSIX extended) and the text that takes the place of its first group, or of the
 * whole where it has none; they are applied line by line, so that a line without end costs nothing. The others are
 * functions: newlines and lines look at the whole text, times must know whether a time is one of this run, sets,
 * floats and JSON are read and printed in one form.
 *
 * Patterns of files are PCRE2's, which counts the steps of a match and gives up at a limit; POSIX regcomp has no way to
 * say that. The just-in-time compiler is not used, since it counts otherwise. Patterns see bytes, because output need
 * not be UTF-8.
 */
#include "normalise.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fcntl.h>
#include <pcre2.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define GROUPS      3
#define FILE_BYTES  (1 << 20)
#define TEXT_MAX    4096
#define NAME_LENGTH 32
#define HEAP_KIB    1024
#define HASH_SHOWN  16

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
	const char *about;
	const char *pattern, *text; /* the text, or … */
	replace *replace;           /* … what makes it */
	whole *whole;               /* instead of a pattern */
} table[NORMALISERS] = {
	[NORMALISE_NEWLINES] = {"newlines", 1, true, "carriage returns, blanks at the end of lines and of the text",
				.whole = newlines},
	[NORMALISE_ANSI] = {"ansi", 1, true, "escape sequences of terminals",
			    "\033(\\[[0-9;?]*[ -/]*[@-~]|\\][^\007\033]*(\007|\033\\\\)|[@-Z^_])", ""},
	[NORMALISE_ADDRESSES] = {"addresses", 1, true, "addresses in memory: 0x7f00deadbeef",
				 "\\b0x[0-9a-fA-F]{6,16}\\b", "[ADDRESS]"},
	[NORMALISE_PATHS] =
		{"paths", 1, true, "names of temporary files",
		 "(/tmp|/var/tmp|/dev/shm)/(tmp[A-Za-z0-9_]{6,12}|[A-Za-z0-9_-]*[.-][A-Za-z0-9_]{6,12})", "[PATH]"},
	[NORMALISE_PIDS] = {"pids", 1, true, "process ids: pid 12, /proc/99",
			    "(\\b[Pp][Ii][Dd]|\\b[Pp]rocess|/proc)[] =:#/\"']{1,4}[0-9]+", "[PID]"},
	[NORMALISE_UUIDS] = {"uuids", 1, true, "UUIDs",
			     "\\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\\b", "[UUID]"},
	[NORMALISE_TIMES] = {"times", 1, true, "times and dates within the run's own window",
			     "\\b([A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-3][0-9] " CLOCK " [0-9]{4}"
			     "|[0-9]{4}-[01][0-9]-[0-3][0-9]([T ]" CLOCK
			     "([.,][0-9]+)?(Z|[-+][0-2][0-9]:?[0-5][0-9])?)?"
			     "|" CLOCK "([.,][0-9]+)?|[0-9]{10,19}(\\.[0-9]+)?)",
			     .replace = replace_time},
	[NORMALISE_DURATIONS] =
		{"durations", 1, true, "durations: 1.25 ms, 3 seconds",
		 "\\b([0-9]+m)?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)? ?"
		 "(ns|us|µs|ms|s|secs?|nsec|usec|msec|((nano|micro|milli)?seconds?)|minutes?)\\b", "[DURATION]"},
	[NORMALISE_SETS] = {"sets", 1, true, "the order of sets in braces", "\\{[^][{}:]+\\}", .replace = replace_set},
	[NORMALISE_FLOATS] = {"floats", 1, false, "digits of floating-point numbers beyond the ninth",
			      "-?[0-9]+(\\.[0-9]+)?[eE][-+]?[0-9]+|-?[0-9]+\\.[0-9]+", .replace = replace_float},
	[NORMALISE_JSON] = {"json", 1, false, "the order of members and blanks of JSON", .whole = normalise_json},
	[NORMALISE_LINES] = {"lines", 1, false, "the order of lines", .whole = normalise_lines},
};

/* Those of files, behind the table's. */
static struct own {
	char *name, *pattern, *replacement;
	int64_t version;
	pcre2_code *code;
} owns[NORMALISE_FILE_MAX];
static size_t n_owns;

int normalise_count(void)
{
	return NORMALISERS + (int)n_owns;
}

const char *normalise_name(int which)
{
	return which < NORMALISERS ? table[which].name : owns[which - NORMALISERS].name;
}

const char *normalise_about(int which)
{
	return which < NORMALISERS ? table[which].about : owns[which - NORMALISERS].pattern;
}

unsigned normalise_defaults(void)
{
	unsigned which = 0;

	for (int i = 0; i < normalise_count(); i++)
		which |= i >= NORMALISERS || table[i].on ? NORMALISE_BIT(i) : 0;
	return which;
}

static int find(const char *name, unsigned *ret)
{
	int i = 0;

	while (i < normalise_count() && !streq(normalise_name(i), name))
		i++;
	if (i < normalise_count())
		*ret = NORMALISE_BIT(i);
	else if (streq(name, "default"))
		*ret = normalise_defaults();
	else if (streq(name, "all"))
		*ret = NORMALISE_BIT(normalise_count()) - 1;
	else if (streq(name, "none"))
		*ret = 0;
	else
		return -1;
	return 0;
}

int normalise_parse(const char *list, unsigned *ret, struct err *err)
{
	/* A list that only takes away takes away from the defaults. */
	unsigned which = *list == '-' ? normalise_defaults() : 0;

	while (*list) {
		size_t length = strcspn(list, ",");
		bool less = *list == '-';
		auto_free char *name = xstrndup(list + less, length - less);
		unsigned one = 0;

		if (find(name, &one) < 0)
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
		if (i < NORMALISERS) {
			buf_printf(ret, "%s%s/%d", comma, table[i].name, table[i].version);
		} else {
			const struct own *own = &owns[i - NORMALISERS];
			auto_free char *both = xasprintf("%s\n%s", own->pattern, own->replacement);
			char hash[SHA256_HEX_SIZE];

			sha256_hex(both, strlen(both), hash);
			buf_printf(ret, "%s%s/%lld:%.*s", comma, own->name, (long long)own->version, HASH_SHOWN, hash);
		}
		comma = ",";
	}
}

/* -------- a project's own, from a file ----------------------------------------------------------------- */

void normalise_file_forget(void)
{
	while (n_owns > 0) {
		struct own *own = &owns[--n_owns];

		free(own->name);
		free(own->pattern);
		free(own->replacement);
		pcre2_code_free(own->code);
	}
}

static int check_name(const char *path, const char *name, struct err *err)
{
	size_t length = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;
	unsigned ignored;

	if (length == 0 || length > NAME_LENGTH || name[length] || name[0] == '-')
		return err_set(err, ERR_INVALID,
			       "%s: a normaliser needs a \"name\" of small letters, digits and dashes, at most %d",
			       path, NAME_LENGTH);
	if (find(name, &ignored) == 0)
		return err_set(err, ERR_INVALID, "%s: there is a normaliser \"%s\" already", path, name);
	return 0;
}

/* Nothing else is in it. */
static int check_members(const char *path, struct json_object *object, const char *const *names, struct err *err)
{
	json_object_object_foreach(object, name, value)
	{
		size_t i = 0;

		(void)value;
		while (names[i] && !streq(names[i], name))
			i++;
		if (!names[i])
			return err_set(err, ERR_INVALID, "%s: unknown member \"%s\"", path, name);
	}
	return 0;
}

static int read_one(const char *path, struct json_object *object, struct err *err)
{
	static const char *const members[] = {"name", "version", "pattern", "replacement", NULL};
	PCRE2_UCHAR text[128] = "";
	PCRE2_SIZE place = 0;
	int code = 0;

	if (!json_object_is_type(object, json_type_object))
		return err_set(err, ERR_INVALID, "%s: a normaliser is an object", path);
	const char *name = json_get_string(object, "name"), *pattern = json_get_string(object, "pattern");
	const char *replacement = json_get_string(object, "replacement");
	struct json_object *version = json_get(object, "version", json_type_int);
	int result = check_name(path, name, err);

	if (result == 0)
		result = check_members(path, object, members, err);
	if (result < 0)
		return result;
	if (n_owns == NORMALISE_FILE_MAX)
		return err_set(err, ERR_LIMIT, "%s: more than %d normalisers", path, NORMALISE_FILE_MAX);
	if (!pattern || !replacement || !version || strlen(pattern) > TEXT_MAX || strlen(replacement) > TEXT_MAX)
		return err_set(
			err, ERR_INVALID,
			"%s: \"%s\" needs a \"version\" (a number), a \"pattern\" and a \"replacement\" of at most "
			"%d bytes",
			path, name, TEXT_MAX);
	pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, 0, &code, &place, NULL);
	if (!compiled) {
		pcre2_get_error_message(code, text, sizeof(text));
		return err_set(err, ERR_INVALID, "%s: the pattern of \"%s\", character %zu: %s", path, name,
			       (size_t)place + 1, (const char *)text);
	}
	owns[n_owns++] = (struct own){xstrdup(name), xstrdup(pattern), xstrdup(replacement),
				      json_object_get_int64(version), compiled};
	return 0;
}

int normalise_file_load(const char *path, struct err *err)
{
	static const char *const members[] = {"normalisers", NULL};
	auto_json struct json_object *document = NULL;
	auto_free char *text = NULL;
	struct json_object *list;
	size_t length = 0;
	int result = read_file_at(AT_FDCWD, path, FILE_BYTES, &text, &length, err);

	if (result == 0)
		result = json_parse_commented(text, length, &document, err);
	if (result < 0)
		return err_wrap(err, "%s", path);
	list = json_object_is_type(document, json_type_object) ? json_get(document, "normalisers", json_type_array)
							       : NULL;
	if (!list)
		return err_set(err, ERR_INVALID, "%s needs a member \"normalisers\", an array", path);
	result = check_members(path, document, members, err);
	for (size_t i = 0; result == 0 && i < json_object_array_length(list); i++)
		result = read_one(path, json_object_array_get_idx(list, i), err);
	return result;
}

/* -------- applying ------------------------------------------------------------------------------------ */

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

static void free_context(pcre2_match_context **context)
{
	pcre2_match_context_free(*context);
}

static void free_match(pcre2_match_data **match)
{
	pcre2_match_data_free(*match);
}

/* One line with a normaliser of a file. */
static void line_own(const struct own *own, const char *line, size_t length, struct buf *ret)
{
	__attribute__((cleanup(free_match))) pcre2_match_data *match =
		pcre2_match_data_create_from_pattern(own->code, NULL);
	__attribute__((cleanup(free_context))) pcre2_match_context *context = pcre2_match_context_create(NULL);
	size_t at = 0, kept = ret->length;

	if (!match || !context)
		abort();
	pcre2_set_match_limit(context, NORMALISE_FILE_STEPS);
	pcre2_set_heap_limit(context, HEAP_KIB);
	for (size_t from = 0; from <= length;) {
		int found = pcre2_match(own->code, (PCRE2_SPTR)line, length, from, 0, match, context);
		const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(match);

		if (found < 0 && found != PCRE2_ERROR_NOMATCH) { /* a limit: the line stays */
			ret->length = kept;
			at = 0;
		}
		if (found < 0)
			break;
		from = ends[1];
		if (ends[1] <= ends[0] || ends[0] < at) { /* empty, or before what was replaced (\K): go on behind */
			from = MAX(from, at) + 1;
			continue;
		}
		buf_add(ret, line + at, ends[0] - at);
		buf_puts(ret, own->replacement);
		at = ends[1];
	}
	buf_add(ret, line + at, length - at);
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
			line_own(&owns[i - NORMALISERS], line.data, line.length, ret);
		at += line.length;
	}
}

void normalise(unsigned which, const struct normalise_text *text, struct buf *ret)
{
	auto_buf struct buf now = {0};
	regex_t regex;

	buf_init(&now, NORMALISE_TEXT_MAX);
	buf_add(&now, text->data, text->length);
	for (int i = 0; i < normalise_count(); i++) {
		struct buf next;

		if (!(which & NORMALISE_BIT(i)) || now.length == 0)
			continue;
		const struct normalise_text left = {now.data, now.length, text->window};
		buf_init(&next, NORMALISE_TEXT_MAX);
		if (i >= NORMALISERS) {
			by_lines(i, NULL, &left, &next);
		} else if (table[i].whole) {
			table[i].whole(left.data, left.length, &next);
		} else {
			if (regcomp(&regex, table[i].pattern, REG_EXTENDED) != 0)
				abort();
			by_lines(i, &regex, &left, &next);
			regfree(&regex);
		}
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
