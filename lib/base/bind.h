/*
 * bind.h - JSON object <-> C struct by one table, and the JSON Schema of the same table.
 *
 * A table is an array of struct bind ended by {0}. bind_parse fills a struct from an object and names the first bad
 * member in the error ("files[2].filename: must be a string"); bind_schema writes the JSON Schema (2020-12) that
 * clients see, so parser and schema cannot drift apart. Unknown members are errors ("unknown member").
 *
 * Memory: strings point into the json document, which must outlive the struct; arrays and maps are allocated, members
 * with BIND_JSON hold a reference; bind_clear gives both back. The struct must be zeroed or hold defaults before
 * bind_parse; absent optional members leave the default alone.
 *
 * Views: one table may describe several objects that are made of the same struct (on the wire, in the record, in an
 * answer). A view is a bit; a row says in which views its member is there, and in which it is left out or null where
 * the struct holds nothing. A row without views is in all of them. The functions without a view use BIND_PLAIN.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "json.h"

enum bind_type {
	BIND_BOOL = 1,   /* bool */
	BIND_INT,        /* int64_t (int, where .size is its size) within [min, max]; 3.0 counts as integer */
	BIND_STRING,     /* const char *: no NUL inside; length in bytes within [min, max] (max 0: no maximum) */
	BIND_CHARS,      /* char[.size]: a copy, no NUL inside, shorter than .size */
	BIND_CHOICE,     /* an enum: the string's index in .choices */
	BIND_TEXT,       /* struct bind_text: may hold NULs; length within [min, max] */
	BIND_STRINGS,    /* struct bind_strings: array of BIND_STRING, count within [min, max] */
	BIND_STRING_MAP, /* struct bind_map: object whose values are strings, count within [min, max] */
	BIND_OBJECTS,    /* struct bind_objects: array of objects described by .table/.size, count within [min, max] */
	BIND_OBJECT,     /* a nested struct at the offset, described by .table */
	BIND_INLINE,     /* the same, but its members are members of this object; name: any */
	BIND_ANY,        /* struct json_object *: borrowed from the document */
};

enum bind_flags {
	BIND_REQUIRED = 1 << 0,
	BIND_HIDDEN = 1 << 1, /* accepted, not in the schema */
	BIND_JSON = 1 << 2,   /* the struct has no field of this type but a struct json_object *, checked to be one */
	BIND_SECRET = 1 << 3, /* shown to nobody */
};

#define BIND_PLAIN 1u                /* the view of who names none */
#define BIND_VIEWS ((1u << 30) - 1u) /* all views; the bits above are bind.c's */

struct bind_text {
	const char *data; /* NULL: absent */
	size_t length;
};
struct bind_strings {
	const char **items;
	size_t count;
};
bool bind_strings_has(const struct bind_strings *strings, const char *text);
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
	size_t size;              /* BIND_OBJECTS: size of one struct; BIND_CHARS, BIND_INT: of the field */
	unsigned views;           /* in which the member is there; 0: all */
	unsigned sparse, null;    /* views in which it is left out, or null, where it is empty: 0, "", NULL, no items */
	int64_t none;             /* BIND_INT: this is empty instead of 0 */
};

/* A row, with what else it has behind its type: BIND_MEMBER(struct ask, query, "query", BIND_STRING, .max = 500) */
#define BIND_MEMBER(struct_, member_, name_, type_, ...)                                                               \
	{.name = name_, .type = type_, .offset = offsetof(struct_, member_), ##__VA_ARGS__}

static inline bool bind_in_view(const struct bind *bind, unsigned view)
{
	return bind->views == 0 || (bind->views & view) != 0;
}

int bind_parse(const struct bind *table, struct json_object *object, void *ret_struct, struct err *err);
/* For what models and their SDKs write: null for an optional member means that it is not given, and a map may also be a
 * list of {"name","value"}. */
int bind_parse_asked(const struct bind *table, struct json_object *object, void *ret_struct, struct err *err);
/* As far as it goes, for what an older version wrote: what is unknown or does not fit is passed over. */
void bind_recall(const struct bind *table, struct json_object *object, void *ret_struct, unsigned view);
void bind_clear(const struct bind *table, void *bound);
/* {"type":"object","properties":{…},"required":[…],"additionalProperties":false}; the caller's. */
struct json_object *bind_schema(const struct bind *table);
/* The struct back as an object (absent: NULL strings, empty arrays and maps are left out). */
struct json_object *bind_print(const struct bind *table, const void *bound);
void bind_print_into(struct json_object *object, const struct bind *table, const void *bound, unsigned view);
struct json_object *bind_print_view(const struct bind *table, const void *bound, unsigned view);
/* The schema of what bind_print_view makes: all but sparse members are required, bounds are left out. */
struct json_object *bind_schema_output(const struct bind *table, unsigned view);
