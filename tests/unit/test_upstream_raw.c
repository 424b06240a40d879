/* test_upstream_raw.c - what other servers send: JSON by byte ranges, event streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream_raw.h"
#include "lib/upstream/upstream_sse.h"

static int check(const char *text, struct buf *out)
{
	buf_init(out, 1 << 20);
	return raw_check(text, strlen(text), out, NULL);
}

static void takes_what_servers_send(void **state)
{
	static const char *const cases[][2] = {
		{"{\"a\":1}", "{\"a\":1}"},
		{" [1,2 , 3]\n", " [1,2 , 3]\n"},
		{"18446744073709551616", "18446744073709551616"},
		{"1e999", "1e999"},
		{"{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"},
		{"\"x\\ud83d\"", "\"x\\ufffd\""},
		{"\"\\udc00\\ud83dy\"", "\"\\ufffd\\ufffdy\""},
		{"\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""},
		{"\"\\ud83d\\u0041\"", "\"\\ufffd\\u0041\""},
		{"\"\\u0000\"", "\"\\u0000\""},
		{"\"\x7f, \xc3\xa9, \xf0\x9f\x98\x80\"", "\"\x7f, \xc3\xa9, \xf0\x9f\x98\x80\""},
		{"[]", "[]"},
		{"{}", "{}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_buf struct buf out;

		assert_int_equal(check(cases[i][0], &out), 0);
		assert_string_equal(out.data, cases[i][1]);
	}
}

static void refuses_what_is_no_json(void **state)
{
	static const char *const cases[] = {
		"",
		"{",
		"{\"a\"}",
		"{\"a\":}",
		"[1,]",
		"[1 2]",
		"01",
		"1.",
		"-",
		"nul",
		"\"a",
		"\"\\x\"",
		"\"\n\"",
		"{a:1}",
		"'a'",
		"NaN",
		"1 2",
		"\"\xff\"",
		"\"\\u12\"",
		"[1}",
		"{,}",
		"[,1]",
		"true1",
		"\"plain, then \xff\"",
		"\"plain, then \x01\"",
		"\"plain",
	};
	auto_buf struct buf deep, out;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_buf struct buf one;

		assert_true(check(cases[i], &one) < 0);
	}
	buf_init(&deep, 1 << 20);
	for (int i = 0; i < 100000; i++)
		buf_putc(&deep, '[');
	assert_true(check(deep.data, &out) < 0);
}

static void finds_members(void **state)
{
	static const char text[] =
		"{ \"a\" : [1, \"]\\\"}\", {\"b\":2}], \"n\":-12, \"s\":\"x\\u0041\", \"d\":1, \"d\": {} }";
	struct raw object = raw_value(text, strlen(text)), item;
	auto_free char *string = raw_string(raw_member(object, "s"));
	size_t at = 0, items = 0;
	int64_t number;

	(void)state;
	assert_true(raw_int(raw_member(object, "n"), &number));
	assert_int_equal(number, -12);
	assert_string_equal(string, "xA");
	assert_true(raw_is(raw_member(object, "d"), "{}"));
	assert_null(raw_member(object, "x").text);
	assert_null(raw_member(raw_member(object, "n"), "x").text);
	while (raw_item(raw_member(object, "a"), &at, &item))
		items++;
	assert_int_equal(items, 3);
	assert_true(raw_is(raw_member(item, "b"), "2"));
	at = 0;
	assert_false(raw_item(raw_value("[ ]", 3), &at, &item));
}

/* Several names at once are as good as each by itself. */
static void finds_several(void **state)
{
	static const char text[] = "{\"id\":1,\"result\":{\"id\":2,\"error\":3},\"i\\u0064\":[4],\"x\":5}";
	static const char *const names[] = {"error", "id", "result", "x", "id"};
	struct raw found[ARRAY_SIZE(names)], object = raw_value(text, strlen(text));

	(void)state;
	raw_members(object, names, ARRAY_SIZE(names), found);
	assert_null(found[0].text);
	assert_true(raw_is(found[1], "[4]"));
	assert_true(raw_is(found[2], "{\"id\":2,\"error\":3}"));
	assert_true(raw_is(found[3], "5"));
	assert_ptr_equal(found[4].text, found[1].text);
	raw_members(found[3], names, ARRAY_SIZE(names), found);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_null(found[i].text);
}

/* Strings end where they end, whatever they hold. */
static void walks_every_member_once(void **state)
{
	static const char text[] = " { \"a\" : 1,\"b\":{\"c\":[1,{}] } , \"a\":\"x}\" }";
	static const char *const expected[][2] = {{"\"a\"", "1"}, {"\"b\"", "{\"c\":[1,{}] }"}, {"\"a\"", "\"x}\""}};
	const struct raw object = raw_value(text, strlen(text)),
			 none[] = {raw_value("{ }", 3), raw_value("[1]", 3), {NULL, 0}};
	struct raw name, value;
	size_t at = 0, count = 0;

	(void)state;
	for (; raw_next(object, &at, &name, &value); count++) {
		assert_true(count < ARRAY_SIZE(expected));
		assert_true(raw_is(name, expected[count][0]));
		assert_true(raw_is(value, expected[count][1]));
	}
	assert_int_equal(count, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		at = 0;
		assert_false(raw_next(none[i], &at, &name, &value));
	}
}

static void passes_strings(void **state)
{
	static const char *const strings[] = {
		"",       "\\\\",      "x\\\"",   "\\\"\\\"",
		"a,}]{[", "a\\\\\\\\", "\\u0022", "\xc3\xa9, of more than sixteen bytes\\\", which is not its end",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		auto_free char *text =
			xasprintf("{\"%s.\":[\"%s\"],\"b\":\"%s\",\"c\":7}", strings[i], strings[i], strings[i]);
		auto_free char *b = xasprintf("\"%s\"", strings[i]);
		const struct raw object = raw_value(text, strlen(text));

		assert_true(raw_is(raw_member(object, "b"), b));
		assert_true(raw_is(raw_member(object, "c"), "7"));
		assert_null(raw_member(object, "d").text);
	}
}

static void canonical_is_one_text(void **state)
{
	static const char one[] = "{\"b\": [1, {\"y\":1,\"x\":2}], \"a\":\"t\"}",
			  two[] = "{\"a\":\"t\",\"b\":[1,{\"x\":2,\"y\":1}]}";
	auto_buf struct buf a, b;

	(void)state;
	buf_init(&a, 1000);
	buf_init(&b, 1000);
	raw_canonical(&a, raw_value(one, strlen(one)));
	raw_canonical(&b, raw_value(two, strlen(two)));
	assert_string_equal(a.data, two);
	assert_string_equal(b.data, two);
}

static bool note_event(void *arg, const char *type, const char *text, size_t length)
{
	buf_printf(arg, "<%s:%.*s>", type, (int)length, text);
	return true;
}

static void reads_streams_in_any_pieces(void **state)
{
	static const char stream[] =
		"\xef\xbb\xbf: hello\r\ndata: one\r\ndata:two\r\n\r\nevent: ping\rdata:  x\r\rid: 7\nretry: 250\n"
		"data\n\nid\n\ndata:unfinished";

	(void)state;
	for (size_t piece = 1; piece < sizeof(stream); piece++) {
		struct sse_reader reader;
		auto_buf struct buf events;

		buf_init(&events, 1000);
		sse_reader_init(&reader, 1000);
		for (size_t at = 0; at < sizeof(stream) - 1; at += piece)
			assert_true(sse_reader_read(&reader, stream + at, MIN(piece, sizeof(stream) - 1 - at),
						    note_event, &events));
		assert_string_equal(events.data, "<message:one\ntwo><ping: x><message:>");
		assert_int_equal(reader.retry_ms, 250);
		assert_string_equal(reader.id, "");
		sse_reader_clear(&reader);
	}
}

static void streams_are_bounded(void **state)
{
	struct sse_reader reader;
	auto_buf struct buf events;

	(void)state;
	buf_init(&events, 1000);
	sse_reader_init(&reader, 10);
	assert_true(sse_reader_read(&reader, "data:12345", 10, note_event, &events));
	assert_false(sse_reader_read(&reader, "6", 1, note_event, &events));
	assert_true(reader.overflow);
	sse_reader_clear(&reader);
	sse_reader_init(&reader, 10);
	for (int i = 0; i < 20 && !reader.overflow; i++)
		sse_reader_read(&reader, "data:a\n", 7, note_event, &events);
	assert_true(reader.overflow);
	sse_reader_clear(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_servers_send), cmocka_unit_test(refuses_what_is_no_json),
		cmocka_unit_test(finds_members),           cmocka_unit_test(finds_several),
		cmocka_unit_test(walks_every_member_once), cmocka_unit_test(passes_strings),
		cmocka_unit_test(canonical_is_one_text),   cmocka_unit_test(reads_streams_in_any_pieces),
		cmocka_unit_test(streams_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
