/* Programs whose last expression can be continued, told by their text: jail/cell/last.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jail/cell/last.h"
#include "lib/base/util.h"

/* What it becomes; NULL: it is left alone. The caller's. */
static char *opened(const char *text)
{
	auto_buf struct buf ret = {0};
	size_t length;

	buf_init(&ret, SIZE_MAX);
	if (!last_open(text, strlen(text), &ret)) {
		assert_int_equal(ret.length, 0);
		return NULL;
	}
	return buf_steal(&ret, &length);
}

static void taken(const char *text, const char *wanted)
{
	auto_free char *got = opened(text);

	if (!got)
		fail_msg("not taken: %s", text);
	assert_string_equal(got, wanted);
}

static void all_left_alone(const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		auto_free char *got = opened(list[i]);

		if (got)
			fail_msg("taken: %s", list[i]);
	}
}

static void last_expressions_are_taken(void **state)
{
	static const char *const list[] = {
		"5",
		"[1]",
		"x",
		"// first\nx // and last",
		"x /* a\nb */\n",
		"const a: number = 1\na",
		"const a = [1];\na\n\t.map((x) => x * 2)\n\t.filter((x) => { return x > 1; })\n",
		"f(1)",
		"await f(x, (a, b) => a + b)",
		"new Map<string, number>([[\"a\", 1]])",
		"({ a: 1, b: [2] })",
		"import { readFileSync } from 'node:fs'\nreadFileSync('a', 'utf8').length",
		"function f(a: string): string {\n\treturn a;\n}\nf('x')",
		"if (a) {\n\tb\n} else {\n\tc\n}\nd",
		"for (const a of b)\n\tc\nd",
		"for (let i = 0; i < 3; i++) { f(i) }\ni",
		"x / 2 + y / 3",
		"(x + 1) / 2 / y",
		"s.replace(/[/\"'`]/g, '').split(/a\\/b/)",
		"`a ${b + `c ${d}`} e`",
		"const t = `}${x}`\nt",
		"x as P",
		"p satisfies P",
		"x!",
		"x!.y",
		"a?.b?.[0]",
		"typeof x",
		"!x",
		"-x ** 2",
		"i++",
		"x = 1, y",
		"a === b, c",
		"x = {\n\ta: 1\n}\ny",
		"type T =\n\t| A\n\t| B\nx",
		"interface P { x: number }\nconst p: P = { x: 1 }\np.x",
		"class A {\n\tx = 1;\n\tf() { return this.x / 2 }\n}\nnew A().f() + 1",
		"const f = function () {\n}\nf",
		"a\n++b",
		"a\n!b",
		"\"http://a.example/b\"",
		"console.log(1)\nconsole.table([1])\nx",
		"a.if(x)\n",
		"a < b",
		"f<number>(x)",
		"while (x > 0) { x-- }\nx",
		"x.from",
		"[...new Set(a), ...b,]",
		"xs.map((x) => {\n\tconst y = x\n\tif (y) {\n\t\treturn y\n\t}\n\treturn x + y;\n})",
		"({ a, b: { c }, f() { return 1 }, ...d })",
		"f(\n\ta,\n\tb,\n)",
		"f(function (x) { for (let i = 0; i < 3; i++) { x } })",
		"(() => 5)()",
		"Array.from(new Array<number>(3))",
		"const a: Array<number> = [Symbol('x')]\nObject.keys(a)",
		"'ä' + \"ö\" // ü",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(list); i++)
		taken(list[i], list[i]);
}

static void semicolons_behind_them_are_dropped(void **state)
{
	(void)state;
	taken("const a = 1;\na;", "const a = 1;\na ");
	taken("const a = 1; a; ; // a; b;\n", "const a = 1; a    // a; b;\n");
	taken(";;5;;", ";;5  ");
	taken("let s = 'x';\n[s, 1.5, \"y\", null];\n", "let s = 'x';\n[s, 1.5, \"y\", null] \n");
	taken("function f(x) { return x }\nf(f);", "function f(x) { return x }\nf(f) ");
	taken("const f = (x: number): number => x\nf(1);", "const f = (x: number): number => x\nf(1) ");
	taken("const f = async x => x\nawait f([1, true]);", "const f = async x => x\nawait f([1, true]) ");
	taken("export const f = function () {}\nf();", "export const f = function () {}\nf() ");
}

/* An error may name the last line, which would be quoted without its semicolon. */
static void statements_that_may_fail_are_left(void **state)
{
	static const char *const list[] = {
		"x;",
		"missing.y;",
		"const a = 1;\na.b;",
		"const a = 1;\na + a;",
		"const a = 1;\na();",
		"const a = (b)\na();",
		"const a = (b) ? c : (d) => e\na();",
		"const a = x(b => c)\na();",
		"let a = () => 1\na();",
		"declare const a: number\na;",
		"function f() {}\nf(x);",
		"function f() {}\nf()();",
		"function f() {}\nf(-f);",
		"function f() {}\nf(f f);",
		"function f() {}\nf(f`x`);",
		"function f() {}\nf(,);",
		"function f() {}\nf(/(/);",
		"function f() {}\nf(08);",
		"function f() {}\nf(1.2.3);",
		"function f() {}\nf('\\x');",
		"function f() {}\nf = 5\nf();",
		"const a = 1\nawait a;",
		"const a = 1\nnew a;",
		"const { a } = b;\na;",
		"5;5;5;5;5;5;5;5;x;",
		"5;;;;;;;;;",
	};

	(void)state;
	all_left_alone(list, ARRAY_SIZE(list));
}

/* Of looser operators it would get a part. */
static void looser_operators_are_left(void **state)
{
	static const char *const list[] = {
		"",         " \n// x\n", ";",     "/* x",   "x /* y",   "a === b", "a ? b : c",    "a && b",
		"a ?? b",   "a | b",     "x = 5", "x += 5", "a, b = c", "x => y",  "async x => y", "(a, b) => { c }",
		"label: x",
	};

	(void)state;
	all_left_alone(list, ARRAY_SIZE(list));
}

/* Or not to be told from one. */
static void no_expressions(void **state)
{
	static const char *const list[] = {
		"const a = 1",
		"let a = 1, b = 2",
		"function f() {}",
		"class A {}",
		"{ a }",
		"if (a) b",
		"if (a)\n\tb",
		"if (a) {\n} else\n\tb",
		"else\nb",
		"for (const a of b)\n\ta",
		"while (a)\n\tb",
		"for await (const a of b)\n\ta",
		"do a\nwhile (b)\nc",
		"return 5",
		"throw x",
		"throw\nx",
		"export default x",
		"export { x }",
		"import 'x'",
		"import x from 'y'",
		"import x from\n'y'",
		"import { x }\nfrom 'y'",
		"export * from 'x'",
		"type T = X",
		"type\nT",
		"interface P {}",
		"interface P\n{}",
		"declare const x: number",
		"namespace A.B { }",
		"abstract class A {}",
		"enum A { B }",
		"@x",
		"x\n{ }",
		"x y",
		"x 'y'",
		"async",
		"import.meta",
		"import('x')",
		"const f = function () { return [] }\n[0]",
		"function f() {}\n(1)",
		"if (a) {}\n(b)",
		"function f() {} f()",
		"const a = 1\n+ 2",
		"const a = b\n(c)",
		"const a = b\n.c",
		"const a = b\n`c`",
		"const a = b\nas C",
	};

	(void)state;
	all_left_alone(list, ARRAY_SIZE(list));
}

static void not_whole(void **state)
{
	static const char *const list[] = {
		"f(", "f)",     "[(])", "a +",  "a.",    "a as",   "new",        "()",
		"'x", "'x\ny'", "`x",   "`${x", "`${x`", "a = /x", "x as const",
	};

	(void)state;
	all_left_alone(list, ARRAY_SIZE(list));
}

/* The engine goes on behind them, and would name the tail, too. */
static void programs_with_mistakes_are_left(void **state)
{
	static const char *const list[] = {
		"f(a b)",
		"f(a\nb)",
		"(a,)",
		"[a b]",
		"({ a b })",
		"({ a\nb })",
		"f(,a)",
		"[,]",
		"(a + )",
		"(a + * b)",
		"(a; b)",
		"f(())",

		"xs.map((x) => { a b })",
		"xs.map((x) => { a +; })",
		"a.+b",
		"a.5",
		"a ~ b",
		"...x",
		"x => {} y",
		"try { x } catch (e) 1{ y }\nx",
		"function f() a { b }\nx",
		"for (a b of c) { d }\nx",
		"if (a b) c\nx",
	};

	(void)state;
	all_left_alone(list, ARRAY_SIZE(list));
}

static void not_to_be_read(void **state)
{
	static const char *const list[] = {
		"{}\n/x/",
		"gr\xc3\xb6\xc3\x9f"
		"e",
		"a\\u0061",
		"x // \xe2\x80\xa8",
		"#!x\ny",
		"x <!-- y",
		"x\n--> y",
	};

	(void)state;
	all_left_alone(list, ARRAY_SIZE(list));
}

/* They look at themselves, are something else to bun, or have names that the tail uses. */
static void own_ways(void **state)
{
	static const char *const list[] = {
		"const fs = require('fs')\nx",
		"__filename",
		"module.exports",
		"exports.x",
		"import.meta.url\nx",
		"x\n'/code/main.ts'",
		"process.stdout.write('x')\n5",
		"new Proxy(x, y)",
		"console.log = x\n5",
		"console\n5",
		"const { log } = console\n5",
		"class Array<T> {}\n5",
		"import { Array } from 'effect'\n5",
		"const Symbol = 1\n5",
		"function Object() {}\n5",
		"import Bun from 'x'\n5",
		"[1].forEach(console.log)\n5",
		"process.argv[1]",
	};

	(void)state;
	all_left_alone(list, ARRAY_SIZE(list));
}

/* As many brackets, and names, as there is room for, and more. */
static void brackets_and_names_are_bounded(void **state)
{
	auto_buf struct buf text = {0};

	(void)state;
	buf_init(&text, SIZE_MAX);
	for (int i = 0; i < 64; i++)
		buf_putc(&text, '(');
	buf_putc(&text, '1');
	for (int i = 0; i < 64; i++)
		buf_putc(&text, ')');
	taken(text.data, text.data);
	auto_free char *more = xasprintf("(%s)", text.data), *none = opened(more);
	assert_null(none);

	buf_reset(&text);
	for (int i = 0; i < 300; i++)
		buf_printf(&text, "const a%d = %d\n", i, i);
	auto_free char *known = xasprintf("%sa255;", text.data), *unknown = xasprintf("%sa256;", text.data);
	auto_free char *got = opened(known), *left = opened(unknown);
	assert_non_null(got);
	assert_null(left);
	assert_false(last_open("1\0", 2, &text));
}

static void tail_is_put_behind_the_program(void **state)
{
	static const char wanted[] = "const a = 1\na \ninstanceof\n({})\n";
	auto_close int tail = memfd_with("tail", "// of\n//\n({})\n", 14),
		       code = memfd_with("code", "const a = 1\na;", 14);
	auto_close int other = memfd_with("code", "a;", 2), long_one = memfd_with("code", "", 0);
	char got[sizeof(wanted)] = "";

	(void)state;
	auto_close int file = last_file(code, tail);
	assert_true(file >= 0);
	assert_int_equal(pread(file, got, sizeof(got), 0), sizeof(wanted) - 1);
	assert_string_equal(got, wanted);
	assert_int_equal(lseek(code, 0, SEEK_CUR), 0);
	assert_int_equal(last_file(other, tail), -1);
	assert_int_equal(last_file(code, -1), -1);
	assert_int_equal(last_file(-1, tail), -1);
	assert_int_equal(ftruncate(long_one, LAST_TEXT_MAX + 1), 0);
	assert_int_equal(last_file(long_one, tail), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(last_expressions_are_taken),
		cmocka_unit_test(semicolons_behind_them_are_dropped),
		cmocka_unit_test(statements_that_may_fail_are_left),
		cmocka_unit_test(looser_operators_are_left),
		cmocka_unit_test(no_expressions),
		cmocka_unit_test(not_whole),
		cmocka_unit_test(own_ways),
		cmocka_unit_test(not_to_be_read),
		cmocka_unit_test(brackets_and_names_are_bounded),
		cmocka_unit_test(tail_is_put_behind_the_program),
		cmocka_unit_test(programs_with_mistakes_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
