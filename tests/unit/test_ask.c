/* test_ask.c - what a question for approval shows of a call's arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cgi/tool/tool_ask.h"
#include "lib/base/util.h"

/* The question's text, the caller's. */
static char *asked(const char *arguments)
{
	const struct bridge_question question = {
		.server = unconst("fs"), .tool = unconst("write"), .arguments = unconst(arguments)};
	auto_json struct json_object *params = tool_ask_params("A program", &question);

	return xstrdup(json_get_string(params, "message"));
}

static void short_arguments_are_shown_as_they_are(void **state)
{
	auto_free char *text = asked("{\"b\":1,\"a\":\"x\"}");

	(void)state;
	assert_string_equal(text, "A program wants to call fs.write with {\"b\":1,\"a\":\"x\"}");
}

static void no_member_hides_behind_a_long_one(void **state)
{
	auto_free char *filler = xmalloc(5001), *text = NULL;

	(void)state;
	memset(filler, 'x', 5000);
	filler[5000] = '\0';
	auto_free char *arguments = xasprintf("{\"note\":\"%s\",\"path\":\"/etc/passwd\",\"mode\":511}", filler);

	text = asked(arguments);
	assert_non_null(strstr(text, "with {\"note\": \"xxx"));
	assert_non_null(strstr(text, "(4669 bytes more), \"path\": \"/etc/passwd\", \"mode\": 511}"));
}

static void many_members_are_counted(void **state)
{
	auto_buf struct buf arguments = {0};

	(void)state;
	buf_init(&arguments, 1 << 20);
	for (int i = 0; i < 200; i++)
		buf_printf(&arguments, "%c\"member%d\":%d", i ? ',' : '{', i, i);
	buf_puts(&arguments, "}");
	buf_putc(&arguments, '\0');
	auto_free char *text = asked(arguments.data);

	assert_non_null(strstr(text, "\"member49\": 49, … (150 members more: too many to be looked at)}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_arguments_are_shown_as_they_are),
		cmocka_unit_test(no_member_hides_behind_a_long_one),
		cmocka_unit_test(many_members_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
