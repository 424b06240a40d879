/*
 * grade_format.c - see grade_format.h.
 *
 * A format is a row: the members that tell it, the others of its members that carry tests or look as if they did, and a
 * reader. The first row whose members are all there counts, so that the more special formats come first. A member with
 * a name like a test's that the row does not know is an error: tests that nobody runs would let every sample pass.
 */
#include "grade_format.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "grade_lines.h"
#include "grade_source.h"
#include "lib/base/util.h"

#define MEMBERS_MAX   8
#define SHOWN_MEMBERS 2 /* in the list for people */
#define CODECONTESTS_PYTHON3 3 /* its number of the language */

typedef int format_reader(struct grade_task *task, struct err *err);
struct format {
	const char *name;
	const char *needs[MEMBERS_MAX]; /* "a|b": one of them */
	const char *tests[MEMBERS_MAX]; /* more members that are known */
	format_reader *read;
	const char *reference; /* member of the task's own solution */
};

/* -------- languages ----------------------------------------------------------------------------------- */

/* Names of languages as task ids and people write them, and their runners. */
static const struct {
	const char *name;
	enum grade_tongue tongue;
} tongues[] = {
	{"python", GRADE_PYTHON}, {"cpp", GRADE_CPP}, {"javascript", GRADE_JAVASCRIPT}, {"go", GRADE_GO},
	{"HumanEval", GRADE_PYTHON}, {"py", GRADE_PYTHON}, {"python3", GRADE_PYTHON}, {"c++", GRADE_CPP},
	{"js", GRADE_JAVASCRIPT}, {"node", GRADE_JAVASCRIPT}, {"golang", GRADE_GO},
};

const char *grade_tongue_text(enum grade_tongue tongue)
{
	return tongues[tongue].name;
}

static int find_tongue(const char *name, size_t length, enum grade_tongue *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(tongues); i++)
		if (strlen(tongues[i].name) == length && strncasecmp(tongues[i].name, name, length) == 0) {
			*ret = tongues[i].tongue;
			return 0;
		}
	return -1;
}

/* -------- what rows say ------------------------------------------------------------------------------- */

static bool has(struct json_object *line, const char *name)
{
	struct json_object *value = NULL;

	return json_object_object_get_ex(line, name, &value) && value;
}

/* Is there something in it? */
static bool filled(struct json_object *value)
{
	return json_object_is_type(value, json_type_string)   ? json_object_get_string_len(value) > 0
	       : json_object_is_type(value, json_type_array)  ? json_object_array_length(value) > 0
	       : json_object_is_type(value, json_type_object) ? json_object_object_length(value) > 0
							      : false;
}

static bool one_of(struct json_object *line, const char *names)
{
	for (const char *at = names;; at++) {
		size_t length = strcspn(at, "|");
		auto_free char *name = xstrndup(at, length);

		if (has(line, name))
			return true;
		at += length;
		if (!*at)
			return false;
	}
}

static bool in_list(const char *const list[MEMBERS_MAX], const char *name)
{
	for (size_t i = 0; i < MEMBERS_MAX && list[i]; i++)
		for (const char *at = strstr(list[i], name); at; at = strstr(at + 1, name))
			if ((at == list[i] || at[-1] == '|') && strchr("|", at[strlen(name)]))
				return true;
	return false;
}

/* -------- pieces -------------------------------------------------------------------------------------- */

static void add_tests(struct grade_task *task, struct json_object *tests, const char *member)
{
	struct json_object *list = json_get(task->line, member, json_type_array);
	const char *one = json_get_string(task->line, member);

	if (one && *one)
		json_object_array_add(tests, json_object_new_string(one));
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		json_object_array_add(tests, json_object_get(json_object_array_get_idx(list, i)));
}

/* The tests of code in Python and JavaScript. `given`: text that the tests trust; NULL: imports and names are those of
 * the task's own solution. */
static struct json_object *new_suite(struct grade_task *task, const char *given, const char *call)
{
	struct json_object *tests = json_object_new_array();

	task->suite = json_object_new_object();
	json_add_string(task->suite, "given", given);
	json_add_string(task->suite, "entry", given ? task->entry : NULL);
	json_add_string(task->suite, "reference", given ? NULL : task->reference);
	json_add_string(task->suite, "call", call);
	json_add(task->suite, "tests", tests);
	return tests;
}

static const char *member(const struct grade_task *task, const char *name)
{
	const char *text = json_get_string(task->line, name);

	return text ? text : "";
}

/* C++: the name before the first parenthesis of the last line that declares something. */
static const char *declared_name(const char *text)
{
	const char *line = text;

	for (const char *next = text; (next = strchr(next, '\n')); next++)
		if (next[1] && !isspace((unsigned char)next[1]) && !strchr("#/}*", next[1]))
			line = next + 1;
	const char *at = strchr(line, '(');
	while (at && at > line && isspace((unsigned char)at[-1]))
		at--;
	while (at && at > line && grade_source_in_name(at[-1]))
		at--;
	return at;
}

/* The name of the last function that the text begins to define; the caller's. */
static char *last_function(const char *text)
{
	static const char *const words[] = {"def ", "func ", "function ", "const ", "let ", "var "};
	const char *found = NULL;
	size_t length = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			if (str_starts(line, words[i]))
				found = line + strlen(words[i]);
	}
	found = found ? found : declared_name(text);
	while (found && (grade_source_in_name(found[length]) || found[length] == '$'))
		length++;
	return xstrndup(found ? found : "", length);
}

/* -------- suites of code ------------------------------------------------------------------------------ */

static int read_humaneval(struct grade_task *task, struct err *err)
{
	(void)err;
	task->prefix = xstrdup(member(task, "prompt"));
	task->test = xasprintf("%s\ncheck(%s)\n", member(task, "test"), task->entry);
	add_tests(task, new_suite(task, task->prefix, "check"), "test");
	return 0;
}

static int language_of_id(struct grade_task *task, const char *language, struct err *err)
{
	const char *slash = strchr(task->id, '/');
	const char *name = language ? language : task->id;
	size_t length = language ? strlen(language) : slash ? (size_t)(slash - task->id) : 0;

	if (length == 0 || find_tongue(name, length, &task->tongue) == 0)
		return 0;
	return language ? err_set(err, ERR_INVALID,
				  "no tasks are graded in the language %s: python, cpp, javascript or go", language)
			: err_set(err, ERR_INVALID,
				  "task %s: no language of that name is known, give one with --language", task->id);
}

static int read_pack(struct grade_task *task, struct err *err)
{
	int result = task->said ? 0 : language_of_id(task, NULL, err);

	if (result < 0)
		return result;
	bool python = task->tongue == GRADE_PYTHON;
	task->prefix = xstrdup(member(task, python ? "prompt" : "declaration"));
	if (!*task->entry) {
		free(task->entry);
		task->entry = last_function(task->prefix);
	}
	task->test = xasprintf("%s\n%s\n", member(task, "test_setup"), member(task, "test"));
	if (python || task->tongue == GRADE_JAVASCRIPT)
		add_tests(task, new_suite(task, task->prefix, NULL), "test");
	return 0;
}

static int read_multipl_e(struct grade_task *task, struct err *err)
{
	const char *language = member(task, "language");

	if (!task->said && find_tongue(language, strlen(language), &task->tongue) < 0)
		return err_set(err, ERR_INVALID,
			       "task %s: no tasks are graded in the language %s: python, cpp, javascript or go",
			       task->id, language);
	task->prefix = xstrdup(member(task, "prompt"));
	free(task->entry);
	task->entry = last_function(task->prefix);
	/* C++: the tests begin with the brace that ends the function. */
	const char *tests = member(task, "tests");
	task->closes = task->tongue == GRADE_CPP && tests[strspn(tests, " \t\n")] == '}';
	task->test = xstrdup(task->closes ? strchr(tests, '}') + 1 : tests);
	if (task->tongue == GRADE_PYTHON || task->tongue == GRADE_JAVASCRIPT)
		add_tests(task, new_suite(task, task->prefix, NULL), "tests");
	return 0;
}

static int read_mbpp(struct grade_task *task, struct err *err)
{
	struct json_object *list = json_get(task->line, "test_list", json_type_array);
	size_t count = list ? json_object_array_length(list) : 0, texts = 0;
	auto_buf struct buf all = {0};

	for (size_t i = 0; i < count; i++)
		texts += json_object_is_type(json_object_array_get_idx(list, i), json_type_string);
	/* Tests that say nothing would let every sample pass. */
	if (texts < count || (count == 0 && !*member(task, "test")))
		return err_set(err, ERR_INVALID, "task %s: test_list must hold one test or more, as strings", task->id);
	task->prefix = xstrdup("");
	struct json_object *tests = new_suite(task, NULL, NULL);
	add_tests(task, tests, "test_imports");
	add_tests(task, tests, "test_setup_code");
	add_tests(task, tests, "test_list");
	add_tests(task, tests, "test");
	buf_init(&all, SIZE_MAX / 2);
	for (size_t i = 0; i < json_object_array_length(tests); i++)
		buf_printf(&all, "%s\n", json_object_get_string(json_object_array_get_idx(tests, i)));
	task->test = xstrdup(all.data);
	return 0;
}

/* unittest in the place of calls: what failed is an assertion, what was thrown an error. */
static const char run_cases[] =
	"import unittest as _unittest\n"
	"_result = _unittest.TestResult()\n"
	"_unittest.defaultTestLoader.loadTestsFromTestCase(TestCases).run(_result)\n"
	"for _case, _text in _result.errors:\n    raise RuntimeError(_text.strip().rpartition('\\n')[2])\n"
	"for _case, _text in _result.failures:\n    raise AssertionError(_text.strip().rpartition('\\n')[2])\n"
	"assert _result.testsRun > 0, 'no tests'\n";

static int read_bigcodebench(struct grade_task *task, struct err *err)
{
	(void)err;
	task->prefix = xstrdup(member(task, "complete_prompt"));
	task->test = xasprintf("%s\n%s", member(task, "test"), run_cases);
	task->seconds = 30;
	struct json_object *tests = new_suite(task, task->prefix, NULL);
	add_tests(task, tests, "test");
	json_object_array_add(tests, json_object_new_string(run_cases));
	return 0;
}

/* The tests run the sample's text themselves: both are one program. */
static int read_ds1000(struct grade_task *task, struct err *err)
{
	(void)err;
	task->prefix = xstrdup("");
	task->alone = true;
	task->seconds = 30;
	task->before = xstrdup(member(task, "code_context"));
	task->test = xasprintf("test_execution(sallyport_sample)\n%s",
			       strstr(task->before, "def test_string(") ? "test_string(sallyport_sample)\n" : "");
	return 0;
}

/* -------- cases of arguments -------------------------------------------------------------------------- */

static void add_member(struct grade_task *task, const char *name)
{
	struct json_object *value = NULL;

	if (json_object_object_get_ex(task->line, name, &value))
		json_add(task->suite, name, json_object_get(value));
}

static int read_evalplus(struct grade_task *task, struct err *err)
{
	(void)err;
	task->prefix = xstrdup(member(task, "prompt"));
	new_suite(task, task->prefix, NULL);
	json_add_string(task->suite, "cases", "evalplus");
	json_add_string(task->suite, "id", task->id);
	auto_free char *reference = xasprintf("%s%s", task->prefix, member(task, "canonical_solution"));
	json_add_string(task->suite, "solution", reference);
	add_member(task, "base_input");
	add_member(task, "plus_input");
	add_member(task, "atol");
	task->plus = true;
	return 0;
}

static int read_cruxeval(struct grade_task *task, struct err *err)
{
	(void)err;
	free(task->entry);
	task->entry = xstrdup("prediction");
	task->prefix = xstrdup("");
	new_suite(task, member(task, "code"), NULL);
	json_add_string(task->suite, "cases", "cruxeval");
	add_member(task, "input");
	add_member(task, "output");
	task->expression = true;
	return 0;
}

/* -------- cases of standard input, or of arguments ---------------------------------------------------- */

/* What solutions to such problems take for granted. */
static const char usual_imports[] =
	"import bisect, collections, copy, datetime, functools, heapq, io, itertools, json, math, operator, os, random, re, "
	"statistics, string, sys, time\n"
	"from bisect import *\nfrom collections import *\nfrom copy import *\nfrom functools import *\nfrom heapq import *\n"
	"from itertools import *\nfrom math import *\nfrom operator import *\nfrom random import *\nfrom string import *\n"
	"from typing import *\nfrom builtins import *\nsys.setrecursionlimit(50000)\n";

static void add_case(struct grade_task *task, struct json_object *input, struct json_object *output)
{
	struct json_object *one = json_object_new_object();

	if (!task->cases)
		task->cases = json_object_new_array();
	json_add(one, "input", json_object_get(input));
	json_add(one, "output", json_object_get(output));
	json_object_array_add(task->cases, one);
}

static void add_pairs(struct grade_task *task, struct json_object *pairs)
{
	struct json_object *inputs = json_get(pairs, "inputs", json_type_array);
	struct json_object *outputs = json_get(pairs, "outputs", json_type_array);

	inputs = inputs ? inputs : json_get(pairs, "input", json_type_array);
	outputs = outputs ? outputs : json_get(pairs, "output", json_type_array);
	size_t count = inputs && outputs ? MIN(json_object_array_length(inputs), json_object_array_length(outputs)) : 0;
	for (size_t i = 0; i < count; i++)
		add_case(task, json_object_array_get_idx(inputs, i), json_object_array_get_idx(outputs, i));
}

/* Cases are there; they become arguments of a function where `function` names one. */
static int finish_cases(struct grade_task *task, const char *function, const char *kind, struct err *err)
{
	if (!task->cases)
		return err_set(err, ERR_INVALID, "task %s has no test cases", task->id);
	task->prefix = xstrdup("");
	task->header = usual_imports;
	task->whole = true;
	if (!function)
		return 0;
	free(task->entry);
	task->entry = xstrdup(function);
	new_suite(task, "", NULL);
	json_add_string(task->suite, "cases", kind);
	json_add(task->suite, "list", task->cases);
	task->cases = NULL;
	return 0;
}

/* A member that is JSON as text. */
static struct json_object *inner(const struct grade_task *task, const char *name, struct err *err)
{
	const char *text = member(task, name);
	struct json_object *object = NULL;

	if (json_parse(text, strlen(text), &object, err) < 0)
		err_wrap(err, "task %s, %s", task->id, name);
	return object;
}

static int read_apps(struct grade_task *task, struct err *err)
{
	auto_json struct json_object *pairs = inner(task, "input_output", err);

	if (!pairs)
		return -ERR_INVALID;
	add_pairs(task, pairs);
	if (!task->reference && *member(task, "solutions")) {
		auto_json struct json_object *solutions = inner(task, "solutions", NULL);
		const char *first = json_object_is_type(solutions, json_type_array)
					    ? json_object_get_string(json_object_array_get_idx(solutions, 0))
					    : NULL;

		task->reference = first ? xstrdup(first) : NULL;
	}
	task->compare = GRADE_LINES_CLOSE;
	return finish_cases(task, json_get_string(pairs, "fn_name"), "apps", err);
}

static int read_codecontests(struct grade_task *task, struct err *err)
{
	static const char *const members[] = {"public_tests", "private_tests", "generated_tests"};
	struct json_object *limit = json_get(task->line, "time_limit", json_type_object);
	struct json_object *seconds = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		add_pairs(task, json_get(task->line, members[i], json_type_object));
	if (limit && json_object_object_get_ex(limit, "seconds", &seconds))
		task->seconds = json_object_get_double(seconds);
	else if (json_object_object_get_ex(task->line, "time_limit", &seconds))
		task->seconds = json_object_get_double(seconds);
	struct json_object *solutions = json_get(task->line, "solutions", json_type_object);
	struct json_object *languages = json_get(solutions, "language", json_type_array);
	struct json_object *texts = json_get(solutions, "solution", json_type_array);
	for (size_t i = 0; languages && texts && !task->reference && i < json_object_array_length(texts); i++)
		if (json_object_get_int(json_object_array_get_idx(languages, i)) == CODECONTESTS_PYTHON3)
			task->reference = xstrdup(json_object_get_string(json_object_array_get_idx(texts, i)));
	task->compare = GRADE_TOKENS;
	return finish_cases(task, NULL, NULL, err);
}

static int read_livecodebench(struct grade_task *task, struct err *err)
{
	static const char *const members[] = {"public_test_cases", "private_test_cases"};
	auto_json struct json_object *metadata = *member(task, "metadata") ? inner(task, "metadata", NULL) : NULL;
	bool functional = false;

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		auto_json struct json_object *list = NULL;
		const char *text = member(task, members[i]);

		if (!*text)
			continue;
		int result = text[strspn(text, " \t\r\n")] == '['
				     ? json_parse(text, strlen(text), &list, err)
				     : grade_lines_packed(text, &list, err);
		if (result < 0)
			return err_wrap(err, "task %s, %s", task->id, members[i]);
		for (size_t k = 0; k < json_object_array_length(list); k++) {
			struct json_object *one = json_object_array_get_idx(list, k);
			const char *type = json_get_string(one, "testtype");

			functional = functional || (type && streq(type, "functional"));
			add_case(task, json_get(one, "input", json_type_string),
				 json_get(one, "output", json_type_string));
		}
	}
	const char *function = metadata ? json_get_string(metadata, "func_name") : NULL;
	if (functional && !function)
		return err_set(err, ERR_INVALID, "task %s: its metadata names no function (func_name)", task->id);
	task->seconds = 6;
	task->compare = GRADE_LINES;
	return finish_cases(task, functional ? function : NULL, "livecodebench", err);
}

static int read_verifiable(struct grade_task *task, struct err *err)
{
	struct json_object *object = json_get(task->line, "verification_info", json_type_object);
	auto_json struct json_object *info =
		object ? json_object_get(object) : inner(task, "verification_info", err);
	struct json_object *list = json_get(info, "test_cases", json_type_array);
	const char *language = json_get_string(info, "language"), *function = NULL;

	if (!list)
		return err_set(err, ERR_INVALID, "task %s: its verification_info has no test_cases", task->id);
	if (language && !task->said && find_tongue(language, strlen(language), &task->tongue) < 0)
		return err_set(err, ERR_INVALID,
			       "task %s: no tasks are graded in the language %s: python, cpp, javascript or go",
			       task->id, language);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i), *input = NULL, *output = NULL;
		const char *type = json_get_string(one, "type");

		json_object_object_get_ex(one, "input", &input);
		json_object_object_get_ex(one, "output", &output);
		if (type && streq(type, "function_call"))
			function = json_get_string(one, "fn_name");
		else if (type && !streq(type, "stdin_stdout"))
			return err_set(err, ERR_INVALID, "task %s: test cases of the type %s are not known", task->id,
				       type);
		add_case(task, input, output);
	}
	task->compare = GRADE_LINES_CLOSE;
	return finish_cases(task, function, "apps", err);
}

/* -------- the table ----------------------------------------------------------------------------------- */

static const struct format formats[] = {
	{"evalplus", {"base_input", "plus_input", "canonical_solution", "prompt", "entry_point"},
	 {"contract", "assertion", "atol"}, read_evalplus, "canonical_solution"},
	{"MultiPL-E", {"tests", "prompt", "language", "name"}, {"doctests", "test_dir"}, read_multipl_e, NULL},
	{"BigCodeBench", {"complete_prompt", "test", "entry_point"}, {NULL}, read_bigcodebench, "canonical_solution"},
	{"DS-1000", {"code_context", "metadata", "prompt"}, {NULL}, read_ds1000, "reference_code"},
	{"HumanEvalPack, HumanEval-X", {"declaration", "test", "prompt"}, {"test_setup", "example_test"}, read_pack,
	 "canonical_solution"},
	{"HumanEval", {"prompt", "test", "entry_point"}, {NULL}, read_humaneval, "canonical_solution"},
	{"LiveCodeBench", {"question_id", "public_test_cases|private_test_cases"}, {NULL}, read_livecodebench, NULL},
	{"APPS, TACO", {"input_output"}, {NULL}, read_apps, NULL},
	{"CodeContests", {"name", "public_tests|private_tests"}, {"generated_tests"}, read_codecontests, NULL},
	{"verifiable-coding-problems", {"verification_info"}, {NULL}, read_verifiable, "gold_standard_solution"},
	{"CRUXEval", {"input", "output", "code"}, {NULL}, read_cruxeval, "output"},
	{"MBPP", {"code", "test_list|test"}, {"test_setup_code", "test_imports", "challenge_test_list"}, read_mbpp,
	 "code"},
};

char *grade_format_list(void)
{
	auto_buf struct buf text = {0};

	buf_init(&text, 1 << 16);
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		buf_printf(&text, "%s%s (", i ? "; " : "", formats[i].name);
		for (size_t k = 0; k < SHOWN_MEMBERS && formats[i].needs[k]; k++)
			buf_printf(&text, "%s%s", k ? ", " : "", formats[i].needs[k]);
		buf_putc(&text, ')');
	}
	return xstrdup(text.data);
}

static const struct format *find_format(struct json_object *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		bool all = true;

		for (size_t k = 0; k < MEMBERS_MAX && formats[i].needs[k]; k++)
			all = all && one_of(line, formats[i].needs[k]);
		if (all)
			return &formats[i];
	}
	return NULL;
}

/* Does a word of the name begin like tests'? "contest" does not. */
static bool like_tests(const char *name)
{
	static const char *const words[] = {"test", "unittest", "doctest", "assert", "input", "output", "case"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (const char *at = strcasestr(name, words[i]); at; at = strcasestr(at + 1, words[i]))
			if (at == name ? i < 4 : !isalpha((unsigned char)at[-1]) || isupper((unsigned char)*at))
				return true;
	return false;
}

static int check_members(const struct format *format, const struct grade_task *task, struct err *err)
{
	json_object_object_foreach(task->line, name, value)
	{
		if (like_tests(name) && filled(value) && !in_list(format->needs, name) && !in_list(format->tests, name))
			return err_set(err, ERR_INVALID,
				       "task %s: its member %s looks like tests, and is none that runs (it was read as "
				       "%s)",
				       task->id, name, format->name);
	}
	return 0;
}

int grade_format_read(struct grade_task *ret, const char *language, struct err *err)
{
	const struct format *format = find_format(ret->line);

	if (!format) {
		auto_free char *list = grade_format_list();

		return err_set(err, ERR_INVALID, "task %s is of none of the formats, known by members: %s", ret->id,
			       list);
	}
	int result = check_members(format, ret, err);
	if (result == 0 && language) {
		ret->said = true;
		result = language_of_id(ret, language, err);
	}
	if (result < 0)
		return result;
	ret->entry = xstrdup(member(ret, "entry_point"));
	if (format->reference && has(ret->line, format->reference))
		ret->reference = xstrdup(member(ret, format->reference));
	result = format->read(ret, err);
	if (result == 0 && ret->tongue != GRADE_PYTHON && !ret->cases && format->read != read_pack &&
	    format->read != read_multipl_e)
		return err_set(err, ERR_INVALID, "task %s: tasks of %s are not graded in %s", ret->id, format->name,
			       grade_tongue_text(ret->tongue));
	return result;
}
