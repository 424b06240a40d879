/*
 * bind_schema.c - from a table to a JSON Schema, and from a struct back to an object; see bind.h.
 *
 * A schema has two uses. For arguments it says what bind_parse_asked takes, with a sentence that the model services
 * know which take a part of JSON Schema only (OpenAI's strict mode, Gemini's parameters): bounds of numbers, choices,
 * and what is required. Lengths are not among them; the refusal of what is too long names its bound. For results it
 * says what bind_print_view makes, which needs no bounds, but the views: a member is required unless it is sparse, and
 * has the type null besides its own where the row says so. OUTPUT, a bit next to the view's, distinguishes the two.
 *
 * Empty, for sparse and null, means: nothing was put there. Of an object, that all its members are empty.
 */
#include "bind.h"
#include "util.h"

static const void *field_const(const struct bind *bind, const void *base)
{
	return (const char *)base + bind->offset;
}

#define OUTPUT (1u << 31) /* with a view: bind_schema_output */

static struct json_object *string_schema(void)
{
	struct json_object *schema = json_object_new_object();

	json_add_string(schema, "type", "string");
	return schema;
}

static void add_members(struct json_object *properties, struct json_object *required, const struct bind *table,
			unsigned view);

static struct json_object *schema_object(const struct bind *table, unsigned view)
{
	struct json_object *schema = json_object_new_object(), *properties = json_object_new_object();
	struct json_object *required = json_object_new_array();

	add_members(properties, required, table, view);
	json_add_string(schema, "type", "object");
	json_add(schema, "properties", properties);
	json_add(schema, "required", required);
	json_add_bool(schema, "additionalProperties", false);
	return schema;
}

/* As a list of pairs: several services know no objects with free members. */
static struct json_object *schema_type(const struct bind *bind, unsigned view)
{
	static const struct bind pair[] = {{.name = "name", .type = BIND_STRING, .flags = BIND_REQUIRED},
					   {.name = "value", .type = BIND_STRING, .flags = BIND_REQUIRED},
					   {0}};
	struct json_object *schema =
		bind->type == BIND_OBJECT ? schema_object(bind->table, view) : json_object_new_object();

	switch (bind->type) {
	case BIND_BOOL:
		json_add_string(schema, "type", "boolean");
		break;
	case BIND_INT:
		json_add_string(schema, "type", "integer");
		if (!(view & OUTPUT) && bind->min != INT64_MIN)
			json_add_int(schema, "minimum", bind->min);
		if (!(view & OUTPUT) && bind->max != INT64_MAX)
			json_add_int(schema, "maximum", bind->max);
		break;
	case BIND_STRING:
	case BIND_CHARS:
	case BIND_CHOICE:
	case BIND_TEXT:
		json_add_string(schema, "type", "string");
		if (bind->choices != NULL) {
			struct json_object *choices = json_object_new_array();

			for (size_t i = 0; bind->choices[i] != NULL; i++)
				json_object_array_add(choices, json_object_new_string(bind->choices[i]));
			json_add(schema, "enum", choices);
		}
		break;
	case BIND_STRINGS:
	case BIND_OBJECTS:
		json_add_string(schema, "type", "array");
		json_add(schema, "items",
			 bind->type == BIND_OBJECTS ? schema_object(bind->table, view) : string_schema());
		break;
	case BIND_STRING_MAP:
		json_add_string(schema, "type", view & OUTPUT ? "object" : "array");
		if (view & OUTPUT)
			json_add(schema, "additionalProperties", string_schema());
		else
			json_add(schema, "items", schema_object(pair, BIND_PLAIN));
		break;
	case BIND_OBJECT:
	case BIND_INLINE:
	case BIND_ANY:
		break;
	}
	return schema;
}

static struct json_object *schema_member(const struct bind *bind, unsigned view)
{
	struct json_object *schema = schema_type(bind, view);

	if (bind->null & view) {
		struct json_object *types = json_object_new_array();

		json_object_array_add(types, json_object_get(json_get(schema, "type", json_type_string)));
		json_object_array_add(types, json_object_new_string("null"));
		json_add(schema, "type", types);
	}
	if (bind->description != NULL)
		json_add_string(schema, "description", bind->description);
	return schema;
}

static void add_members(struct json_object *properties, struct json_object *required, const struct bind *table,
			unsigned view)
{
	for (const struct bind *bind = table; bind->name != NULL; bind++) {
		if ((bind->flags & BIND_HIDDEN) || !bind_in_view(bind, view))
			continue;
		if (bind->type == BIND_INLINE) {
			add_members(properties, required, bind->table, view);
			continue;
		}
		json_add(properties, bind->name, schema_member(bind, view));
		if (view & OUTPUT ? !(bind->sparse & view) : bind->flags & BIND_REQUIRED)
			json_object_array_add(required, json_object_new_string(bind->name));
	}
}

struct json_object *bind_schema(const struct bind *table)
{
	return schema_object(table, BIND_PLAIN);
}

struct json_object *bind_schema_output(const struct bind *table, unsigned view)
{
	return schema_object(table, view | OUTPUT);
}

static int64_t int_of(const struct bind *bind, const void *from)
{
	return bind->size == sizeof(int) ? *(const int *)from : *(const int64_t *)from;
}

static bool json_empty(struct json_object *value)
{
	return value == NULL || (json_object_is_type(value, json_type_array) && json_object_array_length(value) == 0);
}

static bool is_empty(const struct bind *bind, const void *from)
{
	if (bind->flags & BIND_JSON)
		return json_empty(*(struct json_object *const *)from);
	switch (bind->type) {
	case BIND_BOOL:
		return !*(const bool *)from;
	case BIND_INT:
		return int_of(bind, from) == bind->none;
	case BIND_CHARS:
		return *(const char *)from == '\0';
	case BIND_STRING: {
		const char *text = *(const char *const *)from;

		return text == NULL || *text == '\0';
	}
	case BIND_TEXT:
		return ((const struct bind_text *)from)->data == NULL;
	case BIND_STRINGS:
		return ((const struct bind_strings *)from)->count == 0;
	case BIND_STRING_MAP:
		return ((const struct bind_map *)from)->count == 0;
	case BIND_OBJECTS:
		return ((const struct bind_objects *)from)->count == 0;
	case BIND_OBJECT:
	case BIND_INLINE:
		for (const struct bind *member = bind->table; member->name != NULL; member++)
			if (!is_empty(member, field_const(member, from)))
				return false;
		return true;
	case BIND_ANY:
		return json_empty(*(struct json_object *const *)from);
	case BIND_CHOICE:
		break;
	}
	return false;
}

/* NULL: absent. */
static struct json_object *print_member(const struct bind *bind, const void *from, unsigned view)
{
	if (bind->flags & BIND_JSON) {
		struct json_object *value = *(struct json_object *const *)from;
		bool list = bind->type == BIND_OBJECTS || bind->type == BIND_STRINGS;

		return value != NULL ? json_object_get(value) : list ? json_object_new_array() : NULL;
	}
	switch (bind->type) {
	case BIND_BOOL:
		return json_object_new_boolean(*(const bool *)from);
	case BIND_INT:
		return json_object_new_int64(int_of(bind, from));
	case BIND_STRING: {
		const char *text = *(const char *const *)from;

		return text != NULL ? json_object_new_string(text) : NULL;
	}
	case BIND_CHARS:
		return json_object_new_string(from);
	case BIND_CHOICE:
		return json_object_new_string(bind->choices[*(const unsigned *)from]);
	case BIND_TEXT: {
		const struct bind_text *text = from;

		return text->data != NULL ? json_object_new_string_len(text->data, (int)text->length) : NULL;
	}
	case BIND_STRINGS: {
		const struct bind_strings *strings = from;
		struct json_object *array = strings->count > 0 ? json_object_new_array() : NULL;

		for (size_t i = 0; i < strings->count; i++)
			json_object_array_add(array, json_object_new_string(strings->items[i]));
		return array;
	}
	case BIND_STRING_MAP: {
		const struct bind_map *map = from;
		struct json_object *object = map->count > 0 ? json_object_new_object() : NULL;

		for (size_t i = 0; i < map->count; i++)
			json_add_string(object, map->keys[i], map->values[i]);
		return object;
	}
	case BIND_OBJECTS: {
		const struct bind_objects *objects = from;
		const char *item = (const char *)objects->items;
		struct json_object *array = objects->count > 0 ? json_object_new_array() : NULL;

		for (size_t i = 0; i < objects->count; i++, item += bind->size)
			json_object_array_add(array, bind_print_view(bind->table, item, view));
		return array;
	}
	case BIND_OBJECT:
		return bind_print_view(bind->table, from, view);
	case BIND_ANY:
		return json_object_get(*(struct json_object *const *)from);
	case BIND_INLINE:
		break; /* bind_print_into */
	}
	return NULL;
}

void bind_print_into(struct json_object *object, const struct bind *table, const void *bound, unsigned view)
{
	for (const struct bind *bind = table; bind->name != NULL; bind++) {
		const void *from = field_const(bind, bound);
		struct json_object *value = NULL;
		bool null = (bind->null & view) && is_empty(bind, from);

		if (!bind_in_view(bind, view) || ((bind->sparse & view) && is_empty(bind, from)))
			continue;
		if (bind->type == BIND_INLINE)
			bind_print_into(object, bind->table, from, view);
		else if (!null)
			value = print_member(bind, from, view);
		if (null || value != NULL)
			json_add(object, bind->name, value);
	}
}

struct json_object *bind_print_view(const struct bind *table, const void *bound, unsigned view)
{
	struct json_object *object = json_object_new_object();

	bind_print_into(object, table, bound, view);
	return object;
}

struct json_object *bind_print(const struct bind *table, const void *bound)
{
	return bind_print_view(table, bound, BIND_PLAIN);
}
