/* bridge_schema.c - JSON Schemas before they are types: where a $ref leads within a tool's own schema, and what an
 * object has of its own, by references and by allOf. */
#include <string.h>

#include "bridge_type.h"
#include "lib/base/util.h"

/* -------- references ---------------------------------------------------------------------------------- */

static struct json_object *find_anchor(struct json_object *at, const char *anchor, int depth)
{
	const char *own = json_get_string(at, "$anchor");

	if (own && streq(own, anchor))
		return at;
	if (depth == 0 || !at)
		return NULL;
	if (json_object_is_type(at, json_type_array)) {
		for (size_t i = 0; i < json_object_array_length(at); i++) {
			struct json_object *found = find_anchor(json_object_array_get_idx(at, i), anchor, depth - 1);

			if (found)
				return found;
		}
	} else if (json_object_is_type(at, json_type_object)) {
		json_object_object_foreach(at, name, value)
		{
			(void)name;
			struct json_object *found = find_anchor(value, anchor, depth - 1);

			if (found)
				return found;
		}
	}
	return NULL;
}

/* One part of a pointer, its ~0 and ~1 put back. */
static struct json_object *step_into(struct json_object *at, const char *part, size_t length)
{
	auto_free char *name = xmalloc(length + 1);
	struct json_object *found = NULL;
	size_t n = 0;
	uint64_t index;

	for (size_t i = 0; i < length; i++) {
		bool escaped = part[i] == '~' && i + 1 < length;

		name[n++] = escaped ? (part[++i] == '1' ? '/' : '~') : part[i];
	}
	name[n] = '\0';
	if (json_object_is_type(at, json_type_object))
		json_object_object_get_ex(at, name, &found);
	else if (json_object_is_type(at, json_type_array) && parse_u64(name, 0, SIZE_MAX, &index) == 0)
		found = json_object_array_get_idx(at, index);
	return found;
}

static struct json_object *resolve(const struct bridge_types *types, const char *reference)
{
	struct json_object *at = types->root;

	if (reference[0] != '#')
		return NULL;
	if (reference[1] != '\0' && reference[1] != '/')
		return find_anchor(at, reference + 1, BRIDGE_SCHEMA_DEPTH);
	for (const char *part = reference + 1; at && *part == '/';) {
		size_t length = strcspn(part + 1, "/");

		at = step_into(at, part + 1, length);
		part += 1 + length;
	}
	return at;
}

/* The schema that it refers to, if it does; NULL: nothing that is there. */
struct json_object *bridge_schema_follow(const struct bridge_types *types, struct json_object *schema)
{
	for (int i = 0; i < BRIDGE_SCHEMA_DEPTH; i++) {
		const char *reference = json_get_string(schema, "$ref");

		if (!reference)
			return schema;
		schema = resolve(types, reference);
	}
	return NULL;
}

/* -------- properties ---------------------------------------------------------------------------------- */

bool bridge_schema_required(struct json_object *required, const char *name)
{
	for (size_t i = 0; required && i < json_object_array_length(required); i++) {
		const char *one = json_object_get_string(json_object_array_get_idx(required, i));

		if (one && streq(one, name))
			return true;
	}
	return false;
}

static void merge(const struct bridge_types *types, struct json_object *schema, struct json_object *properties,
		  struct json_object *required, int depth)
{
	schema = bridge_schema_follow(types, schema);
	if (!schema || depth == 0)
		return;
	struct json_object *own = json_get(schema, "properties", json_type_object);
	struct json_object *needed = json_get(schema, "required", json_type_array);
	struct json_object *all = json_get(schema, "allOf", json_type_array);

	if (own) {
		json_object_object_foreach(own, name, value)
			json_object_object_add(properties, name, json_object_get(value));
	}
	for (size_t i = 0; needed && i < json_object_array_length(needed); i++)
		json_object_array_add(required, json_object_get(json_object_array_get_idx(needed, i)));
	for (size_t i = 0; all && i < json_object_array_length(all); i++)
		merge(types, json_object_array_get_idx(all, i), properties, required, depth - 1);
}

void bridge_schema_members(const struct bridge_types *types, struct json_object *schema,
			   struct json_object **ret_properties, struct json_object **ret_required)
{
	*ret_properties = json_object_new_object();
	*ret_required = json_object_new_array();
	merge(types, schema, *ret_properties, *ret_required, BRIDGE_SCHEMA_DEPTH);
}

bool bridge_schema_typed(struct json_object *schema)
{
	static const char *const keywords[] = {"type",  "properties", "enum",  "const", "$ref",
					       "items", "anyOf",      "oneOf", "allOf", "prefixItems"};

	for (size_t i = 0; i < ARRAY_SIZE(keywords); i++)
		if (json_object_object_get_ex(schema, keywords[i], NULL))
			return true;
	return false;
}
