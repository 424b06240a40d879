/* bind_schema.c - from a table to a JSON Schema, and from a struct back to an object; see bind.h. */
#include "bind.h"
#include "util.h"

#define UTF8_BYTES_MAX 4 /* of one character: a schema counts characters, we count bytes */

static const void *field_const(const struct bind *bind, const void *base)
{
	return (const char *)base + bind->offset;
}

static void schema_bounds(struct json_object *schema, const struct bind *bind, const char *min, const char *max)
{
	if (bind->min > 0)
		json_add_int(schema, min, bind->min);
	if (bind->max > 0)
		json_add_int(schema, max, bind->max);
}

/* A schema counts characters: n bytes are between n/4 and n of them, so it never refuses what bind_parse takes. */
static void schema_string(struct json_object *schema, const struct bind *bind)
{
	json_add_string(schema, "type", "string");
	if (bind->choices != NULL) {
		struct json_object *choices = json_object_new_array();

		for (size_t i = 0; bind->choices[i] != NULL; i++)
			json_object_array_add(choices, json_object_new_string(bind->choices[i]));
		json_add(schema, "enum", choices);
		return;
	}
	if (bind->min > 0)
		json_add_int(schema, "minLength", (bind->min + UTF8_BYTES_MAX - 1) / UTF8_BYTES_MAX);
	if (bind->max > 0)
		json_add_int(schema, "maxLength", bind->max);
}

static void schema_int(struct json_object *schema, const struct bind *bind)
{
	json_add_string(schema, "type", "integer");
	if (bind->min != INT64_MIN)
		json_add_int(schema, "minimum", bind->min);
	if (bind->max != INT64_MAX)
		json_add_int(schema, "maximum", bind->max);
}

static struct json_object *string_schema(void)
{
	struct json_object *schema = json_object_new_object();

	json_add_string(schema, "type", "string");
	return schema;
}

static struct json_object *schema_member(const struct bind *bind)
{
	struct json_object *schema = bind->type == BIND_OBJECT ? bind_schema(bind->table) : json_object_new_object();

	switch (bind->type) {
	case BIND_BOOL:
		json_add_string(schema, "type", "boolean");
		break;
	case BIND_INT:
		schema_int(schema, bind);
		break;
	case BIND_STRING:
	case BIND_TEXT:
		schema_string(schema, bind);
		break;
	case BIND_STRINGS:
	case BIND_OBJECTS:
		json_add_string(schema, "type", "array");
		json_add(schema, "items", bind->type == BIND_OBJECTS ? bind_schema(bind->table) : string_schema());
		schema_bounds(schema, bind, "minItems", "maxItems");
		break;
	case BIND_STRING_MAP:
		json_add_string(schema, "type", "object");
		json_add(schema, "additionalProperties", string_schema());
		schema_bounds(schema, bind, "minProperties", "maxProperties");
		break;
	case BIND_OBJECT:
	case BIND_ANY:
		break;
	}
	if (bind->description != NULL)
		json_add_string(schema, "description", bind->description);
	return schema;
}

struct json_object *bind_schema(const struct bind *table)
{
	struct json_object *schema = json_object_new_object(), *properties = json_object_new_object();
	struct json_object *required = json_object_new_array();

	for (const struct bind *bind = table; bind->name != NULL; bind++) {
		if (bind->flags & BIND_HIDDEN)
			continue;
		json_add(properties, bind->name, schema_member(bind));
		if (bind->flags & BIND_REQUIRED)
			json_object_array_add(required, json_object_new_string(bind->name));
	}
	json_add_string(schema, "type", "object");
	json_add(schema, "properties", properties);
	json_add(schema, "required", required);
	json_add_bool(schema, "additionalProperties", false);
	return schema;
}

static struct json_object *print_strings(const struct bind_strings *strings)
{
	struct json_object *array = strings->count > 0 ? json_object_new_array() : NULL;

	for (size_t i = 0; i < strings->count; i++)
		json_object_array_add(array, json_object_new_string(strings->items[i]));
	return array;
}

static struct json_object *print_map(const struct bind_map *map)
{
	struct json_object *object = map->count > 0 ? json_object_new_object() : NULL;

	for (size_t i = 0; i < map->count; i++)
		json_add_string(object, map->keys[i], map->values[i]);
	return object;
}

static struct json_object *print_objects(const struct bind *bind, const struct bind_objects *objects)
{
	struct json_object *array = objects->count > 0 ? json_object_new_array() : NULL;

	for (size_t i = 0; i < objects->count; i++)
		json_object_array_add(array, bind_print(bind->table, (const char *)objects->items + i * bind->size));
	return array;
}

/* NULL: absent. */
static struct json_object *print_member(const struct bind *bind, const void *from)
{
	switch (bind->type) {
	case BIND_BOOL:
		return json_object_new_boolean(*(const bool *)from);
	case BIND_INT:
		return json_object_new_int64(*(const int64_t *)from);
	case BIND_STRING: {
		const char *text = *(const char *const *)from;

		return text != NULL ? json_object_new_string(text) : NULL;
	}
	case BIND_TEXT: {
		const struct bind_text *text = from;

		return text->data != NULL ? json_object_new_string_len(text->data, (int)text->length) : NULL;
	}
	case BIND_STRINGS:
		return print_strings(from);
	case BIND_STRING_MAP:
		return print_map(from);
	case BIND_OBJECTS:
		return print_objects(bind, from);
	case BIND_OBJECT:
		return bind_print(bind->table, from);
	case BIND_ANY:
		return json_object_get(*(struct json_object *const *)from);
	}
	return NULL;
}

struct json_object *bind_print(const struct bind *table, const void *bound)
{
	struct json_object *object = json_object_new_object();

	for (const struct bind *bind = table; bind->name != NULL; bind++) {
		struct json_object *value = print_member(bind, field_const(bind, bound));

		if (value != NULL)
			json_add(object, bind->name, value);
	}
	return object;
}
