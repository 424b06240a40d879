/*
 * grade_tasks.c - `sallyport grade` over tasks as JSON Lines: samples, verdicts, pass@k. Members of the lines:
 * sallyport-grade(1).
 *
 * lib/grade does the work (grade_run.h) and calls on_done for each sample, in the order of the list; here each is
 * printed and counted, by verdict and by task. The tallies of the tasks give pass@k at the end, for every k of --k that
 * each task with samples has enough of. Code and tests that had to share a process are counted as in_process, because
 * their verdicts are worth less.
 */
#include <string.h>

#include "grade.h"
#include "lib/base/util.h"
#include "lib/grade/grade_checker.h"
#include "lib/grade/grade_run.h"
#include "lib/grade/grade_sample.h"

#define K_MAX 16

struct tally {
	size_t samples, passed;
};
struct grading_tasks {
	struct grading *grading;
	struct grade_tasks tasks;
	struct tally *tallies; /* by task */
	size_t samples, passed, judge_errors, in_process;
	size_t verdicts[GRADE_VERDICTS];
	size_t ks[K_MAX], n_ks;
};

static int parse_ks(const char *text, struct grading_tasks *ret, struct err *err)
{
	while (*text) {
		size_t length = strcspn(text, ",");
		auto_free char *one = xstrndup(text, length);
		uint64_t k;

		if (parse_u64(one, 1, 1000000, &k) < 0 || ret->n_ks == K_MAX)
			return err_set(err, ERR_INVALID, "--k takes up to %d numbers from 1 on, as in 1,10,100", K_MAX);
		ret->ks[ret->n_ks++] = (size_t)k;
		text += length + (text[length] == ',');
	}
	return 0;
}

/* -------- one sample ---------------------------------------------------------------------------------- */

static bool on_done(void *arg, const struct grade_sample *sample, const struct grade_exam_result *result)
{
	struct grading_tasks *grading = arg;
	struct tally *tally = &grading->tallies[sample->task - grading->tasks.tasks];

	tally->samples++;
	grading->samples++;
	tally->passed += result->verdict == GRADE_AC;
	grading->passed += result->verdict == GRADE_AC;
	grading->judge_errors += result->verdict == GRADE_JE;
	grading->in_process += result->in_process;
	grading->verdicts[result->verdict]++;
	cli_progress_hide(&grading->grading->progress);
	auto_json struct json_object *line = json_object_new_object();
	struct json_object *id = NULL;

	if (json_object_object_get_ex(sample->task->line, "task_id", &id))
		json_add(line, "task_id", json_object_get(id));
	else
		json_add_string(line, "task_id", sample->task->id);
	json_add_int(line, "sample", (int64_t)sample->number);
	json_add_string(line, "language", grade_tongue_text(sample->task->tongue));
	json_add_string(line, "verdict", grade_verdict_text(result->verdict));
	json_add_bool(line, "passed", result->verdict == GRADE_AC);
	json_add_bytes(line, "result", result->message, strlen(result->message));
	if (result->premature)
		json_add_string(line, "reason", "premature_exit");
	if (result->in_process)
		json_add_bool(line, "in_process", true);
	if (result->tests) {
		json_add_int(line, "tests", result->tests);
		json_add_int(line, "tests_passed", result->passed);
	}
	if (result->base_tests) {
		json_add_int(line, "base_tests", result->base_tests);
		json_add_int(line, "base_passed", result->base_passed);
	}
	json_add_int(line, "cpu_us", result->cpu_us);
	json_add_int(line, "wall_us", result->wall_us);
	auto_free char *name = xasprintf("%s #%zu", sample->task->id, sample->number);
	auto_free char *code = sample->text ? grade_sample_program(sample) : NULL;
	struct report_case one = {
		.group = grade_tongue_text(sample->task->tongue),
		.name = name,
		.label = grade_verdict_text(result->verdict),
		.expected = grade_verdict_text(GRADE_AC),
		.now = grade_verdict_text(result->verdict),
		.state = result->verdict == GRADE_AC     ? REPORT_PASS
			 : result->verdict == GRADE_JE   ? REPORT_ERROR
			 : result->verdict == GRADE_SKIP ? REPORT_SKIP
							 : REPORT_FAIL,
		.message = result->message,
		.code = code,
		.wall_us = result->wall_us,
	};
	if (grade_put_line(grading->grading, line, &one)) {
		enum cli_colour colour = result->verdict == GRADE_AC ? CLI_GREEN : CLI_RED;
		char time[CLI_TEXT_SIZE];

		cli_text_duration(result->cpu_us, time);
		printf("%s%-4s%s ", cli_colour_on(stdout, colour), grade_verdict_text(result->verdict),
		       cli_colour_off(stdout));
		cli_print_safe(stdout, sample->task->id, strlen(sample->task->id));
		printf(" #%zu  %s", sample->number, time);
		if (result->verdict != GRADE_AC) {
			fputs("  ", stdout);
			cli_print_safe(stdout, result->message, strcspn(result->message, "\n"));
		}
		putchar('\n');
	}
	fflush(stdout);
	return result->verdict == GRADE_AC || !grading->grading->options->fail_fast;
}

static void on_progress(void *arg, size_t done, size_t all)
{
	struct grading_tasks *grading = arg;

	grade_progress(grading->grading, done, all);
}

/* -------- all of them --------------------------------------------------------------------------------- */

/* The mean over tasks that have samples; false where one has fewer than k. */
static bool pass_at(const struct grading_tasks *grading, size_t k, double *ret, size_t *ret_tasks)
{
	double sum = 0;
	size_t tasks = 0;
	bool enough = grading->samples == grading->tasks.n_samples; /* else --fail-fast left some out */

	for (size_t i = 0; i < grading->tasks.n_tasks; i++) {
		const struct tally *tally = &grading->tallies[i];

		if (tally->samples == 0)
			continue;
		tasks++;
		enough = enough && tally->samples >= k;
		if (enough)
			sum += grade_pass_at(tally->samples, tally->passed, k);
	}
	*ret_tasks = tasks;
	*ret = tasks ? sum / (double)tasks : 0;
	return enough && tasks;
}

static void put_summary(const struct grading_tasks *grading, double seconds)
{
	auto_json struct json_object *line = json_object_new_object();
	struct json_object *object = json_object_new_object();
	size_t tasks;
	double value;

	pass_at(grading, 1, &value, &tasks);
	json_add_int(object, "tasks", (int64_t)tasks);
	json_add_int(object, "samples", (int64_t)grading->samples);
	json_add_int(object, "passed", (int64_t)grading->passed);
	json_add_int(object, "judge_errors", (int64_t)grading->judge_errors);
	grade_add_verdicts(object, grading->verdicts);
	json_add_int(object, "in_process", (int64_t)grading->in_process);
	if (grading->tasks.n_left_out)
		json_add_int(object, "left_out", (int64_t)grading->tasks.n_left_out);
	for (size_t i = 0; i < grading->n_ks; i++) {
		auto_free char *name = xasprintf("pass@%zu", grading->ks[i]);

		if (pass_at(grading, grading->ks[i], &value, &tasks))
			json_add_rounded(object, name, value, 12);
	}
	json_add_rounded(object, "seconds", seconds, 2);
	json_add(line, "summary", object);
	grade_put_summary(grading->grading, line, seconds);
	if (grading->grading->options->common.json)
		return;
	printf("%zu of %zu samples passed, %zu tasks", grading->passed, grading->samples, tasks);
	for (size_t i = 0; i < grading->n_ks; i++)
		if (pass_at(grading, grading->ks[i], &value, &tasks))
			printf(", pass@%zu %.4f", grading->ks[i], value);
	if (grading->judge_errors)
		printf(", %zu judge errors", grading->judge_errors);
	printf("; %.1f s\n", seconds);
	if (grading->in_process)
		printf("%zu ran in one process with their tests: such code could forge its verdict\n",
		       grading->in_process);
}

/* Only the samples of this part stay in the list. */
static void choose_part(struct grading_tasks *grading)
{
	const struct replay_shard *shard = &grading->grading->shard;
	struct grade_tasks *tasks = &grading->tasks;
	size_t kept = 0;

	for (size_t i = 0; shard->count > 0 && i < tasks->n_samples; i++)
		if (replay_shard_of(tasks->samples[i].task->id, shard->count) == shard->number)
			tasks->samples[kept++] = tasks->samples[i];
	tasks->n_samples = shard->count > 0 ? kept : tasks->n_samples;
}

static int run(struct grading_tasks *grading, struct err *err)
{
	const struct grade_options *options = grading->grading->options;
	auto_free char *cache = options->no_cache ? NULL : grade_program_cache();
	int64_t began = clock_monotonic_us();
	const struct grade_run all = {
		.tasks = &grading->tasks,
		.jobs = grade_jobs(options),
		.time_limit = (double)options->time_limit_us / 1e6,
		.cache = cache,
		.require_split = options->require_split,
		.memory = grade_results_memory(grading->grading),
		.dial = grade_dial(grading->grading),
		.done = on_done,
		.progress = on_progress,
		.arg = grading,
	};

	grading->tallies = xcalloc(grading->tasks.n_tasks, sizeof(*grading->tallies));
	grade_raise_caps(grading->grading->config, GRADE_EXAM_WALL_US, GRADE_EXAM_MEMORY, GRADE_EXAM_OUTPUT);
	cli_progress_start(&grading->grading->progress, "samples", (int64_t)grading->tasks.n_samples);
	int result = cli_catch_interrupts(GRADE_INTERRUPTED, err);
	if (result == 0)
		result = grade_run(&all, err);
	cli_progress_hide(&grading->grading->progress);
	double seconds = (double)(clock_monotonic_us() - began) / 1e6;
	if (result < 0)
		cli_complain(err);
	else
		put_summary(grading, seconds);
	free(grading->tallies);
	if (result < 0 || grading->judge_errors)
		return CLI_JUDGE_ERROR;
	if (options->merge.count > 0 && (replay_shards_missing(&grading->grading->shards) > 0 ||
					 grading->samples < grading->tasks.n_samples))
		return CLI_INCOMPLETE;
	const size_t wanted = options->only ? grading->samples : grading->tasks.n_samples;

	return grading->passed < wanted || grading->tasks.n_left_out ? CLI_DIFFERENT : CLI_OK;
}

int grade_tasks_run(struct grading *grading, struct err *err)
{
	struct grading_tasks all = {.grading = grading};
	const struct grade_options *options = grading->options;
	const struct grade_tasks_source source = {options->common.args[0], options->samples, options->solution,
						  options->language, options->raw};
	int result = parse_ks(options->k ? options->k : "1,10,100", &all, err);

	if (result == 0 && options->samples && options->solution)
		result = err_set(err, ERR_INVALID, "--samples and --solution exclude each other");
	if (result == 0)
		result = grade_tasks_open(&source, &all.tasks, err);
	if (result == 0)
		result = grade_sample_open(&source, &all.tasks, err);
	if (result == 0 && options->checkers)
		result = grade_checker_find(options->checkers, &all.tasks, err);
	if (result < 0) {
		grade_tasks_clear(&all.tasks);
		cli_complain(err);
		return CLI_USAGE;
	}
	for (size_t i = 0; i < all.tasks.n_left_out; i++)
		fprintf(stderr, "sallyport: left out: %s\n", all.tasks.left_out[i]);
	choose_part(&all);
	result = run(&all, err);
	grade_tasks_clear(&all.tasks);
	return result;
}
