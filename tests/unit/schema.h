/*
 * schema.h - holds a JSON value against the part of JSON Schema that our output schemas use: type (one or several),
 * properties, required, additionalProperties false, items, enum. A keyword that it does not know fails the test, so
 * that no schema is believed to be checked when it is not.
 */
#pragma once

#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/util.h"

static bool schema_type_is(const char *type, struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		return streq(type, "null");
	case json_type_boolean:
		return streq(type, "boolean");
	case json_type_double:
		return streq(type, "number");
	case json_type_int:
		return streq(type, "integer") || streq(type, "number");
	case json_type_object:
		return streq(type, "object");
	case json_type_array:
		return streq(type, "array");
	case json_type_string:
		return streq(type, "string");
	}
	return false;
}

static bool schema_check(struct json_object *schema, struct json_object *value, const char *path);

static bool schema_wrong(const char *path, const char *what)
{
	fprintf(stderr, "%s: %s\n", path, what);
	return false;
}

static bool schema_type(struct json_object *types, struct json_object *value, const char *path)
{
	if (json_object_is_type(types, json_type_string))
		return schema_type_is(json_object_get_string(types), value) || schema_wrong(path, "wrong type");
	for (size_t i = 0; i < json_object_array_length(types); i++) {
		if (schema_type_is(json_object_get_string(json_object_array_get_idx(types, i)), value))
			return true;
	}
	return schema_wrong(path, "none of the types");
}

static bool schema_members(struct json_object *schema, struct json_object *value, const char *path)
{
	struct json_object *properties = json_get(schema, "properties", json_type_object), *extra;
	bool closed =
		json_object_object_get_ex(schema, "additionalProperties", &extra) && !json_object_get_boolean(extra);

	json_object_object_foreach (value, key, member) {
		auto_free char *inner = xasprintf("%s.%s", path, key);
		struct json_object *property = json_get(properties, key, json_type_object);

		if (property && !schema_check(property, member, inner))
			return false;
		if (!property && closed)
			return schema_wrong(inner, "not in the schema");
	}
	struct json_object *required = json_get(schema, "required", json_type_array), *found;

	for (size_t i = 0; required && i < json_object_array_length(required); i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(required, i));

		if (!json_object_object_get_ex(value, name, &found))
			return schema_wrong(path, name);
	}
	return true;
}

static bool schema_items(struct json_object *schema, struct json_object *value, const char *path)
{
	for (size_t i = 0; i < json_object_array_length(value); i++) {
		auto_free char *inner = xasprintf("%s[%zu]", path, i);

		if (!schema_check(schema, json_object_array_get_idx(value, i), inner))
			return false;
	}
	return true;
}

static bool schema_enum(struct json_object *choices, struct json_object *value, const char *path)
{
	for (size_t i = 0; i < json_object_array_length(choices); i++) {
		if (json_object_equal(json_object_array_get_idx(choices, i), value))
			return true;
	}
	return schema_wrong(path, "not in the enum");
}

static bool schema_check(struct json_object *schema, struct json_object *value, const char *path)
{
	json_object_object_foreach (schema, keyword, argument) {
		if (streq(keyword, "type")) {
			if (!schema_type(argument, value, path))
				return false;
		} else if (streq(keyword, "properties")) {
			if (!schema_members(schema, value, path))
				return false;
		} else if (streq(keyword, "items")) {
			if (!schema_items(argument, value, path))
				return false;
		} else if (streq(keyword, "enum")) {
			if (!schema_enum(argument, value, path))
				return false;
		} else if (!streq(keyword, "required") && !streq(keyword, "additionalProperties") &&
			   !streq(keyword, "description")) {
			return schema_wrong(path, keyword);
		}
	}
	return true;
}
