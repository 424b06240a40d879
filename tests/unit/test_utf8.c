/* What is UTF-8, and what becomes of what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define BYTES(text) text, sizeof(text) - 1

static void test_valid(void **state)
{
	static const struct {
		const char *data;
		size_t length;
		bool valid;
	} cases[] = {
		{BYTES(""), true},
		{BYTES("plain\0with NUL"), true},
		{BYTES("\xc2\x80"), true},
		{BYTES("\xdf\xbf"), true},
		{BYTES("\xe0\xa0\x80"), true},
		{BYTES("\xed\x9f\xbf"), true},
		{BYTES("\xee\x80\x80"), true},
		{BYTES("\xef\xbf\xbf"), true},
		{BYTES("\xf0\x90\x80\x80"), true},
		{BYTES("\xf4\x8f\xbf\xbf"), true},
		{BYTES("\x80"), false},
		{BYTES("\xc0\x80"), false},		 /* NUL in two bytes */
		{BYTES("\xc1\xbf"), false},		 /* overlong */
		{BYTES("\xe0\x9f\xbf"), false},		 /* overlong */
		{BYTES("\xf0\x8f\xbf\xbf"), false},	 /* overlong */
		{BYTES("\xed\xa0\x80"), false},		 /* surrogates */
		{BYTES("\xed\xbf\xbf"), false},
		{BYTES("\xf4\x90\x80\x80"), false},	 /* beyond U+10FFFF */
		{BYTES("\xf5\x80\x80\x80"), false},
		{BYTES("\xf8\x88\x80\x80\x80"), false},
		{BYTES("\xff"), false},
		{BYTES("\xc2"), false},			 /* cut */
		{BYTES("\xe2\x82"), false},
		{BYTES("\xf0\x9f\x98"), false},
		{BYTES("\xe2\x28\xa1"), false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(utf8_valid(cases[i].data, cases[i].length), cases[i].valid);
}

/* Every code point, encoded by hand, is one character; every surrogate is none. */
static void test_all_code_points(void **state)
{
	(void)state;
	for (uint32_t code = 0x800; code <= 0x10ffff; code++) {
		char wide[4] = {(char)(0xf0 | code >> 18), (char)(0x80 | (code >> 12 & 63)),
				(char)(0x80 | (code >> 6 & 63)), (char)(0x80 | (code & 63))};
		char narrow[3] = {(char)(0xe0 | code >> 12), (char)(0x80 | (code >> 6 & 63)),
				  (char)(0x80 | (code & 63))};
		bool surrogate = code >= 0xd800 && code <= 0xdfff;

		if (code < 0x10000)
			assert_int_equal(utf8_length(narrow, 3), surrogate ? 0 : 3);
		assert_int_equal(utf8_length(wide, 4), code < 0x10000 ? 0 : 4);
	}
}

static void test_safe(void **state)
{
	auto_buf struct buf out = {0};

	(void)state;
	buf_init(&out, 1000);
	assert_int_equal(utf8_safe(&out, BYTES("a\xff\xe2\x82€\n\xc3")), 4);
	assert_string_equal(out.data, "a\\xff\\xe2\\x82€\n\\xc3");
	buf_reset(&out);
	assert_int_equal(utf8_safe(&out, BYTES("plain é\0.")), 0);
	assert_int_equal(out.length, 10);
	assert_memory_equal(out.data, "plain é\0.", 11);
}

static void test_cut(void **state)
{
	const char *text = "a€b😀"; /* at 0, 1, 4, 5; 9 bytes */
	static const size_t expected[] = {0, 1, 1, 1, 4, 5, 5, 5, 5, 9, 9};

	(void)state;
	for (size_t max = 0; max < ARRAY_SIZE(expected); max++)
		assert_int_equal(utf8_cut(text, 9, max), expected[max]);
	/* Bytes that are no characters may be cut anywhere, but no more than asked. */
	assert_int_equal(utf8_cut(BYTES("\x80\x80\x80\x80\x80\x80"), 5), 5);
	assert_int_equal(utf8_cut(BYTES("\xff\xff\xff"), 2), 2);
	assert_int_equal(utf8_cut(BYTES("\xe2\x82" "ab"), 1), 1);
}

static void test_printable(void **state)
{
	auto_buf struct buf out = {0};

	(void)state;
	buf_init(&out, 1000);
	utf8_printable(&out, BYTES("é\x1b[2J\n\x7f\xc2\x9b\xe2\x80\xae\xe2\x81\xa6\xfe."));
	assert_string_equal(out.data, "é\\x1b[2J\\x0a\\x7f\\xc2\\x9b\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xfe.");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid), cmocka_unit_test(test_all_code_points), cmocka_unit_test(test_safe),
		cmocka_unit_test(test_cut),   cmocka_unit_test(test_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
