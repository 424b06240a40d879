/* Strict JSON: what is refused and where, what survives a round trip, and that hostile input costs no more than honest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <limits.h>
#include <math.h>

#include "lib/base/json.h"
#include "lib/base/util.h"

#define BYTES(text) text, sizeof(text) - 1

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		size_t length;
		const char *why;
	} cases[] = {
		{BYTES(""), "ends too early at byte 1"},
		{BYTES(" \n"), "ends too early at byte 3 (line 2)"},
		{BYTES("{"), "ends too early"},
		{BYTES("[1"), "ends too early"},
		{BYTES("[1,"), "ends too early"},
		{BYTES("[1,]"), "a comma before the closing bracket (remove it) at byte 4"},
		{BYTES("[,1]"), "unexpected character at byte 2"},
		{BYTES("[1 2]"), "neither a comma nor a closing bracket"},
		{BYTES("{\"a\":1,}"), "a comma before the closing brace (remove it)"},
		{BYTES("{\"a\" 1}"), "no colon"},
		{BYTES("{\"a\":1 \"b\":2}"), "neither a comma nor a closing brace"},
		{BYTES("{'a':1}"), "a string was expected at byte 2"},
		{BYTES("{a:1}"), "a string was expected"},
		{BYTES("{\"a\":1,\"a\":2}"), "there before at byte 8"},
		{BYTES("{\"a\":1,\"\\u0061\":2}"), "there before"},
		{BYTES("{\"\":1,\"b\":[{}],\"\":2}"), "there before"},
		{BYTES("{\"\\ud83d\\ude00\":1,\"😀\":2}"), "there before"},
		{BYTES("{\"x\":{\"y\":1,\"y\":2}}"), "there before"},
		{BYTES("{\"a\\u0000b\":1}"), "a NUL in a member's name"},
		{BYTES("\"\\ud800\""), "surrogate"},
		{BYTES("\"\\ud800\\u0041\""), "surrogate"},
		{BYTES("\"\\udc00\""), "surrogate"},
		{BYTES("\"\\ud800\\ud800\""), "surrogate"},
		{BYTES("\"\\u12g4\""), "four hex digits"},
		{BYTES("\"\\u12"), "four hex digits"},
		{BYTES("\"\\x41\""), "unknown escape"},
		{BYTES("\"\\"), "ends too early"},
		{BYTES("\"abc"), "ends too early"},
		{BYTES("\"a\nb\""), "raw control character"},
		{BYTES("\"a\0b\""), "raw control character"},
		{BYTES("\"\xff\""), "not UTF-8 at byte 2"},
		{BYTES("\"\xed\xa0\x80\""), "not UTF-8"},
		{BYTES("\xef\xbb\xbf{}"), "unexpected character at byte 1"},
		{BYTES("NaN"), "unexpected character"},
		{BYTES("Infinity"), "unexpected character"},
		{BYTES("-Infinity"), "no digit after the minus"},
		{BYTES("-"), "ends too early"},
		{BYTES("+1"), "unexpected character"},
		{BYTES("01"), "leading zero"},
		{BYTES("-01"), "leading zero"},
		{BYTES("1."), "ends too early"},
		{BYTES("[1.]"), "decimal point"},
		{BYTES(".5"), "unexpected character"},
		{BYTES("[1e]"), "exponent"},
		{BYTES("[1e+]"), "exponent"},
		{BYTES("0x10"), "behind the end"},
		{BYTES("9223372036854775808"), "beyond 64 bits"},
		{BYTES("-9223372036854775809"), "beyond 64 bits"},
		{BYTES("10000000000000000000000"), "beyond 64 bits"},
		{BYTES("1e309"), "range of a double"},
		{BYTES("-1e999999999"), "range of a double"},
		{BYTES("tru"), "unexpected character"},
		{BYTES("nulll"), "behind the end"},
		{BYTES("{} {}"), "behind the end"},
		{BYTES("1,"), "behind the end"},
		{BYTES("/* c */ 1"), "unexpected character"},
		{BYTES("\x0c" "1"), "unexpected character"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		struct json_object *object = NULL;

		assert_int_equal(json_scan(cases[i].text, cases[i].length, &err), -ERR_INVALID);
		if (strstr(err.text, cases[i].why) == NULL)
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i].text, err.text, cases[i].why);
		assert_int_equal(json_parse(cases[i].text, cases[i].length, &object, NULL), -ERR_INVALID);
		assert_null(object);
	}
}

static void check_print(const char *text, size_t length, const char *expected)
{
	struct err err = ERR_INIT;
	auto_json struct json_object *object = NULL;
	auto_buf struct buf out = {0};

	buf_init(&out, 1 << 20);
	if (json_parse(text, length, &object, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	json_print(&out, object);
	assert_string_equal(out.data, expected);
}

/* What clients send: a byte order mark is passed over, half of a surrogate pair is U+FFFD; all else is as ever. */
static void test_received(void **state)
{
	static const struct {
		const char *text, *printed;
	} cases[] = {
		{"\xef\xbb\xbf{\"a\":1}", "{\"a\":1}"},
		{"\xef\xbb\xbf", NULL},
		{" \xef\xbb\xbf{}", NULL},
		{"\"\\ud83d\"", "\"\xef\xbf\xbd\""},
		{"\"a\\udc00b\"", "\"a\xef\xbf\xbd" "b\""},
		{"\"\\ud83d\\u0041\"", "\"\xef\xbf\xbd" "A\""},
		{"\"\\ud83d\\n\"", "\"\xef\xbf\xbd\\n\""},
		{"\"\\ud83d\\ud83d\\ude00\"", "\"\xef\xbf\xbd\xf0\x9f\x98\x80\""},
		{"{\"\\ud800\":1}", "{\"\xef\xbf\xbd\":1}"},
		{"{\"\\ud800\":1,\"\\ud801\":2}", NULL},
		{"\"\\ud83\"", NULL},
		{"\"\\ufffd\\ud83d\\ude00\"", "\"\xef\xbf\xbd\xf0\x9f\x98\x80\""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_json struct json_object *object = NULL;
		auto_buf struct buf out = {0};
		int result = json_parse_received(cases[i].text, strlen(cases[i].text), &object, NULL);

		assert_int_equal(result, cases[i].printed ? 0 : -ERR_INVALID);
		buf_init(&out, 1000);
		json_print(&out, object);
		if (cases[i].printed)
			assert_string_equal(out.data, cases[i].printed);
	}
}

static void test_budget(void **state)
{
	auto_json struct json_object *object = NULL, *other = NULL;
	int values = 5;

	(void)state;
	assert_int_equal(json_parse_budget("[1,2]", 5, &values, &object, NULL), 0);
	assert_int_equal(values, 2);
	assert_int_equal(json_parse_budget("[1,2]", 5, &values, &other, NULL), -ERR_INVALID);
	assert_int_equal(values, 0);
	assert_null(other);
}

/* Text that is JSON already is printed as it is, and only that: the same text as a string is quoted. */
static void test_printed(void **state)
{
	static const char text[] = "[{\"a\":1}, null]";
	auto_json struct json_object *object = json_object_new_object();
	auto_buf struct buf out = {0};

	(void)state;
	buf_init(&out, 1 << 20);
	json_add(object, "list", json_new_printed(text, strlen(text)));
	json_add_string(object, "text", text);
	json_print(&out, object);
	assert_string_equal(out.data, "{\"list\":[{\"a\":1}, null],\"text\":\"[{\\\"a\\\":1}, null]\"}");
}

static void test_round_trip(void **state)
{
	static const struct {
		const char *text;
		size_t length;
		const char *printed;
	} cases[] = {
		{BYTES("null"), "null"},
		{BYTES(" true "), "true"},
		{BYTES("0"), "0"},
		{BYTES("123"), "123"},
		{BYTES("9223372036854775807"), "9223372036854775807"},
		{BYTES("-9223372036854775808"), "-9223372036854775808"},
		{BYTES("0.1"), "0.1"},
		{BYTES("0.30000000000000004"), "0.30000000000000004"},
		{BYTES("3.0"), "3.0"},
		{BYTES("1e2"), "100.0"},
		{BYTES("1E+22"), "1e+22"},
		{BYTES("5e-324"), "5e-324"},
		{BYTES("1.7976931348623157e308"), "1.7976931348623157e+308"},
		{BYTES("[]"), "[]"},
		{BYTES("{}"), "{}"},
		{BYTES("\t{ \"b\" : [ 1 , {\"c\":null} ] , \"a\" : \"\" }\r\n"), "{\"b\":[1,{\"c\":null}],\"a\":\"\"}"},
		{BYTES("\"\\u0000\\b\\f\\n\\r\\t\\\"\\\\\\/\\u001f\x7f\""),
		 "\"\\u0000\\b\\f\\n\\r\\t\\\"\\\\/\\u001f\x7f\""},
		{BYTES("\"\\u20ac\\ud83d\\ude00€\""), "\"€😀€\""},
		{BYTES("\"\\ud836\\uDE00\\\\ud836\""),
		 "\"\xf0\x9d\xa8\x80\\\\ud836\""}, /* json-c 0.16 makes the first U+FFFD */
		{BYTES("{\"a\":{\"a\":1},\"b\":{\"a\":1}}"), "{\"a\":{\"a\":1},\"b\":{\"a\":1}}"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_print(cases[i].text, cases[i].length, cases[i].printed);
	check_print("123", 2, "12"); /* the length counts, not a NUL */
}

static void test_nul_in_value(void **state)
{
	auto_json struct json_object *object = NULL;

	(void)state;
	assert_int_equal(json_parse(BYTES("{\"a\":\"x\\u0000y\",\"b\":\"plain\",\"c\":7}"), &object, NULL), 0);
	assert_int_equal(json_object_get_string_len(json_get(object, "a", json_type_string)), 3);
	assert_null(json_get_string(object, "a")); /* a C string would be cut */
	assert_string_equal(json_get_string(object, "b"), "plain");
	assert_null(json_get_string(object, "c"));
	assert_null(json_get_string(object, "d"));
	assert_null(json_get_string(NULL, "d"));
	assert_non_null(json_get(object, "c", json_type_int));
}

static void test_depth(void **state)
{
	char text[4 * JSON_DEPTH_MAX + 8];

	(void)state;
	for (int objects = 0; objects < 2; objects++)
		for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
			struct err err = ERR_INIT;
			auto_json struct json_object *object = NULL;
			auto_buf struct buf buf = {0};
			int expected = depth <= JSON_DEPTH_MAX ? 0 : -ERR_INVALID;

			buf_init(&buf, 64 * sizeof(text));
			for (size_t i = 0; i < depth; i++)
				buf_puts(&buf, objects ? "{\"a\":" : "[");
			buf_puts(&buf, "7");
			for (size_t i = 0; i < depth; i++)
				buf_putc(&buf, objects ? '}' : ']');
			assert_int_equal(json_parse(buf.data, buf.length, &object, &err), expected);
			if (expected < 0)
				assert_non_null(strstr(err.text, "more than 64 levels"));
		}
	/* A million brackets do not reach the stack. */
	auto_free char *deep = xmalloc(1000000);

	memset(deep, '[', 1000000);
	assert_int_equal(json_scan(deep, 1000000, NULL), -ERR_INVALID);
}

/* Counted before anything is built, wherever they stand: a list, members, lists within a list. */
static void test_values(void **state)
{
	static const struct {
		const char *begin, *value, *end;
		int values, others; /* in `value`; around them */
	} cases[] = {{"[", "{}", "]", 1, 1},
		     {"[", "7", "]", 1, 1},
		     {"{\"a\":[", "[[]]", "]}", 2, 2},
		     {"[", "{\"k\":0}", "]", 2, 1}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int more = 0; more < 2; more++) {
			struct err err = ERR_INIT;
			auto_json struct json_object *object = NULL;
			auto_buf struct buf buf = {0};
			int count = (JSON_VALUES_MAX - cases[i].others) / cases[i].values + more;

			buf_init(&buf, 16 << 20);
			buf_puts(&buf, cases[i].begin);
			for (int n = 0; n < count; n++)
				buf_printf(&buf, "%s%s", n > 0 ? "," : "", cases[i].value);
			buf_puts(&buf, cases[i].end);
			assert_int_equal(json_parse(buf.data, buf.length, &object, &err), more ? -ERR_INVALID : 0);
			if (more)
				assert_non_null(strstr(err.text, "more than 262144 values"));
		}
}

static int scan_keys(size_t count, const char *last)
{
	auto_buf struct buf buf = {0};

	buf_init(&buf, 64 << 20);
	for (size_t i = 0; i < count; i++)
		buf_printf(&buf, "%s\"a very common beginning of all keys %zu\":0", i > 0 ? "," : "{", i);
	buf_puts(&buf, last);
	return json_scan(buf.data, buf.length, NULL);
}

static void test_members(void **state)
{
	(void)state;
	assert_int_equal(scan_keys(JSON_KEYS_MAX, "}"), 0);
	assert_int_equal(scan_keys(JSON_KEYS_MAX - 1, ",\"a very common beginning of all keys 0\":0}"), -ERR_INVALID);
	assert_int_equal(scan_keys(JSON_KEYS_MAX + 1, "}"), -ERR_INVALID);
}

static void test_comments(void **state)
{
	struct err err = ERR_INIT;
	auto_json struct json_object *object = NULL;
	static const char text[] =
		"// first\n{ /* a\n b */ \"url\": \"http://x/*y*/\", // no\n \"q\": \"\\\"//\" /**/ }";

	(void)state;
	assert_int_equal(json_parse_commented(text, sizeof(text) - 1, &object, &err), 0);
	assert_string_equal(json_get_string(object, "url"), "http://x/*y*/");
	assert_string_equal(json_get_string(object, "q"), "\"//");

	struct json_object *none = NULL;

	assert_int_equal(json_parse_commented(BYTES("{} /* open"), &none, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "comment at byte 4"));
	assert_int_equal(json_parse_commented(BYTES("{} /*/"), &none, &err), -ERR_INVALID);
	assert_int_equal(json_parse_commented(BYTES("/"), &none, &err), -ERR_INVALID);
	assert_int_equal(json_parse_commented(BYTES("// c\n\n[1,,2]"), &none, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "line 3")); /* blanking keeps the lines */
	assert_null(none);
}

static void test_build(void **state)
{
	auto_json struct json_object *object = json_object_new_object();
	auto_buf struct buf out = {0};

	(void)state;
	buf_init(&out, 10000);
	json_add_string(object, "s", "a/b");
	json_add_string(object, "none", NULL);
	json_add_int(object, "i", INT64_MIN);
	json_add_bool(object, "b", true);
	json_add_bytes(object, "bytes", BYTES("ok\0\xff"));
	json_add(object, "nan", json_object_new_double(NAN));
	json_add(object, "d", json_object_new_double(0.1));
	json_add(object, "raw", json_object_new_string_len("\xc3", 1)); /* put in by somebody who did not look */
	json_print(&out, object);
	assert_string_equal(
		out.data,
		"{\"s\":\"a/b\",\"none\":null,\"i\":-9223372036854775808,\"b\":true,\"bytes\":\"ok\\u0000\\\\xff\","
		"\"nan\":null,\"d\":0.1,\"raw\":\"\\\\xc3\"}");
	assert_int_equal(json_scan(out.data, out.length, NULL), 0);
}

static void test_pretty(void **state)
{
	auto_json struct json_object *object = NULL;
	auto_buf struct buf out = {0};

	(void)state;
	buf_init(&out, 1000);
	assert_int_equal(json_parse(BYTES("{\"a\":[1,{}],\"b\":[]}"), &object, NULL), 0);
	json_print_pretty(&out, object);
	assert_string_equal(out.data, "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
}

static void test_rounded(void **state)
{
	auto_json struct json_object *object = json_object_new_object();
	auto_buf struct buf out = {0};

	(void)state;
	buf_init(&out, 1000);
	json_add_rounded(object, "sum", 0.1 + 0.2, 12);
	json_add_rounded(object, "seconds", 2.3456, 2);
	json_add_rounded(object, "whole", 1, 2);
	json_add_rounded(object, "less", -0.004, 2);
	json_add_rounded(object, "most", DBL_MAX, 2);
	json_add_rounded(object, "none", INFINITY, 2);
	json_print(&out, object);
	assert_string_equal(out.data, "{\"sum\":0.3,\"seconds\":2.35,\"whole\":1.0,\"less\":0.0,"
				      "\"most\":1.7976931348623157e+308,\"none\":null}");
}

/* Doubles of all magnitudes read back as themselves and are never longer than 17 digits need. */
static void test_doubles(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15u;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		double value;
		auto_buf struct buf out = {0};
		auto_json struct json_object *object = NULL, *back = NULL;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(&value, &seed, sizeof(value));
		if (!isfinite(value))
			continue;
		object = json_object_new_double(value);
		buf_init(&out, 100);
		json_print(&out, object);
		assert_true(out.length <= 26);
		assert_int_equal(json_parse(out.data, out.length, &back, NULL), 0);
		assert_true(json_object_is_type(back, json_type_double));
		assert_true(json_object_get_double(back) == value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_received),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_printed),	cmocka_unit_test(test_refused),
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_nul_in_value),
		cmocka_unit_test(test_depth),	cmocka_unit_test(test_values),
		cmocka_unit_test(test_members),	   cmocka_unit_test(test_comments),
		cmocka_unit_test(test_build),	cmocka_unit_test(test_pretty),	   cmocka_unit_test(test_doubles),
		cmocka_unit_test(test_rounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
