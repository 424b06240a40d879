/*
 * bind.c - see bind.h.
 *
 * Object into struct, one small function a type; the two walks the other way (schema, print) are bind_schema.c. The
 * path of the member ("files[2].filename") is put together only when something is wrong: each level puts its name in
 * front of the level below. Members are bound in the table's order, so the first bad member is the table's first;
 * unknown members come last, because a missing or wrong one usually explains them. Whatever was allocated before an
 * error is given back.
 */
#include "bind.h"

#include <math.h>
#include <string.h>

#include "util.h"

#define LENIENT    (1u << 31)            /* with a view: bind_recall … */
#define ASKED      (1u << 30)            /* … bind_parse_asked */
#define INT64_EDGE 9223372036854775808.0 /* 2^63, exact as a double: the first that does not fit */

static void *field(const struct bind *bind, void *base)
{
	return (char *)base + bind->offset;
}

static const char *type_name(struct json_object *value)
{
	switch (json_object_get_type(value)) {
	case json_type_null:
		return "null";
	case json_type_boolean:
		return "a boolean";
	case json_type_double:
		return "a fraction";
	case json_type_int:
		return "an integer";
	case json_type_object:
		return "an object";
	case json_type_array:
		return "an array";
	case json_type_string:
		break;
	}
	return "a string";
}

static int wrong_type(const char *name, const char *expected, struct json_object *value, struct err *err)
{
	return err_member(err, name, "must be %s, not %s", expected, type_name(value));
}

/* `err` is about a member of what is called name (and index, if not negative): "filename: …" becomes
 * "files[2].filename: …". */
static int inside(struct err *err, const char *name, ssize_t index)
{
	char path[2 * ERR_MEMBER_SIZE], place[32] = "";

	if (err == NULL)
		return -ERR_INVALID;
	if (index >= 0)
		snprintf(place, sizeof(place), "[%zd]", index);
	snprintf(path, sizeof(path), "%s%s%s%s", name, place, err->member[0] != '\0' ? "." : "", err->member);
	return err_member(err, path, "%s", err_reason(err));
}

/* `units`: "bytes", which is "byte" of one. */
static int check_count(const struct bind *bind, size_t count, const char *units, struct err *err)
{
	const bool few = count < (size_t)MAX(bind->min, 0);
	const int64_t bound = few ? bind->min : bind->max;

	if (!few && (bind->max <= 0 || count <= (size_t)bind->max))
		return 0;
	return err_member(err, bind->name, "must have at %s %lld %.*s, not %zu", few ? "least" : "most",
			  (long long)bound, (int)strlen(units) - (bound == 1), units, count);
}

static int parse_int(const struct bind *bind, struct json_object *value, void *ret, struct err *err)
{
	int64_t number;

	if (json_object_is_type(value, json_type_int)) {
		number = json_object_get_int64(value);
	} else if (json_object_is_type(value, json_type_double)) {
		double fraction = json_object_get_double(value);

		if (fraction != floor(fraction) || fraction < -INT64_EDGE || fraction >= INT64_EDGE)
			return wrong_type(bind->name, "an integer", value, err);
		number = (int64_t)fraction;
	} else {
		return wrong_type(bind->name, "an integer", value, err);
	}
	if (number < bind->min || number > bind->max)
		return err_member(err, bind->name, "must be between %lld and %lld, not %lld", (long long)bind->min,
				  (long long)bind->max, (long long)number);
	if (bind->size == sizeof(int))
		*(int *)ret = (int)number;
	else
		*(int64_t *)ret = number;
	return 0;
}

/* A string without a NUL; borrowed. */
static int plain_string(const char *name, struct json_object *value, const char **ret, struct err *err)
{
	if (!json_object_is_type(value, json_type_string))
		return wrong_type(name, "a string", value, err);
	const char *text = json_object_get_string(value);

	if (strlen(text) != (size_t)json_object_get_string_len(value))
		return err_member(err, name, "must not contain a NUL");
	*ret = text;
	return 0;
}

/* BIND_STRING, BIND_CHARS and BIND_CHOICE. */
static int parse_string(const struct bind *bind, struct json_object *value, void *to, struct err *err)
{
	auto_buf struct buf list = {0};
	struct bind bounded = *bind;
	unsigned choice = 0;
	const char *text;
	int result = plain_string(bind->name, value, &text, err);

	if (bind->type == BIND_CHARS)
		bounded.max = (int64_t)bind->size - 1;
	if (result == 0)
		result = check_count(&bounded, strlen(text), "bytes", err);
	if (result < 0)
		return result;
	if (bind->choices != NULL) {
		buf_init(&list, ERR_TEXT_SIZE);
		for (; bind->choices[choice] != NULL && !streq(bind->choices[choice], text); choice++)
			buf_printf(&list, "%s\"%s\"", choice > 0 ? ", " : "", bind->choices[choice]);
		if (bind->choices[choice] == NULL)
			return err_member(err, bind->name, "must be one of %s", list.data);
	}
	if (bind->type == BIND_CHARS)
		memcpy(to, text, strlen(text) + 1);
	else if (bind->type == BIND_CHOICE)
		*(unsigned *)to = choice;
	else
		*(const char **)to = text;
	return 0;
}

static int parse_text(const struct bind *bind, struct json_object *value, struct bind_text *ret, struct err *err)
{
	if (!json_object_is_type(value, json_type_string))
		return wrong_type(bind->name, "a string", value, err);
	size_t length = (size_t)json_object_get_string_len(value);
	int result = check_count(bind, length, "bytes", err);

	if (result == 0)
		*ret = (struct bind_text){json_object_get_string(value), length};
	return result;
}

static int parse_strings(const struct bind *bind, struct json_object *value, struct bind_strings *ret, struct err *err)
{
	if (!json_object_is_type(value, json_type_array))
		return wrong_type(bind->name, "an array of strings", value, err);
	size_t count = json_object_array_length(value);
	int result = check_count(bind, count, "items", err);
	auto_free const char **items = NULL;

	if (result < 0)
		return result;
	items = xcalloc(count, sizeof(*items));
	for (size_t i = 0; i < count; i++)
		if (plain_string("", json_object_array_get_idx(value, i), &items[i], err) < 0)
			return inside(err, bind->name, (ssize_t)i);
	free(ret->items);
	ret->items = steal(&items);
	ret->count = count;
	return 0;
}

/* [{"name":…,"value":…},…], as clients write a map whose schemas know no free members. */
static int map_item(struct json_object *item, const char **ret_key, const char **ret_value, struct err *err)
{
	static const char *const members[] = {"name", "value"};
	const char **const places[] = {ret_key, ret_value};

	if (!json_object_is_type(item, json_type_object))
		return wrong_type("", "an object with name and value", item, err);
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		struct json_object *value;

		if (!json_object_object_get_ex(item, members[i], &value))
			return err_member(err, members[i], "is required");
		if (plain_string(members[i], value, places[i], err) < 0)
			return -ERR_INVALID;
	}
	if (json_object_object_length(item) > (int)ARRAY_SIZE(members))
		return err_member(err, "", "must have name and value and nothing else");
	return 0;
}

static int parse_map(const struct bind *bind, struct json_object *value, struct bind_map *ret, unsigned view,
		     struct err *err)
{
	const bool list = view & ASKED && json_object_is_type(value, json_type_array);

	if (!list && !json_object_is_type(value, json_type_object))
		return wrong_type(bind->name, "an object whose members are strings", value, err);
	size_t count = list ? json_object_array_length(value) : (size_t)json_object_object_length(value);
	int result = check_count(bind, count, "members", err);
	auto_free const char **keys = NULL, **values = NULL;

	if (result < 0)
		return result;
	keys = xcalloc(count, sizeof(*keys));
	values = xcalloc(count, sizeof(*values));
	if (!list) {
		size_t at = 0;

		json_object_object_foreach(value, key, item)
		{
			keys[at] = key;
			if (plain_string(key, item, &values[at++], err) < 0)
				return inside(err, bind->name, -1);
		}
	}
	for (size_t at = 0; list && at < count; at++) {
		if (map_item(json_object_array_get_idx(value, at), &keys[at], &values[at], err) < 0)
			return inside(err, bind->name, (ssize_t)at);
		for (size_t i = 0; i < at; i++)
			if (streq(keys[i], keys[at]))
				return err_member(err, bind->name, "has the name \"%.40s\" twice", keys[i]);
	}
	free(ret->keys);
	free(ret->values);
	*ret = (struct bind_map){steal(&keys), steal(&values), count};
	return 0;
}

static void clear_objects(const struct bind *bind, struct bind_objects *objects)
{
	for (size_t i = 0; i < objects->count; i++)
		bind_clear(bind->table, (char *)objects->items + i * bind->size);
	free(objects->items);
	*objects = (struct bind_objects){0};
}

static int parse_object(const struct bind *table, struct json_object *object, void *base, unsigned view,
			struct err *err);
static int parse_member(const struct bind *bind, struct json_object *value, void *to, unsigned view, struct err *err);

static int parse_objects(const struct bind *bind, struct json_object *value, struct bind_objects *ret, unsigned view,
			 struct err *err)
{
	struct bind_objects parsed = {0};

	if (!json_object_is_type(value, json_type_array))
		return wrong_type(bind->name, "an array of objects", value, err);
	size_t count = json_object_array_length(value);
	int result = check_count(bind, count, "items", err);

	if (result < 0)
		return result;
	parsed.items = xcalloc(count, bind->size);
	for (; parsed.count < count; parsed.count++) {
		void *item = (char *)parsed.items + parsed.count * bind->size;

		if (parse_object(bind->table, json_object_array_get_idx(value, parsed.count), item, view, err) < 0) {
			result = inside(err, bind->name, (ssize_t)parsed.count);
			clear_objects(bind, &parsed);
			return result;
		}
	}
	clear_objects(bind, ret);
	*ret = parsed;
	return 0;
}

/* Bound to check it, and forgotten; what is kept is the value. */
static int parse_json(const struct bind *bind, struct json_object *value, struct json_object **ret, unsigned view,
		      struct err *err)
{
	struct bind shape[] = {*bind, {0}};
	auto_free void *scratch = xcalloc(1, MAX(bind->size, sizeof(struct bind_map)));

	shape[0].flags &= ~(unsigned)BIND_JSON;
	shape[0].offset = 0;
	int result = parse_member(shape, value, scratch, view & ~LENIENT, err);
	if (result < 0)
		return result;
	bind_clear(shape, scratch);
	json_put_pointer(ret);
	*ret = json_object_get(value);
	return 0;
}

static int parse_member(const struct bind *bind, struct json_object *value, void *to, unsigned view, struct err *err)
{
	if (bind->flags & BIND_JSON)
		return parse_json(bind, value, to, view, err);
	switch (bind->type) {
	case BIND_BOOL:
		if (!json_object_is_type(value, json_type_boolean))
			return wrong_type(bind->name, "a boolean", value, err);
		*(bool *)to = json_object_get_boolean(value);
		return 0;
	case BIND_INT:
		return parse_int(bind, value, to, err);
	case BIND_STRING:
	case BIND_CHARS:
	case BIND_CHOICE:
		return parse_string(bind, value, to, err);
	case BIND_TEXT:
		return parse_text(bind, value, to, err);
	case BIND_STRINGS:
		return parse_strings(bind, value, to, err);
	case BIND_STRING_MAP:
		return parse_map(bind, value, to, view, err);
	case BIND_OBJECTS:
		return parse_objects(bind, value, to, view, err);
	case BIND_OBJECT:
		return parse_object(bind->table, value, to, view, err) < 0 ? inside(err, bind->name, -1) : 0;
	case BIND_INLINE:
		break; /* parse_members */
	case BIND_ANY:
		*(struct json_object **)to = value;
		return 0;
	}
	return err_set(err, ERR_INTERNAL, "the table's entry for %s has no type", bind->name);
}

/* The table's first name that is the same as `key`, by streq or str_near; NULL: none. */
static const char *find_name(const struct bind *table, const char *key, unsigned view,
			     bool (*same)(const char *, const char *))
{
	const char *name = NULL;

	for (const struct bind *bind = table; bind->name != NULL && name == NULL; bind++) {
		if (!bind_in_view(bind, view))
			continue;
		if (bind->type == BIND_INLINE)
			name = find_name(bind->table, key, view, same);
		else if (same(bind->name, key))
			name = bind->name;
	}
	return name;
}

static int parse_members(const struct bind *table, struct json_object *object, void *base, unsigned view,
			 struct err *err)
{
	for (const struct bind *bind = table; bind->name != NULL; bind++) {
		const bool required = bind->flags & BIND_REQUIRED;
		struct json_object *value;
		int result = 0;

		if (!bind_in_view(bind, view))
			continue;
		if (bind->type == BIND_INLINE)
			result = parse_members(bind->table, object, field(bind, base), view, err);
		else if (json_object_object_get_ex(object, bind->name, &value) &&
			 (value != NULL || !(view & ASKED) || required)) /* a model may write every member, as null */
			result = parse_member(bind, value, field(bind, base), view, err);
		else if (required)
			result = err_member(err, bind->name, "is required");
		if (result < 0 && !(view & LENIENT))
			return result;
	}
	return 0;
}

static int parse_object(const struct bind *table, struct json_object *object, void *base, unsigned view,
			struct err *err)
{
	if (!json_object_is_type(object, json_type_object))
		return err_set(err, ERR_INVALID, "must be an object, not %s", type_name(object));
	int result = parse_members(table, object, base, view, err);

	json_object_object_foreach(object, key, value)
	{
		(void)value;
		if (result < 0 || view & LENIENT || find_name(table, key, view, streq) != NULL)
			continue;
		const char *near = find_name(table, key, view, str_near);

		result = near != NULL ? err_member(err, key, "unknown member, did you mean \"%s\"?", near)
				      : err_member(err, key, "unknown member");
	}
	if (result < 0)
		bind_clear(table, base);
	return result;
}

int bind_parse(const struct bind *table, struct json_object *object, void *ret_struct, struct err *err)
{
	return parse_object(table, object, ret_struct, BIND_PLAIN, err);
}

int bind_parse_asked(const struct bind *table, struct json_object *object, void *ret_struct, struct err *err)
{
	return parse_object(table, object, ret_struct, BIND_PLAIN | ASKED, err);
}

void bind_recall(const struct bind *table, struct json_object *object, void *ret_struct, unsigned view)
{
	(void)parse_object(table, object, ret_struct, view | LENIENT, NULL);
}

void bind_clear(const struct bind *table, void *bound)
{
	for (const struct bind *bind = table; bind->name != NULL; bind++) {
		void *at = field(bind, bound);

		if (bind->flags & BIND_JSON) {
			json_put_pointer(at);
			*(struct json_object **)at = NULL;
		} else if (bind->type == BIND_STRINGS) {
			struct bind_strings *strings = at;

			free(strings->items);
			*strings = (struct bind_strings){0};
		} else if (bind->type == BIND_STRING_MAP) {
			struct bind_map *map = at;

			free(map->keys);
			free(map->values);
			*map = (struct bind_map){0};
		} else if (bind->type == BIND_OBJECTS) {
			clear_objects(bind, at);
		} else if (bind->type == BIND_OBJECT || bind->type == BIND_INLINE) {
			bind_clear(bind->table, at);
		}
	}
}

bool bind_strings_has(const struct bind_strings *strings, const char *text)
{
	for (size_t i = 0; i < strings->count; i++)
		if (streq(strings->items[i], text))
			return true;
	return false;
}
