/*
 * grade_stdin.c - see grade_stdin.h.
 *
 * The program is made once and run once a case, each time in a new jail, which sees its input and nothing of the
 * expected output. What is compared here follows the formats' own harnesses, in three kinds (grade_task.h): all ignore
 * blanks at the ends of lines; they differ in whether lines or only words count, and in how near a number must be.
 */
#include "grade_stdin.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grade_checker.h"
#include "grade_compare.h"
#include "grade_pool.h"
#include "lib/base/util.h"

#define CLOSE_RELATIVE 1e-5 /* numpy.allclose */
#define CLOSE_ABSOLUTE 1e-8

/* -------- comparing ----------------------------------------------------------------------------------- */

struct span {
	const char *data;
	size_t length;
};

static struct span strip(const char *data, size_t length)
{
	while (length > 0 && isspace((unsigned char)*data)) {
		data++;
		length--;
	}
	while (length > 0 && isspace((unsigned char)data[length - 1]))
		length--;
	return (struct span){data, length};
}

/* The next piece up to a character of `ends`; false: there is none left. */
static bool next_piece(struct span *rest, const char *ends, struct span *ret)
{
	size_t length = 0;

	if (!rest->data)
		return false;
	while (length < rest->length && !strchr(ends, rest->data[length]))
		length++;
	*ret = (struct span){rest->data, length};
	*rest = length < rest->length ? (struct span){rest->data + length + 1, rest->length - length - 1}
				      : (struct span){NULL, 0};
	return true;
}

static bool number(struct span word, double *ret)
{
	auto_free char *text = xstrndup(word.data, word.length);
	char *end;

	*ret = strtod(text, &end);
	return word.length > 0 && *end == '\0' && !strpbrk(text, "xX") && isfinite(*ret);
}

static bool same_word(bool loose, struct span expected, struct span got)
{
	double wanted, value;

	if (expected.length == got.length && memcmp(expected.data, got.data, got.length) == 0)
		return true;
	return number(expected, &wanted) && number(got, &value) &&
	       fabs(wanted - value) <= (loose ? CLOSE_ABSOLUTE + CLOSE_RELATIVE * fabs(wanted) : 0);
}

/* The next word; false: there is none left. */
static bool next_word(struct span *rest, struct span *ret)
{
	while (next_piece(rest, " \t", ret))
		if (ret->length > 0)
			return true;
	return false;
}

static bool same_line(bool loose, struct span expected, struct span got)
{
	struct span a, b;

	for (;;) {
		bool more = next_word(&expected, &a);

		if (more != next_word(&got, &b))
			return false;
		if (!more || !same_word(loose, a, b))
			return !more;
	}
}

static bool same_freely(struct span expected, struct span got)
{
	double wanted, value;

	if (expected.length == got.length && strncasecmp(expected.data, got.data, got.length) == 0)
		return true;
	return number(expected, &wanted) && number(got, &value) &&
	       fabs(wanted - value) <= CLOSE_RELATIVE * fmax(fabs(wanted), fabs(value));
}

/* The next line without the blanks at its ends. */
static bool next_line(struct span *rest, bool loose, struct span *ret)
{
	while (next_piece(rest, "\n", ret)) {
		*ret = strip(ret->data, ret->length);
		if (ret->length > 0 || !loose)
			return true;
	}
	return false;
}

bool grade_stdin_same(enum grade_compare_kind kind, const char *expected, const char *output)
{
	static const struct grade_compare tokens = {
		.has_absolute = true, .absolute = CLOSE_RELATIVE, .has_relative = true, .relative = CLOSE_RELATIVE};
	struct span a = strip(expected, strlen(expected)), b = strip(output, strlen(output)), x, y;
	char why[GRADE_COMPARE_TEXT];
	bool loose = kind == GRADE_LINES_CLOSE;

	if (kind == GRADE_TOKENS)
		return grade_compare(&tokens, a.data, a.length, b.data, b.length, why);
	for (;;) {
		bool more = next_line(&a, loose, &x);

		if (more != next_line(&b, loose, &y))
			return false;
		if (!more || !(kind == GRADE_LINES_FREE ? same_freely(x, y) : same_line(loose, x, y)))
			return !more;
	}
}

/* -------- running ------------------------------------------------------------------------------------- */

/* A text; of a list, its elements as lines. The caller's. */
static char *text_of(struct json_object *value)
{
	auto_buf struct buf text = {0};

	if (!json_object_is_type(value, json_type_array))
		return xstrdup(value ? json_object_get_string(value) : "");
	buf_init(&text, SIZE_MAX / 2);
	for (size_t i = 0; i < json_object_array_length(value); i++)
		buf_printf(&text, "%s\n", json_object_get_string(json_object_array_get_idx(value, i)));
	return xstrdup(text.data);
}

/* Until the sandbox does not fail. */
static void run_surely(struct grade_stdin_run *run, int64_t wall_us)
{
	const struct grade_program *program = run->program;
	struct grade_exam_result *result = &run->result;

	*result = (struct grade_exam_result){0};
	for (int failures = 0; failures < GRADE_TRIES; failures++) {
		auto_close int fd = memfd_with("input", run->input, run->length);
		struct err err = ERR_INIT;

		jail_once_clear(&run->once);
		run->once = (struct jail_once){
			.spec = {.runner = program->runner, .limits = run->limits, .label = "sample"},
			.program = {.code_fd = grade_program_no_code(), .entry = program->entry, .stdin_fd = fd},
			.capture = true,
			.files = program->files,
			.n_files = program->count,
		};
		run->once.spec.limits.wall_us = wall_us;
		if (fd < 0 || jail_once(run->client, &run->once, &err) < 0 || run->once.result.verdict == JAIL_XX) {
			GRADE_SAY(result, GRADE_JE, "the sandbox failed: %s",
				  err.code ? err.text : run->once.result.message);
			continue;
		}
		grade_exam_ended(&run->once, result);
		result->premature = false;
		if (run->once.result.verdict == JAIL_OK)
			result->verdict = GRADE_AC;
		else if (run->once.result.verdict == JAIL_RE)
			GRADE_SAY(result, GRADE_RTE, "failed: %s", run->once.result.message);
		return;
	}
}

void grade_stdin_run(struct grade_stdin_run *run)
{
	struct grade_load load = GRADE_LOAD_INIT;

	do {
		const struct grade_load next = load;

		grade_load_begin(&load);
		run_surely(run, grade_load_wall(&next, run->limits.wall_us));
		grade_load_end(&load);
	} while (run->result.verdict != GRADE_JE && grade_exam_again(&run->limits, &load, &run->result));
}

/* A sample's program and its task's checker, ready to run. */
struct pair {
	struct grade_program program, checker;
};

/* Is this the right output? */
static void judge(const struct grade_exam *exam, const struct grade_sample *sample, const struct pair *pair,
		  const struct grade_checked *checked, struct grade_exam_result *ret)
{
	if (!sample->task->checker) {
		bool right = grade_stdin_same(sample->task->compare, checked->answer, checked->output);

		ret->verdict = right ? GRADE_AC : GRADE_WA;
		return;
	}
	ret->verdict = grade_checker_run(exam, &pair->checker, checked);
	if (ret->verdict == GRADE_JE)
		GRADE_SAY(ret, GRADE_JE, "the checker failed");
}

static void try_case(const struct grade_exam *exam, const struct grade_sample *sample, const struct pair *pair,
		     struct json_object *one, struct grade_exam_result *ret)
{
	auto_free char *input = text_of(json_member(one, "input")), *expected = text_of(json_member(one, "output"));
	auto_free char *output = NULL;
	size_t length = 0;
	struct grade_stdin_run run = {.client = exam->client,
				      .program = &pair->program,
				      .limits = grade_exam_limits(exam, sample->task),
				      .input = input,
				      .length = strlen(input)};

	grade_stdin_run(&run);
	if (run.result.verdict == GRADE_AC) {
		const bool text = jail_once_output(&run.once, 1, GRADE_EXAM_OUTPUT, &output, &length, NULL) == 0 &&
				  strlen(output) == length;

		run.result.verdict = GRADE_WA;
		if (text)
			judge(exam, sample, pair, &(struct grade_checked){input, expected, output}, &run.result);
	}
	jail_once_clear(&run.once);
	*ret = run.result;
}

static void run_cases(const struct grade_exam *exam, const struct grade_sample *sample, const struct pair *pair,
		      struct grade_exam_result *result)
{
	struct json_object *cases = sample->task->cases;

	result->tests = (int64_t)json_object_array_length(cases);
	for (size_t i = 0; i < json_object_array_length(cases); i++) {
		struct grade_exam_result one;

		try_case(exam, sample, pair, json_object_array_get_idx(cases, i), &one);
		result->cpu_us = MAX(result->cpu_us, one.cpu_us);
		result->wall_us = MAX(result->wall_us, one.wall_us);
		result->passed += one.verdict == GRADE_AC;
		if (one.verdict == GRADE_WA || one.verdict == GRADE_PE)
			GRADE_SAY(&one, one.verdict, "failed: wrong output of case %zu", i);
		if (result->verdict == GRADE_AC && one.verdict != GRADE_AC)
			GRADE_SAY(result, one.verdict, "%s", one.message);
		if (one.verdict == GRADE_TLE || one.verdict == GRADE_JE)
			break;
	}
}

void grade_stdin_exam(const struct grade_exam *exam, const struct grade_sample *sample, struct grade_exam_result *ret)
{
	struct pair pair = {.checker.verdict = GRADE_AC};
	struct grade_exam_result result = {0};

	GRADE_SAY(&result, GRADE_AC, "passed");
	if (sample->task->checker)
		grade_checker_make(exam, sample->task, &pair.checker);
	if (pair.checker.verdict == GRADE_AC)
		grade_exam_make(exam, sample, GRADE_PLAIN, &pair.program);
	if (pair.checker.verdict != GRADE_AC)
		GRADE_SAY(&result, GRADE_JE, "%s", pair.checker.message);
	else if (pair.program.verdict != GRADE_AC)
		GRADE_SAY(&result, pair.program.verdict, "%s", pair.program.message);
	else
		run_cases(exam, sample, &pair, &result);
	grade_program_clear(&pair.program);
	grade_program_clear(&pair.checker);
	*ret = result;
}
