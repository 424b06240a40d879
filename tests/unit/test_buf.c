/* Growing buffers and their maximum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/buf.h"
#include "lib/base/util.h"

static void test_grow(void **state)
{
	auto_buf struct buf buf = {0};

	(void)state;
	buf_init(&buf, 1 << 20);
	assert_string_equal(buf.data, "");
	for (int i = 0; i < 1000; i++)
		buf_printf(&buf, "%03d", i);
	assert_int_equal(buf.length, 3000);
	assert_memory_equal(buf.data + 2997, "999", 4); /* and the NUL */
	buf_reset(&buf);
	assert_string_equal(buf.data, "");
	buf_add(&buf, "a\0b", 3);
	buf_putc(&buf, 'c');
	buf_puts(&buf, "");
	assert_int_equal(buf.length, 4);
	assert_memory_equal(buf.data, "a\0bc", 5);
	assert_false(buf.overflow);
}

static void test_maximum(void **state)
{
	auto_buf struct buf buf = {0};

	(void)state;
	buf_init(&buf, 5);
	buf_puts(&buf, "abc");
	buf_puts(&buf, "de");
	assert_false(buf.overflow); /* exactly full is no overflow */
	buf_puts(&buf, "");
	assert_false(buf.overflow);
	buf_putc(&buf, 'f');
	assert_true(buf.overflow);
	assert_string_equal(buf.data, "abcde");
	buf_reset(&buf);
	buf_puts(&buf, "abcdefgh");
	assert_true(buf.overflow);
	assert_string_equal(buf.data, "abcde"); /* what fits stays */
	buf_puts(&buf, "");
	buf_printf(&buf, "%s", "later");
	assert_string_equal(buf.data, "abcde");

	auto_buf struct buf none = {0};

	buf_init(&none, 0);
	buf_putc(&none, 'x');
	assert_true(none.overflow);
	assert_string_equal(none.data, "");
}

static void test_long_format(void **state)
{
	auto_buf struct buf buf = {0};
	char text[5000];

	(void)state;
	buf_init(&buf, sizeof(text));
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	buf_printf(&buf, "%s", text);
	assert_string_equal(buf.data, text);
	assert_false(buf.overflow);
}

static void test_steal(void **state)
{
	auto_buf struct buf buf = {0};
	size_t length = 9;

	(void)state;
	buf_init(&buf, 100);
	auto_free char *empty = buf_steal(&buf, &length);

	assert_string_equal(empty, "");
	assert_int_equal(length, 0);
	buf_puts(&buf, "text");
	auto_free char *text = buf_steal(&buf, &length);

	assert_string_equal(text, "text");
	assert_int_equal(length, 4);
	assert_string_equal(buf.data, "");
	buf_puts(&buf, "again");
	assert_string_equal(buf.data, "again");
	buf_clear(&buf);
	buf_clear(&buf); /* twice does no harm */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_maximum),
		cmocka_unit_test(test_long_format),
		cmocka_unit_test(test_steal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
