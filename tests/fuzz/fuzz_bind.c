/* Whatever was bound prints back to an object that binds to the same; whatever was refused names a member and leaves
 * nothing behind. */
#include "fuzz.h"
#include "lib/base/bind.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

struct part {
	const char *name;
	struct bind_strings tags;
	struct bind_text body;
};

struct whole {
	bool flag;
	int64_t number;
	const char *word, *color;
	struct bind_strings list;
	struct bind_map map;
	struct bind_objects parts;
	struct part nested;
	struct json_object *any;
};

static const char *const colors[] = {"red", "green", NULL};

#define MEMBER(struct_, name_, ...)                                                    \
	{                                                                              \
		.name = #name_, .offset = offsetof(struct struct_, name_), __VA_ARGS__ \
	}

static const struct bind part_table[] = {
	MEMBER(part, name, .type = BIND_STRING, .max = 10),
	MEMBER(part, tags, .type = BIND_STRINGS, .max = 4),
	MEMBER(part, body, .type = BIND_TEXT, .max = 100),
	{0},
};

static const struct bind table[] = {
	MEMBER(whole, flag, .type = BIND_BOOL),
	MEMBER(whole, number, .type = BIND_INT, .min = -1000, .max = INT64_MAX),
	MEMBER(whole, word, .type = BIND_STRING, .flags = BIND_REQUIRED, .min = 1, .max = 20),
	MEMBER(whole, color, .type = BIND_STRING, .choices = colors),
	MEMBER(whole, list, .type = BIND_STRINGS, .min = 1, .max = 5),
	MEMBER(whole, map, .type = BIND_STRING_MAP, .max = 5),
	MEMBER(whole, parts, .type = BIND_OBJECTS, .max = 5, .table = part_table, .size = sizeof(struct part)),
	MEMBER(whole, nested, .type = BIND_OBJECT, .table = part_table),
	MEMBER(whole, any, .type = BIND_ANY),
	{0},
};

static void print(struct buf *out, const struct whole *whole)
{
	auto_json struct json_object *object = bind_print(table, whole);

	buf_init(out, 1 << 22);
	json_print(out, object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	auto_json struct json_object *object = NULL, *again = NULL;
	auto_buf struct buf printed = {0}, second = {0};
	struct whole whole = {0}, copy = {0};
	struct err err = ERR_INIT;

	if (json_parse((const char *)data, length, &object, NULL) < 0)
		return 0;
	if (bind_parse(table, object, &whole, &err) < 0) {
		PROMISE(err.code == ERR_INVALID && err.text[0] != '\0' && utf8_valid(err.text, strlen(err.text)));
		PROMISE(whole.list.items == NULL && whole.map.keys == NULL && whole.parts.items == NULL &&
			whole.nested.tags.items == NULL);
		return 0;
	}
	print(&printed, &whole);
	PROMISE(json_parse(printed.data, printed.length, &again, NULL) == 0);
	PROMISE(bind_parse(table, again, &copy, NULL) == 0);
	print(&second, &copy);
	PROMISE(streq(printed.data, second.data));
	bind_clear(table, &whole);
	bind_clear(table, &copy);
	return 0;
}
