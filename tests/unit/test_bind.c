/* One table: parse, name the first bad member, print back, and a schema that says the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/bind.h"
#include "lib/base/util.h"

struct item {
	const char *name;
	int64_t size;
	struct bind_strings tags;
};

struct thing {
	bool flag;
	int64_t number;
	const char *word, *color;
	struct bind_text text;
	struct bind_strings list;
	struct bind_map map;
	struct bind_objects items;
	struct {
		const char *where;
		int64_t depth;
	} nested;
	struct json_object *any;
};

static const char *const colors[] = {"red", "green", NULL};

static const struct bind item_table[] = {
	{.name = "name",
	 .type = BIND_STRING,
	 .offset = offsetof(struct item, name),
	 .flags = BIND_REQUIRED,
	 .min = 1,
	 .max = 8},
	{.name = "size", .type = BIND_INT, .offset = offsetof(struct item, size), .min = 0, .max = 99},
	{.name = "tags", .type = BIND_STRINGS, .offset = offsetof(struct item, tags)},
	{0},
};

static const struct bind nested_table[] = {
	{.name = "where", .type = BIND_STRING, .offset = 0, .flags = BIND_REQUIRED},
	{.name = "depth", .type = BIND_INT, .offset = sizeof(char *), .min = INT64_MIN, .max = INT64_MAX},
	{0},
};

static const struct bind table[] = {
	{.name = "flag", .type = BIND_BOOL, .offset = offsetof(struct thing, flag)},
	{.name = "number",
	 .type = BIND_INT,
	 .offset = offsetof(struct thing, number),
	 .min = -5,
	 .max = 5,
	 .description = "how many"},
	{.name = "word",
	 .type = BIND_STRING,
	 .offset = offsetof(struct thing, word),
	 .flags = BIND_REQUIRED,
	 .min = 2,
	 .max = 6},
	{.name = "color", .type = BIND_STRING, .offset = offsetof(struct thing, color), .choices = colors},
	{.name = "text", .type = BIND_TEXT, .offset = offsetof(struct thing, text), .max = 10},
	{.name = "list", .type = BIND_STRINGS, .offset = offsetof(struct thing, list), .min = 1, .max = 3},
	{.name = "map", .type = BIND_STRING_MAP, .offset = offsetof(struct thing, map), .max = 2},
	{.name = "items",
	 .type = BIND_OBJECTS,
	 .offset = offsetof(struct thing, items),
	 .max = 3,
	 .table = item_table,
	 .size = sizeof(struct item)},
	{.name = "nested", .type = BIND_OBJECT, .offset = offsetof(struct thing, nested), .table = nested_table},
	{.name = "any", .type = BIND_ANY, .offset = offsetof(struct thing, any), .flags = BIND_HIDDEN},
	{0},
};

static struct json_object *parse(const char *text)
{
	struct json_object *object = NULL;

	assert_int_equal(json_parse(text, strlen(text), &object, NULL), 0);
	return object;
}

static void test_all_types(void **state)
{
	static const char text[] =
		"{\"flag\":true,\"number\":3.0,\"word\":\"hello\",\"color\":\"green\",\"text\":\"a\\u0000b\","
		"\"list\":[\"x\",\"y\"],\"map\":{\"K\":\"v\",\"L\":\"\"},\"items\":[{\"name\":\"one\",\"size\":1},"
		"{\"name\":\"two\",\"tags\":[\"t\"]}],\"nested\":{\"where\":\"here\",\"depth\":-9223372036854775808},"
		"\"any\":[1,{\"x\":null}]}";
	auto_json struct json_object *object = parse(text);
	struct thing thing = {.number = 4};
	struct err err = ERR_INIT;

	(void)state;
	if (bind_parse(table, object, &thing, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(thing.flag);
	assert_int_equal(thing.number, 3);
	assert_string_equal(thing.word, "hello");
	assert_int_equal(thing.text.length, 3);
	assert_int_equal(thing.list.count, 2);
	assert_string_equal(thing.list.items[1], "y");
	assert_int_equal(thing.map.count, 2);
	assert_string_equal(thing.map.keys[1], "L");
	assert_string_equal(thing.map.values[0], "v");
	assert_int_equal(thing.items.count, 2);
	assert_string_equal(((struct item *)thing.items.items)[1].tags.items[0], "t");
	assert_int_equal(thing.nested.depth, INT64_MIN);
	assert_int_equal(json_object_array_length(thing.any), 2);

	/* Back again: the same members, 3.0 as the integer that it was bound to, what was absent with its value. */
	auto_json struct json_object *back = bind_print(table, &thing);
	auto_buf struct buf out = {0};

	buf_init(&out, 1000);
	json_print(&out, back);
	assert_string_equal(
		out.data,
		"{\"flag\":true,\"number\":3,\"word\":\"hello\",\"color\":\"green\",\"text\":\"a\\u0000b\","
		"\"list\":[\"x\",\"y\"],\"map\":{\"K\":\"v\",\"L\":\"\"},\"items\":[{\"name\":\"one\",\"size\":1},"
		"{\"name\":\"two\",\"size\":0,\"tags\":[\"t\"]}],\"nested\":{\"where\":\"here\","
		"\"depth\":-9223372036854775808},\"any\":[1,{\"x\":null}]}");
	bind_clear(table, &thing);
	assert_null(thing.items.items);
	bind_clear(table, &thing);
}

static void test_defaults_stay(void **state)
{
	auto_json struct json_object *object = parse("{\"word\":\"ok\"}");
	struct thing thing = {.number = 4, .color = "red"};

	(void)state;
	assert_int_equal(bind_parse(table, object, &thing, NULL), 0);
	assert_int_equal(thing.number, 4);
	assert_string_equal(thing.color, "red");
	assert_null(thing.text.data);

	auto_json struct json_object *back = bind_print(table, &thing);

	assert_null(json_get(back, "list", json_type_array));
	assert_null(json_get(back, "text", json_type_string));
	assert_null(json_get(back, "map", json_type_object));
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		const char *member;
		const char *error;
	} cases[] = {
		{"[]", "", "must be an object, not an array"},
		{"null", "", "must be an object, not null"},
		{"{}", "word", "word: is required"},
		{"{\"word\":null}", "word", "word: must be a string, not null"},
		{"{\"word\":7}", "word", "word: must be a string, not an integer"},
		{"{\"word\":\"x\"}", "word", "word: must have at least 2 bytes, not 1"},
		{"{\"word\":\"seven77\"}", "word", "word: must have at most 6 bytes, not 7"},
		{"{\"word\":\"a\\u0000b\"}", "word", "word: must not contain a NUL"},
		{"{\"word\":\"ok\",\"flag\":1}", "flag", "flag: must be a boolean, not an integer"},
		{"{\"word\":\"ok\",\"number\":6}", "number", "number: must be between -5 and 5, not 6"},
		{"{\"word\":\"ok\",\"number\":-6}", "number", "number: must be between -5 and 5, not -6"},
		{"{\"word\":\"ok\",\"number\":1.5}", "number", "number: must be an integer, not a fraction"},
		{"{\"word\":\"ok\",\"number\":9.3e18}", "number", "number: must be an integer, not a fraction"},
		{"{\"word\":\"ok\",\"number\":\"1\"}", "number", "number: must be an integer, not a string"},
		{"{\"word\":\"ok\",\"number\":true}", "number", "number: must be an integer, not a boolean"},
		{"{\"word\":\"ok\",\"color\":\"blue\"}", "color", "color: must be one of \"red\", \"green\""},
		{"{\"word\":\"ok\",\"text\":\"12345678901\"}", "text", "text: must have at most 10 bytes, not 11"},
		{"{\"word\":\"ok\",\"list\":[]}", "list", "list: must have at least 1 item, not 0"},
		{"{\"word\":\"ok\",\"list\":[\"a\",\"b\",\"c\",\"d\"]}", "list",
		 "list: must have at most 3 items, not 4"},
		{"{\"word\":\"ok\",\"list\":[\"a\",7]}", "list[1]", "list[1]: must be a string, not an integer"},
		{"{\"word\":\"ok\",\"list\":\"a\"}", "list", "list: must be an array of strings, not a string"},
		{"{\"word\":\"ok\",\"map\":{\"a\":\"\",\"b\":1}}", "map.b", "map.b: must be a string, not an integer"},
		{"{\"word\":\"ok\",\"map\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}}", "map",
		 "map: must have at most 2 members, not 3"},
		{"{\"word\":\"ok\",\"map\":[]}", "map",
		 "map: must be an object whose members are strings, not an array"},
		{"{\"word\":\"ok\",\"items\":{}}", "items", "items: must be an array of objects, not an object"},
		{"{\"word\":\"ok\",\"items\":[7]}", "items[0]", "items[0]: must be an object, not an integer"},
		{"{\"word\":\"ok\",\"items\":[{\"name\":\"a\"},{}]}", "items[1].name", "items[1].name: is required"},
		{"{\"word\":\"ok\",\"items\":[{\"name\":\"a\",\"tags\":[\"x\"]},{\"name\":\"b\",\"tags\":[1]}]}",
		 "items[1].tags[0]", "items[1].tags[0]: must be a string, not an integer"},
		{"{\"word\":\"ok\",\"items\":[{\"name\":\"a\",\"sise\":1}]}", "items[0].sise",
		 "items[0].sise: unknown member, did you mean \"size\"?"},
		{"{\"word\":\"ok\",\"nested\":{}}", "nested.where", "nested.where: is required"},
		{"{\"word\":\"ok\",\"nested\":3}", "nested", "nested: must be an object, not an integer"},
		{"{\"word\":\"ok\",\"wrod\":1}", "wrod", "wrod: unknown member, did you mean \"word\"?"},
		{"{\"word\":\"ok\",\"strange\":1}", "strange", "strange: unknown member"},
		{"{\"word\":\"ok\",\"Word\":1}", "Word", "Word: unknown member, did you mean \"word\"?"},
		{"{\"word\":\"ok\",\"a\\nb\":1}", "a b", "a b: unknown member"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_json struct json_object *object = parse(cases[i].text);
		struct thing thing = {0};
		struct err err = ERR_INIT;

		assert_int_equal(bind_parse(table, object, &thing, &err), -ERR_INVALID);
		assert_string_equal(err.text, cases[i].error);
		assert_string_equal(err.member, cases[i].member);
		assert_null(thing.items.items); /* nothing is left to give back */
		assert_null(thing.list.items);
		assert_int_equal(bind_parse(table, object, &thing, NULL), -ERR_INVALID);
	}
}

/* A schema is for clients; what it promises is what bind_parse does. */
static void test_schema(void **state)
{
	auto_json struct json_object *schema = bind_schema(table);
	auto_buf struct buf out = {0};

	(void)state;
	buf_init(&out, 10000);
	json_print(&out, schema);
	assert_string_equal(
		out.data,
		"{\"type\":\"object\",\"properties\":{\"flag\":{\"type\":\"boolean\"},"
		"\"number\":{\"type\":\"integer\",\"minimum\":-5,\"maximum\":5,\"description\":\"how many\"},"
		"\"word\":{\"type\":\"string\"},"
		"\"color\":{\"type\":\"string\",\"enum\":[\"red\",\"green\"]},"
		"\"text\":{\"type\":\"string\"},"
		"\"list\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
		"\"map\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
		"\"string\"},"
		"\"value\":{\"type\":\"string\"}},\"required\":[\"name\",\"value\"],\"additionalProperties\":false}},"
		"\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
		"\"name\":{\"type\":\"string\"},"
		"\"size\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":99},"
		"\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"required\":[\"name\"],"
		"\"additionalProperties\":false}},"
		"\"nested\":{\"type\":\"object\",\"properties\":{\"where\":{\"type\":\"string\"},\"depth\":{\"type\":"
		"\"integer\"}},"
		"\"required\":[\"where\"],\"additionalProperties\":false}},"
		"\"required\":[\"word\"],\"additionalProperties\":false}");
}

/* -------- one struct, several views -------------------------------------------------------------------- */

enum { PLAIN = BIND_PLAIN, SHOWN = 2, KEPT = 4 };
enum fruit { APPLE, PEAR };
static const char *const fruits[] = {"apple", "pear", NULL};

struct part {
	int64_t weight, count;
};
struct whole {
	char name[8];
	int code; /* -1: none */
	enum fruit fruit;
	struct part part;
	struct json_object *tags; /* array of {"name", "size"} */
};

#define PART(field, views_)                                                                                            \
	{                                                                                                              \
		.name = #field, .type = BIND_INT, .offset = offsetof(struct part, field), .max = 99, .views = views_   \
	}
static const struct bind part_table[] = {PART(weight, 0), PART(count, PLAIN | KEPT), {0}};
#define WHOLE(field, kind)                                                                                             \
	.name = #field, .type = kind, .offset = offsetof(struct whole, field),                                         \
	.size = sizeof(((struct whole *)0)->field)
static const struct bind whole_table[] = {
	{WHOLE(name, BIND_CHARS), .sparse = SHOWN, .null = KEPT, .description = "what it is called"},
	{WHOLE(code, BIND_INT), .min = -1, .max = 9, .none = -1, .null = SHOWN},
	{WHOLE(fruit, BIND_CHOICE), .choices = fruits, .flags = BIND_REQUIRED},
	{WHOLE(part, BIND_OBJECT), .views = PLAIN, .table = part_table},
	{WHOLE(part, BIND_INLINE), .views = SHOWN | KEPT, .table = part_table},
	{.name = "tags",
	 .type = BIND_OBJECTS,
	 .flags = BIND_JSON,
	 .offset = offsetof(struct whole, tags),
	 .max = 2,
	 .table = item_table,
	 .size = sizeof(struct item),
	 .sparse = PLAIN | KEPT},
	{0},
};

static void expect_view(const struct whole *whole, unsigned view, const char *expected)
{
	auto_json struct json_object *object = bind_print_view(whole_table, whole, view);

	assert_string_equal(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN), expected);
}

static void test_views(void **state)
{
	auto_json struct json_object *object =
		parse("{\"name\":\"seven77\",\"code\":3.0,\"fruit\":\"pear\",\"part\":{\"weight\":1,\"count\":2},"
		      "\"tags\":[{\"name\":\"a\"}]}");
	struct whole whole = {.code = -1};

	(void)state;
	assert_int_equal(bind_parse(whole_table, object, &whole, NULL), 0);
	assert_string_equal(whole.name, "seven77");
	assert_int_equal(whole.code, 3);
	assert_int_equal(whole.fruit, PEAR);
	assert_int_equal(whole.part.count, 2);
	expect_view(&whole, PLAIN,
		    "{\"name\":\"seven77\",\"code\":3,\"fruit\":\"pear\",\"part\":{\"weight\":1,\"count\":2},"
		    "\"tags\":[{\"name\":\"a\"}]}");
	expect_view(&whole, SHOWN,
		    "{\"name\":\"seven77\",\"code\":3,\"fruit\":\"pear\",\"weight\":1,\"tags\":[{\"name\":\"a\"}]}");
	/* The document may go, what is JSON in the struct stays. */
	json_object_put(steal(&object));
	assert_int_equal(json_object_array_length(whole.tags), 1);
	bind_clear(whole_table, &whole);
	assert_null(whole.tags);

	whole = (struct whole){.code = -1};
	expect_view(&whole, PLAIN,
		    "{\"name\":\"\",\"code\":-1,\"fruit\":\"apple\",\"part\":{\"weight\":0,\"count\":0}}");
	expect_view(&whole, SHOWN, "{\"code\":null,\"fruit\":\"apple\",\"weight\":0,\"tags\":[]}");
	expect_view(&whole, KEPT, "{\"name\":null,\"code\":-1,\"fruit\":\"apple\",\"weight\":0,\"count\":0}");
}

static void test_views_refused(void **state)
{
	static const char *const cases[][2] = {
		{"{\"fruit\":\"plum\"}", "fruit: must be one of \"apple\", \"pear\""},
		{"{\"fruit\":\"pear\",\"name\":\"eight888\"}", "name: must have at most 7 bytes, not 8"},
		{"{\"fruit\":\"pear\",\"tags\":[{\"name\":\"a\"},{}]}", "tags[1].name: is required"},
		{"{\"fruit\":\"pear\",\"tags\":null}", "tags: must be an array of objects, not null"},
		/* In this view the part is an object of its own. */
		{"{\"fruit\":\"pear\",\"tags\":[{\"name\":\"a\"}],\"weight\":1}", "weight: unknown member"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_json struct json_object *object = parse(cases[i][0]);
		struct whole whole = {.code = -1};
		struct err err = ERR_INIT;

		assert_int_equal(bind_parse(whole_table, object, &whole, &err), -ERR_INVALID);
		assert_string_equal(err.text, cases[i][1]);
		assert_null(whole.tags);
	}
}

/* What another version wrote: what fits is taken, the rest left alone. */
static void test_recall(void **state)
{
	auto_json struct json_object *object =
		parse("{\"name\":\"much too long\",\"code\":\"3\",\"weight\":7,\"count\":100,\"tags\":[{}],\"new\":1}");
	struct whole whole = {.code = 4, .part.count = 5};

	(void)state;
	bind_recall(whole_table, object, &whole, KEPT);
	assert_string_equal(whole.name, "");
	assert_int_equal(whole.code, 4);
	assert_int_equal(whole.fruit, APPLE);
	assert_int_equal(whole.part.weight, 7);
	assert_int_equal(whole.part.count, 5);
	assert_null(whole.tags);
	bind_recall(whole_table, NULL, &whole, KEPT);
	assert_int_equal(whole.part.weight, 7);
}

static void test_schema_output(void **state)
{
	auto_json struct json_object *schema = bind_schema_output(whole_table, SHOWN);

	(void)state;
	assert_string_equal(
		json_object_to_json_string_ext(schema, JSON_C_TO_STRING_PLAIN),
		"{\"type\":\"object\",\"properties\":{"
		"\"name\":{\"type\":\"string\",\"description\":\"what it is called\"},"
		"\"code\":{\"type\":[\"integer\",\"null\"]},"
		"\"fruit\":{\"type\":\"string\",\"enum\":[\"apple\",\"pear\"]},"
		"\"weight\":{\"type\":\"integer\"},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"object\","
		"\"properties\":{\"name\":{\"type\":\"string\"},\"size\":{\"type\":\"integer\"},"
		"\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
		"\"required\":[\"name\",\"size\",\"tags\"],\"additionalProperties\":false}}},"
		"\"required\":[\"code\",\"fruit\",\"weight\",\"tags\"],\"additionalProperties\":false}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_types), cmocka_unit_test(test_defaults_stay),
		cmocka_unit_test(test_refused),   cmocka_unit_test(test_schema),
		cmocka_unit_test(test_views),     cmocka_unit_test(test_views_refused),
		cmocka_unit_test(test_recall),    cmocka_unit_test(test_schema_output),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
