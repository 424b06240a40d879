/* Programs that have nothing to show, told by their text: jail/cell/silent.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jail/cell/silent.h"
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
	return silent_text(runners_find(&runners, "python"), text, strlen(text), -1);
}

static void printing_ends_are_silent(void **state)
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
	assert_false(silent_text(runners_find(&runners, "python"), "x\0print(1)", 10, -1));
	assert_false(silent_text(runners_find(&runners, "bash"), "print(1)", 8, -1));
}

static void known_imports_are_silent(void **state)
{
	static const char *const quiet[] = {
		"import json",
		"import json, os.path as p , sys # why",
		"  from os.path import join, split as s",
		"from __future__ import annotations",
		"from json import (\n  loads,\n  dumps)",
		"def pprint(x): print(x)",
		"x.print_(x.fingerprint)",
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
		"print = f",
		"p = print",
		"def print(x): pass",
		"  def  print (x): pass",
		"class print(A): pass",
		"for print in a: pass",
		"from json import loads as print",
		"import builtins",
		"globals()['pr' + 'int'] = f",
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

/* Languages in which the last line alone decides. */
static void last_lines(void **state)
{
	static const char *const quiet[] = {
		"console.log(1)",
		"import fs from 'node:fs';\nconst a = [1];\n  console.error(a, ')', \"(\");  \n\n",
		"if (x) {}\nprocess.exit(3);;",
		"process.stdout.write('x')",
	};
	static const char *const loud[] = {
		"",
		";",
		"1",
		"console",
		"console.log",
		"console.log(1), 5",
		"console.log(1); a",
		"console.log(1); // a",
		"console.log(1) ?? f(2)",
		"console.log(`;`), f(2)",
		"process.argv.slice(2)",
		"process.version",
		"a = console.log(1)",
		"console.log(1)\na",
		"console.log(1)\n}",
		"console.log(1)\r\na",
		"consoles.log(1)",
	};
	static const char *const names[] = {"javascript", "typescript"};

	(void)state;
	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		const struct runner *runner = runners_find(&runners, names[n]);

		for (size_t i = 0; i < ARRAY_SIZE(quiet); i++)
			if (!silent_text(runner, quiet[i], strlen(quiet[i]), -1))
				fail_msg("not silent in %s: %s", names[n], quiet[i]);
		for (size_t i = 0; i < ARRAY_SIZE(loud); i++)
			if (silent_text(runner, loud[i], strlen(loud[i]), -1))
				fail_msg("silent in %s: %s", names[n], loud[i]);
	}
}

/* A module of the conversation's is found before the interpreter's own. */
static void shadowed_modules_are_loud(void **state)
{
	static const char *const names[] = {"json.py", "json", "json.pyc", "json.so", ".packages"};
	static const char text[] = "import os, json\nprint(1)";
	const struct runner *python = runners_find(&runners, "python");
	char folder[] = "/tmp/sp-silent.XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(folder));
	auto_close int data = open(folder, O_DIRECTORY | O_CLOEXEC);
	assert_true(data >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(silent_text(python, text, strlen(text), data));
		close(openat(data, names[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		assert_false(silent_text(python, text, strlen(text), data));
		assert_true(silent_text(python, "print(1)", 8, data));
		assert_int_equal(unlinkat(data, names[i], 0), 0);
	}
	close(openat(data, "jsonx.py", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_true(silent_text(python, text, strlen(text), data));
	assert_int_equal(unlinkat(data, "jsonx.py", 0), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void files_are_read_up_to_a_bound(void **state)
{
	const struct runner *python = runners_find(&runners, "python");
	auto_free char *longest = xcalloc(1, SILENT_TEXT_MAX + 2);

	(void)state;
	memset(longest, '\n', SILENT_TEXT_MAX + 1);
	memcpy(longest, "print(1)", 8);
	auto_close int most = memfd_with("text", longest, SILENT_TEXT_MAX);
	auto_close int more = memfd_with("text", longest, SILENT_TEXT_MAX + 1);
	assert_true(silent_file(python, most, -1));
	assert_int_equal(lseek(most, 0, SEEK_CUR), 0);
	assert_false(silent_file(python, more, -1));
	assert_false(silent_file(python, -1, -1));
	assert_false(silent_file(runners_find(&runners, "bash"), most, -1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printing_ends_are_silent),
		cmocka_unit_test(known_imports_are_silent),
		cmocka_unit_test(last_lines),
		cmocka_unit_test(shadowed_modules_are_loud),
		cmocka_unit_test(files_are_read_up_to_a_bound),
	};

	return cmocka_run_group_tests_name("silent programs", tests, load, unload);
}
