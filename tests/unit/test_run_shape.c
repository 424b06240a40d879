/* What an answer says of results whose tools have no schema: keys and types, bounded, and no value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cgi/tool/run_shape.h"
#include "lib/base/json.h"
#include "lib/base/util.h"

#define CALLS_MAX 8

/* Calls of one run, and what is said of them. */
struct run {
	struct store_tool_call calls[CALLS_MAX];
	struct store_tools tools;
	char text[4096];
};

/* A call whose result is one block with this text; `more` goes behind the content. */
static void called(struct run *run, const char *tool, const char *state, const char *text, const char *more)
{
	auto_json struct json_object *block = json_object_new_object();
	struct store_tool_call *call = &run->calls[run->tools.n_calls++];
	auto_buf struct buf result = {0};

	buf_init(&result, 1 << 20);
	json_add_string(block, "type", "text");
	json_add_string(block, "text", text);
	buf_puts(&result, "{\"content\":[");
	json_print(&result, block);
	buf_printf(&result, "]%s}", more);
	*call = (struct store_tool_call){.server = xstrdup("github"), .tool = xstrdup(tool)};
	snprintf(call->state, sizeof(call->state), "%s", state);
	call->result_length = result.length;
	call->result = xmemdup(result.data, result.length);
}

static const char *said(struct run *run)
{
	auto_buf struct buf text = {0};

	buf_init(&text, sizeof(run->text) - 1);
	run->tools.calls = run->calls;
	run_shape_add(&run->tools, &text);
	snprintf(run->text, sizeof(run->text), "%s", text.data ? text.data : "");
	for (size_t i = 0; i < run->tools.n_calls; i++) {
		free(run->calls[i].server);
		free(run->calls[i].tool);
		free(run->calls[i].result);
	}
	return run->text;
}

static void shape_is(const char *text, const char *expected)
{
	struct run run = {0};

	called(&run, "t", "done", text, "");
	assert_string_equal(said(&run), expected);
}

static void keys_and_types(void **state)
{
	(void)state;
	shape_is("[{\"number\": 7, \"title\": \"secret\", \"closed\": null, \"open\": true, \"share\": 0.5}, "
		 "{\"other\": 1}]",
		 "github.t returns [{number: int, title: str, closed: None, open: bool, share: float}]\n");
	shape_is(" \n{\"a\": [], \"b\": [[1]]}", "github.t returns {a: [], b: [[int]]}\n");
	shape_is("{\"a\": {\"b\": {\"c\": {\"d\": 1}}}}", "github.t returns {a: {b: {c: {d: int}}}}\n");
	shape_is("{\"a\": {\"b\": {\"c\": {\"d\": {}}}}}", "github.t returns {a: {b: {c: {d: dict}}}}\n");
	shape_is("{\"a\\nb\": 1}", "github.t returns {a\\x0ab: int}\n");
}

static void only_values_that_came_as_text(void **state)
{
	struct run run = {0};

	(void)state;
	shape_is("plain text", "");
	shape_is("", "");
	shape_is("7", "");
	shape_is("{\"cut\": ", "");
	called(&run, "t", "done", "{\"a\": 1}", ",\"structuredContent\":{\"a\":1}"); /* its type is in the stub */
	assert_string_equal(said(&run), "");
}

static void first_result_of_each_tool(void **state)
{
	struct run run = {0};

	(void)state;
	called(&run, "a", "failed", "{\"wrong\": 1}", "");
	called(&run, "a", "done", "{\"first\": 1}", "");
	called(&run, "a", "done", "{\"second\": 1}", "");
	called(&run, "b", "done", "[1]", "");
	called(&run, "c", "done", "[\"x\"]", "");
	called(&run, "d", "done", "[0.5]", ""); /* more than RUN_SHAPE_TOOLS */
	assert_string_equal(said(&run), "github.a returns {first: int}\n"
					"github.b returns [int]\ngithub.c returns [str]\n");
}

static void bounds(void **state)
{
	auto_json struct json_object *wide = json_object_new_object();
	auto_buf struct buf text = {0};
	struct run run = {0};

	(void)state;
	for (int i = 0; i < 100; i++) {
		auto_free char *name = xasprintf("a name that is as long as names of members are %d", i);

		json_add_int(wide, name, i);
	}
	buf_init(&text, 1 << 20);
	json_print(&text, wide);
	called(&run, "t", "done", text.data, "");
	said(&run);
	assert_in_range(strlen(run.text), 200, RUN_SHAPE_MAX + 64);
	assert_non_null(strstr(run.text, "…\n"));
	buf_reset(&text);
	buf_puts(&text, "[\"");
	for (int i = 0; i < 300 * 1024; i++)
		buf_putc(&text, 'x');
	buf_puts(&text, "\"]");
	shape_is(text.data, ""); /* too large to be looked at */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_and_types),
		cmocka_unit_test(only_values_that_came_as_text),
		cmocka_unit_test(first_result_of_each_tool),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
