/*
 * upstream_raw.h - JSON as other servers send it, taken apart by byte ranges and never printed again.
 *
 * json.h is stricter than what real servers send: half surrogate pairs (JavaScript cuts an emoji in two and writes
 * "\ud83d"), integers of any size, members that occur twice. raw_check accepts these and nothing else beyond RFC 8259;
 * the other functions work on text that passed it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct raw {
	const char *text; /* NULL: absent */
	size_t length;
};

/* One value, blanks around it. Appends it to `out` with half surrogate pairs as \ufffd; the rest byte for byte. */
int raw_check(const char *text, size_t length, struct buf *out, struct err *err);

/* The value without blanks around it. */
struct raw raw_value(const char *text, size_t length);
/* The member's value; of several with this name the last. Absent: .text is NULL; also where `object` is no object. */
struct raw raw_member(struct raw object, const char *name);
/* The same of several names in one walk: of a large result each walk costs. */
void raw_members(struct raw object, const char *const names[], size_t count, struct raw ret[]);
/* Walks an object, in one walk for all of its members: *at begins at 0; false behind the last one, and where it is no
 * object. *ret_name is the string as it is written, with its quotes. */
bool raw_next(struct raw object, size_t *at, struct raw *ret_name, struct raw *ret_value);
/* Walks an array: *at begins at 0; false behind the last item, and where it is no array. */
bool raw_item(struct raw array, size_t *at, struct raw *ret);

bool raw_is_object(struct raw value);
bool raw_is(struct raw value, const char *text); /* is it these bytes: "true", "null" */
/* A string's text, the caller's; NULL: it is no string, or holds a NUL. */
char *raw_string(struct raw value);
bool raw_int(struct raw value, int64_t *ret); /* an integer that fits */
bool raw_number(struct raw value, double *ret);

/* Appends the value without blanks, members sorted by their names' bytes: two spellings of one object are one text.
 * Numbers and strings stay as they are written. */
void raw_canonical(struct buf *out, struct raw value);
