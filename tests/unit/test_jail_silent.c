/* Programs that have nothing to show, told by their text: jail/silent.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jail/silent.h"
#include "lib/base/util.h"

#define RUNNERS "jail/runners"

static struct runners runners;

static int load(void **state)
{
	static const struct runners_host host = {.modules_dir = "", .state_dir = ""};

	(void)state;
	return runners_load(RUNNERS, &host, &runners, NULL);
}

static int unload(void **state)
{
	(void)state;
	runners_clear(&runners);
	return 0;
}

static bool silent(const char *text)
{
	return silent_text(runners_find(&runners, "python"), text, strlen(text));
}

static void ends(void **state)
{
	static const char *const quiet[] = {
		"print(1)",
		"x = 1\nprint(x, (2, [3]), ')', \"(\")  \n\n",
		"x = '''a\nb'''\nprint(f'{x}\\'')",
		"def main():\n    \"\"\"Says it.\"\"\"\n    print(1)\n\nif __name__ == '__main__':\n    main()\n",
		"for i in range(3):\n\tprint(i)",
	};
	static const char *const loud[] = {
		"",
		"40 + 2",
		"print",
		"print(1), (2)",
		"print(1) or f(2)",
		"print(1); (2)",
		"print(1);",
		"print(1)(2",
		"print('",
		"print(1) # (2)",
		"sprint(1)",
		"x = 1\nx",
		"f(\n  print(1))",
		"f(\n  print(1)\n)",
		"f('''\nprint(1)''')",
		"f('''\nif x:\n  y''')",
		"if x: y\nz",
		"for i in a:\n  print(i)\ni",
		"if x:\n  y\r\nz",
		"if x:\r  y",
		"# no\nprint(\n1)",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(quiet); i++)
		if (!silent(quiet[i]))
			fail_msg("not silent: %s", quiet[i]);
	for (size_t i = 0; i < ARRAY_SIZE(loud); i++)
		if (silent(loud[i]))
			fail_msg("silent: %s", loud[i]);
	assert_false(silent_text(runners_find(&runners, "python"), "x\0print(1)", 10));
	assert_false(silent_text(runners_find(&runners, "bash"), "print(1)", 8));
}

static void imports(void **state)
{
	static const char *const quiet[] = {
		"import json",
		"import json, os.path as p , sys # why",
		"  from os.path import join, split as s",
		"from __future__ import annotations",
		"from json import (\n  loads,\n  dumps)",
	};
	static const char *const loud[] = {
		"import matplotlib.pyplot as plt",
		"import json, helper",
		"import json; import helper",
		"import json, helper # json",
		"from helper import json",
		"from . import json",
		"from json import x; import helper",
		"import jsonx",
		"import",
		"import (json)",
		"x = 1; import helper",
		"__import__('helper')",
		"import importlib",
		"important = 1",
		"exec(open('a').read())",
		"e = eval",
		"import json # import",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(quiet); i++) {
		auto_free char *text = xasprintf("%s\nprint(1)", quiet[i]);

		if (!silent(text))
			fail_msg("not silent: %s", text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(loud); i++) {
		auto_free char *text = xasprintf("%s\nprint(1)", loud[i]);

		if (silent(text))
			fail_msg("silent: %s", text);
	}
}

static void files(void **state)
{
	const struct runner *python = runners_find(&runners, "python");
	auto_free char *longest = xcalloc(1, SILENT_TEXT_MAX + 2);

	(void)state;
	memset(longest, '\n', SILENT_TEXT_MAX + 1);
	memcpy(longest, "print(1)", 8);
	auto_close int most = memfd_with("text", longest, SILENT_TEXT_MAX);
	auto_close int more = memfd_with("text", longest, SILENT_TEXT_MAX + 1);
	assert_true(silent_file(python, most));
	assert_int_equal(lseek(most, 0, SEEK_CUR), 0);
	assert_false(silent_file(python, more));
	assert_false(silent_file(python, -1));
	assert_false(silent_file(runners_find(&runners, "bash"), most));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),
		cmocka_unit_test(imports),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests_name("silent programs", tests, load, unload);
}
