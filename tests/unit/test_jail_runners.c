/* Which runner is meant by a name, an alias or a file's extension. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jail/client/client_runners.h"
#include "lib/base/util.h"

static const char list_text[] = "[{\"name\":\"python\",\"aliases\":[\"py\",\"python3\"],\"extensions\":[\".py\"]},"
				"{\"name\":\"c++\",\"aliases\":[\"cpp\"],\"extensions\":[\".cc\",\"cpp\"]},"
				"{\"name\":\"bare\"}]";

static struct json_object *parse(void)
{
	struct json_object *list;

	assert_int_equal(json_parse(list_text, strlen(list_text), &list, NULL), 0);
	return list;
}

/* "" where there is none. */
static const char *name_of(struct json_object *runner)
{
	return runner ? json_get_string(runner, "name") : "";
}

static void by_name(void **state)
{
	auto_json struct json_object *list = parse();

	(void)state;
	assert_string_equal(name_of(jail_runner_named(list, "python")), "python");
	assert_string_equal(name_of(jail_runner_named(list, "python3")), "python");
	assert_string_equal(name_of(jail_runner_named(list, "cpp")), "c++");
	assert_string_equal(name_of(jail_runner_named(list, "bare")), "bare");
	assert_null(jail_runner_named(list, ".py"));
	assert_non_null(jail_runner_named(list, "Python"));
	assert_null(jail_runner_named(list, ""));
	assert_null(jail_runner_named(NULL, "python"));
}

static void by_extension(void **state)
{
	auto_json struct json_object *list = parse();

	(void)state;
	assert_string_equal(name_of(jail_runner_for_file(list, "main.py")), "python");
	assert_string_equal(name_of(jail_runner_for_file(list, "a.cc/b.tar.py")), "python");
	assert_string_equal(name_of(jail_runner_for_file(list, "/x/y.cc")), "c++");
	assert_string_equal(name_of(jail_runner_for_file(list, "y.cpp")),
			    "c++"); /* a runner file may leave the dot out */
	assert_null(jail_runner_for_file(list, "x.py/plain"));
	assert_null(jail_runner_for_file(list, "py"));
	assert_null(jail_runner_for_file(list, ".py")); /* a hidden file has a name and no extension */
	assert_null(jail_runner_for_file(list, "main.py."));
	assert_null(jail_runner_for_file(list, "-"));
	assert_null(jail_runner_for_file(NULL, "main.py"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name),
		cmocka_unit_test(by_extension),
	};

	return cmocka_run_group_tests_name("jail runners", tests, NULL, NULL);
}
