/*
 * text.c - see text.h.
 *
 * Hex and base64 are our own, because what comes from clients must have exactly one spelling (libcrypto's decoder takes
 * blanks, missing padding and stray bits) and the error must say which character is wrong.
 */
#include "text.h"

#include <string.h>
#include <strings.h>

#include "util.h"

#define BASE64_BLOCK 1024 /* groups that are decoded before they go into the buffer */

static const char hex_digits[] = "0123456789abcdef";
static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hex_encode(const uint8_t *data, size_t length, char *ret)
{
	for (size_t i = 0; i < length; i++) {
		ret[2 * i] = hex_digits[data[i] >> 4];
		ret[2 * i + 1] = hex_digits[data[i] & 15];
	}
	ret[2 * length] = '\0';
}

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

int hex_decode(const char *text, size_t length, uint8_t *ret)
{
	if (length % 2 != 0)
		return -1;
	for (size_t i = 0; i < length; i++)
		if (hex_value(text[i]) < 0)
			return -1;
	for (size_t i = 0; i < length / 2; i++)
		ret[i] = (uint8_t)(hex_value(text[2 * i]) << 4 | hex_value(text[2 * i + 1]));
	return 0;
}

void base64_encode(struct buf *out, const void *data, size_t length)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i < length; i += 3) {
		size_t have = MIN(length - i, (size_t)3);
		uint32_t bits = (uint32_t)byte[i] << 16 | (have > 1 ? (uint32_t)byte[i + 1] << 8 : 0) |
				(have > 2 ? byte[i + 2] : 0);
		char group[4] = {base64_digits[bits >> 18], base64_digits[bits >> 12 & 63], '=', '='};

		if (have > 1)
			group[2] = base64_digits[bits >> 6 & 63];
		if (have > 2)
			group[3] = base64_digits[bits & 63];
		buf_add(out, group, sizeof(group));
	}
}

static int base64_value(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	if (digit == '+')
		return 62;
	return digit == '/' ? 63 : -1;
}

/* One group of four at text; padding only in the last. Returns the bytes it holds, or the negative place (-1 … -4) of
 * the bad character. */
static int base64_group(const char *text, bool last, uint8_t ret[3])
{
	int padding = last && text[3] == '=' ? (text[2] == '=' ? 2 : 1) : 0;
	uint32_t bits = 0;

	for (int i = 0; i < 4; i++) {
		int value = i < 4 - padding ? base64_value(text[i]) : 0;

		if (value < 0)
			return -1 - i;
		bits = bits << 6 | (uint32_t)value;
	}
	if ((padding == 2 && (bits & 0xffff) != 0) || (padding == 1 && (bits & 0xff) != 0))
		return -4 + padding; /* bits that no byte holds: two texts for the same bytes */
	ret[0] = (uint8_t)(bits >> 16);
	ret[1] = (uint8_t)(bits >> 8);
	ret[2] = (uint8_t)bits;
	return 3 - padding;
}

static void take_back(struct buf *out, size_t length)
{
	if (out->length == length)
		return;
	out->length = length;
	out->data[length] = '\0';
}

int base64_decode(const char *text, size_t length, struct buf *out, struct err *err)
{
	size_t before = out->length, whole = length - length % 4, filled = 0;
	uint8_t block[3 * BASE64_BLOCK];

	for (size_t at = 0; at < whole; at += 4) {
		int got = base64_group(text + at, at + 4 == length, block + filled);

		if (got < 0) {
			take_back(out, before);
			return err_set(err, ERR_INVALID, "not base64: character %zu is wrong", at + (size_t)-got);
		}
		filled += (size_t)got;
		if (filled == sizeof(block) || at + 4 == whole) {
			buf_add(out, block, filled);
			filled = 0;
		}
	}
	if (whole == length)
		return 0;
	take_back(out, before);
	return err_set(err, ERR_INVALID,
		       "not base64: character %zu is missing (the length must be a multiple of four, padded with =)",
		       length + 1);
}

/* A part of a text. */
struct span {
	const char *at;
	size_t length;
};

/* Without the characters of `blanks` at its ends. */
static struct span trimmed(struct span span, const char *blanks)
{
	for (; span.length > 0 && strchr(blanks, *span.at) != NULL && *span.at != '\0'; span.length--)
		span.at++;
	while (span.length > 0 && strchr(blanks, span.at[span.length - 1]) != NULL && span.at[span.length - 1] != '\0')
		span.length--;
	return span;
}

/* Behind the head of a data: URI. A URI that is not base64 stays as it is. */
static struct span behind_head(struct span text)
{
	static const char scheme[] = "data:", base64[] = ";base64";
	const char *comma = memchr(text.at, ',', text.length);
	const size_t head = comma != NULL ? (size_t)(comma - text.at) : 0;

	if (head < sizeof(scheme) + sizeof(base64) - 2 || strncasecmp(text.at, scheme, sizeof(scheme) - 1) != 0 ||
	    strncasecmp(comma - (sizeof(base64) - 1), base64, sizeof(base64) - 1) != 0)
		return text;
	return (struct span){comma + 1, text.length - head - 1};
}

/* Blanks count as wrong unless they are at the ends of a line: words between blanks are no base64. */
int base64_decode_meant(const char *text, size_t length, struct buf *out, struct err *err)
{
	struct span left = behind_head(trimmed((struct span){text, length}, " \t\r\n"));
	auto_buf struct buf plain = {0};

	buf_init(&plain, length + 4);
	while (left.length > 0) {
		const char *newline = memchr(left.at, '\n', left.length);
		const size_t taken = newline != NULL ? (size_t)(newline - left.at) + 1 : left.length;
		const struct span line = trimmed((struct span){left.at, taken}, " \t\r\n");

		for (size_t i = 0; i < line.length; i++)
			buf_putc(&plain, line.at[i] == '-' ? '+' : line.at[i] == '_' ? '/' : line.at[i]);
		left = (struct span){left.at + taken, left.length - taken};
	}
	for (size_t over = plain.length % 4; over > 1 && over < 4; over++)
		buf_putc(&plain, '=');
	return base64_decode(plain.data, plain.length, out, err);
}

void base64url_encode(struct buf *out, const void *data, size_t length)
{
	auto_buf struct buf plain = {0};

	buf_init(&plain, 4 * (length / 3 + 1));
	base64_encode(&plain, data, length);
	for (const char *at = plain.data; *at != '\0' && *at != '='; at++)
		buf_putc(out, *at == '+' ? '-' : *at == '/' ? '_' : *at);
}

int base64url_decode(const char *text, size_t length, struct buf *out, struct err *err)
{
	auto_buf struct buf plain = {0};

	buf_init(&plain, length + 4);
	for (size_t i = 0; i < length; i++) {
		if (strchr("+/=", text[i]) != NULL) /* also a NUL */
			return err_set(err, ERR_INVALID, "not base64 of URLs: character %zu is wrong", i + 1);
		buf_putc(&plain, text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
	}
	for (size_t over = plain.length % 4; over > 1 && over < 4; over++)
		buf_putc(&plain, '=');
	return base64_decode(plain.data, plain.length, out, err);
}
