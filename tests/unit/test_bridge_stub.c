/* test_bridge_stub.c - types out of schemas: the rules of bridge_stub.h one by one, lists recorded from real servers,
 * and schemas of nobody who means well. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/util.h"
#include "lib/bridge/bridge.h"
#include "lib/bridge/bridge_files.h"
#include "lib/bridge/bridge_stub.h"
#include "lib/upstream/upstream_list.h"

static const struct upstream_server server = {.name = "s", .alias = "s"};

static struct upstream_list *list_of(const char *definitions)
{
	const struct raw all = raw_value(definitions, strlen(definitions));
	struct upstream_list *list = upstream_list_new(&server);
	struct err err = ERR_INIT;
	struct raw one;

	for (size_t at = 0; raw_item(all, &at, &one);)
		if (upstream_list_add(list, one, &err) < 0)
			fail_msg("%s", err.text);
	upstream_list_seal(list, NULL, NULL, NULL);
	return list;
}

/* The line of one tool with this input schema. */
static char *line(const char *schema, enum bridge_language language)
{
	auto_free char *definitions = xasprintf("[{\"name\":\"t\",\"inputSchema\":%s}]", schema);
	auto_upstream_list struct upstream_list *list = list_of(definitions);
	struct buf out;

	assert_int_equal(list->count, 1);
	buf_init(&out, 1 << 20);
	bridge_stub_line(&out, &list->tools[0], language);
	return buf_steal(&out, NULL);
}

static void is(const char *schema, const char *python, const char *typescript)
{
	auto_free char *py = line(schema, BRIDGE_PYTHON);
	auto_free char *ts = line(schema, BRIDGE_TYPESCRIPT);

	assert_string_equal(py, python);
	assert_string_equal(ts, typescript);
}

/* Of a property `p` that is required. */
static void property(const char *schema, const char *python, const char *typescript)
{
	auto_free char *whole =
		xasprintf("{\"type\":\"object\",\"properties\":{\"p\":%s},\"required\":[\"p\"]}", schema);
	auto_free char *py = xasprintf("t(*, p: %s) -> Any", python);
	auto_free char *ts = xasprintf("t(args: { p: %s }): Promise<unknown>", typescript);

	is(whole, py, ts);
}

static void each_kind_of_schema_has_its_type(void **state)
{
	(void)state;
	property("{\"type\":\"string\"}", "str", "string");
	property("{\"type\":[\"integer\",\"null\"]}", "int | None", "number | null");
	property("{\"type\":\"number\",\"nullable\":true}", "float | None", "number | null");
	property("{\"enum\":[\"a\",1,null,true]}", "Literal['a', 1, None, True]", "\"a\" | 1 | null | true");
	property("{\"const\":\"it's\"}", "Literal['it\\'s']", "\"it's\"");
	property("{\"type\":\"array\",\"items\":{\"enum\":[\"a\",\"b\"]}}", "list[Literal['a', 'b']]",
		 "(\"a\" | \"b\")[]");
	property("{\"prefixItems\":[{\"type\":\"string\"},{}]}", "tuple[str, Any]", "[string, unknown]");
	property("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}", "dict[str, int]",
		 "Record<string, number>");
	property("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"string\"},{\"type\":\"null\"}]}", "str | None",
		 "string | null");
	property("{\"allOf\":[{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]},{\"properties\":{"
		 "\"b\":{}}}]}",
		 "{'a': str, 'b'?: Any}", "{ a: string; b?: unknown }");
	property("{}", "Any", "unknown");
	property("true", "Any", "unknown");
	property("{\"if\":{},\"then\":{}}", "Any", "unknown");
	/* What only constrains says nothing of the type; what stands beside it does. */
	property("{\"properties\":{\"x\":{\"type\":\"string\"}},\"anyOf\":[{\"required\":[\"x\"]},{\"not\":{}}]}",
		 "{'x'?: str}", "{ x?: string }");
	is("{\"type\":\"object\"}", "t() -> Any", "t(args?: {}): Promise<unknown>");
	is("{\"properties\":{\"b\":{\"type\":\"boolean\",\"default\":true},\"a\":{\"type\":\"integer\"}},\"required\":["
	   "\"a\"]}",
	   "t(*, a: int, b: bool = True) -> Any", "t(args: { a: number; b?: boolean }): Promise<unknown>");
	is("{\"properties\":{\"from\":{},\"my-key\":{},\"3d\":{}}}",
	   "t(*, from_: Any = ..., my_key: Any = ..., _3d: Any = ...) -> Any",
	   "t(args: { \"from\"?: unknown; \"my-key\"?: unknown; \"3d\"?: unknown }): Promise<unknown>");
}

static void references_are_followed_inside_the_schema(void **state)
{
	(void)state;
	is("{\"properties\":{\"p\":{\"$ref\":\"#/$defs/a~1b\"}},\"$defs\":{\"a/b\":{\"type\":\"string\"}}}",
	   "t(*, p: str = ...) -> Any", "t(args: { p?: string }): Promise<unknown>");
	is("{\"properties\":{\"p\":{\"$ref\":\"#here\"}},\"$defs\":{\"x\":{\"$anchor\":\"here\",\"type\":\"integer\"}}"
	   "}",
	   "t(*, p: int = ...) -> Any", "t(args: { p?: number }): Promise<unknown>");
	property("{\"$ref\":\"https://example.com/schema\"}", "Any", "unknown"); /* never fetched */
	property("{\"$ref\":\"#/nowhere\"}", "Any", "unknown");
	property("{\"$ref\":\"#/properties/p\"}", "Any", "unknown"); /* itself */
	is("{\"properties\":{\"n\":{\"$ref\":\"#/$defs/"
	   "Node\"}},\"$defs\":{\"Node\":{\"properties\":{\"v\":{\"type\":\"integer\"},"
	   "\"next\":{\"$ref\":\"#/$defs/Node\"}}}}}",
	   "t(*, n: {'v'?: int, 'next'?: T_Node} = ...) -> Any\nT_Node = {'v'?: int, 'next'?: T_Node}",
	   "t(args: { n?: { v?: number; next?: T_Node } }): Promise<unknown>\ntype T_Node = { v?: number; next?: "
	   "T_Node };");
}

/* A large object is named before its members are left out, and nothing is longer than the room. */
static void a_large_signature_is_cut_to_its_room(void **state)
{
	auto_buf struct buf schema = {0};

	(void)state;
	buf_init(&schema, 1 << 20);
	buf_puts(&schema, "{\"properties\":{");
	for (int i = 0; i < 40; i++)
		buf_printf(&schema, "%s\"outer%d\":{\"properties\":{\"inner_with_a_long_name\":{\"type\":\"string\"}}}",
			   i ? "," : "", i);
	buf_puts(&schema, "}}");
	auto_free char *text = line(schema.data, BRIDGE_PYTHON);
	assert_true(strlen(text) <= 4 * BRIDGE_SIGNATURE_MAX);
	assert_non_null(strstr(text, "outer39"));
}

/* Every definition refers to all others: the number of ways through them is astronomical. */
static void a_hostile_schema_stays_within_the_bound(void **state)
{
	auto_buf struct buf schema = {0};

	(void)state;
	buf_init(&schema, 1 << 20);
	buf_puts(&schema, "{\"properties\":{\"p\":{\"$ref\":\"#/$defs/d0\"}},\"$defs\":{");
	for (int i = 0; i < 20; i++) {
		buf_printf(&schema, "%s\"d%d\":{\"properties\":{", i ? "," : "", i);
		for (int k = 0; k < 20; k++)
			buf_printf(&schema, "%s\"m%d\":{\"anyOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"type\":\"string\"}]}",
				   k ? "," : "", k, k);
		buf_puts(&schema, "}}");
	}
	buf_puts(&schema, "}}");
	auto_free char *python = line(schema.data, BRIDGE_PYTHON);
	auto_free char *typescript = line(schema.data, BRIDGE_TYPESCRIPT);
	assert_true(strlen(python) <= 4 * BRIDGE_SIGNATURE_MAX);
	assert_true(strlen(typescript) <= 4 * BRIDGE_SIGNATURE_MAX);
}

static void descriptions_cannot_leave_their_comment(void **state)
{
	auto_buf struct buf out = {0};

	(void)state;
	buf_init(&out, 4096);
	bridge_stub_text(&out,
			 "a\n\tb \xe2\x80\x8b\xe2\x80\xae"
			 "c */ d \"\"\" e\x1b[1m",
			 1000);
	buf_putc(&out, '\0');
	assert_string_equal(out.data, "a b c * / d \" \" \" e [1m");
}

/* The files parse in their language. */
static void stubs_of_real_servers_parse(void **state)
{
	static const char *const names[] = {"everything", "filesystem", "memory"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_free char *path = xasprintf("tests/data/tools/%s.json", names[i]);
		auto_free char *text = NULL;
		size_t length;

		assert_int_equal(read_file_at(AT_FDCWD, path, 1 << 20, &text, &length, NULL), 0);
		auto_upstream_list struct upstream_list *list = list_of(text);
		auto_buf struct buf python = {0}, typescript = {0};

		assert_true(list->count >= 9);
		buf_init(&python, 4 << 20);
		buf_init(&typescript, 4 << 20);
		bridge_stub_file(&python, list, NULL, BRIDGE_PYTHON);
		bridge_stub_file(&typescript, list, NULL, BRIDGE_TYPESCRIPT);
		FILE *parser = popen("/usr/bin/python3 -c 'import ast, sys; ast.parse(sys.stdin.read())'", "w");
		assert_non_null(parser);
		assert_int_equal(fwrite(python.data, 1, python.length, parser), python.length);
		assert_int_equal(pclose(parser), 0);
		buf_putc(&typescript, '\0');
		assert_non_null(strstr(typescript.data, "export function "));
		for (size_t k = 0; k < list->count; k++) {
			auto_free char *line_of = bridge_stub_signature(&list->tools[k]);

			assert_true(strlen(line_of) > 4 && strlen(line_of) <= BRIDGE_SIGNATURE_MAX);
		}
	}
}

/* What a run of this list and these decisions finds in a file; the caller's. */
static char *found(struct upstream_list *list, const char *const *decisions, const char *runner, const char *name)
{
	const struct bridge_files_spec spec = {.lists = &list, .count = 1, .decisions = decisions, .runner = runner};
	struct bridge_files files;
	char *text = NULL;

	assert_int_equal(bridge_files_make(&spec, &files, NULL), 0);
	for (size_t i = 0; i < files.count; i++) {
		if (!streq(files.files[i].name, name))
			continue;
		assert_null(text);
		text = xcalloc(1, 1 << 16);
		assert_true(pread(files.files[i].fd, text, (1 << 16) - 1, 0) > 0);
	}
	bridge_files_clear(&files);
	assert_non_null(text);
	return text;
}

/* The description of a server is made once, and again where it must say something else. */
static void a_description_is_made_once(void **state)
{
	static const char *const allow[] = {"allow", "allow"}, *const ask[] = {"allow", "ask"};
	static const char *const names[][2] = {{"python", "tools/stubs/s.pyi"},
					       {"javascript", "node_modules/tools/s.d.ts"},
					       {"bash", "tools/index.txt"},
					       {"python", "tools/stubs/s.json"},
					       {"typescript", "node_modules/tools/s.mjs"}};
	auto_upstream_list struct upstream_list *list =
		list_of("[{\"name\":\"one\",\"inputSchema\":{}},{\"name\":\"two\",\"inputSchema\":{}}]");
	auto_upstream_list struct upstream_list *other = list_of("[{\"name\":\"else\",\"inputSchema\":{}}]");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *runner = names[i][0], *name = names[i][1];
		const bool decided = i < 2;
		auto_free char *first = found(list, allow, runner, name), *asked = found(list, ask, runner, name);
		auto_free char *again = found(list, allow, runner, name), *free_of = found(list, NULL, runner, name);
		auto_free char *others = found(other, allow, runner, name);
		const struct upstream_text *texts = list->texts;

		assert_string_equal(first, again);
		assert_non_null(strstr(first, "two"));
		assert_int_equal(strstr(asked, "[ask]") != NULL, decided);
		assert_null(strstr(first, "[ask]"));
		assert_null(strstr(free_of, "[ask]"));
		assert_non_null(strstr(others, "else"));
		assert_null(strstr(others, "two"));
		free(found(list, ask, runner, name));
		assert_ptr_equal(list->texts, texts);
	}
	assert_int_equal(list->texts_length > 0, 1);
}

static void kept_texts_are_bounded(void **state)
{
	auto_upstream_list struct upstream_list *list = upstream_list_new(&server);
	auto_free char *large = xcalloc(1, UPSTREAM_TEXTS_MAX);

	(void)state;
	upstream_list_keep_text(list, "large", large, UPSTREAM_TEXTS_MAX - 5);
	assert_int_equal(upstream_list_text(list, "large")->length, UPSTREAM_TEXTS_MAX - 5);
	upstream_list_keep_text(list, "k", "v", 1);
	assert_null(upstream_list_text(list, "k"));
	upstream_list_keep_text(list, "large", "other", 5);
	assert_int_equal(upstream_list_text(list, "large")->length, UPSTREAM_TEXTS_MAX - 5);
}

/* What a call with these arguments is refused with; "": it goes to the server. */
static void refused(const char *arguments, const char *why)
{
	static const char *const definitions =
		"[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\",\"required\":[\"f\"],\"properties\":{"
		"\"f\":{\"type\":\"object\",\"required\":[\"state\"],\"additionalProperties\":false,\"properties\":{"
		"\"state\":{\"type\":\"string\",\"enum\":[\"open\",\"closed\"]},\"n\":{\"enum\":[1,2]}}},"
		"\"l\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"id\"],\"properties\":{"
		"\"id\":{\"type\":[\"integer\",\"null\"]}}}},\"r\":{\"$ref\":\"#/x\"},\"k\":{\"const\":\"v\"}}}}]";
	auto_upstream_list struct upstream_list *list = list_of(definitions);
	auto_json struct json_object *object = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(json_parse(arguments, strlen(arguments), &object, &err), 0);
	bridge_check(&list->tools[0], object, &err);
	assert_string_equal(err.text, why);
}

static void arguments_are_checked_at_every_depth(void **state)
{
	(void)state;
	refused("{\"f\":{\"state\":\"open\",\"n\":2.0},\"l\":[{\"id\":1},{\"id\":null,\"more\":1}],\"r\":5,\"new\":1}",
		"");
	refused("{\"l\":[]}", "f: is missing");
	refused("{\"f\":{}}", "f.state: is missing");
	refused("{\"f\":{\"state\":\"opened\"}}", "f.state: must be one of [\"open\",\"closed\"]");
	refused("{\"f\":{\"state\":\"open\",\"n\":3}}", "f.n: must be one of [1,2]");
	refused("{\"f\":{\"state\":\"open\",\"stat\":1}}", "f.stat: is not known here: did you mean state?");
	refused("{\"f\":{\"state\":\"open\"},\"l\":[{\"id\":1},{\"id\":\"2\"}]}",
		"l[1].id: must be one of the types [\"integer\",\"null\"], not a string");
	refused("{\"f\":{\"state\":\"open\"},\"l\":[{}]}", "l[0].id: is missing");
	refused("{\"f\":{\"state\":\"open\"},\"k\":\"w\"}", "k: must be \"v\"");
	refused("{\"f\":[]}", "f: must be an object, not an array");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_schema_has_its_type),
		cmocka_unit_test(references_are_followed_inside_the_schema),
		cmocka_unit_test(a_large_signature_is_cut_to_its_room),
		cmocka_unit_test(a_hostile_schema_stays_within_the_bound),
		cmocka_unit_test(descriptions_cannot_leave_their_comment),
		cmocka_unit_test(stubs_of_real_servers_parse),
		cmocka_unit_test(a_description_is_made_once),
		cmocka_unit_test(kept_texts_are_bounded),
		cmocka_unit_test(arguments_are_checked_at_every_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
