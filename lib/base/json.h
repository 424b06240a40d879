/*
 * json.h - strict JSON on top of json-c: the only place that parses.
 *
 * json-c 0.16 in strict mode still accepts duplicate keys, single-quoted keys, NaN and Infinity, raw control
 * characters, saturating integers and cuts a key at \u0000. So the bytes are scanned first (RFC 8259 grammar, UTF-8,
 * depth, duplicate keys, how many values, integers beyond int64, numbers that are not finite) and only then handed to
 * json-c. Documents are json-c objects: any file may read and build them with json_object_* from this header; only
 * json.c includes the tokener.
 */
#pragma once

#include <json-c/json_object.h>
#include <json-c/linkhash.h> /* json_object_object_foreach */
#include <stddef.h>

#include "buf.h"
#include "err.h"

#define JSON_DEPTH_MAX 64
#define JSON_KEYS_MAX 65536 /* members in one object */
#define JSON_VALUES_MAX 262144 /* in one document, arrays and objects too: json-c takes some 250 bytes for each */

void json_put_pointer(struct json_object **object);
#define auto_json __attribute__((cleanup(json_put_pointer)))

/* One JSON text (any value), blanks around it allowed; *ret is the caller's (json_object_put). ERR_INVALID names what
 * and at which byte. `null` gives *ret == NULL. */
int json_parse(const char *text, size_t length, struct json_object **ret, struct err *err);
/* What clients send over a wire: as json_parse, behind a byte order mark, and half of a surrogate pair is U+FFFD. */
int json_parse_received(const char *text, size_t length, struct json_object **ret, struct err *err);
/* As json_parse, of at most *values values (JSON_VALUES_MAX too), which are subtracted, also on failure. */
int json_parse_budget(const char *text, size_t length, int *values, struct json_object **ret, struct err *err);
/* As json_parse after comments (// … and slash-star) were blanked out: for configuration and runner files. */
int json_parse_commented(const char *text, size_t length, struct json_object **ret, struct err *err);
/* Only the scan, without building anything: 0 or ERR_INVALID. What it accepts is RFC 8259 JSON (fuzzed against
 * python3). */
int json_scan(const char *text, size_t length, struct err *err);

/* Compact, deterministic (members in insertion order, doubles shortest that round-trip, no escaped slashes). */
void json_print(struct buf *out, struct json_object *object);
/* Indented by two blanks, for people. */
void json_print_pretty(struct buf *out, struct json_object *object);

/* Typed access: the member, or NULL if it is absent or of another type. Results live as long as the object. */
struct json_object *json_get(struct json_object *object, const char *key, enum json_type type);
struct json_object *json_member(struct json_object *object, const char *key); /* of any type */
const char *json_get_string(struct json_object *object, const char *key); /* NULL too if it contains a NUL */
bool json_list_has(struct json_object *list, const char *text); /* a string; false of NULL */

/* Building. The value is taken over. json_add_bytes: program output, made safe by utf8_safe first. */
void json_add(struct json_object *object, const char *key, struct json_object *value);
void json_add_string(struct json_object *object, const char *key, const char *value); /* value NULL: null */
void json_add_int(struct json_object *object, const char *key, int64_t value);
void json_add_bool(struct json_object *object, const char *key, bool value);
/* Rounded to so many digits behind the point: a computed 0.30000000000000004 is 0.3. Not finite: null. */
void json_add_rounded(struct json_object *object, const char *key, double value, int digits);
void json_add_bytes(struct json_object *object, const char *key, const char *data, size_t length);
struct json_object *json_new_safe(const char *data, size_t length); /* the same string alone */
/* A value that is JSON text already (of ours: it is not checked) and is printed as it is, also by
 * json_print_pretty; to every other reader it is a string. For what is asked for often and changes seldom. */
struct json_object *json_new_printed(const char *text, size_t length);
