/* test_grade.c - the parts of the judge that need no jail: the default validator, YAML, expectations, packages that are
 * wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/grade/grade_compare.h"
#include "lib/grade/grade_data.h"
#include "lib/grade/grade_expect.h"
#include "lib/grade/grade_load.h"
#include "lib/grade/grade_yaml.h"

static bool same(const char *flags, const char *answer, const char *output)
{
	char *words[8], copy[200], why[GRADE_COMPARE_TEXT] = "";
	struct grade_compare how;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", flags);
	for (char *save = NULL, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	assert_int_equal(grade_compare_flags((const char *const *)words, n, &how, NULL), 0);
	bool result = grade_compare(&how, answer, strlen(answer), output, strlen(output), why);
	assert_true(result || *why);
	return result;
}

static void tokens(void **state)
{
	(void)state;
	assert_true(same("", "1 2\n3\n", "1\t2 3"));
	assert_true(same("", "", " \n"));
	assert_true(same("", "Yes", "yES"));
	assert_false(same("case_sensitive", "Yes", "yES"));
	assert_false(same("", "1 2", "1 2 3"));
	assert_false(same("", "1 2 3", "1 2"));
	assert_false(same("", "1.0", "1"));
	assert_true(same("space_change_sensitive", "a  b\n", "a  b\n"));
	assert_false(same("space_change_sensitive", "a  b\n", "a b\n"));
	assert_false(same("space_change_sensitive", "a\n", "a"));
	/* A byte order mark of an answer is nothing that a program has to print. */
	assert_true(same("", "\xef\xbb\xbf" "42\n", "42"));
	assert_true(same("space_change_sensitive", "\xef\xbb\xbf" "42\n", "42\n"));
	assert_false(same("", "42", "\xef\xbb\xbf" "42"));
}

static enum grade_load_word word(int tries, bool busy, bool late, double cpu, double wall)
{
	struct grade_load load = {.tries = tries, .busy = busy, .first_cpu_us = 1000000};
	const struct grade_load_run run = {
		.late = late,
		.cpu_us = (int64_t)(cpu * 1e6),
		.wall_us = (int64_t)(wall * 1e6),
		.cpu_limit_us = 2000000,
		.wall_limit_us = 5000000,
	};

	return grade_load_word(&load, &run);
}

/* A limit of 2 s, of which the first run had 1 s. */
static void busy_hosts(void **state)
{
	struct grade_load load = GRADE_LOAD_INIT;

	(void)state;
	assert_int_equal(word(1, false, false, 1, 1), GRADE_LOAD_HOLDS);
	assert_int_equal(word(1, false, true, 2, 2.1), GRADE_LOAD_HOLDS); /* its CPU time */
	assert_int_equal(word(1, true, true, 2, 4), GRADE_LOAD_AGAIN);
	assert_int_equal(word(2, true, true, 2, 4), GRADE_LOAD_HOLDS);
	assert_int_equal(word(1, false, true, 0.8, 5), GRADE_LOAD_AGAIN); /* it computed */
	assert_int_equal(word(2, true, true, 1.6, 25), GRADE_LOAD_AGAIN);
	assert_int_equal(word(3, true, true, 1.9, 125), GRADE_LOAD_STARVED);
	assert_int_equal(word(1, false, true, 0.02, 5), GRADE_LOAD_HOLDS); /* it waits */
	assert_int_equal(word(1, true, true, 0.02, 5), GRADE_LOAD_AGAIN);
	assert_int_equal(word(2, true, true, 0.02, 25), GRADE_LOAD_HOLDS);
	assert_int_equal(word(2, true, false, 0.02, 6), GRADE_LOAD_WAITS);
	assert_int_equal(word(2, true, false, 1.9, 20), GRADE_LOAD_HOLDS); /* only the first run was starved */
	assert_int_equal(grade_load_wall(&load, 5000000), 5000000);
	load.tries = 2;
	assert_int_equal(grade_load_wall(&load, 5000000), 125000000);
	load.tries = 3;
	assert_int_equal(grade_load_wall(&load, 5000000), GRADE_LOAD_WALL_US);
	assert_int_equal(grade_load_wall(&load, 2 * GRADE_LOAD_WALL_US), 2 * GRADE_LOAD_WALL_US);
}

static void numbers(void **state)
{
	(void)state;
	assert_true(same("float_tolerance 1e-6", "0.0314", "3.1400000e-2"));
	char exact[1000] = "3.14";
	memset(exact + 4, '0', sizeof(exact) - 5);
	assert_true(same("float_tolerance 1e-6", "3.14", exact));
	assert_false(same("float_tolerance 1e-6", "3.13", exact));
	assert_true(same("float_absolute_tolerance 0.5", "10", "10.5"));
	assert_false(same("float_absolute_tolerance 0.5", "10", "10.51"));
	assert_true(same("float_relative_tolerance 0.1", "-100", "-110"));
	assert_false(same("float_relative_tolerance 0.1", "-100", "-111"));
	assert_true(same("float_relative_tolerance 0.1 float_absolute_tolerance 1", "0", "1"));
	assert_false(same("float_tolerance 1e-6", "1", "one"));
	assert_false(same("float_tolerance 1e-6", "1", "nan"));
	assert_false(same("float_tolerance 1", "1", "0x1"));
	assert_false(same("float_tolerance 1", "1", "1e999"));
	assert_true(same("float_tolerance 1e-6", "word", "WORD"));
	assert_true(same("float_tolerance 1e-6", "inf", "INF"));
	assert_false(same("float_tolerance 1e-6", "inf", "infinity"));
	assert_false(same("float_tolerance 1e-6", "nan(1)", "nan(2)"));
	assert_false(same("float_tolerance 1e-6", "1", "inf"));
}

static void flags(void **state)
{
	static const char *const wrong[][2] = {
		{"unheard_of", NULL}, {"float_tolerance", NULL}, {"float_tolerance", "x"}, {"float_tolerance", "-1"}};
	struct grade_compare how;
	struct err err = ERR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(grade_compare_flags(wrong[i], wrong[i][1] ? 2 : 1, &how, &err), -ERR_INVALID);
}

static void yaml(void **state)
{
	static const char text[] = "n: 4\nname: \"5\"\nn: 5\nf: 1.5\non: true\nlist: [a, 'b c']\nmap: {x: ~}\n";
	auto_json struct json_object *object = NULL;
	auto_buf struct buf printed = {0};
	struct err err = ERR_INIT;
	double number;

	(void)state;
	assert_int_equal(grade_yaml_parse(text, strlen(text), &object, &err), 0);
	buf_init(&printed, 1000);
	json_print(&printed, object);
	assert_string_equal(
		printed.data,
		"{\"n\":5,\"name\":\"5\",\"f\":1.5,\"on\":true,\"list\":[\"a\",\"b c\"],\"map\":{\"x\":null}}");
	assert_int_equal(grade_yaml_number(object, "name", 0, &number, &err), 0);
	assert_true(number == 5);
	assert_int_equal(grade_yaml_number(object, "list", 7, &number, &err), 0);
	assert_true(number == 7);
}

/* Latin-1 in a name; UTF-16, as an editor may save it. */
static void yaml_of_old(void **state)
{
	static const char latin[] = "author: Bj\xf6rn \xc5\nquoted: \"\xf6\"\nmemory: 5\n";
	static const char wide[] = "\xff\xfem\0:\0 \0" "5\0\n\0";
	auto_json struct json_object *object = NULL, *other = NULL;
	double number = 0;

	(void)state;
	assert_int_equal(grade_yaml_parse(latin, strlen(latin), &object, NULL), 0);
	assert_int_equal(grade_yaml_number(object, "memory", 0, &number, NULL), 0);
	assert_true(number == 5);
	assert_string_equal(grade_yaml_text(object, "quoted"), "\xc3\xb6");
	assert_int_equal(grade_yaml_parse(wide, sizeof(wide) - 1, &other, NULL), 0);
	assert_int_equal(grade_yaml_number(other, "m", 0, &number, NULL), 0);
	assert_true(number == 5);
}

static void bad_yaml(void **state)
{
	static const char *const wrong[] = {"a: [", "a: &x [*x]\n", "? [a]\n: b\n", "\t- a"};
	auto_buf struct buf deep = {0};
	struct json_object *object = NULL;
	struct err err = ERR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(grade_yaml_parse(wrong[i], strlen(wrong[i]), &object, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "line 1"));
	/* Aliases of aliases share their memory. */
	buf_init(&deep, 100000);
	buf_puts(&deep, "a0: &a0 {x: 1}\n");
	for (int i = 1; i < 30; i++)
		buf_printf(&deep, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1);
	buf_puts(&deep, "own: {<<: *a0, y: 2}\n");
	assert_int_equal(grade_yaml_parse(deep.data, deep.length, &object, &err), 0);
	struct json_object *own = json_get(object, "own", json_type_object);
	assert_string_equal(grade_yaml_text(own, "x"), "1");
	assert_string_equal(grade_yaml_text(own, "y"), "2");
	json_object_put(object);
	deep.length = 0;
	for (int i = 0; i < GRADE_YAML_DEPTH + 2; i++)
		buf_putc(&deep, '[');
	assert_int_equal(grade_yaml_parse(deep.data, deep.length, &object, &err), -ERR_LIMIT);
}

static void globs(void **state)
{
	(void)state;
	assert_true(grade_expect_glob("accepted", "accepted/a.py"));
	assert_true(grade_expect_glob("accepted/*", "accepted/a.py"));
	assert_true(grade_expect_glob("accepted/", "accepted/a.py"));
	assert_true(grade_expect_glob("*/a.{py,cpp}", "accepted/a.cpp"));
	assert_true(grade_expect_glob("{x,acc*}/a.py", "accepted/a.py"));
	assert_true(grade_expect_glob("accepted/folder", "accepted/folder/main.py"));
	assert_false(grade_expect_glob("*", "x/y/z") && !grade_expect_glob("x", "x/y/z"));
	assert_false(grade_expect_glob("acc", "accepted/a.py"));
	assert_false(grade_expect_glob("accepted/*.cpp", "accepted/a.py"));
	assert_false(grade_expect_glob("accepted/{a,b}.cpp", "accepted/c.cpp"));
	assert_false(grade_expect_glob("{", "a"));
	assert_false(grade_expect_glob("", "a"));
}

static void folders(void **state)
{
	static const char text[] =
		"time_limit_exceeded: {permitted: [AC, WA, TLE]}\n"
		"own: {permitted: [AC, WA]}\n"
		"mine/*.py: {language: python3, entrypoint: go.py, score: [10, 20], permitted: [WA]}\n";
	auto_json struct json_object *rules = NULL;
	struct grade_expect expect;

	(void)state;
	assert_int_equal(grade_yaml_parse(text, strlen(text), &rules, NULL), 0);
	grade_expect_folder(rules, "accepted/a.py", &expect);
	assert_int_equal(expect.verdicts, GRADE_BIT(GRADE_AC));
	/* What the rule of a folder does not say is what it was: one has to be too slow. */
	grade_expect_folder(rules, "time_limit_exceeded/a.py", &expect);
	assert_int_equal(expect.verdicts, GRADE_BIT(GRADE_WA) | GRADE_BIT(GRADE_TLE));
	assert_true(expect.upper_bound && !expect.lower_bound);
	static const struct {
		const char *path;
		bool lower, upper;
	} bounds[] = {
		{"accepted/a.py", true, false},		  {"wrong_answer/a.py", true, false},
		{"run_time_error/a.py", true, false},	  {"rejected/a.py", false, false},
		{"brute_force/a.py", false, false},	  {"partially_accepted/a.py", false, false},
		{"slow_accepted/a.py", false, false},	  {"own/a.py", true, false},
		{"memory_limit_exceeded/a.py", false, false},
	};
	for (size_t i = 0; i < ARRAY_SIZE(bounds); i++) {
		grade_expect_folder(rules, bounds[i].path, &expect);
		assert_int_equal(expect.lower_bound, bounds[i].lower);
		assert_int_equal(expect.upper_bound, bounds[i].upper);
	}
	grade_expect_folder(rules, "mine/a.py", &expect);
	assert_string_equal(expect.hint.language, "python3");
	assert_string_equal(expect.hint.entry, "go.py");
	assert_true(expect.has_score && expect.least == 10 && expect.most == 20);
	grade_expect_folder(NULL, "run_time_error/a.py", &expect);
	assert_true(grade_expect_met(&expect, GRADE_MLE, NAN, NAN));
	assert_true(grade_expect_met(&expect, GRADE_OLE, NAN, NAN));
	grade_expect_folder(NULL, "accepted/a.py", &expect);
	assert_false(grade_expect_met(&expect, GRADE_OLE, NAN, NAN));
	grade_expect_folder(NULL, "compiler_error/a.py", &expect);
	assert_false(grade_expect_met(&expect, GRADE_OLE, NAN, NAN));
	grade_expect_folder(NULL, "output_limit/a.py", &expect);
	assert_true(grade_expect_met(&expect, GRADE_OLE, NAN, NAN));
	assert_false(grade_expect_met(&expect, GRADE_TLE, NAN, NAN));
	grade_expect_folder(NULL, "rejected/a.py", &expect);
	assert_true(grade_expect_met(&expect, GRADE_OLE, NAN, NAN) && grade_expect_met(&expect, GRADE_PE, NAN, NAN));
	assert_false(grade_expect_met(&expect, GRADE_CE, NAN, NAN) || grade_expect_met(&expect, GRADE_AC, NAN, NAN));
	grade_expect_folder(NULL, "wrong_answer/a.py", &expect);
	assert_true(grade_expect_met(&expect, GRADE_PE, NAN, NAN));
	grade_expect_folder(NULL, "partially_accepted/a.py", &expect);
	assert_true(grade_expect_met(&expect, GRADE_AC, 30, 100));
	assert_false(grade_expect_met(&expect, GRADE_AC, 100, 100));
	grade_expect_folder(NULL, "mixed/a.py", &expect);
	assert_int_equal(expect.verdicts, 0);
}

/* use_for_time_limit is of one rule: those of the folder and of other patterns stay. */
static void bounds_of_rules(void **state)
{
	static const struct {
		const char *path, *rules;
		bool lower, upper;
	} rows[] = {
		{"accepted/a.py", "accepted/a.py: {use_for_time_limit: false}", true, false},
		{"accepted/a.py", "accepted/a.py: {permitted: [AC], use_for_time_limit: false}", true, false},
		{"accepted/a.py", "'*/a.py': {use_for_time_limit: false}", true, false},
		{"accepted/a.py", "accepted: {use_for_time_limit: false}", false, false},
		{"accepted/a.py", "accepted/: {use_for_time_limit: false}", false, false},
		{"accepted/a.py", "accepted: {permitted: [AC, WA], use_for_time_limit: no}", false, false},
		{"accepted/a.py", "accepted: {use_for_time_limit: false}\naccepted/*: {permitted: [AC]}", true, false},
		{"accepted/a.py", "accepted/*: {permitted: [AC]}\naccepted: {use_for_time_limit: false}", true, false},
		{"accepted/a.py", "accepted: {use_for_time_limit: true}", true, false},
		{"run_time_error/a.py", "run_time_error/a.py: {use_for_time_limit: false}", true, false},
		{"time_limit_exceeded/a.py", "time_limit_exceeded: {use_for_time_limit: false}", false, false},
		{"time_limit_exceeded/a.py", "time_limit_exceeded/a.py: {use_for_time_limit: false}", false, true},
		{"rejected/a.py", "rejected/a.py: {use_for_time_limit: lower}", true, false},
		{"rejected/a.py", "rejected/a.py: {use_for_time_limit: upper}", false, true},
		{"rejected/a.py", "rejected/a.py: {use_for_time_limit: true}", false, false},
		{"rejected/a.py", "rejected/a.py: {permitted: [WA, TLE], required: [TLE], use_for_time_limit: false}",
		 false, false},
		{"rejected/a.py", "rejected/a.py: {permitted: [WA, TLE], use_for_time_limit: lower}", true, false},
		{"rejected/a.py", "rejected/*: {use_for_time_limit: upper}\nrejected/a.py: {use_for_time_limit: false}",
		 false, true},
		{"brute_force/a.py", "brute_force: {use_for_time_limit: upper}", false, true},
		{"brute_force/a.py", "brute_force: {use_for_time_limit: lower}", true, false},
		{"own/a.py", "own/a.py: {permitted: [AC], use_for_time_limit: sometimes}", false, false},
		{"own/a.py", "own/a.py: {permitted: [AC]}\nown/*: {use_for_time_limit: false}", true, false},
		{"own/a.py", "own: {use_for_time_limit: false}", false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_json struct json_object *rules = NULL;
		struct grade_expect expect;

		assert_int_equal(grade_yaml_parse(rows[i].rules, strlen(rows[i].rules), &rules, NULL), 0);
		grade_expect_folder(rules, rows[i].path, &expect);
		if (expect.lower_bound != rows[i].lower || expect.upper_bound != rows[i].upper)
			fail_msg("%s of %s: lower %d, upper %d", rows[i].path, rows[i].rules, expect.lower_bound,
				 expect.upper_bound);
		/* What opts out says nothing else; where nothing was expected, nothing is. */
		if (str_starts(rows[i].rules, "own: "))
			assert_int_equal(expect.verdicts, 0);
		if (streq(rows[i].rules, "time_limit_exceeded: {use_for_time_limit: false}"))
			assert_int_equal(expect.verdicts, GRADE_BIT(GRADE_TLE));
	}
}

static void bounds_in_parts(void **state)
{
	static const char text[] =
		"time_limit_exceeded/a.py: {sample: {permitted: [AC]}, secret/*-hard: {required: [TLE]}}\n"
		"rejected/a.py: {secret/1: {use_for_time_limit: lower}, secret/2: {use_for_time_limit: upper}}\n"
		"rejected/b.py: {secret/1: {permitted: [AC], use_for_time_limit: false},"
		" secret/2: {required: [TLE], use_for_time_limit: false},"
		" sample: {permitted: [AC, TLE], required: [RTE, TLE]}}\n"
		"rejected/c.py: {use_for_time_limit: lower}\n";
	static const struct {
		const char *path, *name;
		bool lower, upper;
	} rows[] = {
		{"time_limit_exceeded/a.py", "sample/1", true, true},
		{"time_limit_exceeded/a.py", "secret/1-hard", false, true},
		{"rejected/a.py", "secret/1", true, false},
		{"rejected/a.py", "secret/1/deep", true, false},
		{"rejected/a.py", "secret/2", false, true},
		{"rejected/a.py", "secret/11", false, false},
		{"rejected/b.py", "secret/1", false, false},
		{"rejected/b.py", "secret/2", false, false},
		{"rejected/b.py", "sample/1", false, false},
	};
	auto_json struct json_object *rules = NULL;
	struct grade_expect expect;

	(void)state;
	assert_int_equal(grade_yaml_parse(text, strlen(text), &rules, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		grade_expect_folder(rules, rows[i].path, &expect);
		assert_int_equal(grade_expect_lower(&expect, rows[i].name) != NULL, rows[i].lower);
		assert_int_equal(grade_expect_upper(&expect, rows[i].name), rows[i].upper);
		assert_false(expect.lower_bound);
	}
	/* Each is a rule like those of permitted and required, too. */
	grade_expect_folder(rules, "rejected/a.py", &expect);
	assert_false(grade_expect_allows(grade_expect_lower(&expect, "secret/1")->permitted, GRADE_TLE));
	assert_true(grade_expect_allows(grade_expect_lower(&expect, "secret/1")->permitted, GRADE_WA));
	grade_expect_folder(rules, "rejected/c.py", &expect);
	assert_true(expect.lower_bound);
	assert_int_equal(expect.verdicts, GRADE_BIT(GRADE_WA) | GRADE_BIT(GRADE_RTE));
}

static void comments(void **state)
{
	struct grade_file file = {.name = (char[]){"a.py"}};
	const struct grade_source source = {.files = &file, .count = 1};
	static const struct {
		const char *text;
		uint32_t verdicts;
	} cases[] = {
		{"# @EXPECTED_RESULTS@: WRONG-ANSWER, TIMELIMIT\n", GRADE_BIT(GRADE_WA) | GRADE_BIT(GRADE_TLE)},
		{"// @EXPECTED_RESULTS@:run_time_error", GRADE_BIT(GRADE_RTE)},
		{"# @EXPECTED_RESULTS@: CHECK-MANUALLY\n", GRADE_BIT(GRADE_AC)},
		{"# nothing\n", GRADE_BIT(GRADE_AC)},
		{"# @EXPECTED_SCORE@: WRONG-ANSWER\n", GRADE_BIT(GRADE_WA)},
		{"# @EXPECTED_SCORE@: 7\n", GRADE_BIT(GRADE_AC)},
		{"# @EXPECTED_RESULTS@: TIMELIMIT\n# @EXPECTED_SCORE@: WRONG-ANSWER\n", GRADE_BIT(GRADE_TLE)},
		{"# @EXPECTED_RESULTS@: CORRECT\n# @EXPECTED_SCORE@: 30.5\n", GRADE_BIT(GRADE_AC)},
	};
	struct grade_expect expect;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		file.data = xstrdup(cases[i].text);
		file.length = strlen(file.data);
		grade_expect_folder(NULL, "accepted/a.py", &expect);
		grade_expect_comment(&source, &expect);
		assert_int_equal(expect.verdicts, cases[i].verdicts);
		free(file.data);
	}
	assert_true(expect.has_score && expect.least == 30.5);
}

static void put(const char *folder, const char *name, const char *text)
{
	auto_free char *path = xasprintf("%s/%s", folder, name);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* A package with one case; `what` becomes its problem.yaml. */
static int open_package(const char *what, const char *groups, struct grade_package *ret, struct grade_node **ret_root,
			struct err *err)
{
	char folder[] = "/tmp/sp-grade-XXXXXX";
	auto_free char *remove = NULL;

	assert_non_null(mkdtemp(folder));
	remove = xasprintf("rm -r %s", folder);
	auto_free char *data = xasprintf("%s/data", folder), *secret = xasprintf("%s/data/secret", folder);
	mkdir(data, 0700);
	mkdir(secret, 0700);
	put(folder, "problem.yaml", what);
	put(secret, "1.in", "");
	put(secret, "1.ans", "");
	put(secret, "test_group.yaml", groups);
	put(secret, "testdata.yaml", groups);
	int result = grade_package_open(folder, ret, err);
	if (result == 0)
		result = grade_data_read(ret, ret_root, err);
	assert_int_equal(system(remove), 0);
	return result;
}

static void wrong_packages(void **state)
{
	static const char *const wrong[][3] = {
		{"problem_format_version: 1999-12\n", "", "problem_format_version"},
		{"limits: {memory: lots}\n", "", "memory: must be a number"},
		{"limits: {memory: -1}\n", "", "memory: must be above 0"},
		{"limits: {time_limit: 5000}\n", "", "at most 149 s"},
		{"type: submit-answer\n", "", "submit-answer"},
		{"- a\n", "", "must be a mapping"},
		{"problem_format_version: 2025-09\ntype: scoring\n", "score_aggregation: best\n", "score_aggregation"},
		{"type: scoring\n", "range: wide\n", "range"},
		{"type: scoring\n", "accept_score: many\n", "accept_score"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		auto_package struct grade_package package = GRADE_PACKAGE_INIT;
		struct grade_node *root = NULL;
		struct err err = ERR_INIT;

		assert_true(open_package(wrong[i][0], wrong[i][1], &package, &root, &err) < 0);
		if (!strstr(err.text, wrong[i][2]))
			fail_msg("\"%s\" says nothing of \"%s\"", err.text, wrong[i][2]);
	}
}

static void settings(void **state)
{
	auto_package struct grade_package package = GRADE_PACKAGE_INIT, later = GRADE_PACKAGE_INIT;
	struct grade_node *root = NULL;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(
		open_package(
			"type: scoring\nvalidator_flags: case_sensitive\nlimits: {time_multiplier: 3, memory: 64}\n",
			"on_reject: continue\ngrader_flags: min first_error\naccept_score: 5\nrange: 0 5\n"
			"output_validator_flags: float_tolerance 1\n",
			&package, &root, &err),
		0);
	const struct grade_settings *secret = &root->children[0]->settings,
				    *one = &root->children[0]->children[0]->settings;
	assert_true(package.memory_bytes == 64 << 20 && package.time_multiplier == 3);
	assert_true(!secret->stop && secret->first_error && secret->aggregation == GRADE_MIN);
	assert_true(secret->most == 5 && root->settings.most == INFINITY);
	assert_string_equal(one->validator_flags[0], "case_sensitive");
	assert_string_equal(one->validator_flags[2], "1");
	assert_null(one->validator_flags[3]);
	grade_data_free(root);
	assert_int_equal(open_package("problem_format_version: 2025-09\ntype: scoring\n",
				      "max_score: unbounded\noutput_validator_args: [a, 'b c']\n", &later, &root, &err),
			 0);
	assert_true(root->children[0]->settings.max_score == INFINITY);
	assert_string_equal(root->children[0]->children[0]->settings.validator_flags[1], "b c");
	grade_data_free(root);
}

static void verdicts(void **state)
{
	enum grade_verdict verdict;

	(void)state;
	for (int i = 0; i < GRADE_VERDICTS; i++) {
		assert_int_equal(grade_verdict_parse(grade_verdict_text((enum grade_verdict)i), &verdict), 0);
		assert_int_equal(verdict, i);
	}
	assert_int_equal(grade_verdict_parse("OK", &verdict), -1);
	assert_int_equal(grade_verdict_worse(GRADE_WA, GRADE_RTE), GRADE_RTE);
	assert_int_equal(grade_verdict_worse(GRADE_JE, GRADE_RTE), GRADE_JE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens),    cmocka_unit_test(numbers),
		cmocka_unit_test(busy_hosts),		 cmocka_unit_test(flags),
		cmocka_unit_test(yaml),	     cmocka_unit_test(bad_yaml),	 cmocka_unit_test(yaml_of_old),
		cmocka_unit_test(globs),     cmocka_unit_test(folders),		 cmocka_unit_test(bounds_of_rules),
		cmocka_unit_test(bounds_in_parts),
		cmocka_unit_test(comments),  cmocka_unit_test(wrong_packages),	 cmocka_unit_test(settings),
		cmocka_unit_test(verdicts),
	};

	return cmocka_run_group_tests_name("grade", tests, NULL, NULL);
}
