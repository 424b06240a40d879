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

static struct json_object *member(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return value;
}

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

static void judge_output(const struct work *work, struct json_object *one, const struct jail_once *run,
			 struct grade_batch_case *ret)
{
	const char *expected = json_object_get_string(member(one, "output"));
	char why[GRADE_COMPARE_TEXT];
	auto_free char *output = NULL;
	size_t length = 0;
	bool same = jail_once_output(run, 1, OUTPUT_MOST, &output, &length, NULL) == 0 && strlen(output) == length;

	if (same && work->words)
		same = grade_compare(&(struct grade_compare){.case_sensitive = true}, expected, strlen(expected),
				     output, length, why);
	else if (same)
		same = grade_stdin_same(GRADE_LINES_FREE, expected, output);
	if (!same)
		GRADE_SAY(ret, GRADE_WA, "wrong output");
}

static void run_stdin(struct work *work, size_t number, struct grade_batch_case *ret)
{
	struct json_object *one = json_object_array_get_idx(work->cases, number), *input = member(one, "input");
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

	work->words = json_object_get_boolean(member(batch->asked, "words"));
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
	work->judge_always = json_object_get_boolean(member(judge, "always"));
	work->judge_scores = json_object_get_boolean(member(judge, "scores"));
	make(work, json_get_string(judge, "language"), json_get_string(judge, "code"), judge, true, &work->judge);
	if (work->judge.verdict == GRADE_AC)
		return true;
	GRADE_SAY(work->result, GRADE_JE, "the special judge cannot be used: %s", work->judge.message);
	return false;
}

/* -------- all of them --------------------------------------------------------------------------------- */

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
	if (!kind || !streq(kind, "stdin"))
		return err_set(err, ERR_INVALID, "what is graded is not known: stdin");
	return check_cases(work, true, err);
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
	const int64_t total_us = json_object_get_int64(member(batch->asked, "total_us"));
	struct work work = {.batch = batch,
			    .result = ret,
			    .count = 1,
			    .all = json_object_get_boolean(member(batch->asked, "all")),
			    .until_us = total_us > 0 ? clock_monotonic_us() + total_us : INT64_MAX};
	int result = 0;

	*ret = (struct grade_batch_result){0};
	if ((result = check(&work, kind, err)) < 0)
		return result;
	ret->cases = xcalloc(work.count, sizeof(*ret->cases));
	bool goes_on = make_programs(&work);

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
		else
			run_stdin(&work, ret->count, &one);
		goes_on = note(&work, &one);
	}
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
