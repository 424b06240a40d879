/* Errors as values: codes, cutting, context, members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "lib/base/utf8.h"
#include "lib/base/util.h"

static void test_set(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(err_set(&err, ERR_BUSY, "%d wait", 64), -ERR_BUSY);
	assert_int_equal(err.code, ERR_BUSY);
	assert_string_equal(err.text, "64 wait");
	assert_string_equal(err.member, "");
	assert_int_equal(err_set(NULL, ERR_LIMIT, "nobody listens"), -ERR_LIMIT);
	assert_int_equal(err_set(&err, ERR_LIMIT, "again: %s", err.text), -ERR_LIMIT); /* its own text as argument */
	assert_string_equal(err.text, "again: 64 wait");
}

static void test_member(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(err_member(&err, "files[2].filename", "must be a %s", "string"), -ERR_INVALID);
	assert_string_equal(err.text, "files[2].filename: must be a string");
	assert_string_equal(err.member, "files[2].filename");
	assert_int_equal(err_wrap(&err, "request %d", 3), -ERR_INVALID);
	assert_string_equal(err.text, "request 3: files[2].filename: must be a string");
	assert_string_equal(err.member, "files[2].filename"); /* context does not change whose fault it is */
	assert_int_equal(err_member(NULL, "x", "y"), -ERR_INVALID);
	assert_int_equal(err_wrap(NULL, "x"), -ERR_INTERNAL);
}

static void test_errno(void **state)
{
	struct err err = ERR_INIT;
	char long_name[2000];

	(void)state;
	errno = ENOENT;
	assert_int_equal(err_errno(&err, "opening %s", "x"), -ERR_SYSTEM);
	assert_string_equal(err.text, "opening x: No such file or directory");
	memset(long_name, 'n', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	errno = EACCES;
	err_errno(&err, "opening %s", long_name);
	assert_non_null(strstr(err.text, "Permission denied")); /* the reason survives a long name */
	assert_int_equal(errno, EACCES);
}

static void test_cut(void **state)
{
	struct err err = ERR_INIT;
	char text[3 * ERR_TEXT_SIZE];

	(void)state;
	/* 511 is not a multiple of 3: the last € would be cut in two. */
	for (size_t i = 0; i + 3 < sizeof(text); i += 3)
		memcpy(text + i, "€", 4);
	err_set(&err, ERR_INTERNAL, "%s", text);
	assert_int_equal(strlen(err.text), 510);
	assert_true(utf8_valid(err.text, strlen(err.text)));
	err_member(&err, text, "is wrong");
	assert_true(utf8_valid(err.member, strlen(err.member)));
	assert_true(str_starts(err.text, err.member));
	assert_non_null(strstr(err.text, ": is wrong"));
	for (int i = 0; i < 100; i++)
		err_wrap(&err, "a context of some length");
	assert_true(strlen(err.text) < ERR_TEXT_SIZE);
}

static void test_one_clean_line(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	err_set(&err, ERR_INVALID, "%s", "a\nb\tc\x1b[31m\xff\x7f");
	assert_string_equal(err.text, "a b c?[31m??");
}

static void test_table(void **state)
{
	(void)state;
	for (int code = ERR_NONE; code < ERR_CODES; code++) {
		const struct err_info *info = err_info((enum err_code)code);

		assert_non_null(info->name);
		for (int other = ERR_NONE; other < code; other++) {
			assert_string_not_equal(info->name, err_info((enum err_code)other)->name);
			assert_int_not_equal(info->exit, err_info((enum err_code)other)->exit);
		}
		if (code != ERR_NONE) {
			assert_in_range(info->http, 400, 599);
			assert_in_range(info->exit, 1, 124);
			assert_true(info->rpc < 0);
		}
	}
	assert_string_equal(err_info((enum err_code)999)->name, "internal");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set), cmocka_unit_test(test_member),	   cmocka_unit_test(test_errno),
		cmocka_unit_test(test_cut), cmocka_unit_test(test_one_clean_line), cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
