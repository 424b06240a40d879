/*
 * grade_compose.c - see grade_exam.h: code and tests as the files of one program, and the programs that run tests.
 *
 * C++: the tests come before the code, with the function only declared, so that the code's macros and overloads cannot
 * change what the tests say; main is in another file. Included are the headers that the task names; those that samples
 * use to take for granted are added only where the program does not compile otherwise (GRADE_USUAL_HEADERS). Either way
 * a library may have a function of the tested one's name, and one that fits the tests' arguments better (strlen). So
 * the tests call the tested function by a reference of exactly its type. Go: three files of one package; of the imports
 * that a task brings each file has those that it uses, because Go refuses the others.
 */
#include <ctype.h>
#include <string.h>

#include "grade_exam.h"
#include "lib/base/util.h"

#define PROGRAM_BYTES (64 << 20)

/* -------- the programs of jail/guest/exam ------------------------------------------------------------- */

static const char examiner_py[] =
#include "exam/site.py.inc"

#include "exam/examiner.py.inc"
	;
static const char candidate_py[] =
#include "exam/site.py.inc"

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
static const char alone_go[] =
#include "exam/alone.go.inc"
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

static void put_list(struct buf *text, const struct grade_task *task, const char *member)
{
	struct json_object *list = json_get(task->line, member, json_type_array);

	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		const char *line = json_object_get_string(json_object_array_get_idx(list, i));

		buf_printf(text, "%s\n", line ? line : "");
	}
}

static void compose_script(const struct grade_task *task, const char *completion, struct grade_source *ret)
{
	const struct grade_text *alone = &grade_texts[task->tongue].alone;
	bool python = task->tongue == GRADE_PYTHON;
	auto_buf struct buf text = {0};

	buf_init(&text, PROGRAM_BYTES);
	if (task->layout == GRADE_MBPP)
		put_list(&text, task, "test_imports");
	buf_puts(&text, grade_task_prefix(task));
	buf_puts(&text, completion);
	buf_putc(&text, '\n');
	if (task->layout == GRADE_MBPP) {
		buf_printf(&text, "%s\n", grade_task_member(task, "test_setup_code"));
		put_list(&text, task, "test_list");
	} else {
		buf_printf(&text, "%s\n", grade_task_member(task, "test"));
	}
	if (task->layout == GRADE_HUMANEVAL)
		buf_printf(&text, "check(%s)\n", grade_task_member(task, "entry_point"));
	add_text(ret, python ? "alone.py" : "alone.cjs", alone->data, alone->length);
	add_buf(ret, python ? "program.py" : "program.js", &text);
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

/* Declares the function, and gives the tests the one of exactly this type, whatever else has its name. The signature is
 * "TYPE NAME(PARAMETERS". */
static void put_declared(struct buf *text, const char *signature, const char *test)
{
	const char *end = strchr(signature, '(');

	while (end > signature && isspace((unsigned char)end[-1]))
		end--;
	const char *at = end;
	while (at > signature && grade_source_in_name(at[-1]))
		at--;
	auto_free char *name = xstrndup(at, (size_t)(end - at));
	size_t length = strlen(name);
	bool replaced = length > 0 && !str_starts(signature, "template");

	/* The name is no macro in the tests where they also have a member of this name. */
	for (const char *use = strstr(test, name); replaced && use; use = strstr(use + length, name))
		replaced = grade_source_in_name(use[length]) || use == test || !strchr(".>:", use[-1]);

	buf_printf(text, "%s;\n", signature);
	if (replaced) {
		/* Headers come before a macro that could change them; their guards allow them a second time. */
		for (const char *line = test, *next; *line; line = next) {
			size_t end_of_line = strcspn(line, "\n");

			next = line + end_of_line + (line[end_of_line] == '\n');
			if (str_starts(line + strspn(line, " \t"), "#include"))
				buf_printf(text, "%.*s\n", (int)end_of_line, line);
		}
		buf_printf(text, "%.*ssallyport_type_of_%s;\n", (int)(at - signature), signature, at);
		buf_printf(text, "static decltype(sallyport_type_of_%s) &sallyport_tested = ::%s;\n", name, name);
		buf_printf(text, "#define %s sallyport_tested\n", name);
	}
	put_cpp_tests(text, test);
	if (replaced)
		buf_printf(text, "#undef %s\n", name);
}

static void compose_cpp(const struct grade_task *task, const char *completion, enum grade_headers headers,
			struct grade_source *ret)
{
	const struct grade_text *alone = &grade_texts[GRADE_CPP].alone;
	auto_free char *head = xstrdup(grade_task_prefix(task));
	const char *test = grade_task_member(task, "test");
	auto_buf struct buf text = {0};
	size_t length = strlen(head);

	while (length > 0 && isspace((unsigned char)head[length - 1]))
		head[--length] = '\0';
	char *signature = strrchr(head, '\n');
	signature = signature ? signature + 1 : head;
	bool declared = length > 0 && head[length - 1] == '{' && strchr(signature, '(') &&
			memchr(signature, '{', length - (size_t)(signature - head)) == head + length - 1;
	buf_init(&text, PROGRAM_BYTES);
	if (headers == GRADE_USUAL_HEADERS)
		buf_puts(&text, cpp_usual);
	if (declared) {
		head[length - 1] = '\0';
		buf_add(&text, head, (size_t)(signature - head));
		put_declared(&text, signature, test);
		buf_printf(&text, "\n%s{\n%s\n", signature, completion);
	} else {
		buf_printf(&text, "%s\n%s\n", head, completion);
		put_cpp_tests(&text, test);
	}
	add_buf(ret, "main.cpp", &text);
	add_text(ret, "alone.cpp", alone->data, alone->length);
	if (strstr(text.data, "boost/any.hpp"))
		add_text(ret, "boost/any.hpp", cpp_any, sizeof(cpp_any) - 1);
	if (strstr(head, "<openssl/") || strstr(test, "<openssl/"))
		ret->library = "-lcrypto";
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
	if (!end || imports->count == GO_IMPORTS || memmem(line, length, "testify/", 8))
		return;
	auto_free char *text = xstrndup(line, (size_t)(end + 1 - line));
	for (size_t i = 0; i < imports->count; i++)
		if (streq(imports->lines[i], text))
			return;
	imports->lines[imports->count++] = steal(&text);
}

/* Takes imports and the package clause out of a source, whose rest goes to `ret`. */
static void go_strip(const char *source, struct go_imports *imports, struct buf *ret)
{
	bool inside = false;

	for (const char *line = source, *next; *line; line = next) {
		size_t length = strcspn(line, "\n");

		next = line + length + (line[length] == '\n');
		if (inside) {
			inside = *line != ')';
			add_import(imports, line, length);
		} else if (str_starts(line, "import (") || str_starts(line, "import(")) {
			inside = !memchr(line, ')', length);
			add_import(imports, strchr(line, '(') + 1, length - (size_t)(strchr(line, '(') + 1 - line));
		} else if (str_starts(line, "import ")) {
			add_import(imports, line + 7, length - 7);
		} else if (!str_starts(line, "package ")) {
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

static void compose_go(const struct grade_task *task, const char *completion, struct grade_source *ret)
{
	auto_free char *code = xasprintf("%s%s\n", grade_task_prefix(task), completion);
	auto_free char *tests =
		xasprintf("%s\n%s\n", grade_task_member(task, "test_setup"), grade_task_member(task, "test"));
	static const char place[] = "/*TESTS*/"; /* where main has the names of the tests */
	const char *text = grade_texts[GRADE_GO].alone.data, *at = strstr(text, place);
	struct go_imports imports = {.count = 0};
	auto_buf struct buf ignored = {0}, body = {0}, test_body = {0}, made = {0};

	buf_init(&ignored, PROGRAM_BYTES);
	buf_init(&body, PROGRAM_BYTES);
	buf_init(&test_body, PROGRAM_BYTES);
	buf_init(&made, PROGRAM_BYTES);
	go_strip(go_usual, &imports, &ignored);
	go_strip(grade_task_member(task, "import"), &imports, &ignored);
	go_strip(code, &imports, &body);
	go_strip(tests, &imports, &test_body);
	add_go(ret, "solution.go", &imports, &body);
	add_go(ret, "tests.go", &imports, &test_body);
	buf_add(&made, text, (size_t)(at - text));
	for (const char *test = strstr(test_body.data, "func Test"); test; test = strstr(test + 1, "func Test")) {
		int length = (int)strcspn(test + 5, "( \t\n");

		buf_printf(&made, "{Name: \"%.*s\", F: %.*s},", length, test + 5, length, test + 5);
	}
	buf_puts(&made, at + sizeof(place) - 1);
	add_buf(ret, "alone.go", &made);
	for (size_t i = 0; i < imports.count; i++)
		free(imports.lines[i]);
}

void grade_compose(const struct grade_task *task, const char *completion, enum grade_headers headers,
		   struct grade_source *ret)
{
	*ret = (struct grade_source){.name = xstrdup(task->id), .runner = xstrdup(grade_tongue_text(task->tongue))};
	if (task->tongue == GRADE_CPP)
		compose_cpp(task, completion, headers, ret);
	else if (task->tongue == GRADE_GO)
		compose_go(task, completion, ret);
	else
		compose_script(task, completion, ret);
}
