/* grade_yaml.c - see grade_yaml.h. The only file that includes libyaml's header. */
#include "grade_yaml.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "lib/base/util.h"

static void parser_clear(yaml_parser_t *parser)
{
	yaml_parser_delete(parser);
}
static void event_clear(yaml_event_t *event)
{
	yaml_event_delete(event);
}
#define auto_event __attribute__((cleanup(event_clear)))

static struct json_object *plain(const char *text)
{
	static const char *const words[][2] = {{"true", "1"}, {"yes", "1"}, {"on", "1"},
					       {"false", ""}, {"no", ""},   {"off", ""}};
	char *end;

	if (!*text || streq(text, "~") || strcasecmp(text, "null") == 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcasecmp(text, words[i][0]) == 0)
			return json_object_new_boolean(*words[i][1] != '\0');
	errno = 0;
	long long integer = strtoll(text, &end, 10);
	if (!*end && !errno && text[0] != '+')
		return json_object_new_int64(integer);
	double number = strtod(text, &end);
	if (!*end && isfinite(number) && strspn(text, "0123456789.eE+-") == strlen(text))
		return json_object_new_double_s(number, text);
	return json_object_new_string(text);
}

static int build(yaml_parser_t *parser, const yaml_event_t *event, int depth, struct json_object **ret,
		 struct err *err);

static int next(yaml_parser_t *parser, yaml_event_t *event, struct err *err)
{
	if (!yaml_parser_parse(parser, event))
		return err_set(err, ERR_INVALID, "line %zu: %s", parser->problem_mark.line + 1,
			       parser->problem ? parser->problem : "not YAML");
	return 0;
}

static int build_mapping(yaml_parser_t *parser, int depth, struct json_object *object, struct err *err)
{
	for (;;) {
		auto_event yaml_event_t key = {0}, value = {0};
		struct json_object *member = NULL;
		int result;

		if ((result = next(parser, &key, err)) < 0)
			return result;
		if (key.type == YAML_MAPPING_END_EVENT)
			return 0;
		if (key.type != YAML_SCALAR_EVENT)
			return err_set(err, ERR_INVALID, "line %zu: a key must be a string", key.start_mark.line + 1);
		const char *name = (const char *)key.data.scalar.value;
		if (json_object_object_get_ex(object, name, NULL))
			return err_set(err, ERR_INVALID, "line %zu: %s is given twice", key.start_mark.line + 1, name);
		if ((result = next(parser, &value, err)) < 0 ||
		    (result = build(parser, &value, depth + 1, &member, err)) < 0)
			return result;
		json_add(object, name, member);
	}
}

static int build_sequence(yaml_parser_t *parser, int depth, struct json_object *array, struct err *err)
{
	for (;;) {
		auto_event yaml_event_t item = {0};
		struct json_object *value = NULL;
		int result;

		if ((result = next(parser, &item, err)) < 0)
			return result;
		if (item.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if ((result = build(parser, &item, depth + 1, &value, err)) < 0)
			return result;
		json_object_array_add(array, value);
	}
}

static int build(yaml_parser_t *parser, const yaml_event_t *event, int depth, struct json_object **ret, struct err *err)
{
	auto_json struct json_object *made = NULL;
	int result = 0;

	if (depth > GRADE_YAML_DEPTH)
		return err_set(err, ERR_LIMIT, "line %zu: more than %d levels", event->start_mark.line + 1,
			       GRADE_YAML_DEPTH);
	switch (event->type) {
	case YAML_SCALAR_EVENT: {
		const char *text = (const char *)event->data.scalar.value;

		made = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain(text) : json_object_new_string(text);
		break;
	}
	case YAML_MAPPING_START_EVENT:
		made = json_object_new_object();
		result = build_mapping(parser, depth, made, err);
		break;
	case YAML_SEQUENCE_START_EVENT:
		made = json_object_new_array();
		result = build_sequence(parser, depth, made, err);
		break;
	default:
		return err_set(err, ERR_INVALID, "line %zu: aliases are not supported", event->start_mark.line + 1);
	}
	if (result < 0)
		return result;
	*ret = steal(&made);
	return 0;
}

int grade_yaml_parse(const char *text, size_t length, struct json_object **ret, struct err *err)
{
	__attribute__((cleanup(parser_clear))) yaml_parser_t parser;
	struct json_object *made = NULL;

	if (!yaml_parser_initialize(&parser))
		return err_set(err, ERR_INTERNAL, "libyaml has no memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	for (;;) {
		auto_event yaml_event_t event = {0};
		int result;

		if ((result = next(&parser, &event, err)) < 0)
			return result;
		if (event.type == YAML_STREAM_END_EVENT)
			break;
		if (event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT)
			continue;
		if (event.type == YAML_DOCUMENT_END_EVENT)
			break;
		if ((result = build(&parser, &event, 0, &made, err)) < 0)
			return result;
	}
	*ret = made;
	return 0;
}

int grade_yaml_read(int at, const char *path, struct json_object **ret, struct err *err)
{
	auto_free char *text = NULL;
	size_t length;
	int result = read_file_at(at, path, GRADE_YAML_MAX, &text, &length, err);

	if (result < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s is missing", path) : result;
	result = grade_yaml_parse(text, length, ret, err);
	return result < 0 ? err_wrap(err, "%s", path) : 0;
}

const char *grade_yaml_text(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (!object || !json_object_object_get_ex(object, key, &value) || !value ||
	    json_object_is_type(value, json_type_object) || json_object_is_type(value, json_type_array))
		return NULL;
	return json_object_get_string(value);
}

int grade_yaml_number(struct json_object *object, const char *key, double fallback, double *ret, struct err *err)
{
	const char *text = grade_yaml_text(object, key);
	char *end;

	if (!text) {
		*ret = fallback;
		return 0;
	}
	double number = strtod(text, &end);
	if (end == text || !isfinite(number) || (*end && !streq(end, "s")))
		return err_member(err, key, "must be a number, not \"%s\"", text);
	*ret = number;
	return 0;
}
