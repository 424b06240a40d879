/*
 * normalise_value.c - see normalise.h.
 *
 * A time is the run's own when some instant that its text may mean lies in the window: a date means a day, a time of
 * day the window's own day or the next. Nothing here trusts the text: what cannot be read stays as it is.
 */
#include "normalise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/base/json.h"
#include "lib/base/util.h"

#define TIME_MAX   64
#define SECOND_US  1000000ll
#define DAY_US     (86400 * SECOND_US)
#define JSON_DEPTH 64

/* -------- times --------------------------------------------------------------------------------------- */

static bool overlaps(int64_t begin, int64_t end, int64_t from, int64_t to)
{
	return begin <= to && end >= from;
}

/* Behind the seconds: a fraction and a zone, in microseconds to be taken away. */
static int64_t zone_us(const char *rest)
{
	int hours, minutes;
	char sign;

	if (*rest == '.' || *rest == ',')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (sscanf(rest, "%c%2d%*1[:]%2d", &sign, &hours, &minutes) != 3 &&
	    sscanf(rest, "%c%2d%2d", &sign, &hours, &minutes) != 3)
		return 0;
	return (sign == '-' ? -1 : 1) * (hours * 3600ll + minutes * 60ll) * SECOND_US;
}

bool normalise_time_within(const char *match, size_t length, int64_t from_us, int64_t to_us)
{
	char text[TIME_MAX];
	struct tm tm = {0};
	const char *rest;
	int64_t at, lasts = SECOND_US;

	if (length >= sizeof(text))
		return false;
	memcpy(text, match, length);
	text[length] = '\0';
	if (strspn(text, "0123456789.") == length) {
		/* Ten digits are seconds, thirteen milliseconds, sixteen microseconds, nineteen nanoseconds. */
		size_t digits = strspn(text, "0123456789");
		long double value = strtold(text, NULL);

		for (; digits > 10; digits -= 3) {
			if (digits < 13)
				return false;
			value /= 1000;
		}
		return value * SECOND_US >= (long double)from_us && value * SECOND_US <= (long double)to_us;
	}
	if (text[2] == ':') {
		if (!strptime(text, "%H:%M:%S", &tm))
			return false;
		at = (tm.tm_hour * 3600ll + tm.tm_min * 60ll + tm.tm_sec) * SECOND_US + from_us / DAY_US * DAY_US;
		/* The window may lie across midnight. */
		return overlaps(at, at + SECOND_US, from_us, to_us) ||
		       overlaps(at + DAY_US, at + DAY_US + SECOND_US, from_us, to_us);
	}
	if ((rest = strptime(text, "%a %b %d %H:%M:%S %Y", &tm)) == NULL &&
	    (rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm)) == NULL &&
	    (rest = strptime(text, "%Y-%m-%d %H:%M:%S", &tm)) == NULL) {
		tm = (struct tm){0};
		rest = strptime(text, "%Y-%m-%d", &tm);
		lasts = DAY_US;
	}
	if (!rest)
		return false;
	at = timegm(&tm) * SECOND_US - zone_us(rest);
	return overlaps(at, at + lasts, from_us, to_us);
}

/* -------- sets and lines ------------------------------------------------------------------------------ */

struct piece {
	const char *start;
	size_t length;
};

static int by_bytes(const void *a, const void *b)
{
	const struct piece *one = a, *other = b;
	int order = memcmp(one->start, other->start, MIN(one->length, other->length));

	return order ? order : (one->length > other->length) - (one->length < other->length);
}

static size_t comma_outside_quotes(const char *text, size_t length)
{
	char quote = '\0';

	for (size_t i = 0; i < length; i++) {
		if (quote && text[i] == '\\')
			i++;
		else if (quote)
			quote = text[i] == quote ? '\0' : quote;
		else if (text[i] == '\'' || text[i] == '"')
			quote = text[i];
		else if (text[i] == ',')
			return i;
	}
	return length;
}

char *normalise_set(const char *text, size_t length)
{
	const char *at = text + 1, *end = text + length - 1;
	auto_free struct piece *pieces = xcalloc(length, sizeof(*pieces));
	size_t count = 0;
	struct buf out;

	while (at < end) {
		size_t size = comma_outside_quotes(at, (size_t)(end - at)), blanks = strspn(at, " ");

		blanks = MIN(blanks, size);
		pieces[count++] = (struct piece){at + blanks, size - blanks};
		at += size + 1;
	}
	qsort(pieces, count, sizeof(*pieces), by_bytes);
	buf_init(&out, 2 * length + 4);
	buf_putc(&out, '{');
	for (size_t i = 0; i < count; i++) {
		buf_puts(&out, i > 0 ? ", " : "");
		buf_add(&out, pieces[i].start, pieces[i].length);
	}
	buf_putc(&out, '}');
	return buf_steal(&out, NULL);
}

static size_t line_length(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return (size_t)((newline ? newline : end) - at);
}

void normalise_lines(const char *data, size_t length, struct buf *ret)
{
	const char *end = data + length;
	struct piece *lines = NULL;
	size_t count = 0, size = 0;

	for (const char *at = data; at < end; at += lines[count - 1].length + 1) {
		if (count == size) {
			size = size ? 2 * size : 64;
			lines = xrealloc(lines, size, sizeof(*lines));
		}
		lines[count++] = (struct piece){at, line_length(at, end)};
	}
	if (count > 1)
		qsort(lines, count, sizeof(*lines), by_bytes);
	for (size_t i = 0; i < count; i++) {
		buf_add(ret, lines[i].start, lines[i].length);
		buf_putc(ret, '\n');
	}
	free(lines);
}

/* -------- JSON ---------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct json_object *canonical(struct json_object *value, int depth)
{
	struct json_object *ret;
	size_t count = 0;

	if (json_object_is_type(value, json_type_array) && depth < JSON_DEPTH) {
		ret = json_object_new_array();
		for (size_t i = 0; i < json_object_array_length(value); i++)
			json_object_array_add(ret, canonical(json_object_array_get_idx(value, i), depth + 1));
		return ret;
	}
	if (!json_object_is_type(value, json_type_object) || depth >= JSON_DEPTH)
		return json_object_get(value);
	ret = json_object_new_object();
	auto_free const char **names = xcalloc((size_t)json_object_object_length(value) + 1, sizeof(*names));

	json_object_object_foreach(value, name, member)
	{
		(void)member;
		names[count++] = name;
	}
	qsort(names, count, sizeof(*names), by_name);
	for (size_t i = 0; i < count; i++) {
		struct json_object *found = NULL;

		json_object_object_get_ex(value, names[i], &found);
		json_add(ret, names[i], canonical(found, depth + 1));
	}
	return ret;
}

static bool put_canonical(const char *data, size_t length, struct buf *ret)
{
	auto_json struct json_object *value = NULL, *sorted = NULL;
	size_t blanks = 0;

	while (blanks < length && strchr(" \t\r\n", data[blanks]))
		blanks++;
	if (blanks == length || !strchr("{[", data[blanks]) || json_parse(data, length, &value, NULL) < 0)
		return false;
	sorted = canonical(value, 0);
	json_print(ret, sorted);
	return true;
}

void normalise_json(const char *data, size_t length, struct buf *ret)
{
	const char *end = data + length;

	if (put_canonical(data, length, ret)) {
		buf_putc(ret, '\n');
		return;
	}
	for (const char *at = data; at < end;) {
		size_t size = line_length(at, end);

		if (!put_canonical(at, size, ret))
			buf_add(ret, at, size);
		if (at + size < end)
			buf_putc(ret, '\n');
		at += size + 1;
	}
}
