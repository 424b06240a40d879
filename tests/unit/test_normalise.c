/* test_normalise.c - each normaliser of replay: what it takes for noise and what it must not; what it says it hid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/util.h"
#include "lib/grade/normalise.h"

#define SECOND 1000000ll
#define NOW    1795364155ll /* 2026-11-22 16:15:55 UTC */

static const struct normalise_window window = {NOW * SECOND, (NOW + 3) * SECOND};

static const struct {
	enum normaliser which;
	const char *text, *left;
} cases[] = {
	{NORMALISE_NEWLINES, "a \r\nb\t\n\n", "a\nb"},
	{NORMALISE_NEWLINES, " a\n\nb", " a\n\nb"},
	{NORMALISE_NEWLINES, "  \n  \n", ""},
	{NORMALISE_NEWLINES, "a\rb", "a\rb"},
	{NORMALISE_ANSI, "\033[1;31mred\033[0m \033]0;title\007x", "red x"},
	{NORMALISE_ADDRESSES, "<object at 0x7f00deadbeef>, 0xff", "<object at [ADDRESS]>, 0xff"},
	{NORMALISE_PATHS, "/tmp/tmp8g_x2kq1/a /tmp/x.Ab3dEf9Q /tmp/out.txt", "[PATH]/a [PATH] /tmp/out.txt"},
	{NORMALISE_PIDS, "pid 12, PID=7 /proc/99/x rapid 5", "[PID], [PID] [PID]/x rapid 5"},
	{NORMALISE_UUIDS, "id 019bf2aa-1111-7222-8333-444455556666.", "id [UUID]."},
	{NORMALISE_UUIDS, "019bf2aa-1111-7222-8333-44445555666", "019bf2aa-1111-7222-8333-44445555666"},
	{NORMALISE_TIMES, "2026-11-22T16:15:56.123Z 2026-11-22 16:15:50", "[TIME] 2026-11-22 16:15:50"},
	{NORMALISE_TIMES, "2026-11-22T17:15:56+01:00 2026-11-22T16:15:56+01:00", "[TIME] 2026-11-22T16:15:56+01:00"},
	{NORMALISE_TIMES, "Sun Nov 22 16:15:57 2026; Sun Nov 22 16:15:57 2025", "[TIME]; Sun Nov 22 16:15:57 2025"},
	{NORMALISE_TIMES, "1795364156 1795364156123 1795364156.5 1795360000", "[TIME] [TIME] [TIME] 1795360000"},
	{NORMALISE_TIMES, "16:15:57 16:25:57", "[TIME] 16:25:57"},
	{NORMALISE_TIMES, "2026-11-22 2026-11-23", "[TIME] 2026-11-23"},
	{NORMALISE_DURATIONS, "took 1.25 ms, 3 seconds, 0m0.003s; 12 sheep, 5 m",
	 "took [DURATION], [DURATION], [DURATION]; 12 sheep, 5 m"},
	{NORMALISE_SETS, "{'b', 'a, c'} {1: 2} {3, 1}", "{'a, c', 'b'} {1: 2} {1, 3}"},
	{NORMALISE_FLOATS, "0.30000000000000004 1e-3 7", "0.3 0.001 7"},
	{NORMALISE_JSON, "{\"b\": 1, \"a\": [ {\"d\":2,\"c\":3} ]}", "{\"a\":[{\"c\":3,\"d\":2}],\"b\":1}\n"},
	{NORMALISE_JSON, "text\n{\"b\":1, \"a\":2}\n[2, 1]", "text\n{\"a\":2,\"b\":1}\n[2,1]"},
	{NORMALISE_LINES, "b\na\nab\n", "a\nab\nb\n"},
};

static void each_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct normalise_text text = {cases[i].text, strlen(cases[i].text), window};
		struct buf left;

		buf_init(&left, 4096);
		normalise(NORMALISE_BIT(cases[i].which), &text, &left);
		buf_putc(&left, '\0');
		assert_string_equal(left.data, cases[i].left);
		buf_clear(&left);
	}
}

static void says_what_it_hid(void **state)
{
	const struct normalise_window later = {(NOW + 100) * SECOND, (NOW + 103) * SECOND};
	const char one[] = "at 1795364156: {2, 1} in 3 ms\n", other[] = "at 1795364257: {1, 2} in 4 ms\n";
	const struct normalise_text a = {one, strlen(one), window}, b = {other, strlen(other), later};
	const struct normalise_text early = {other, strlen(other), window};
	unsigned hidden = 0;

	(void)state;
	assert_true(normalise_equal(normalise_defaults(), &a, &b, &hidden));
	assert_int_equal(hidden, NORMALISE_BIT(NORMALISE_TIMES) | NORMALISE_BIT(NORMALISE_SETS) |
					 NORMALISE_BIT(NORMALISE_DURATIONS));
	assert_true(normalise_equal(normalise_defaults(), &a, &a, &hidden));
	assert_int_equal(hidden, 0);
	assert_false(normalise_equal(normalise_defaults() & ~NORMALISE_BIT(NORMALISE_SETS), &a, &b, &hidden));
	/* a time that is not the run's own is a result */
	assert_false(normalise_equal(normalise_defaults(), &a, &early, &hidden));
}

static void bytes_and_long_lines(void **state)
{
	const char zeros[] = "a\0pid 3\0b";
	const struct normalise_text text = {zeros, sizeof(zeros) - 1, window};
	auto_free char *line = xmalloc(NORMALISE_LINE_MAX + 20);
	struct buf left;

	(void)state;
	buf_init(&left, NORMALISE_TEXT_MAX);
	normalise(normalise_defaults(), &text, &left);
	assert_int_equal(left.length, sizeof("a\0[PID]\0b") - 1);
	assert_memory_equal(left.data, "a\0[PID]\0b", left.length);
	buf_reset(&left);
	memset(line, 'x', NORMALISE_LINE_MAX);
	memcpy(line + NORMALISE_LINE_MAX, " pid 3", 6);
	normalise(normalise_defaults(), &(struct normalise_text){line, NORMALISE_LINE_MAX + 6, window}, &left);
	assert_int_equal(left.length, NORMALISE_LINE_MAX + 6);
	buf_clear(&left);
}

static void lists(void **state)
{
	struct err err = ERR_INIT;
	struct buf text;
	unsigned which = 0;

	(void)state;
	assert_int_equal(normalise_parse("none", &which, &err), 0);
	assert_int_equal(which, 0);
	assert_int_equal(normalise_parse("default,json", &which, &err), 0);
	assert_int_equal(which, normalise_defaults() | NORMALISE_BIT(NORMALISE_JSON));
	assert_int_equal(normalise_parse("-sets", &which, &err), 0);
	assert_int_equal(which, normalise_defaults() & ~NORMALISE_BIT(NORMALISE_SETS));
	assert_int_equal(normalise_parse("newlines,floats", &which, &err), 0);
	buf_init(&text, 4096);
	normalise_version(which, &text);
	buf_putc(&text, '\0');
	assert_string_equal(text.data, "newlines/1,floats/1");
	buf_clear(&text);
	assert_int_equal(normalise_parse("newlines,colours", &which, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "colours"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_one),
		cmocka_unit_test(says_what_it_hid),
		cmocka_unit_test(bytes_and_long_lines),
		cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
