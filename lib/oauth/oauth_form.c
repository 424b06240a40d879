/* oauth_form.c - see oauth_form.h. */
#include "oauth_form.h"

#include <string.h>

#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

/* "a+b%20c" -> "a b c"; NULL: it is not one. The caller's. */
static char *decode(const char *text, size_t length)
{
	auto_buf struct buf out = {0};

	buf_init(&out, SIZE_MAX / 2);
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)text[i];

		if (byte == '+') {
			byte = ' ';
		} else if (byte == '%') {
			if (length - i < 3 || hex_decode(text + i + 1, 2, &byte) < 0)
				return NULL;
			i += 2;
		}
		if (byte == 0)
			return NULL;
		buf_putc(&out, (char)byte);
	}
	return utf8_valid(out.data, out.length) ? buf_steal(&out, NULL) : NULL;
}

void oauth_form_clear(struct oauth_form *form)
{
	for (size_t i = 0; i < form->count; i++) {
		explicit_bzero(form->fields[i].value, strlen(form->fields[i].value));
		free(form->fields[i].name);
		free(form->fields[i].value);
	}
	form->count = 0;
}

static int add(struct oauth_form *form, const char *text, size_t length, struct err *err)
{
	const char *equals = memchr(text, '=', length);
	const size_t name_length = equals ? (size_t)(equals - text) : length;
	auto_free char *name = decode(text, name_length);
	auto_free char *value = decode(equals ? equals + 1 : "", equals ? length - name_length - 1 : 0);

	if (!name || !value)
		return err_set(err, ERR_INVALID, "a parameter is not form-encoded UTF-8");
	for (size_t i = 0; i < form->count; i++)
		if (streq(form->fields[i].name, name) && !streq(name, "resource"))
			return err_set(err, ERR_INVALID, "the parameter %.64s is there twice",
				       utf8_valid(name, strlen(name)) && strcspn(name, "\"\\<>") == strlen(name) ? name
														 : "");
	if (form->count == OAUTH_FORM_FIELDS)
		return err_set(err, ERR_INVALID, "there are more than %d parameters", OAUTH_FORM_FIELDS);
	form->fields[form->count++] = (struct oauth_form_field){steal(&name), steal(&value)};
	return 0;
}

int oauth_form_parse(const char *text, size_t length, struct oauth_form *ret, struct err *err)
{
	struct oauth_form form = {.count = 0};

	for (size_t at = 0; at < length;) {
		const char *end = memchr(text + at, '&', length - at);
		const size_t part = end ? (size_t)(end - text) - at : length - at;
		int result = part ? add(&form, text + at, part, err) : 0;

		if (result < 0) {
			oauth_form_clear(&form);
			return result;
		}
		at += part + 1;
	}
	*ret = form;
	return 0;
}

const char *oauth_form_get(const struct oauth_form *form, const char *name)
{
	for (size_t i = 0; i < form->count; i++)
		if (streq(form->fields[i].name, name))
			return form->fields[i].value[0] ? form->fields[i].value : NULL;
	return NULL;
}
