/*
 * bridge_check.c - arguments against a tool's schema, before anything is sent: a member that is required and missing,
 * one that is not known where the schema says that there are no others, a value of the wrong type. Nothing more: a
 * reading that is stricter than the server's would refuse good calls.
 */
#include <string.h>

#include "bridge.h"
#include "lib/base/util.h"

static int check_type(const char *name, struct json_object *schema, struct json_object *value, struct err *err)
{
	static const struct {
		const char *type;
		enum json_type is;
	} types[] = {{"string", json_type_string}, {"boolean", json_type_boolean}, {"array", json_type_array},
		     {"object", json_type_object}, {"null", json_type_null},       {"integer", json_type_int},
		     {"number", json_type_int},    {"number", json_type_double},   {"integer", json_type_double}};
	static const char *const names[] = {
		[json_type_null] = "null",	 [json_type_boolean] = "a boolean", [json_type_int] = "a number",
		[json_type_double] = "a number", [json_type_string] = "a string",   [json_type_array] = "an array",
		[json_type_object] = "an object"};
	const char *type = json_get_string(schema, "type");
	bool known = false; /* 1.0 is an integer, too */

	for (size_t i = 0; type && i < ARRAY_SIZE(types); i++) {
		if (streq(types[i].type, type) && json_object_is_type(value, types[i].is))
			return 0;
		known = known || streq(types[i].type, type);
	}
	if (!known || (!value && json_object_get_boolean(json_get(schema, "nullable", json_type_boolean))))
		return 0;
	return err_member(err, name, "must be %s%s, not %s", strchr("aeiou", type[0]) ? "an " : "a ", type,
			  names[json_object_get_type(value)]);
}

static int check_known(struct json_object *schema, struct json_object *properties, const char *name, struct err *err)
{
	struct json_object *more = NULL;
	bool closed = json_object_object_get_ex(schema, "additionalProperties", &more) &&
		      json_object_is_type(more, json_type_boolean) && !json_object_get_boolean(more) &&
		      !json_object_object_get_ex(schema, "patternProperties", NULL) &&
		      !json_object_object_get_ex(schema, "allOf", NULL);

	if (!closed)
		return 0;
	if (properties) {
		json_object_object_foreach(properties, known, value)
		{
			(void)value;
			if (str_near(known, name))
				return err_member(err, name, "is not an argument of this tool: did you mean %s?",
						  known);
		}
	}
	return err_member(err, name, "is not an argument of this tool");
}

int bridge_check(const struct upstream_tool *tool, struct json_object *arguments, struct err *err)
{
	struct json_object *schema = json_get(tool->object, "inputSchema", json_type_object);
	struct json_object *properties = json_get(schema, "properties", json_type_object);
	struct json_object *required = json_get(schema, "required", json_type_array);

	for (size_t i = 0; required && i < json_object_array_length(required); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(required, i));

		if (name && !(arguments && json_object_object_get_ex(arguments, name, NULL)))
			return err_member(err, name, "is missing");
	}
	if (!arguments)
		return 0;
	json_object_object_foreach(arguments, name, value)
	{
		struct json_object *known = NULL;
		int result = json_object_object_get_ex(properties, name, &known)
				     ? check_type(name, known, value, err)
				     : check_known(schema, properties, name, err);

		if (result < 0)
			return result;
	}
	return 0;
}
