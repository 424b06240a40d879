/*
 * grade_package.c - `sallyport grade` over a problem package: its submissions, and what is expected of them.
 *
 * lib/grade judges (grade_judge.h) and calls on_done for each submission, in the order of the list. Each becomes one
 * JSON object, which --json prints and --report keeps, and a line for people. Members of the JSON lines:
 * sallyport-grade(1).
 */
#include <math.h>
#include <string.h>

#include "grade.h"
#include "lib/base/util.h"
#include "lib/grade/grade_load.h"

/* What all submissions of a package came to. */
struct grade_summary {
	size_t submissions, as_expected, unexpected, skipped, judge_errors, cases_run, compiled, from_cache;
	size_t verdicts[GRADE_VERDICTS];
	struct json_object *warnings; /* texts; NULL: none */
};
struct judging {
	struct grading *grading;
	struct grade_judge judge;
	struct grade_summary summary;
};

/* -------- how submissions are shown ------------------------------------------------------------------- */

enum expected { NOTHING, NOT_EXPECTED, EXPECTED };

/* The one place that decides what is unexpected. */
static enum expected expected_of(const struct grade_submission *submission)
{
	const struct grade_total *total = &submission->total;

	if (total->verdict == GRADE_SKIP)
		return NOTHING;
	if (*submission->unmet)
		return NOT_EXPECTED;
	if (!submission->expect.verdicts && !submission->expect.n_parts && !submission->expect.has_score)
		return NOTHING;
	bool met = grade_expect_met(&submission->expect, total->verdict, total->score, total->full);
	return met ? EXPECTED : NOT_EXPECTED;
}

/* A score as people write it: 20, not 20.0; to nine digits behind the point. */
static void add_score(struct json_object *object, double score)
{
	if (fabs(score - round(score)) < 5e-10 && fabs(score) < 1e15)
		json_add_int(object, "score", (int64_t)round(score));
	else
		json_add_rounded(object, "score", score, 9);
}

static struct json_object *line_json(const struct grade_judge *judge, const struct grade_submission *submission)
{
	struct json_object *line = json_object_new_object(), *groups = json_object_new_array(), *verdicts = NULL;
	const struct grade_total *total = &submission->total;
	const char *message = *submission->unmet ? submission->unmet : total->message;
	enum expected expected = expected_of(submission);

	json_add_string(line, "package", judge->package->name);
	json_add_string(line, "submission", submission->name);
	json_add_string(line, "language", *submission->language ? submission->language : NULL);
	json_add_string(line, "verdict", grade_verdict_text(total->verdict));
	add_score(line, total->score);
	if (submission->expect.verdicts)
		verdicts = json_object_new_array();
	for (int i = 0; i < GRADE_VERDICTS; i++)
		if (submission->expect.verdicts & GRADE_BIT(i))
			json_object_array_add(verdicts,
					      json_object_new_string(grade_verdict_text((enum grade_verdict)i)));
	json_add(line, "expected", verdicts);
	json_add(line, "as_expected",
		 expected == NOTHING ? NULL : json_object_new_boolean(expected == EXPECTED));
	json_add_string(line, "case", total->first ? total->first->name : NULL);
	json_add_bytes(line, "message", message, strlen(message));
	json_add_int(line, "cases_run", (int64_t)total->cases_run);
	json_add_int(line, "cases", (int64_t)judge->n_cases);
	json_add_int(line, "cpu_us", total->cpu_us);
	json_add_int(line, "wall_us", total->wall_us);
	json_add_int(line, "memory_kb", total->memory_bytes / 1024);
	for (size_t i = 0; judge->package->scoring && i < total->n_groups; i++) {
		struct json_object *group = json_object_new_object();

		json_add_string(group, "name", total->groups[i].group->name);
		json_add_string(group, "verdict", grade_verdict_text(total->groups[i].verdict));
		add_score(group, total->groups[i].score);
		json_object_array_add(groups, group);
	}
	json_add(line, "groups", groups);
	return line;
}

static bool put_line(struct grading *grading, const struct grade_judge *judge,
		     const struct grade_submission *submission)
{
	const struct grade_total *total = &submission->total;
	auto_json struct json_object *line = line_json(judge, submission);
	auto_buf struct buf expected = {0};
	auto_free char *message = xasprintf("%s%s%.*s", total->first ? total->first->name : "",
					    total->first && *total->message ? ": " : "",
					    (int)strcspn(total->message, "\n"), total->message);

	/* "AC", "RTE or TLE"; "-" where nothing is expected. */
	buf_init(&expected, SIZE_MAX / 2);
	for (int i = 0; i < GRADE_VERDICTS; i++)
		if (submission->expect.verdicts & GRADE_BIT(i))
			buf_printf(&expected, "%s%s", expected.length > 0 ? " or " : "",
				   grade_verdict_text((enum grade_verdict)i));
	if (expected.length == 0)
		buf_putc(&expected, '-');
	struct report_case one = {
		.group = judge->package->name,
		.name = submission->name,
		.label = grade_verdict_text(total->verdict),
		.expected = expected.data,
		.now = grade_verdict_text(total->verdict),
		.state = total->verdict == GRADE_SKIP                             ? REPORT_SKIP
			 : total->verdict == GRADE_JE                             ? REPORT_ERROR
			 : expected_of(submission) == NOT_EXPECTED ? REPORT_FAIL
										  : REPORT_PASS,
		.message = *submission->unmet ? submission->unmet : message,
		.details = strchr(total->message, '\n') ? total->message : NULL,
		.wall_us = total->wall_us,
	};
	return grade_put_line(grading, line, &one);
}

static void print_text(const struct grade_submission *submission)
{
	const struct grade_total *total = &submission->total;
	enum expected expected = expected_of(submission);
	enum cli_colour colour = expected == NOT_EXPECTED    ? CLI_RED
				 : expected == EXPECTED ? CLI_GREEN
								  : CLI_PLAIN;
	char time[CLI_TEXT_SIZE];

	cli_text_duration(total->cpu_us, time);
	printf("%s%-4s%s ", cli_colour_on(stdout, colour), grade_verdict_text(total->verdict), cli_colour_off(stdout));
	cli_print_safe(stdout, submission->name, strlen(submission->name));
	if (!isnan(total->score))
		printf("  %.12g points", total->score);
	if (total->cases_run)
		printf("  %s", time);
	if (expected == NOT_EXPECTED && !*submission->unmet) {
		fputs("  expected", stdout);
		for (int i = 0; i < GRADE_VERDICTS; i++)
			if (submission->expect.verdicts & GRADE_BIT(i))
				printf(" %s", grade_verdict_text((enum grade_verdict)i));
		if (submission->expect.has_score)
			printf(" %.12g to %.12g points", submission->expect.least, submission->expect.most);
		if (submission->expect.partial)
			fputs(" below the full score", stdout);
	}
	if (*submission->unmet) {
		fputs("  ", stdout);
		cli_print_safe(stdout, submission->unmet, strlen(submission->unmet));
	}
	if (total->first)
		printf("  %s", total->first->name);
	if (*total->message) {
		fputs(": ", stdout);
		cli_print_safe(stdout, total->message, strcspn(total->message, "\n"));
	}
	putchar('\n');
}

static void put_summary(const struct judging *judging, double seconds)
{
	const struct grade_summary *summary = &judging->summary;
	auto_json struct json_object *line = json_object_new_object();
	struct json_object *object = json_object_new_object();

	json_add_string(object, "package", judging->judge.package->name);
	json_add_int(object, "submissions", (int64_t)summary->submissions);
	json_add_int(object, "as_expected", (int64_t)summary->as_expected);
	json_add_int(object, "unexpected", (int64_t)summary->unexpected);
	json_add_int(object, "skipped", (int64_t)summary->skipped);
	json_add_int(object, "judge_errors", (int64_t)summary->judge_errors);
	grade_add_verdicts(object, summary->verdicts);
	json_add_int(object, "cases_run", (int64_t)summary->cases_run);
	json_add_int(object, "compiled", (int64_t)summary->compiled);
	json_add_int(object, "from_cache", (int64_t)summary->from_cache);
	json_add_rounded(object, "time_limit_s", judging->judge.time_limit, 6);
	json_add_rounded(object, "seconds", seconds, 2);
	if (summary->warnings)
		json_add(object, "warnings", json_object_get(summary->warnings));
	json_add(line, "summary", object);
	grade_put_summary(judging->grading, line, seconds);
	if (judging->grading->options->common.json)
		return;
	printf("%zu submissions: %zu as expected, %zu unexpected", summary->submissions, summary->as_expected,
	       summary->unexpected);
	if (summary->skipped)
		printf(", %zu skipped", summary->skipped);
	if (summary->judge_errors)
		printf(", %zu judge errors", summary->judge_errors);
	printf("; %zu cases in %.1f s, time limit %g s\n", summary->cases_run, seconds, judging->judge.time_limit);
}

/* -------- judging ------------------------------------------------------------------------------------- */

static bool on_done(void *arg, const struct grade_submission *submission)
{
	struct judging *judging = arg;
	struct grade_summary *summary = &judging->summary;
	enum expected expected = expected_of(submission);

	cli_progress_hide(&judging->grading->progress);
	summary->submissions++;
	summary->as_expected += expected == EXPECTED;
	summary->unexpected += expected == NOT_EXPECTED;
	summary->skipped += submission->total.verdict == GRADE_SKIP;
	summary->judge_errors += submission->total.verdict == GRADE_JE;
	summary->cases_run += submission->total.cases_run;
	summary->compiled += submission->compiled;
	summary->from_cache += submission->from_cache;
	summary->verdicts[submission->total.verdict]++;
	if (put_line(judging->grading, &judging->judge, submission))
		print_text(submission);
	fflush(stdout);
	return !judging->grading->options->fail_fast || (!summary->unexpected && !summary->judge_errors);
}

static void on_progress(void *arg, size_t done, size_t all)
{
	struct judging *judging = arg;

	grade_progress(judging->grading, done, all);
}

static void on_warning(void *arg, const char *text)
{
	struct judging *judging = arg;

	fputs("sallyport: warning: ", stderr);
	cli_print_safe(stderr, text, strlen(text));
	fputc('\n', stderr);
	if (!judging->summary.warnings)
		judging->summary.warnings = json_object_new_array();
	json_object_array_add(judging->summary.warnings, json_new_safe(text, strlen(text)));
}

static int judge_package(struct judging *judging, struct grade_package *package, struct err *err)
{
	struct grading *grading = judging->grading;
	const struct grade_options *options = grading->options;
	auto_free char *cache = options->no_cache ? NULL : grade_program_cache();
	struct grade_judge *judge = &judging->judge;
	int64_t began = clock_monotonic_us();

	*judge = (struct grade_judge){
		.package = package,
		.jobs = grade_jobs(options),
		.time_limit = (double)options->time_limit_us / 1e6,
		.cache = cache,
		.memory = grade_results_memory(grading),
		.dial = grade_dial(grading),
		.done = on_done,
		.progress = on_progress,
		.warning = on_warning,
		.arg = judging,
	};
	if (grade_judge_open(judge, options->common.args + 1, options->common.n_args - 1, err) < 0)
		return grade_refuse(err);
	grade_warn(judge, options->common.n_args == 1, on_warning, judging);
	/* A private jailer has to allow what the package says. */
	double limit = judge->time_limit ? judge->time_limit : GRADE_FREE_SECONDS;
	int64_t wall_us = (int64_t)(2 * limit + 1) * 1000000;
	grade_raise_caps(grading->config, MAX(package->validation_us + wall_us, GRADE_LOAD_WALL_US),
			 MAX(package->memory_bytes, MAX(package->validation_bytes, package->compile_bytes)),
			 MAX(package->output_bytes, package->validation_output_bytes));
	cli_progress_start(&grading->progress, "cases", (int64_t)(judge->n_cases * judge->count));
	int result = cli_catch_interrupts(GRADE_INTERRUPTED, err);
	if (result == 0)
		result = grade_judge_run(judge, err);
	cli_progress_hide(&grading->progress);
	if (result < 0)
		cli_complain(err);
	else
		put_summary(judging, (double)(clock_monotonic_us() - began) / 1e6);
	if (result < 0 || judging->summary.judge_errors)
		return CLI_JUDGE_ERROR;
	return judging->summary.unexpected || (options->strict && judging->summary.warnings) ? CLI_DIFFERENT : CLI_OK;
}

int grade_package_run(struct grading *grading, struct err *err)
{
	auto_package struct grade_package package = GRADE_PACKAGE_INIT;
	struct judging judging = {.grading = grading};
	const char *path = grading->options->common.args[0];
	auto_free char *folder = NULL, *unpacked = NULL;
	int result = 0;

	/* An archive is unpacked into a folder that goes with this process. */
	if (grade_zip_is(path) && (result = cli_scratch(&folder, err)) == 0)
		result = grade_zip_unpack(path, folder, &unpacked, err);
	if (result == 0)
		result = grade_package_open(unpacked ? unpacked : path, &package, err);
	if (result < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	result = judge_package(&judging, &package, err);
	grade_judge_clear(&judging.judge);
	json_object_put(judging.summary.warnings);
	return result;
}
