/* bridge_type.h - a JSON Schema as a type, by the rules of bridge_stub.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"

#define BRIDGE_SCHEMA_DEPTH 24   /* deeper: Any */
#define BRIDGE_TYPES_MAX    64   /* named types of one tool */
#define BRIDGE_VISITS_MAX   4096 /* schemas that are looked at for one tool */

enum bridge_language { BRIDGE_PYTHON, BRIDGE_TYPESCRIPT };
enum bridge_inner {
	BRIDGE_INNER_INLINE, /* objects in place */
	BRIDGE_INNER_NAMED,  /* objects within others have names */
	BRIDGE_INNER_KEYS,   /* only the names of their members */
	BRIDGE_INNER_FILE,   /* Python files: every object has a name */
};
struct bridge_types {
	enum bridge_language language;
	enum bridge_inner inner;
	const char *prefix; /* of the names of types */
	struct json_object *root;
	struct buf definitions; /* of the named types, one a line or class */
	char *names[BRIDGE_TYPES_MAX];
	struct json_object *named[BRIDGE_TYPES_MAX]; /* the schema of each */
	size_t count;
	struct json_object *open[BRIDGE_SCHEMA_DEPTH]; /* schemas that are being printed */
	size_t depth;
	size_t visits; /* schemas printed: a hostile one refers to itself in a thousand ways */
};
void bridge_types_begin(struct bridge_types *types, struct json_object *root);
void bridge_types_clear(struct bridge_types *types);
/* `hint` names the type if it needs one. */
void bridge_type(struct buf *out, struct bridge_types *types, struct json_object *schema, const char *hint);
/* What an object schema says with all of its allOf and $ref: fresh objects, the caller's. */
void bridge_schema_members(const struct bridge_types *types, struct json_object *schema,
			   struct json_object **ret_properties, struct json_object **ret_required);
bool bridge_schema_required(struct json_object *required, const char *name);
