/* mask_form.c - see mask_form.h. */
#include "mask_form.h"

#include <string.h>

#include "secret.h"
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

static void json(const struct forms *forms)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	size_t length = 0;

	for (size_t i = 0; i < forms->value->length; i++) {
		unsigned char byte = (unsigned char)forms->value->data[i];
		const char *found = byte ? strchr(escaped, byte) : NULL;

		if (found) {
			forms->room[length++] = '\\';
			forms->room[length++] = letters[found - escaped];
		} else if (byte < 32) {
			memcpy(forms->room + length, "\\u00", 4);
			forms->room[length + 4] = hex_digits[0][byte >> 4];
			forms->room[length + 5] = hex_digits[0][byte & 15];
			length += 6;
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
	json(&forms);
	for (size_t before = 0; before < 3; before++) {
		base64(&forms, standard_digits, before);
		if (rare)
			base64(&forms, url_digits, before);
	}
	for (size_t i = 0; i < ARRAY_SIZE(hex_digits); i++) {
		hex(&forms, hex_digits[i]);
		for (size_t kind = 0; kind < ARRAY_SIZE(url_kinds); kind++)
			if (rare || !url_kinds[kind].rare)
				url(&forms, url_kinds[kind].plain, url_kinds[kind].plus, hex_digits[i]);
	}
}
