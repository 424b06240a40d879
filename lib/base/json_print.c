/*
 * json_print.c - writing, reading and building documents; see json.h. Nothing here parses.
 *
 * The printer is our own: json-c prints a parsed double as it was written and a computed one with 17 digits, and output
 * must not depend on where a value came from. What it writes is always valid JSON: text that is not UTF-8 is made so
 * visibly, a number that is not finite becomes null.
 */
#include <inttypes.h>
#include <limits.h>
#include <math.h>

#include "json.h"
#include "utf8.h"
#include "util.h"

#define INDENT 2

/* The fewest digits that read back as the same double; a fraction or exponent keeps it a double for the next reader. */
static void print_double(struct buf *out, double value)
{
	char text[32];

	if (!isfinite(value)) {
		buf_puts(out, "null");
		return;
	}
	/* 15 digits always suffice for a number that was written with 15, and %g drops zeros; close to zero there are
	 * fewer. */
	for (int digits = isnormal(value) ? 15 : 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	buf_puts(out, text);
	if (strpbrk(text, ".e") == NULL)
		buf_puts(out, ".0");
}

static void print_escaped(struct buf *out, const char *data, size_t length)
{
	static const char letters[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
	size_t plain = 0; /* start of what is not yet copied */

	buf_putc(out, '"');
	for (size_t at = 0; at < length; at++) {
		unsigned char c = (unsigned char)data[at];
		const char *letter;

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		buf_add(out, data + plain, at - plain);
		plain = at + 1;
		letter = c != '\0' ? strchr(letters, c) : NULL;
		if (letter != NULL)
			buf_printf(out, "\\%c", names[letter - letters]);
		else
			buf_printf(out, "\\u%04x", c);
	}
	buf_add(out, data + plain, length - plain);
	buf_putc(out, '"');
}

static void print_string(struct buf *out, const char *data, size_t length)
{
	auto_buf struct buf safe = {0};

	if (utf8_valid(data, length)) {
		print_escaped(out, data, length);
		return;
	}
	buf_init(&safe, SIZE_MAX / 2);
	utf8_safe(&safe, data, length);
	print_escaped(out, safe.data, safe.length);
}

/* level < 0: compact. */
static void new_line(struct buf *out, int level)
{
	if (level >= 0)
		buf_printf(out, "\n%*s", level * INDENT, "");
}

static void print_value(struct buf *out, struct json_object *value, int level);

static void print_object(struct buf *out, struct json_object *object, int level)
{
	int inner = level < 0 ? level : level + 1;
	bool first = true;

	buf_putc(out, '{');
	json_object_object_foreach(object, key, value)
	{
		if (!first)
			buf_putc(out, ',');
		first = false;
		new_line(out, inner);
		print_string(out, key, strlen(key));
		buf_puts(out, level < 0 ? ":" : ": ");
		print_value(out, value, inner);
	}
	if (!first)
		new_line(out, level);
	buf_putc(out, '}');
}

static void print_array(struct buf *out, struct json_object *array, int level)
{
	int inner = level < 0 ? level : level + 1;
	size_t count = json_object_array_length(array);

	buf_putc(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_putc(out, ',');
		new_line(out, inner);
		print_value(out, json_object_array_get_idx(array, i), inner);
	}
	if (count > 0)
		new_line(out, level);
	buf_putc(out, ']');
}

static char printed_mark; /* its address marks the strings of json_new_printed */

static void print_value(struct buf *out, struct json_object *value, int level)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		buf_puts(out, "null");
		return;
	case json_type_boolean:
		buf_puts(out, json_object_get_boolean(value) ? "true" : "false");
		return;
	case json_type_double:
		print_double(out, json_object_get_double(value));
		return;
	case json_type_int:
		buf_printf(out, "%" PRId64, json_object_get_int64(value));
		return;
	case json_type_string:
		if (json_object_get_userdata(value) == &printed_mark) {
			buf_add(out, json_object_get_string(value), (size_t)json_object_get_string_len(value));
			return;
		}
		print_string(out, json_object_get_string(value), (size_t)json_object_get_string_len(value));
		return;
	case json_type_object:
		print_object(out, value, level);
		return;
	case json_type_array:
		print_array(out, value, level);
		return;
	}
}

void json_print(struct buf *out, struct json_object *object)
{
	print_value(out, object, -1);
}

void json_print_pretty(struct buf *out, struct json_object *object)
{
	print_value(out, object, 0);
}

struct json_object *json_member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (json_object_is_type(object, json_type_object))
		json_object_object_get_ex(object, key, &value);
	return value;
}

struct json_object *json_get(struct json_object *object, const char *key, enum json_type type)
{
	struct json_object *value = json_member(object, key);

	return json_object_is_type(value, type) ? value : NULL;
}

const char *json_get_string(struct json_object *object, const char *key)
{
	struct json_object *value = json_get(object, key, json_type_string);
	const char *text = value != NULL ? json_object_get_string(value) : NULL;

	if (text == NULL || strlen(text) != (size_t)json_object_get_string_len(value))
		return NULL;
	return text;
}

bool json_list_has(struct json_object *list, const char *text)
{
	for (size_t i = 0; list != NULL && i < json_object_array_length(list); i++) {
		struct json_object *item = json_object_array_get_idx(list, i);

		if (json_object_is_type(item, json_type_string) && streq(json_object_get_string(item), text))
			return true;
	}
	return false;
}

void json_add(struct json_object *object, const char *key, struct json_object *value)
{
	if (json_object_object_add(object, key, value) < 0)
		abort(); /* out of memory */
}

void json_add_string(struct json_object *object, const char *key, const char *value)
{
	json_add(object, key, value != NULL ? json_object_new_string(value) : NULL);
}

void json_add_int(struct json_object *object, const char *key, int64_t value)
{
	json_add(object, key, json_object_new_int64(value));
}

void json_add_bool(struct json_object *object, const char *key, bool value)
{
	json_add(object, key, json_object_new_boolean(value));
}

void json_add_rounded(struct json_object *object, const char *key, double value, int digits)
{
	auto_free char *text = xasprintf("%.*f", digits, value);

	json_add(object, key, isfinite(value) ? json_object_new_double(strtod(text, NULL) + 0.0) : NULL); /* not -0.0 */
}

struct json_object *json_new_safe(const char *data, size_t length)
{
	auto_buf struct buf safe = {0};

	buf_init(&safe, INT_MAX); /* json-c counts in int */
	utf8_safe(&safe, data != NULL ? data : "", length);
	return json_object_new_string_len(safe.data, (int)safe.length);
}

void json_add_bytes(struct json_object *object, const char *key, const char *data, size_t length)
{
	json_add(object, key, json_new_safe(data, length));
}

struct json_object *json_new_printed(const char *text, size_t length)
{
	struct json_object *value = json_object_new_string_len(text, (int)length);

	if (value == NULL)
		abort(); /* out of memory */
	json_object_set_userdata(value, &printed_mark, NULL);
	return value;
}
