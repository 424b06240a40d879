/* test_normalise.c - each normaliser of replay: what it takes for noise and what it must not; what it says it hid. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	{NORMALISE_ANSI, "[1;31m red [0m ]0;title", "[1;31m red [0m ]0;title"},
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
	{NORMALISE_JSON, "{\"b\": 1, \"a\": }\n{'b': 1}\n[2,\n", "{\"b\": 1, \"a\": }\n{'b': 1}\n[2,\n"},
	{NORMALISE_LINES, "b\na\nab\n", "a\nab\nb\n"},
	{NORMALISE_LINES, " b\na b\n", " b\na b\n"},
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

/* Two texts that differ in what one normaliser hides, and a third that differs in more: what hid it is that one, though
 * all are on, and where it is off they are not equal. */
static void each_says_so(void **state)
{
	static const struct {
		enum normaliser which;
		const char *a, *b, *c;
	} rows[] = {
		{NORMALISE_NEWLINES, "a\nb\n", "a \r\nb", "a\n\nb"},
		{NORMALISE_ANSI, "\033[1mbold\033[0m", "bold", "[1mbold[0m"},
		{NORMALISE_ADDRESSES, "at 0x7f00deadbeef", "at 0x55d0c0ffee00", "at 0x55"},
		{NORMALISE_PATHS, "in /tmp/tmp8g_x2kq1", "in /tmp/tmpzzzzzzzz", "in /tmp/other"},
		{NORMALISE_PIDS, "pid 12", "pid 13", "rapid 13"},
		{NORMALISE_UUIDS, "019bf2aa-1111-7222-8333-444455556666", "019bf2aa-1111-7222-8333-444455556667",
		 "019bf2aa-1111-7222-8333-44445555666"},
		{NORMALISE_TIMES, "2026-11-22T16:15:56Z", "2026-11-22T16:15:57Z", "2026-11-22T16:25:57Z"},
		{NORMALISE_DURATIONS, "took 3 ms", "took 4 ms", "took 4 m"},
		{NORMALISE_SETS, "{'b', 'a'}", "{'a', 'b'}", "{'a', 'c'}"},
		{NORMALISE_FLOATS, "0.30000000000000004", "0.3", "0.31"},
		{NORMALISE_JSON, "{\"b\": \"x\", \"a\": []}", "{\"a\":[],\"b\":\"x\"}",
		 "{\"a\":[],\"b\":\"y\"}"},
		{NORMALISE_LINES, "one\ntwo\n", "two\none\n", "two\ntwo\n"},
	};
	unsigned seen = 0, hidden, all;

	(void)state;
	assert_int_equal(normalise_parse("all", &all, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const unsigned bit = NORMALISE_BIT(rows[i].which);
		const struct normalise_text a = {rows[i].a, strlen(rows[i].a), window};
		const struct normalise_text b = {rows[i].b, strlen(rows[i].b), window};
		const struct normalise_text c = {rows[i].c, strlen(rows[i].c), window};

		hidden = 0;
		assert_true(normalise_equal(bit, &a, &b, &hidden));
		assert_int_equal(hidden, bit);
		assert_true(normalise_equal(all, &a, &b, &hidden));
		assert_int_equal(hidden, bit);
		assert_false(normalise_equal(all & ~bit, &a, &b, &hidden));
		assert_false(normalise_equal(all, &a, &c, &hidden));
		seen |= bit;
	}
	assert_int_equal(seen, NORMALISE_BIT(NORMALISERS) - 1); /* none was left out */
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

/* -------- those of a file -------------------------------------------------------------------------------- */

static char *temporary(const char *text)
{
	char *path = xstrdup("/tmp/sallyport-normalise-XXXXXX");
	auto_close int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
	return path;
}

static int load(const char *text, struct err *err)
{
	auto_free char *path = temporary(text);
	int result = normalise_file_load(path, err);

	unlink(path);
	return result;
}

static void left_by(unsigned which, const char *text, const char *wanted)
{
	struct buf left;

	buf_init(&left, NORMALISE_TEXT_MAX);
	normalise(which, &(struct normalise_text){text, strlen(text), window}, &left);
	buf_putc(&left, '\0');
	assert_string_equal(left.data, wanted);
	buf_clear(&left);
}

#define ONE(name, pattern, replacement)                                                                                \
	"{\"name\": \"" name "\", \"version\": 1, \"pattern\": \"" pattern "\", \"replacement\": \"" replacement "\"}"
#define LIST(list) "{\"normalisers\": [" list "]} // ours"

static void of_a_file(void **state)
{
	struct err err = ERR_INIT;
	struct buf version;
	unsigned which, hidden;

	(void)state;
	assert_int_equal(load(LIST(ONE("build", "build [0-9a-f]{8}",
				       "[BUILD] 1") "," ONE("one", "(?<=\\\\] )1", "2") "," ONE("empty", "x*", "y")),
			      &err),
			 0);
	assert_int_equal(normalise_parse("build,one", &which, &err), 0);
	left_by(which, "a build 0123abcd b\n1 build 0123abcd", "a [BUILD] 2 b\n1 [BUILD] 2"); /* in their order */
	assert_int_equal(normalise_parse("empty", &which, &err), 0);
	left_by(which, "axxb\n", "ayb\n"); /* an empty match is none */
	assert_true(normalise_defaults() & NORMALISE_BIT(NORMALISERS));
	const struct normalise_text then = {"build 00000000", 14, window}, now = {"build ffffffff", 14, window};

	assert_true(normalise_equal(normalise_defaults(), &then, &now, &hidden));
	assert_int_equal(hidden, NORMALISE_BIT(NORMALISERS));
	buf_init(&version, 4096);
	normalise_version(hidden, &version);
	buf_putc(&version, '\0');
	assert_memory_equal(version.data, "build/1:", 8);
	assert_int_equal(version.length, 8 + 16 + 1);
	buf_clear(&version);
	normalise_file_forget();
	assert_int_equal(normalise_count(), NORMALISERS);
}

/* Patterns that would take until the end of the world; lines that are bytes. */
static void no_pattern_hangs(void **state)
{
	struct err err = ERR_INIT;
	struct buf text;

	(void)state;
	assert_int_equal(load(LIST(ONE("slow", "(a+)+$", "-") "," ONE("deep", "(?:.(?:a*)*)*b", "-")), &err), 0);
	buf_init(&text, SIZE_MAX / 2);
	for (int line = 0; line < 100; line++)
		buf_puts(&text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac\n");
	buf_puts(&text, "\xff\xfe aaa");
	buf_putc(&text, '\0');
	struct buf wanted;

	buf_init(&wanted, SIZE_MAX / 2);
	buf_add(&wanted, text.data, text.length - 4);
	buf_puts(&wanted, "-");
	buf_putc(&wanted, '\0');
	left_by(NORMALISE_BIT(NORMALISERS), text.data, wanted.data);
	left_by(NORMALISE_BIT(NORMALISERS + 1), text.data, text.data);
	buf_clear(&text);
	buf_clear(&wanted);
	normalise_file_forget();
}

static void wrong_files(void **state)
{
	static const struct {
		const char *text, *says;
	} files[] = {
		{"{", "sallyport-normalise"},
		{"[]", "needs a member"},
		{"{\"normalisers\": [], \"more\": 1}", "more"},
		{LIST("1"), "an object"},
		{LIST("{\"name\": \"a\"}"), "version"},
		{LIST("{\"name\": \"a\", \"version\": 1, \"pattern\": \"a\", \"replacement\": \"\", \"x\": 1}"),
		 "\"x\""},
		{LIST(ONE("A b", "x", "y")), "small letters"},
		{LIST(ONE("json", "x", "y")), "already"},
		{LIST(ONE("default", "x", "y")), "already"},
		{LIST(ONE("a", "x", "y") "," ONE("a", "x", "y")), "already"},
		{LIST(ONE("a", "(x", "y")), "character 3"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct err err = ERR_INIT;

		assert_true(load(files[i].text, &err) < 0);
		if (!strstr(err.text, files[i].says))
			fail_msg("%s: %s", files[i].text, err.text);
		normalise_file_forget();
	}
	for (int i = 0; i <= NORMALISE_FILE_MAX; i++) {
		auto_free char *text = xasprintf(LIST(ONE("n%d", "x", "y")), i);

		assert_int_equal(load(text, NULL) < 0, i == NORMALISE_FILE_MAX);
	}
	normalise_file_forget();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_one),
		cmocka_unit_test(each_says_so),
		cmocka_unit_test(says_what_it_hid),
		cmocka_unit_test(bytes_and_long_lines),
		cmocka_unit_test(lists),
		cmocka_unit_test(of_a_file),
		cmocka_unit_test(no_pattern_hangs),
		cmocka_unit_test(wrong_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
