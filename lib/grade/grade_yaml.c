/*
 * grade_yaml.c - see grade_yaml.h. The only file that includes libyaml's header.
 *
 * Built straight from libyaml's events, not from its document tree: a value is complete when its end has come, and only
 * then is it known by its anchor. So an alias can name nothing that contains it, and no document has a cycle. What an
 * alias names is counted once more and not copied; nobody changes what was read.
 */
#include "grade_yaml.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

struct reader {
	yaml_parser_t parser;
	struct json_object *anchors; /* by name: values that share their memory with the document */
};

static void reader_clear(struct reader *reader)
{
	yaml_parser_delete(&reader->parser);
	json_object_put(reader->anchors);
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

static int build(struct reader *reader, const yaml_event_t *event, int depth, struct json_object **ret,
		 struct err *err);

static int next(struct reader *reader, yaml_event_t *event, struct err *err)
{
	const yaml_parser_t *parser = &reader->parser;

	if (!yaml_parser_parse(&reader->parser, event))
		return err_set(err, ERR_INVALID, "line %zu: %s", parser->problem_mark.line + 1,
			       parser->problem ? parser->problem : "not YAML");
	return 0;
}

static int build_mapping(struct reader *reader, int depth, struct json_object *object, struct err *err)
{
	auto_json struct json_object *below = NULL;

	for (;;) {
		auto_event yaml_event_t key = {0}, value = {0};
		struct json_object *member = NULL;
		int result;

		if ((result = next(reader, &key, err)) < 0)
			return result;
		if (key.type == YAML_MAPPING_END_EVENT)
			break;
		if (key.type != YAML_SCALAR_EVENT)
			return err_set(err, ERR_INVALID, "line %zu: a key must be a string", key.start_mark.line + 1);
		const char *name = (const char *)key.data.scalar.value;
		if ((result = next(reader, &value, err)) < 0 ||
		    (result = build(reader, &value, depth + 1, &member, err)) < 0)
			return result;
		if (streq(name, "<<") && !below && json_object_is_type(member, json_type_object))
			below = member;
		else /* where a key is there twice the last one counts, as for problemtools */
			json_add(object, name, member);
	}
	if (!below)
		return 0;
	/* What "<<" names: members that the mapping does not have itself. */
	json_object_object_foreach(below, name, value)
	{
		if (!json_object_object_get_ex(object, name, NULL))
			json_add(object, name, json_object_get(value));
	}
	return 0;
}

static int build(struct reader *reader, const yaml_event_t *event, int depth, struct json_object **ret, struct err *err)
{
	auto_json struct json_object *made = NULL;
	struct json_object *found = NULL;
	const yaml_char_t *anchor = NULL;
	int result = 0;

	if (depth > GRADE_YAML_DEPTH)
		return err_set(err, ERR_LIMIT, "line %zu: more than %d levels", event->start_mark.line + 1,
			       GRADE_YAML_DEPTH);
	switch (event->type) {
	case YAML_SCALAR_EVENT: {
		const char *text = (const char *)event->data.scalar.value;

		anchor = event->data.scalar.anchor;
		made = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain(text) : json_object_new_string(text);
		break;
	}
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		made = json_object_new_object();
		result = build_mapping(reader, depth, made, err);
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		made = json_object_new_array();
		for (bool ended = false; result == 0 && !ended;) {
			auto_event yaml_event_t item = {0};
			struct json_object *value = NULL;

			result = next(reader, &item, err);
			ended = result == 0 && item.type == YAML_SEQUENCE_END_EVENT;
			if (result == 0 && !ended)
				result = build(reader, &item, depth + 1, &value, err);
			if (result == 0 && !ended)
				json_object_array_add(made, value);
		}
		break;
	case YAML_ALIAS_EVENT: /* "*name": the value behind "&name", further up; it is complete */
		if (!json_object_object_get_ex(reader->anchors, (const char *)event->data.alias.anchor, &found))
			return err_set(err, ERR_INVALID, "line %zu: there is no &%s above", event->start_mark.line + 1,
				       (const char *)event->data.alias.anchor);
		made = json_object_get(found);
		break;
	default:
		return err_set(err, ERR_INVALID, "line %zu: not a value", event->start_mark.line + 1);
	}
	if (result < 0)
		return result;
	if (anchor)
		json_add(reader->anchors, (const char *)anchor, json_object_get(made));
	*ret = steal(&made);
	return 0;
}

int grade_yaml_parse(const char *text, size_t length, struct json_object **ret, struct err *err)
{
	__attribute__((cleanup(reader_clear))) struct reader reader = {.anchors = json_object_new_object()};
	auto_buf struct buf safe = {0};
	struct json_object *made = NULL;

	if (!yaml_parser_initialize(&reader.parser))
		return err_set(err, ERR_INTERNAL, "libyaml has no memory");
	/* libyaml reads UTF-16 with the mark of its byte order. */
	bool utf16 = length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
	/* Names of people in an older code page are no reason to refuse a package. */
	if (!utf16 && !utf8_valid(text, length)) {
		buf_init(&safe, SIZE_MAX);
		utf8_safe(&safe, text, length);
		text = safe.data;
		length = safe.length;
	}
	yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, length);
	for (;;) {
		auto_event yaml_event_t event = {0};
		int result;

		if ((result = next(&reader, &event, err)) < 0)
			return result;
		if (event.type == YAML_STREAM_END_EVENT)
			break;
		if (event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT)
			continue;
		if (event.type == YAML_DOCUMENT_END_EVENT)
			break;
		if ((result = build(&reader, &event, 0, &made, err)) < 0)
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
