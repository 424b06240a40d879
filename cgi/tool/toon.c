/* toon.c - see toon.h. */
#include "toon.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/util.h"

/* "-12.5e3", "007": what a reader would take for a number. */
static bool like_number(const char *text)
{
	const char *p = text + (*text == '-');
	const size_t digits = strspn(p, "0123456789");

	if (digits == 0)
		return false;
	p += digits;
	if (*p == '.') {
		const size_t fraction = strspn(p + 1, "0123456789");

		if (fraction == 0)
			return false;
		p += 1 + fraction;
	}
	if (*p == 'e' || *p == 'E') {
		p += 1 + (p[1] == '-' || p[1] == '+');
		const size_t exponent = strspn(p, "0123456789");

		if (exponent == 0)
			return false;
		p += exponent;
	}
	return *p == '\0';
}

static bool needs_quotes(const char *text)
{
	const size_t length = strlen(text);

	if (length == 0 || isspace((unsigned char)text[0]) || isspace((unsigned char)text[length - 1]) ||
	    text[0] == '-' || text[0] == '#')
		return true;
	if (streq(text, "true") || streq(text, "false") || streq(text, "null") || like_number(text))
		return true;
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || strchr(",:\"\\[]{}", *p))
			return true;
	return false;
}

static void print_string(struct buf *out, const char *text)
{
	if (!needs_quotes(text)) {
		buf_puts(out, text);
		return;
	}
	buf_putc(out, '"');
	for (const char *p = text; *p; p++) {
		if (*p == '"' || *p == '\\')
			buf_printf(out, "\\%c", *p);
		else if (*p == '\n' || *p == '\r' || *p == '\t')
			buf_printf(out, "\\%c", *p == '\n' ? 'n' : *p == '\r' ? 'r' : 't');
		else if ((unsigned char)*p < ' ')
			buf_printf(out, "\\\\x%02x", (unsigned char)*p); /* TOON has no escape for it: shown */
		else
			buf_putc(out, *p);
	}
	buf_putc(out, '"');
}

static bool print_value(struct buf *out, struct json_object *value)
{
	if (json_object_is_type(value, json_type_object) || json_object_is_type(value, json_type_array))
		return false;
	if (json_object_is_type(value, json_type_string))
		print_string(out, json_object_get_string(value));
	else
		json_print(out, value);
	return true;
}

void toon_print(struct buf *out, struct json_object *object)
{
	json_object_object_foreach(object, name, value)
	{
		const bool list = json_object_is_type(value, json_type_array);
		const size_t count = list ? json_object_array_length(value) : 0, begin = out->length;
		bool fits = true;

		buf_puts(out, name);
		if (list)
			buf_printf(out, "[%zu]", count);
		buf_puts(out, list && count == 0 ? ":" : ": ");
		for (size_t i = 0; i < count && fits; i++) {
			buf_puts(out, i ? "," : "");
			fits = print_value(out, json_object_array_get_idx(value, i));
		}
		if (!list)
			fits = print_value(out, value);
		if (fits)
			buf_putc(out, '\n');
		else
			out->length = begin;
	}
}
