/*
 * html.c - see html.h.
 *
 * A template is copied character by character, and `struct html` keeps where that is: in text, in a tag, between the
 * quotes of an attribute whose name is known. The place outlives a template, so a tag may be put together of several.
 * put_value is the only function that writes what is not a template; it escapes for all places where a hole may be, so
 * nobody has to choose.
 */
#include "html.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "uri.h"

#define SECOND_US INT64_C(1000000)

void html_init(struct html *html, struct buf *out)
{
	*html = (struct html){.out = out};
}

bool html_sound(const struct html *html)
{
	return !html->wrong && html->place == HTML_OUTSIDE && !html->out->overflow;
}

/* -------- values -------------------------------------------------------------------------------------- */

static void put_escaped(struct buf *out, const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		switch (data[i]) {
		case '&':
			buf_puts(out, "&amp;");
			break;
		case '<':
			buf_puts(out, "&lt;");
			break;
		case '>':
			buf_puts(out, "&gt;");
			break;
		case '"':
			buf_puts(out, "&quot;");
			break;
		case '\'':
			buf_puts(out, "&#39;");
			break;
		default:
			buf_putc(out, data[i]);
		}
	}
}

/* The one way of a value into a page. */
static void put_value(struct buf *out, const struct html_value *value)
{
	const bool lines = value->kind == HTML_LINES;
	const char *data = value->kind == HTML_ROOM ? value->room : value->data;
	const char *end = data + (value->kind == HTML_ROOM ? strlen(value->room) : value->length);
	auto_buf struct buf safe = {0};

	buf_init(&safe, SIZE_MAX / 2);
	if (value->kind == HTML_PART) {
		uri_encode(data, (size_t)(end - data), "-._~", &safe);
		put_escaped(out, safe.data, safe.length);
		return;
	}
	while (data < end) {
		const char *stop = data;

		while (stop < end && !(lines && (*stop == '\n' || *stop == '\t')))
			stop++;
		/* The line ends of other systems are line ends. */
		const bool returned = stop < end && *stop == '\n' && stop > data && stop[-1] == '\r';

		buf_reset(&safe);
		utf8_printable(&safe, data, (size_t)(stop - data) - returned);
		put_escaped(out, safe.data, safe.length);
		if (stop < end)
			buf_putc(out, *stop++);
		data = stop;
	}
}

struct html_value html_bytes(const char *data, size_t length)
{
	return (struct html_value){.kind = HTML_LINE, .data = data ? data : "", .length = data ? length : 0};
}

struct html_value html_text(const char *text)
{
	return html_bytes(text, text ? strlen(text) : 0);
}

struct html_value html_address(const char *text)
{
	struct html_value value = html_text(text);

	value.kind = HTML_ADDRESS;
	return value;
}

struct html_value html_lines(const char *data, size_t length)
{
	struct html_value value = html_bytes(data, length);

	value.kind = HTML_LINES;
	return value;
}

struct html_value html_part_bytes(const char *data, size_t length)
{
	struct html_value value = html_bytes(data, length);

	value.kind = HTML_PART;
	return value;
}

struct html_value html_part(const char *text)
{
	return html_part_bytes(text, text ? strlen(text) : 0);
}

struct html_value html_plain(int64_t number)
{
	struct html_value value = {.kind = HTML_ROOM};

	snprintf(value.room, sizeof(value.room), "%" PRId64, number);
	return value;
}

struct html_value html_number(int64_t number)
{
	struct html_value value = {.kind = HTML_ROOM};
	char digits[24];
	size_t length = (size_t)snprintf(digits, sizeof(digits), "%" PRId64, number), at = 0;

	for (size_t i = 0; i < length; i++) {
		if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0)
			value.room[at++] = ',';
		value.room[at++] = digits[i];
	}
	return value;
}

struct html_value html_tenths(int64_t tenths)
{
	struct html_value value = {.kind = HTML_ROOM};

	snprintf(value.room, sizeof(value.room), "%" PRId64 ".%d", tenths / 10, (int)(tenths % 10));
	return value;
}

struct html_value html_size(int64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	struct html_value value = {.kind = HTML_ROOM};
	double amount = (double)bytes;
	size_t unit = 0;

	for (; amount >= 1024 && unit + 1 < ARRAY_SIZE(units); unit++)
		amount /= 1024;
	snprintf(value.room, sizeof(value.room), unit && amount < 10 ? "%.1f %s" : "%.0f %s", amount, units[unit]);
	return value;
}

struct html_value html_duration(int64_t us)
{
	struct html_value value = {.kind = HTML_ROOM};

	if (us < 1000)
		snprintf(value.room, sizeof(value.room), "%" PRId64 " µs", us);
	else if (us < SECOND_US)
		snprintf(value.room, sizeof(value.room), us < 10000 ? "%.1f ms" : "%.0f ms", (double)us / 1000);
	else if (us < 120 * SECOND_US)
		snprintf(value.room, sizeof(value.room), us < 10 * SECOND_US ? "%.2f s" : "%.1f s", (double)us / 1e6);
	else if (us < 7200 * SECOND_US)
		snprintf(value.room, sizeof(value.room), "%" PRId64 " min", us / (60 * SECOND_US));
	else if (us < 48 * 3600 * SECOND_US)
		snprintf(value.room, sizeof(value.room), "%" PRId64 " h", us / (3600 * SECOND_US));
	else
		snprintf(value.room, sizeof(value.room), "%" PRId64 " days", us / (86400 * SECOND_US));
	return value;
}

struct html_value html_date(int64_t us)
{
	struct html_value value = html_iso(us);

	value.room[strcspn(value.room, "T")] = ' ';
	value.room[strcspn(value.room, "Z")] = '\0';
	return value;
}

/* clock_text without what is below a second. */
struct html_value html_iso(int64_t us)
{
	struct html_value value = {.kind = HTML_ROOM};
	char text[CLOCK_TEXT_SIZE];

	clock_text(us, text);
	snprintf(value.room, sizeof(value.room), "%.19sZ", text);
	return value;
}

struct html_value html_ago(int64_t us, int64_t now_us)
{
	const int64_t seconds = MAX(now_us - us, 0) / SECOND_US;
	struct html_value value = {.kind = HTML_ROOM};

	if (seconds < 120)
		snprintf(value.room, sizeof(value.room), "%" PRId64 " s ago", seconds);
	else if (seconds < 7200)
		snprintf(value.room, sizeof(value.room), "%" PRId64 " min ago", seconds / 60);
	else if (seconds < 48 * 3600)
		snprintf(value.room, sizeof(value.room), "%" PRId64 " h ago", seconds / 3600);
	else
		snprintf(value.room, sizeof(value.room), "%" PRId64 " days ago", seconds / 86400);
	return value;
}

/* -------- templates ----------------------------------------------------------------------------------- */

/* A name of an attribute, letter by letter; a blank begins the next one. */
static void follow_tag(struct html *html, char c)
{
	const size_t length = strlen(html->attribute);

	if (c == '>') {
		html->place = HTML_OUTSIDE;
	} else if (c == '"') {
		html->place = HTML_QUOTED;
		html->fresh = true;
	} else if (c == ' ') {
		html->attribute[0] = '\0';
	} else if (c != '=' && length + 1 < sizeof(html->attribute)) {
		html->attribute[length] = c;
		html->attribute[length + 1] = '\0';
	}
}

static void follow(struct html *html, char c)
{
	switch (html->place) {
	case HTML_OUTSIDE:
		if (c == '<') {
			html->place = HTML_TAG;
			html->attribute[0] = '\0';
		}
		break;
	case HTML_TAG:
		follow_tag(html, c);
		break;
	case HTML_QUOTED:
		html->fresh = false;
		if (c == '"')
			html->place = HTML_TAG;
	}
}

void html_fill(struct html *html, const char *template, const struct html_value *values, size_t count)
{
	size_t used = 0;

	for (const char *p = template; *p; p++) {
		if (p[0] != '{' || p[1] != '}') {
			follow(html, *p);
			buf_putc(html->out, *p);
			continue;
		}
		p++;
		const char *attribute = html->attribute;
		const bool address = streq(attribute, "href") || streq(attribute, "src") ||
				     streq(attribute, "action") || streq(attribute, "formaction");
		const bool whole = used < count && values[used + 1].kind == HTML_ADDRESS;

		if (used == count || html->place == HTML_TAG ||
		    (html->place == HTML_QUOTED && html->fresh && address && !whole)) {
			html->wrong = true;
			continue;
		}
		put_value(html->out, &values[++used]);
		html->fresh = false;
	}
	if (used != count)
		html->wrong = true;
}
