/*
 * oauth_form.h - parameters as browsers and clients of OAuth send them: the query of an address, or a body of type
 * application/x-www-form-urlencoded (WHATWG URL, RFC 6749 appendix B). Strict: a bad escape, a NUL, bytes that are no
 * UTF-8, and a parameter that is there twice are errors, because two readers could understand them differently. Only
 * `resource` may be repeated (RFC 8707). An empty value counts as absent (RFC 6749, section 3.1).
 */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"

#define OAUTH_FORM_FIELDS 64

struct oauth_form {
	struct oauth_form_field {
		char *name, *value;
	} fields[OAUTH_FORM_FIELDS];
	size_t count;
};
/* ERR_INVALID: what is wrong, without the value. */
int oauth_form_parse(const char *text, size_t length, struct oauth_form *ret, struct err *err);
void oauth_form_clear(struct oauth_form *form); /* wipes the values */
#define auto_form __attribute__((cleanup(oauth_form_clear)))
/* The value, which is not empty; NULL: absent. The first one of several. */
const char *oauth_form_get(const struct oauth_form *form, const char *name);
