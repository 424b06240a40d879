/*
 * bind_meant.h - arguments as models and their clients send them, read as they are meant.
 *
 * In front of bind_parse_asked: an object becomes one that the table takes, where there is only one way to read it.
 * - Text that is exactly a value of the member's type becomes that value: "20", "true", "[\"a\"]", "{\"A\":\"1\"}".
 * - A number, true or false where a string is wanted becomes its text.
 * - A member that the table does not have is left out and named, unless it is a near miss of one that it has
 *   ("timeout", "lang", "conversation_id"): that is an error, because leaving it out would change what is done.
 * Everything else stays as it is, for bind_parse_asked to refuse.
 */
#pragma once

#include "bind.h"

#define BIND_IGNORED_MAX   400 /* bytes of the names that are listed, a NUL included … */
#define BIND_IGNORED_NAME  60  /* … and of one name */
#define BIND_TEXT_VALUES   JSON_VALUES_MAX /* values in all texts of a call that are read as JSON */

/* The members that were left out: "a, b and 3 more". Zeroed: none. */
struct bind_ignored {
	char names[BIND_IGNORED_MAX];
	size_t more; /* that are not listed */
};

/* *ret is the caller's. ERR_INVALID names the near miss. ret_ignored NULL: near misses are left out, too. */
int bind_as_meant(const struct bind *table, struct json_object *object, struct json_object **ret,
		  struct bind_ignored *ret_ignored, struct err *err);
/* Is `name` a near miss of `known`: the same words, a typing error, an abbreviation, or the same first word? An
 * identifier is none: sessionId is not session. `given`: `known` is there, too, so `name` is no typing error. */
bool bind_near(const char *name, const char *known, bool given);
