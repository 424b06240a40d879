/* utf8.c - see utf8.h. */
#include "utf8.h"

#include <stdint.h>
#include <string.h>

#include "util.h"

#define UTF8_LONGEST 4

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t utf8_mark(const char *data, size_t length)
{
	static const char mark[] = "\xef\xbb\xbf";

	return length >= sizeof(mark) - 1 && memcmp(data, mark, sizeof(mark) - 1) == 0 ? sizeof(mark) - 1 : 0;
}

size_t utf8_length(const char *data, size_t length)
{
	const unsigned char *byte = (const unsigned char *)data;
	size_t need;
	uint32_t least, code;

	if (length == 0)
		return 0;
	if (byte[0] < 0x80)
		return 1;
	if (byte[0] >= 0xc2 && byte[0] <= 0xdf)
		need = 2, least = 0x80, code = byte[0] & 0x1fu;
	else if (byte[0] >= 0xe0 && byte[0] <= 0xef)
		need = 3, least = 0x800, code = byte[0] & 0x0fu;
	else if (byte[0] >= 0xf0 && byte[0] <= 0xf4)
		need = 4, least = 0x10000, code = byte[0] & 0x07u;
	else
		return 0;
	if (length < need)
		return 0;
	for (size_t i = 1; i < need; i++) {
		if (!is_continuation(data[i]))
			return 0;
		code = code << 6 | (byte[i] & 0x3fu);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return need;
}

bool utf8_valid(const char *data, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t step = utf8_length(data + at, length - at);

		if (step == 0)
			return false;
		at += step;
	}
	return true;
}

static void add_escaped(struct buf *out, char byte)
{
	buf_printf(out, "\\x%02x", (unsigned char)byte);
}

size_t utf8_safe(struct buf *out, const char *data, size_t length)
{
	size_t replaced = 0, good = 0; /* good: start of the valid bytes that are not yet copied */

	for (size_t at = 0; at < length;) {
		size_t step = utf8_length(data + at, length - at);

		if (step > 0) {
			at += step;
			continue;
		}
		buf_add(out, data + good, at - good);
		add_escaped(out, data[at]);
		replaced++;
		good = ++at;
	}
	buf_add(out, data + good, length - good);
	return replaced;
}

size_t utf8_cut(const char *data, size_t length, size_t max)
{
	if (length <= max)
		return length;
	for (size_t back = 0; back < UTF8_LONGEST && back <= max; back++) {
		size_t start = max - back;

		if (is_continuation(data[start]))
			continue;
		/* A character that begins here and reaches beyond max is left out; bytes that are no character may be
		 * cut anywhere. */
		return utf8_length(data + start, length - start) > back ? start : max;
	}
	return max;
}

/* Characters that steer a terminal or turn the direction of the text: C0, DEL, C1, bidi marks, embeddings and isolates,
 * line separators. */
static bool is_steering(const char *data, size_t step)
{
	const unsigned char *byte = (const unsigned char *)data;

	if (step == 1)
		return byte[0] < 0x20 || byte[0] == 0x7f;
	if (step == 2)
		return (byte[0] == 0xc2 && byte[1] < 0xa0) || (byte[0] == 0xd8 && byte[1] == 0x9c);
	if (step != 3 || byte[0] != 0xe2)
		return false;
	return (byte[1] == 0x80 && (byte[2] == 0x8e || byte[2] == 0x8f || (byte[2] >= 0xa8 && byte[2] <= 0xae))) ||
	       (byte[1] == 0x81 && byte[2] >= 0xa6 && byte[2] <= 0xa9);
}

void utf8_printable(struct buf *out, const char *data, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t step = utf8_length(data + at, length - at);

		if (step > 0 && !is_steering(data + at, step)) {
			buf_add(out, data + at, step);
			at += step;
			continue;
		}
		for (size_t end = at + MAX(step, 1); at < end; at++)
			add_escaped(out, data[at]);
	}
}
