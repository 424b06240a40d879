/*
 * grade_compose.c - see grade_exam.h: code and tests as the files of one program, and the programs that run tests.
 *
 * C++ and Go, split: two programs. The tests' one has the task's text up to the function and a stub in its place
 * (split.hpp, split.go); the other has the sample, and serves the stub's calls.
 *
 * C++ as one program: tests and code are two files, of which the second shows the first its function only (seal.sh),
 * so that neither macros nor functions of the code's can change what the tests say; main is in a third. A template has
 * to be in the tests' file, behind them. Included are the headers that the task names; those that samples use to take
 * for granted are added only where the program does not compile otherwise (GRADE_USUAL_HEADERS). Either way a library
 * may have a function of the tested one's name, and one that fits the tests' arguments better (strlen). So the tests
 * call the tested function by a reference of exactly its type. Go: files of one package, and what knows the nonce in
 * another; of the imports that a task brings each file has those that it uses, because Go refuses the others.
 */
#include <ctype.h>
#include <string.h>

#include "grade_exam.h"
#include "lib/base/util.h"

#define PROGRAM_BYTES (64 << 20)

/* -------- the programs of jail/guest/exam ------------------------------------------------------------- */

static const char examiner_py[] =
#include "exam/site.py.inc"

#include "exam/values.py.inc"

#include "exam/shared.py.inc"

#include "exam/cases.py.inc"

#include "exam/examiner.py.inc"
	;
static const char candidate_py[] =
#include "exam/site.py.inc"

#include "exam/values.py.inc"

#include "exam/shared.py.inc"

#include "exam/candidate.py.inc"
	;
static const char alone_py[] =
#include "exam/alone.py.inc"
	;
static const char examiner_js[] =
#include "exam/examiner.cjs.inc"
	;
static const char candidate_js[] =
#include "exam/candidate.cjs.inc"
	;
static const char alone_js[] =
#include "exam/alone.cjs.inc"
	;
static const char alone_cpp[] =
#include "exam/alone.cpp.inc"
	;
static const char seal_sh[] =
#include "exam/seal.sh.inc"
	;
static const char alone_go[] =
#include "exam/alone.go.inc"
	;
static const char sealed_go[] =
#include "exam/sealed.go.inc"
	;
static const char assert_go[] =
#include "exam/assert.go.inc"
	;
static const char split_cpp[] =
#include "exam/split.hpp.inc"
	;
static const char tests_cpp[] =
#include "exam/tests.hpp.inc"
	;
static const char split_go[] =
#include "exam/split.go.inc"
	;
static const char tests_go[] =
#include "exam/tests.go.inc"
	;

#define TEXT(array) {array, sizeof(array) - 1}
const struct grade_texts grade_texts[] = {
	[GRADE_PYTHON] = {TEXT(examiner_py), TEXT(candidate_py), TEXT(alone_py), "exam-python", true},
	[GRADE_JAVASCRIPT] = {TEXT(examiner_js), TEXT(candidate_js), TEXT(alone_js), "javascript", false},
	[GRADE_CPP] = {.alone = TEXT(alone_cpp)},
	[GRADE_GO] = {.alone = TEXT(alone_go)},
};

/* -------- files --------------------------------------------------------------------------------------- */

static void add_text(struct grade_source *source, const char *name, const char *data, size_t length)
{
	source->files = xrealloc(source->files, source->count + 1, sizeof(*source->files));
	source->files[source->count++] = (struct grade_file){
		.name = xstrdup(name), .mode = 0644, .data = xmemdup(data, length), .length = length};
}

static void add_buf(struct grade_source *source, const char *name, const struct buf *text)
{
	add_text(source, name, text->data, text->length);
}

/* -------- Python and JavaScript ----------------------------------------------------------------------- */

static void compose_script(const struct grade_sample *sample, struct grade_source *ret)
{
	const struct grade_task *task = sample->task;
	const struct grade_text *alone = &grade_texts[task->tongue].alone;
	const char *test = task->test ? task->test : "";
	auto_free char *program = grade_sample_program(sample);
	bool python = task->tongue == GRADE_PYTHON;
	auto_buf struct buf text = {0};

	buf_init(&text, PROGRAM_BYTES);
	if (task->before) {
		auto_json struct json_object *code = json_object_new_string(program);

		buf_printf(&text, "%s\nsallyport_sample = ", task->before);
		json_print(&text, code);
		buf_putc(&text, '\n');
		*program = '\0';
	}
	buf_puts(&text, test);
	add_text(ret, python ? "alone.py" : "alone.cjs", alone->data, alone->length);
	add_text(ret, python ? "program.py" : "program.js", program, strlen(program));
	add_buf(ret, python ? "tests.py" : "tests.js", &text);
}

/* -------- C++ ----------------------------------------------------------------------------------------- */

static const char cpp_usual[] =
	"#include <assert.h>\n#include <limits.h>\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
	"#include <string.h>\n#include <algorithm>\n#include <any>\n#include <climits>\n#include <cmath>\n"
	"#include <cstring>\n#include <deque>\n#include <fstream>\n#include <iostream>\n#include <list>\n"
	"#include <map>\n#include <numeric>\n#include <queue>\n#include <set>\n#include <sstream>\n"
	"#include <stack>\n#include <string>\n#include <vector>\nusing namespace std;\n";
static const char cpp_any[] =
	"#pragma once\n#include <any>\nnamespace boost {\nusing std::any;\nusing std::any_cast;\n}\n";

/* The tests, whose main becomes a function that the real one calls. */
static void put_cpp_tests(struct buf *text, const char *test)
{
	const char *at = strstr(test, "main");

	while (at && (at == test || !isspace((unsigned char)at[-1]) || at[4 + strspn(at + 4, " \t\n")] != '('))
		at = strstr(at + 4, "main");
	const char *type = at;
	while (type && type > test && isspace((unsigned char)type[-1]))
		type--;
	if (!at || type - test < 3 || strncmp(type - 3, "int", 3) != 0) {
		buf_puts(text, test); /* without a main: the linker says so */
		return;
	}
	buf_add(text, test, (size_t)(type - 3 - test));
	buf_printf(text, "static auto sallyport_tests%s\n", at + 4);
	buf_puts(text, "void sallyport_tests_run()\n{\n\tsallyport_tests();\n}\n");
}

/* What is known of the function of a task in C++: the task's text before it, and "TYPE NAME(PARAMETERS". */
struct cpp_function {
	char *head;            /* up to the signature */
	const char *signature; /* NULL: the text ends otherwise, and `head` is all of it */
	const char *at;        /* the name in it */
	char *name;
	bool replaced; /* the name can be a macro in the tests: they have no member of this name */
};

static bool names_member(const char *test, const char *name)
{
	size_t length = strlen(name);
	bool member = false;

	for (const char *use = strstr(test, name); use && !member; use = strstr(use + length, name))
		member = !grade_source_in_name(use[length]) && use > test && strchr(".>:", use[-1]);
	return member;
}

static void read_function(const struct grade_task *task, struct cpp_function *ret)
{
	char *head = xstrdup(task->prefix);
	size_t length = strlen(head);

	while (length > 0 && isspace((unsigned char)head[length - 1]))
		head[--length] = '\0';
	char *line = strrchr(head, '\n'), *signature = line ? line + 1 : head, *open = strchr(signature, '(');
	*ret = (struct cpp_function){.head = head};
	if (length == 0 || !open || strchr(signature, '{') != head + length - 1)
		return;
	head[length - 1] = '\0';
	size_t end = (size_t)(open - signature);
	while (end > 0 && isspace((unsigned char)signature[end - 1]))
		end--;
	size_t at = end;
	while (at > 0 && grade_source_in_name(signature[at - 1]))
		at--;
	ret->signature = signature;
	ret->at = signature + at;
	ret->name = xstrndup(signature + at, end - at);
	ret->replaced = end > at && !str_starts(signature, "template") &&
			!names_member(task->test, ret->name);
}

static void function_clear(struct cpp_function *function)
{
	free(function->head);
	free(function->name);
}

/* A declaration whose type is that of the function. */
static void put_type(struct buf *text, const struct cpp_function *function)
{
	buf_printf(text, "%.*ssallyport_type_of_%s;\n", (int)(function->at - function->signature), function->signature,
		   function->at);
}

/* The tests, which get a function of exactly this type, in this process or the other one. */
static void put_replaced(struct buf *text, const struct cpp_function *function, const char *test, bool remote)
{
	/* Headers come before a macro that could change them; their guards allow them a second time. */
	for (const char *line = test, *next; *line; line = next) {
		size_t end_of_line = strcspn(line, "\n");

		next = line + end_of_line + (line[end_of_line] == '\n');
		if (str_starts(line + strspn(line, " \t"), "#include"))
			buf_printf(text, "%.*s\n", (int)end_of_line, line);
	}
	put_type(text, function);
	if (remote)
		buf_printf(text, "static const sallyport::remote<decltype(sallyport_type_of_%s)> sallyport_tested;\n",
			   function->name);
	else
		buf_printf(text, "static decltype(sallyport_type_of_%s) &sallyport_tested = ::%s;\n", function->name,
			   function->name);
	buf_printf(text, "#define %s sallyport_tested\n", function->name);
	put_cpp_tests(text, test);
	buf_printf(text, "#undef %s\n", function->name);
}

/* The tests of one program, which know the function by its declaration. */
static void put_cpp_tested(struct buf *text, const struct cpp_function *function, const char *test)
{
	buf_add(text, function->head, (size_t)(function->signature - function->head));
	buf_printf(text, "%s;\n", function->signature);
	if (function->replaced)
		put_replaced(text, function, test, false);
	else
		put_cpp_tests(text, test);
}

/* The code, with what its task has before it. */
static void put_cpp_code(struct buf *text, const struct cpp_function *function, const struct grade_sample *sample)
{
	if (!sample->whole)
		buf_printf(text, "%s{\n", function->head);
	buf_printf(text, "%s\n%s", sample->text, sample->task->closes && !sample->whole ? "}\n" : "");
}

static void add_cpp_alone(const struct cpp_function *function, const struct grade_sample *sample, const char *headers,
			  struct grade_source *ret)
{
	const bool sealed = function->signature && !str_starts(function->signature, "template");
	auto_buf struct buf tests = {0}, code = {0};

	buf_init(&tests, PROGRAM_BYTES);
	buf_init(&code, PROGRAM_BYTES);
	buf_puts(&tests, headers);
	if (!function->signature) {
		buf_printf(&tests, "%s\n%s\n", function->head, sample->text);
		put_cpp_tests(&tests, sample->task->test);
	} else {
		put_cpp_tested(&tests, function, sample->task->test);
	}
	buf_puts(sealed ? &code : &tests, sealed ? headers : "\n");
	if (sealed)
		put_cpp_code(&code, function, sample);
	else if (function->signature)
		buf_printf(&tests, "%s{\n%s\n%s", function->signature, sample->text,
			   sample->task->closes ? "}\n" : "");
	/* The beginning of the first file comes before those of the others. */
	add_text(ret, "alone.cpp", grade_texts[GRADE_CPP].alone.data, grade_texts[GRADE_CPP].alone.length);
	add_buf(ret, "main.cpp", &tests);
	if (!sealed)
		return;
	add_buf(ret, "zcode.cpp", &code);
	add_text(ret, "seal.sh", seal_sh, sizeof(seal_sh) - 1);
	ret->wrapper = xasprintf("/bin/sh,/data/seal.sh,%s", function->name);
}

/* One of two programs. */
static void add_cpp_part(const struct cpp_function *function, const struct grade_sample *sample, enum grade_part part,
			 const char *headers, struct grade_source *ret)
{
	const char *name = function->name;
	auto_buf struct buf text = {0};

	buf_init(&text, PROGRAM_BYTES);
	buf_printf(&text, "#include \"split.hpp\"\n%s", headers);
	add_text(ret, "split.hpp", split_cpp, sizeof(split_cpp) - 1);
	if (part == GRADE_TESTS) {
		buf_add(&text, function->head, (size_t)(function->signature - function->head));
		put_replaced(&text, function, sample->task->test, true);
		buf_puts(&text, "#include \"tests.hpp\"\n");
		add_text(ret, "tests.hpp", tests_cpp, sizeof(tests_cpp) - 1);
	} else {
		buf_puts(&text, "#define main sallyport_their_main\n");
		put_cpp_code(&text, function, sample);
		buf_puts(&text, "#undef main\n");
		put_type(&text, function);
		buf_printf(&text,
			   "int main()\n{\n\treturn sallyport::server<decltype(sallyport_type_of_%s)>::serve("
			   "[](auto &&...a) -> decltype(auto) { return ::%s(static_cast<decltype(a)>(a)...); });\n}\n",
			   name, name);
	}
	add_buf(ret, "main.cpp", &text);
}

static void compose_cpp(const struct grade_sample *sample, enum grade_part part, enum grade_headers headers,
			struct grade_source *ret)
{
	const char *before = headers == GRADE_USUAL_HEADERS ? cpp_usual : "";
	struct cpp_function function;

	read_function(sample->task, &function);
	if (part == GRADE_ALONE)
		add_cpp_alone(&function, sample, before, ret);
	else if (function.replaced)
		add_cpp_part(&function, sample, part, before, ret);
	if (grade_source_contains(ret, "boost/any.hpp"))
		add_text(ret, "boost/any.hpp", cpp_any, sizeof(cpp_any) - 1);
	if (strstr(function.head, "<openssl/") || strstr(sample->task->test, "<openssl/"))
		ret->library = "-lcrypto";
	function_clear(&function);
}

/* -------- Go ------------------------------------------------------------------------------------------ */

#define GO_IMPORTS 64
struct go_imports {
	char *lines[GO_IMPORTS]; /* "math/rand" or r "math/rand", with the quotes */
	size_t count;
};

static void add_import(struct go_imports *imports, const char *line, size_t length)
{
	while (length > 0 && isspace((unsigned char)*line)) {
		line++;
		length--;
	}
	const char *quote = memchr(line, '"', length);
	const char *end = quote ? memchr(quote + 1, '"', length - (size_t)(quote + 1 - line)) : NULL;
	/* C code would begin before Go's, and what begins with a point is of ours. */
	if (!end || imports->count == GO_IMPORTS || memmem(line, length, "testify/", 8) || str_starts(quote, "\"C\"") ||
	    quote[1] == '.')
		return;
	auto_free char *text = xstrndup(line, (size_t)(end + 1 - line));
	for (size_t i = 0; i < imports->count; i++)
		if (streq(imports->lines[i], text))
			return;
	imports->lines[imports->count++] = steal(&text);
}

/* Takes imports, directives and the package clause out of a source, whose rest goes to `ret`. */
static void go_strip(const char *source, struct go_imports *imports, struct buf *ret)
{
	bool inside = false;

	for (const char *line = source, *next; *line; line = next) {
		const char *word = line + strspn(line, " \t\r");
		size_t length = strcspn(word, "\n");

		next = word + length + (word[length] == '\n');
		if (inside) {
			inside = *word != ')';
			add_import(imports, word, length);
		} else if (str_starts(word, "import (") || str_starts(word, "import(")) {
			inside = !memchr(word, ')', length);
			add_import(imports, strchr(word, '(') + 1, length - (size_t)(strchr(word, '(') + 1 - word));
		} else if (str_starts(word, "import ")) {
			add_import(imports, word + 7, length - 7);
		} else if (!str_starts(word, "package ") && !str_starts(word, "//go:")) {
			buf_add(ret, line, (size_t)(next - line));
		}
	}
}

static void add_go(struct grade_source *ret, const char *name, const struct go_imports *imports, const struct buf *body)
{
	auto_buf struct buf text = {0};

	buf_init(&text, PROGRAM_BYTES);
	buf_puts(&text, "package main\n\n");
	for (size_t i = 0; i < imports->count; i++) {
		const char *import = imports->lines[i], *quote = strchr(import, '"'), *slash = strrchr(import, '/');
		const char *start = quote > import ? import : slash ? slash + 1 : quote + 1;
		auto_free char *used = xasprintf("%.*s.", (int)strcspn(start, "\" "), start);
		const char *at = strstr(body->data, used);

		while (at && at > body->data && (grade_source_in_name(at[-1]) || at[-1] == '.'))
			at = strstr(at + 1, used);
		if (at)
			buf_printf(&text, "import %s\n", import);
	}
	buf_add(&text, body->data, body->length);
	add_buf(ret, name, &text);
}

/* What a sample may use without an import of its own: it cannot have one. */
static const char go_usual[] =
	"import \"testing\"\nimport \"bytes\"\nimport \"crypto/md5\"\nimport \"errors\"\nimport \"fmt\"\n"
	"import \"math\"\nimport \"math/rand\"\nimport \"os\"\nimport \"regexp\"\nimport \"sort\"\nimport \"strconv\"\n"
	"import \"strings\"\nimport \"syscall\"\nimport \"time\"\nimport \"unicode\"\n";

/* main of tests, which names them. */
static void add_go_main(struct grade_source *ret, const char *name, const char *text, const char *tests)
{
	static const char place[] = "/*TESTS*/";
	const char *at = strstr(text, place);
	auto_buf struct buf made = {0};

	buf_init(&made, PROGRAM_BYTES);
	buf_add(&made, text, (size_t)(at - text));
	for (const char *test = strstr(tests, "func Test"); test; test = strstr(test + 1, "func Test")) {
		int length = (int)strcspn(test + 5, "( \t\n");

		buf_printf(&made, "{Name: \"%.*s\", F: %.*s},", length, test + 5, length, test + 5);
	}
	buf_puts(&made, at + sizeof(place) - 1);
	add_buf(ret, name, &made);
	add_text(ret, "assert.go", assert_go, sizeof(assert_go) - 1);
}

/* "func NAME(PARAMETERS) RESULT {" at the end of what comes before a sample, without the brace; the caller's. NULL: it
 * ends otherwise. *ret_before: the length of the text before. */
static char *go_signature(const char *prefix, const char *name, size_t *ret_before)
{
	auto_free char *begin = xasprintf("func %s(", name);
	const char *at = NULL, *end = prefix + strlen(prefix);

	for (const char *next = strstr(prefix, begin); next; next = strstr(next + 1, begin))
		if (next == prefix || next[-1] == '\n')
			at = next;
	while (end > prefix && isspace((unsigned char)end[-1]))
		end--;
	if (!at || end - at < 2 || end[-1] != '{' || memchr(at, '\n', (size_t)(end - at)))
		return NULL;
	*ret_before = (size_t)(at - prefix);
	return xstrndup(at, (size_t)(end - 1 - at));
}

static void compose_go(const struct grade_sample *sample, enum grade_part part, struct grade_source *ret)
{
	const struct grade_task *task = sample->task;
	const char *name = task->entry, *prefix = task->prefix;
	size_t before = 0;
	auto_free char *signature = go_signature(prefix, name, &before);
	auto_free char *code = part == GRADE_TESTS ? xasprintf("%.*s\n", (int)before, prefix)
						   : grade_sample_program(sample);
	struct go_imports imports = {.count = 0};
	auto_buf struct buf ignored = {0}, body = {0}, test_body = {0};

	if (part != GRADE_ALONE && !signature)
		return;
	buf_init(&ignored, PROGRAM_BYTES);
	buf_init(&body, PROGRAM_BYTES);
	buf_init(&test_body, PROGRAM_BYTES);
	go_strip(go_usual, &imports, &ignored);
	go_strip(grade_task_member(task, "import"), &imports, &ignored);
	go_strip(code, &imports, &body);
	go_strip(task->test, &imports, &test_body);
	if (part == GRADE_TESTS) {
		const char *type = signature + 5 + strlen(name);

		buf_printf(&body, "var %s = sallyportRemote((func%s)(nil)).(func%s)\n", name, type, type);
	} else if (part == GRADE_CODE) {
		buf_printf(&body, "\nfunc main() { sallyportServe(%s) }\n", name);
	}
	buf_putc(&body, '\n');
	add_go(ret, "solution.go", &imports, &body);
	if (part != GRADE_CODE)
		add_go(ret, "tests.go", &imports, &test_body);
	if (part == GRADE_ALONE) {
		add_go_main(ret, "alone.go", grade_texts[GRADE_GO].alone.data, test_body.data);
		add_text(ret, "sealed/sealed.go", sealed_go, sizeof(sealed_go) - 1);
	} else {
		add_text(ret, "a_split.go", split_go, sizeof(split_go) - 1);
	}
	if (part == GRADE_TESTS)
		add_go_main(ret, "main.go", tests_go, test_body.data);
	for (size_t i = 0; i < imports.count; i++)
		free(imports.lines[i]);
}

static void compose_plain(const struct grade_sample *sample, struct grade_source *ret)
{
	static const char *const names[] = {"main.py", "main.cpp", "main.js", "main.go"};
	auto_free char *program = sample->task->tongue == GRADE_PYTHON ? grade_sample_program(sample)
								       : xstrdup(sample->text);

	add_text(ret, names[sample->task->tongue], program, strlen(program));
}

void grade_compose(const struct grade_sample *sample, enum grade_part part, enum grade_headers headers,
		   struct grade_source *ret)
{
	const struct grade_task *task = sample->task;

	*ret = (struct grade_source){.name = xstrdup(task->id), .runner = xstrdup(grade_tongue_text(task->tongue))};
	if (part == GRADE_PLAIN)
		compose_plain(sample, ret);
	else if (task->tongue == GRADE_CPP)
		compose_cpp(sample, part, headers, ret);
	else if (task->tongue == GRADE_GO)
		compose_go(sample, part, ret);
	else
		compose_script(sample, ret);
}
