/*
 * bridge_check.c - arguments against a tool's schema, before anything is sent: a member that is required and missing,
 * one that is not known where the schema says that there are no others, a value of the wrong type or none of an enum;
 * in objects and lists within them, too. Nothing more: a reading that is stricter than the server's would refuse good
 * calls. What a schema says by $ref, anyOf and their like is left to the server.
 */
#include <string.h>

#include "bridge.h"
#include "lib/base/util.h"

#define DEPTH_MAX  16
#define CHECKS_MAX 20000 /* values and names that are looked at; the server checks the rest */
#define PATH_MAX_  256
#define SHOWN_MAX  300 /* bytes of the values of an enum */

struct check {
	struct err *err;
	int depth, left;
};

static int check_value(struct check *check, const char *path, struct json_object *schema, struct json_object *value);

/* -------- one value ------------------------------------------------------------------------------------ */

static const char *const type_names[] = {
	[json_type_null] = "null",       [json_type_boolean] = "a boolean", [json_type_int] = "a number",
	[json_type_double] = "a number", [json_type_string] = "a string",   [json_type_array] = "an array",
	[json_type_object] = "an object"};

/* 1: the value is of this type; 0: it is not; -1: nobody knows that type. 1.0 is an integer, too. */
static int is_type(const char *type, struct json_object *value)
{
	static const struct {
		const char *type;
		enum json_type is;
	} types[] = {{"string", json_type_string}, {"boolean", json_type_boolean}, {"array", json_type_array},
		     {"object", json_type_object}, {"null", json_type_null},       {"integer", json_type_int},
		     {"number", json_type_int},    {"number", json_type_double},   {"integer", json_type_double}};
	int result = -1;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (streq(types[i].type, type))
			result = MAX(result, json_object_is_type(value, types[i].is));
	return result;
}

static int check_type(struct check *check, const char *path, struct json_object *schema, struct json_object *value)
{
	const char *type = json_get_string(schema, "type");
	struct json_object *types = json_get(schema, "type", json_type_array);
	bool nullable = json_object_get_boolean(json_get(schema, "nullable", json_type_boolean));

	if (type && is_type(type, value) == 0 && (value || !nullable))
		return err_member(check->err, path, "must be %s%s, not %s", strchr("aeiou", type[0]) ? "an " : "a ",
				  type, type_names[json_object_get_type(value)]);
	for (size_t i = 0; types && i < json_object_array_length(types); i++) {
		type = json_object_get_string(json_object_array_get_idx(types, i));
		if (!type || is_type(type, value) != 0)
			return 0;
	}
	if (types && json_object_array_length(types) > 0)
		return err_member(check->err, path, "must be one of the types %s, not %s",
				  json_object_to_json_string_ext(types, JSON_C_TO_STRING_PLAIN),
				  type_names[json_object_get_type(value)]);
	return 0;
}

static bool is_number(struct json_object *value)
{
	return json_object_is_type(value, json_type_int) || json_object_is_type(value, json_type_double);
}

static bool same(struct json_object *one, struct json_object *other)
{
	return json_object_equal(one, other) ||
	       (is_number(one) && is_number(other) && json_object_get_double(one) == json_object_get_double(other));
}

static int check_choice(struct check *check, const char *path, struct json_object *schema, struct json_object *value)
{
	struct json_object *choices = json_get(schema, "enum", json_type_array), *only = NULL;

	if (json_object_object_get_ex(schema, "const", &only) && !same(only, value))
		return err_member(check->err, path, "must be %.*s", SHOWN_MAX,
				  json_object_to_json_string_ext(only, JSON_C_TO_STRING_PLAIN));
	if (!choices)
		return 0;
	for (size_t i = 0; i < json_object_array_length(choices); i++)
		if (same(json_object_array_get_idx(choices, i), value))
			return 0;
	return err_member(check->err, path, "must be one of %.*s", SHOWN_MAX,
			  json_object_to_json_string_ext(choices, JSON_C_TO_STRING_PLAIN));
}

/* -------- what is in it -------------------------------------------------------------------------------- */

static int check_known(struct check *check, struct json_object *schema, const char *path, const char *name)
{
	struct json_object *properties = json_get(schema, "properties", json_type_object), *more = NULL;
	bool closed = json_object_object_get_ex(schema, "additionalProperties", &more) &&
		      json_object_is_type(more, json_type_boolean) && !json_object_get_boolean(more) &&
		      !json_object_object_get_ex(schema, "patternProperties", NULL) &&
		      !json_object_object_get_ex(schema, "allOf", NULL) &&
		      !json_object_object_get_ex(schema, "$ref", NULL);
	const char *what = check->depth == 1 ? "an argument of this tool" : "known here";

	if (!closed)
		return 0;
	if (properties) {
		json_object_object_foreach(properties, known, value)
		{
			(void)value;
			if (str_near(known, name))
				return err_member(check->err, path, "is not %s: did you mean %s?", what, known);
		}
	}
	return err_member(check->err, path, "is not %s", what);
}

static int check_members(struct check *check, const char *path, struct json_object *schema, struct json_object *object)
{
	struct json_object *properties = json_get(schema, "properties", json_type_object);
	struct json_object *required = json_get(schema, "required", json_type_array);
	const char *dot = *path ? "." : "";
	char inner[PATH_MAX_];

	for (size_t i = 0; required && i < json_object_array_length(required); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(required, i));

		if (name && !(object && json_object_object_get_ex(object, name, NULL))) {
			snprintf(inner, sizeof(inner), "%s%s%s", path, dot, name);
			return err_member(check->err, inner, "is missing");
		}
	}
	if (!object)
		return 0;
	json_object_object_foreach(object, name, value)
	{
		struct json_object *known = NULL;

		snprintf(inner, sizeof(inner), "%s%s%s", path, dot, name);
		int result = json_object_object_get_ex(properties, name, &known)
				     ? check_value(check, inner, known, value)
				     : check_known(check, schema, inner, name);
		if (result < 0)
			return result;
	}
	return 0;
}

static int check_items(struct check *check, const char *path, struct json_object *schema, struct json_object *list)
{
	struct json_object *items = json_get(schema, "items", json_type_object);
	char inner[PATH_MAX_];

	if (json_object_object_get_ex(schema, "prefixItems", NULL))
		return 0;
	for (size_t i = 0; items && i < json_object_array_length(list); i++) {
		snprintf(inner, sizeof(inner), "%s[%zu]", path, i);
		int result = check_value(check, inner, items, json_object_array_get_idx(list, i));

		if (result < 0)
			return result;
	}
	return 0;
}

static int check_value(struct check *check, const char *path, struct json_object *schema, struct json_object *value)
{
	if (!json_object_is_type(schema, json_type_object) || check->depth == DEPTH_MAX || check->left-- <= 0)
		return 0;
	int result = check_type(check, path, schema, value);
	if (result == 0)
		result = check_choice(check, path, schema, value);
	check->depth++;
	if (result == 0 && json_object_is_type(value, json_type_object))
		result = check_members(check, path, schema, value);
	if (result == 0 && json_object_is_type(value, json_type_array))
		result = check_items(check, path, schema, value);
	check->depth--;
	return result;
}

int bridge_check(const struct upstream_tool *tool, struct json_object *arguments, struct err *err)
{
	struct check check = {.err = err, .depth = 1, .left = CHECKS_MAX};

	return check_members(&check, "", json_get(tool->object, "inputSchema", json_type_object), arguments);
}
