/* mask_form.c - see mask_form.h. */
#include "mask_form.h"

#include <string.h>

#include "secret.h"
#include "utf8.h"
#include "util.h"

static const char standard_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char *const hex_digits[] = {"0123456789abcdef", "0123456789ABCDEF"};

/* What percent-encoding leaves as it is, besides letters and digits. */
static const struct {
	const char *plain;
	bool plus; /* a blank becomes '+' */
	bool rare;
} url_kinds[] = {
	{"-._~", false, false},                /* RFC 3986 */
	{"-._~/", false, false},               /* Python's quote */
	{"-_.!~*'()", false, true},            /* encodeURIComponent */
	{"-_.!~*'();/?:@&=+$,#", false, true}, /* encodeURI */
	{"-._*", true, true},                  /* HTML forms */
	{"-._~", true, true},                  /* Python's quote_plus */
};

struct forms {
	const struct mask_value *value;
	mask_form_each *each;
	void *arg;
	char *room; /* for the longest: six bytes for each of the value */
};

static void hex(const struct forms *forms, const char *digits)
{
	size_t length = 0;

	for (size_t i = 0; i < forms->value->length; i++) {
		unsigned char byte = (unsigned char)forms->value->data[i];

		forms->room[length++] = digits[byte >> 4];
		forms->room[length++] = digits[byte & 15];
	}
	forms->each(forms->arg, forms->room, length);
}

/* The digits that only the value decides, where `before` bytes (0 to 2) of its first group are others. */
static void base64(const struct forms *forms, const char *digits, size_t before)
{
	size_t bits = 8 * (before + forms->value->length), first = (8 * before + 5) / 6, length = 0;

	for (size_t i = first; 6 * (i + 1) <= bits; i++) {
		unsigned value = 0;

		for (size_t bit = 6 * i; bit < 6 * i + 6; bit++) {
			unsigned char byte = (unsigned char)forms->value->data[bit / 8 - before];

			value = value << 1 | (byte >> (7 - bit % 8) & 1U);
		}
		forms->room[length++] = digits[value];
	}
	forms->each(forms->arg, forms->room, length);
	/* At the end of what is encoded the last digit is filled up with zeros. */
	if (bits % 6) {
		unsigned last = (unsigned char)forms->value->data[forms->value->length - 1];

		forms->room[length++] = digits[last << (6 - bits % 6) & 63];
		forms->each(forms->arg, forms->room, length);
	}
}

static void url(const struct forms *forms, const char *plain, bool plus, const char *digits)
{
	size_t length = 0;

	for (size_t i = 0; i < forms->value->length; i++) {
		unsigned char byte = (unsigned char)forms->value->data[i];
		bool alphanumeric = (byte >= '0' && byte <= '9') || ((byte | 32) >= 'a' && (byte | 32) <= 'z');

		if (byte == ' ' && plus) {
			forms->room[length++] = '+';
		} else if (alphanumeric || (byte && strchr(plain, byte))) {
			forms->room[length++] = (char)byte;
		} else {
			forms->room[length++] = '%';
			forms->room[length++] = digits[byte >> 4];
			forms->room[length++] = digits[byte & 15];
		}
	}
	forms->each(forms->arg, forms->room, length);
}

static void unicode(const struct forms *forms, size_t *length, unsigned unit, const char *digits)
{
	memcpy(forms->room + *length, "\\u", 2);
	for (int i = 0; i < 4; i++)
		forms->room[*length + 2 + (size_t)i] = digits[unit >> (12 - 4 * i) & 15];
	*length += 6;
}

/* A character of more than one byte, as one unit of UTF-16 or two. */
static void character(const struct forms *forms, size_t *length, const char *data, size_t step, const char *digits)
{
	unsigned code = (unsigned char)data[0] & (0xffu >> (step + 1));

	for (size_t i = 1; i < step; i++)
		code = code << 6 | ((unsigned char)data[i] & 63);
	if (code < 0x10000) {
		unicode(forms, length, code, digits);
		return;
	}
	unicode(forms, length, 0xd800 + ((code - 0x10000) >> 10), digits);
	unicode(forms, length, 0xdc00 + ((code - 0x10000) & 0x3ff), digits);
}

/* `ascii`: all that is not ASCII is escaped, too, as Python does. */
static void json(const struct forms *forms, bool ascii, const char *digits)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *data = forms->value->data;
	size_t length = 0, step;

	for (size_t i = 0; i < forms->value->length; i += step) {
		unsigned char byte = (unsigned char)data[i];
		const char *found = byte ? strchr(escaped, byte) : NULL;

		step = ascii ? MAX(utf8_length(data + i, forms->value->length - i), (size_t)1) : 1;
		if (found) {
			forms->room[length++] = '\\';
			forms->room[length++] = letters[found - escaped];
		} else if (step > 1) {
			character(forms, &length, data + i, step, digits);
		} else if (byte < 32 || (ascii && byte == 127)) {
			unicode(forms, &length, byte, digits);
		} else {
			forms->room[length++] = (char)byte;
		}
	}
	forms->each(forms->arg, forms->room, length);
}

void mask_forms(const struct mask_value *value, mask_form_each *each, void *arg)
{
	auto_secret char *room = secret_alloc(6 * value->length + 1);
	const struct forms forms = {value, each, arg, room};
	bool rare = value->length <= MASK_LONG;

	each(arg, value->data, value->length);
	json(&forms, false, hex_digits[0]);
	for (size_t before = 0; before < 3; before++) {
		base64(&forms, standard_digits, before);
		if (rare)
			base64(&forms, url_digits, before);
	}
	for (size_t i = 0; i < ARRAY_SIZE(hex_digits); i++) {
		hex(&forms, hex_digits[i]);
		if (rare)
			json(&forms, true, hex_digits[i]);
		for (size_t kind = 0; kind < ARRAY_SIZE(url_kinds); kind++)
			if (rare || !url_kinds[kind].rare)
				url(&forms, url_kinds[kind].plain, url_kinds[kind].plus, hex_digits[i]);
	}
}
