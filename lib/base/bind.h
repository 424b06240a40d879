/*
 * bind.h - JSON object <-> C struct by one table, and the JSON Schema of the same table.
 *
 * A table is an array of struct bind ended by {0}. bind_parse fills a struct from an object and names the first bad
 * member in the error ("files[2].filename: must be a string"); bind_schema writes the JSON Schema (2020-12) that
 * clients see, so parser and schema cannot drift apart. Unknown members are errors ("unknown member").
 *
 * Memory: strings point into the json document, which must outlive the struct; arrays and maps are allocated and given
 * back by bind_clear. The struct must be zeroed or hold defaults before bind_parse; absent optional members leave the
 * default alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "json.h"

enum bind_type {
	BIND_BOOL = 1,   /* bool */
	BIND_INT,        /* int64_t within [min, max]; a JSON number with a zero fraction (3.0) counts as integer */
	BIND_STRING,     /* const char *: no NUL inside; length in bytes within [min, max] (max 0: no maximum) */
	BIND_TEXT,       /* struct bind_text: may hold NULs; length within [min, max] */
	BIND_STRINGS,    /* struct bind_strings: array of BIND_STRING, count within [min, max] */
	BIND_STRING_MAP, /* struct bind_map: object whose values are strings, count within [min, max] */
	BIND_OBJECTS,    /* struct bind_objects: array of objects described by .table/.size, count within [min, max] */
	BIND_OBJECT,     /* a nested struct at the offset, described by .table */
	BIND_ANY,        /* struct json_object *: borrowed from the document */
};

enum bind_flags {
	BIND_REQUIRED = 1 << 0,
	BIND_HIDDEN = 1 << 1, /* accepted, not in the schema */
};

struct bind_text {
	const char *data; /* NULL: absent */
	size_t length;
};
struct bind_strings {
	const char **items;
	size_t count;
};
struct bind_map {
	const char **keys;
	const char **values;
	size_t count;
};
struct bind_objects {
	void *items; /* `count` structs of the table's size */
	size_t count;
};

struct bind {
	const char *name;
	enum bind_type type;
	size_t offset;
	unsigned flags;
	int64_t min, max;
	const char *description; /* for the schema and for --help */
	const char *const *choices; /* BIND_STRING: the allowed values, ended by NULL; or NULL */
	const struct bind *table; /* BIND_OBJECTS, BIND_OBJECT */
	size_t size;              /* BIND_OBJECTS: size of one struct */
};

int bind_parse(const struct bind *table, struct json_object *object, void *ret_struct, struct err *err);
void bind_clear(const struct bind *table, void *bound);
/* {"type":"object","properties":{…},"required":[…],"additionalProperties":false}; the caller's. */
struct json_object *bind_schema(const struct bind *table);
/* The struct back as an object (absent: NULL strings, empty arrays and maps are left out). */
struct json_object *bind_print(const struct bind *table, const void *bound);
