/*
 * grade_batch.c - see grade_batch.h.
 *
 * Cases of standard input: the program and the problem's judge are made first; a case is a run of the one, and where
 * the comparison does not decide a run of the other. Calls and tests: each case is a task of lib/grade's formats, so
 * that the code under test and what knows the right answers are in jails apart. Python that cannot be compiled fails
 * when it runs, as it does for these graders. Verdicts are taken as everywhere in lib/grade: a busy host or a sandbox
 * that failed is never the program's fault.
 */
#include "grade_batch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "grade_compare.h"
#include "grade_format.h"
#include "grade_pool.h"
#include "grade_stdin.h"
#include "jail/client/client_runners.h"
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

#define JUDGE_US     30000000LL /* CPU time of a judge */
#define MAKE_US      120000000LL
#define OUTPUT_MOST  (64 << 20) /* above what limits.output_mb can be */
#define SHOWN_OUTPUT 512        /* bytes of an output in the record's line */
#define SCORE_MAX    32

struct work {
	const struct grade_batch *batch;
	struct grade_batch_result *result;
	struct json_object *cases; /* NULL: one, the tests */
	size_t count;
	int64_t until_us;
	bool all;
	size_t bytes; /* of streams that the result has */
	/* of standard input: */
	struct grade_program program, judge;
	struct json_object *judge_asked; /* NULL: there is none */
	bool judge_always, judge_scores, words;
	/* of calls and tests: */
	struct grade_examiner *examiner;
	const char *function;
};

/* -------- programs ------------------------------------------------------------------------------------ */

static void add_file(struct grade_source *source, const char *name, const char *text, size_t length)
{
	source->files = xrealloc(source->files, source->count + 1, sizeof(*source->files));
	source->files[source->count++] = (struct grade_file){
		.name = xstrdup(name), .mode = 0644, .data = xmemdup(text, length + 1), .length = length};
}

/* `asked`: where its name, its other files and an option are. */
static void make(const struct work *work, const char *language, const char *code, struct json_object *asked, bool own,
		 struct grade_program *ret)
{
	const struct grade_batch *batch = work->batch;
	const struct grade_package package = {
		.dir = -1,
		.compile_us = own ? MAKE_US : batch->limits.compile_wall_us,
		.compile_bytes = batch->limits.compile_memory_bytes};
	/* Python is not compiled before it runs. */
	const struct grade_maker maker = {.client = batch->client,
					  .runners = batch->runners,
					  .package = &package,
					  .own = own || streq(language, "python")};
	struct json_object *runner = jail_runner_named(batch->runners, language);
	struct json_object *extensions = json_get(runner, "extensions", json_type_array);
	const char *extension =
		extensions ? json_object_get_string(json_object_array_get_idx(extensions, 0)) : NULL;
	auto_source struct grade_source source = {.runner = xstrdup(language),
						  .library = json_get_string(asked, "option")};
	auto_free char *main = xasprintf("main%s", extension ? extension : "");
	const char *name = json_get_string(asked, "name");
	struct json_object *files = json_get(asked, "files", json_type_object);

	add_file(&source, name ? name : main, code, strlen(code));
	if (files) {
		json_object_object_foreach(files, path, text)
			add_file(&source, path, json_object_get_string(text), (size_t)json_object_get_string_len(text));
	}
	grade_program_make(&maker, &source, ret);
}

/* -------- cases of standard input --------------------------------------------------------------------- */

/* Of a stream as much as there is room for; the caller's. */
static char *stream_of(struct work *work, const struct jail_once *once, int stream, size_t *ret_length)
{
	const size_t room = MIN(GRADE_BATCH_STREAM, GRADE_BATCH_BYTES - work->bytes);
	char *text = NULL;

	if (jail_once_output(once, stream, OUTPUT_MOST, &text, ret_length, NULL) < 0)
		return NULL;
	*ret_length = MIN(*ret_length, room);
	text[*ret_length] = '\0';
	work->bytes += *ret_length;
	return text;
}

/* What a judge that scores has said: a number, and words for people. */
static void take_score(const struct jail_once *once, struct grade_batch_case *ret)
{
	auto_free char *text = NULL, *said = NULL;
	size_t length = 0, said_length = 0;
	char *end = NULL;

	if (jail_once_output(once, 1, OUTPUT_MOST, &text, &length, NULL) < 0 ||
	    jail_once_output(once, 2, OUTPUT_MOST, &said, &said_length, NULL) < 0)
		return;
	const double score = strtod(text, &end);

	if (end == text || !isfinite(score)) {
		GRADE_SAY(ret, GRADE_JE, "the judge printed no score");
		return;
	}
	ret->verdict = score >= 1 ? GRADE_AC : GRADE_WA;
	ret->score = xstrndup(text, MIN(strcspn(text, " \t\r\n"), SCORE_MAX));
	grade_message(ret->message, said, said_length);
}

/* The problem's own judge over an output: GRADE_AC, GRADE_WA, or GRADE_JE with a message. */
static void ask_judge(const struct work *work, struct json_object *one, const struct jail_once *run,
		      struct grade_batch_case *ret)
{
	struct json_object *input = json_member(one, "input"), *output = json_member(one, "output");
	auto_close int stdin_fd = memfd_with("stdin.txt", json_object_get_string(input),
					     (size_t)json_object_get_string_len(input));
	auto_close int stdout_fd = memfd_with("stdout.txt", json_object_get_string(output),
					      (size_t)json_object_get_string_len(output));
	static const char *const args[] = {"stdin.txt", "stdout.txt", "answer.txt", NULL};
	auto_free struct jail_file *files = xcalloc(work->judge.count + 3, sizeof(*files));
	size_t n = 0;

	files[n++] = (struct jail_file){.name = args[0], .mode = 0444, .fd = stdin_fd};
	files[n++] = (struct jail_file){.name = args[1], .mode = 0444, .fd = stdout_fd};
	files[n++] = (struct jail_file){.name = args[2], .mode = 0444, .fd = run->program.stdout_fd};
	for (size_t i = 0; i < work->judge.count; i++)
		files[n++] = work->judge.files[i];
	for (int failures = 0; failures < GRADE_TRIES; failures++) {
		struct err err = ERR_INIT;
		auto_once struct jail_once once = {
			.spec = {.runner = work->judge.runner, .limits = work->batch->limits, .label = "judge"},
			.program = {.code_fd = grade_program_no_code(),
				    .entry = work->judge.entry,
				    .args = work->judge_scores ? args : NULL,
				    .stdin_fd = -1},
			.capture = true,
			.files = files,
			.n_files = n,
		};

		once.spec.limits.cpu_us = MAX(once.spec.limits.cpu_us, JUDGE_US);
		once.spec.limits.wall_us = MAX(once.spec.limits.wall_us, 2 * JUDGE_US);
		if (jail_once(work->batch->client, &once, &err) < 0 || once.result.verdict == JAIL_XX) {
			GRADE_SAY(ret, GRADE_JE, "the sandbox failed: %s", err.code ? err.text : once.result.message);
			continue;
		}
		if (once.result.verdict == JAIL_OK && work->judge_scores)
			take_score(&once, ret);
		else if (once.result.verdict == JAIL_OK)
			ret->verdict = GRADE_AC;
		else if (once.result.verdict == JAIL_RE)
			GRADE_SAY(ret, GRADE_WA, "the special judge rejects it");
		else
			GRADE_SAY(ret, GRADE_JE, "the special judge failed: %s", once.result.message);
		return;
	}
}

static void judge_output(const struct work *work, struct json_object *one, const struct jail_once *run,
			 struct grade_batch_case *ret)
{
	const char *expected = json_object_get_string(json_member(one, "output"));
	char why[GRADE_COMPARE_TEXT];
	auto_free char *output = NULL;
	size_t length = 0;
	bool same = jail_once_output(run, 1, OUTPUT_MOST, &output, &length, NULL) == 0 && strlen(output) == length;

	if (same && work->words)
		same = grade_compare(&(struct grade_compare){.case_sensitive = true}, expected, strlen(expected),
				     output, length, why);
	else if (same)
		same = grade_stdin_same(GRADE_LINES_FREE, expected, output);
	if (work->judge_asked && (work->judge_always || !same))
		ask_judge(work, one, run, ret);
	else if (!same)
		GRADE_SAY(ret, GRADE_WA, "wrong output");
}

static void run_stdin(struct work *work, size_t number, struct grade_batch_case *ret)
{
	struct json_object *one = json_object_array_get_idx(work->cases, number), *input = json_member(one, "input");
	struct grade_stdin_run run = {.client = work->batch->client,
				      .program = &work->program,
				      .limits = work->batch->limits,
				      .input = json_object_get_string(input),
				      .length = (size_t)json_object_get_string_len(input)};

	grade_stdin_run(&run);
	const struct jail_result *end = &run.once.result;

	ret->verdict = run.result.verdict;
	memcpy(ret->message, run.result.message, sizeof(ret->message));
	ret->ran = run.once.done && end->verdict != JAIL_XX;
	if (ret->ran) {
		ret->end = ret->verdict == GRADE_TLE ? JAIL_TO : end->verdict;
		ret->exit_code = end->exit_code;
		ret->signal = end->signal;
		ret->wall_us = end->run.wall_us;
		ret->cpu_us = end->run.cpu_us;
		ret->memory_bytes = end->run.memory_peak_bytes;
		ret->out = stream_of(work, &run.once, 1, &ret->out_length);
		ret->err = stream_of(work, &run.once, 2, &ret->err_length);
	}
	if (ret->verdict == GRADE_AC)
		judge_output(work, one, &run.once, ret);
	jail_once_clear(&run.once);
}

/* False: a program cannot be made, and the result says so. */
static bool make_programs(struct work *work)
{
	const struct grade_batch *batch = work->batch;
	struct json_object *judge = json_get(batch->asked, "judge", json_type_object);
	const int64_t began_us = clock_monotonic_us();

	work->words = json_object_get_boolean(json_member(batch->asked, "words"));
	make(work, batch->language, batch->code, batch->asked, false, &work->program);
	work->result->make_us = clock_monotonic_us() - began_us;
	work->result->compiled = work->program.compiled;
	if (work->program.verdict != GRADE_AC) {
		GRADE_SAY(work->result, work->program.verdict, "%s", work->program.message);
		return false;
	}
	if (!judge)
		return true;
	work->judge_asked = judge;
	work->judge_always = json_object_get_boolean(json_member(judge, "always"));
	work->judge_scores = json_object_get_boolean(json_member(judge, "scores"));
	make(work, json_get_string(judge, "language"), json_get_string(judge, "code"), judge, true, &work->judge);
	if (work->judge.verdict == GRADE_AC)
		return true;
	GRADE_SAY(work->result, GRADE_JE, "the special judge cannot be used: %s", work->judge.message);
	return false;
}

/* -------- cases that are calls, and tests that are code ----------------------------------------------- */

/* A line of tasks for one case; the caller's. */
static struct json_object *line_of(const struct work *work, size_t number)
{
	if (!work->cases)
		return json_object_get(json_get(work->batch->asked, "task", json_type_object));
	struct json_object *one = json_object_array_get_idx(work->cases, number);
	struct json_object *line = json_object_new_object(), *info = json_object_new_object(),
			   *list = json_object_new_array(), *test = json_object_new_object();

	json_add_string(test, "type", "function_call");
	json_add_string(test, "fn_name", work->function);
	json_add(test, "input", json_object_get(json_member(one, "input")));
	json_add(test, "output", json_object_get(json_member(one, "output")));
	json_object_array_add(list, test);
	json_add_string(info, "language", "python");
	json_add(info, "test_cases", list);
	json_add(line, "verification_info", info);
	return line;
}

static int read_task(const struct work *work, size_t number, struct json_object **ret_line, struct grade_task *ret,
		     struct err *err)
{
	*ret_line = line_of(work, number);
	*ret = (struct grade_task){.id = xstrdup("case"), .line = *ret_line};
	int result = grade_format_read(ret, work->batch->language, err);

	if (result < 0)
		return result;
	if (!work->cases && ret->tongue != GRADE_PYTHON)
		ret->alone = true; /* a program's text alone does not say where the tested function begins */
	else if (ret->suite && !*ret->prefix)
		json_add_bool(ret->suite, "open", true);
	return 0;
}

static void run_exam(struct work *work, size_t number, struct grade_batch_case *ret)
{
	auto_json struct json_object *line = NULL;
	struct grade_task task;
	struct err err = ERR_INIT;
	const struct grade_exam exam = {.client = work->batch->client,
					.runners = work->batch->runners,
					.time_limit = (double)work->batch->limits.cpu_us * 1e-6,
					.examiner = &work->examiner};
	struct grade_exam_result result = {.verdict = GRADE_JE};

	if (read_task(work, number, &line, &task, &err) < 0) {
		GRADE_SAY(&result, GRADE_JE, "%s", err.text);
	} else {
		const struct grade_sample sample = {.task = &task, .text = work->batch->code, .whole = true};

		(task.alone ? grade_exam_alone : grade_exam_apart)(&exam, &sample, &result);
		if (result.leaving && grade_exam_leave(exam.client, &result, &err) < 0)
			GRADE_SAY(&result, GRADE_JE, "the sandbox failed: %s", err.text);
	}
	ret->verdict = result.apart ? GRADE_RTE : result.verdict;
	memcpy(ret->message, result.message, sizeof(ret->message));
	ret->wall_us = result.wall_us;
	ret->cpu_us = result.cpu_us;
	grade_task_clear(&task);
}

/* -------- all of them --------------------------------------------------------------------------------- */

static int check_tests(const struct work *work, struct err *err)
{
	struct json_object *line = NULL;
	struct grade_task task;

	if (!json_get(work->batch->asked, "task", json_type_object))
		return err_set(err, ERR_INVALID, "the tests are missing");
	int result = read_task(work, 0, &line, &task, err);

	grade_task_clear(&task);
	json_object_put(line);
	return result;
}

static int check_cases(struct work *work, bool texts, struct err *err)
{
	work->cases = json_get(work->batch->asked, "cases", json_type_array);
	work->count = work->cases ? json_object_array_length(work->cases) : 0;
	if (work->count == 0 || work->count > GRADE_BATCH_CASES)
		return err_set(err, ERR_INVALID, "there must be between 1 and %d cases", GRADE_BATCH_CASES);
	for (size_t i = 0; i < work->count; i++) {
		struct json_object *one = json_object_array_get_idx(work->cases, i);

		if (!json_object_is_type(one, json_type_object) ||
		    (texts && (!json_get_string(one, "input") || !json_get_string(one, "output"))))
			return err_set(err, ERR_INVALID, "case %zu has no input or no output, or a NUL in it", i);
	}
	return 0;
}

static int check(struct work *work, const char *kind, struct err *err)
{
	const struct grade_batch *batch = work->batch;
	struct json_object *judge = json_get(batch->asked, "judge", json_type_object);

	if (!jail_runner_named(batch->runners, batch->language))
		return err_set(err, ERR_INVALID, "no runner has the language %s", batch->language);
	if (judge && (!json_get_string(judge, "code") || !json_get_string(judge, "language")))
		return err_set(err, ERR_INVALID, "the special judge has no code or no language");
	if (kind && streq(kind, "tests"))
		return check_tests(work, err);
	if (kind && streq(kind, "stdin"))
		return check_cases(work, true, err);
	if (!kind || !streq(kind, "call"))
		return err_set(err, ERR_INVALID, "what is graded is not known: stdin, call or tests");
	work->function = json_get_string(batch->asked, "function");
	if (!work->function || !streq(batch->language, "python"))
		return err_set(err, ERR_INVALID, "calls need the name of a function in Python");
	return check_cases(work, false, err);
}

/* Notes a case that ran; false: it was the last. */
static bool note(struct work *work, struct grade_batch_case *one)
{
	struct grade_batch_result *result = work->result;

	result->cases[result->count++] = *one;
	result->passed += one->verdict == GRADE_AC;
	if (result->verdict == GRADE_AC && one->verdict != GRADE_AC)
		GRADE_SAY(result, one->verdict, "case %zu: %s", result->count - 1, one->message);
	return work->all || one->verdict == GRADE_AC;
}

int grade_batch(const struct grade_batch *batch, struct grade_batch_result *ret, struct err *err)
{
	const char *kind = json_get_string(batch->asked, "kind");
	const int64_t total_us = json_object_get_int64(json_member(batch->asked, "total_us"));
	struct work work = {.batch = batch,
			    .result = ret,
			    .count = 1,
			    .all = json_object_get_boolean(json_member(batch->asked, "all")),
			    .until_us = total_us > 0 ? clock_monotonic_us() + total_us : INT64_MAX};
	int result = 0;

	*ret = (struct grade_batch_result){0};
	if ((result = check(&work, kind, err)) < 0)
		return result;
	const bool is_stdin = streq(kind, "stdin");

	ret->cases = xcalloc(work.count, sizeof(*ret->cases));
	bool goes_on = !is_stdin || make_programs(&work);

	while (goes_on && ret->count < work.count) {
		struct grade_batch_case one = {.exit_code = -1};

		if (batch->over && atomic_load(batch->over)) {
			ret->stopped = true;
			GRADE_SAY(ret, GRADE_JE, "the server stopped before all cases had run");
			break;
		}
		ret->late = clock_monotonic_us() >= work.until_us;
		if (ret->late)
			GRADE_SAY(&one, GRADE_JE, "Total Timeout");
		else if (is_stdin)
			run_stdin(&work, ret->count, &one);
		else
			run_exam(&work, ret->count, &one);
		goes_on = note(&work, &one) && !jail_client_left(batch->client);
	}
	ret->left = jail_client_left(batch->client);
	grade_examiner_free(work.examiner);
	grade_program_clear(&work.program);
	grade_program_clear(&work.judge);
	return 0;
}

void grade_batch_clear(struct grade_batch_result *result)
{
	for (size_t i = 0; i < result->count; i++) {
		free(result->cases[i].score);
		free(result->cases[i].out);
		free(result->cases[i].err);
	}
	free(result->cases);
	*result = (struct grade_batch_result){0};
}

/* What a run that was ended from outside had written by then is another text each time. */
static void print_run(const struct grade_batch_case *one, struct json_object *object)
{
	char sum[SHA256_HEX_SIZE];

	if (one->end == JAIL_TO || one->end == JAIL_ML || one->end == JAIL_OL)
		return;
	json_add_int(object, "exit", one->exit_code);
	if (one->signal)
		json_add_int(object, "signal", one->signal);
	sha256_hex(one->out ? one->out : "", one->out_length, sum);
	json_add_string(object, "stdout_sha256", sum);
	json_add_bytes(object, "stdout", one->out ? one->out : "",
		       utf8_cut(one->out ? one->out : "", one->out_length, SHOWN_OUTPUT));
}

void grade_batch_print(const struct grade_batch_result *result, struct buf *ret)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct grade_batch_case *one = &result->cases[i];
		auto_json struct json_object *object = json_object_new_object();

		json_add_int(object, "case", (int64_t)i);
		json_add_string(object, "verdict", grade_verdict_text(one->verdict));
		if (one->score)
			json_add_string(object, "score", one->score);
		if (one->ran)
			print_run(one, object);
		else if (*one->message && one->verdict != GRADE_TLE)
			json_add_string(object, "message", one->message);
		json_print(ret, object);
		buf_putc(ret, '\n');
	}
}
