/* grade_package.c - `sallyport grade` over a problem package: its submissions, and what is expected of them. */
#include <string.h>

#include "grade.h"
#include "lib/base/util.h"
#include "scratch.h"

struct judging {
	struct grading *grading;
	struct grade_judge judge;
	struct grade_summary summary;
};

static bool on_done(void *arg, const struct grade_submission *submission)
{
	struct judging *judging = arg;
	const struct grade_summary *summary = &judging->summary;

	cli_progress_hide(&judging->grading->progress);
	grade_report_submission(judging->grading, &judging->judge, submission, &judging->summary);
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

static int exit_code(const struct judging *judging, int result)
{
	if (result < 0 || judging->summary.judge_errors)
		return CLI_JUDGE_ERROR;
	return judging->summary.unexpected ? CLI_DIFFERENT : CLI_OK;
}

/* A private jailer has to allow what the package says. */
static void raise_caps(const struct config *config, const struct grade_judge *judge)
{
	const struct grade_package *package = judge->package;
	double seconds = judge->time_limit ? judge->time_limit : GRADE_FREE_SECONDS;
	int64_t wall_us = (int64_t)(2 * seconds + 1) * 1000000;

	grade_raise_caps(config, MAX(package->validation_us + wall_us, package->compile_us),
			 MAX(package->memory_bytes, MAX(package->validation_bytes, package->compile_bytes)),
			 MAX(package->output_bytes, package->validation_output_bytes));
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
		.arg = judging,
	};
	if (grade_judge_open(judge, options->common.args + 1, options->common.n_args - 1, err) < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	grade_warn(judge, options->common.n_args == 1, on_warning, judging);
	raise_caps(grading->config, judge);
	cli_progress_start(&grading->progress, "cases", (int64_t)(judge->n_cases * judge->count));
	int result = cli_catch_interrupts(GRADE_INTERRUPTED, err);
	if (result == 0)
		result = grade_judge_run(judge, err);
	cli_progress_hide(&grading->progress);
	if (result < 0)
		cli_complain(err);
	else
		grade_report_summary(grading, judge, &judging->summary, (double)(clock_monotonic_us() - began) / 1e6);
	return exit_code(judging, result);
}

/* An archive is unpacked into a folder that goes with this process. */
static int open_package(const char *path, struct grade_package *ret, struct err *err)
{
	auto_free char *folder = NULL, *unpacked = NULL;
	int result = 0;

	if (grade_zip_is(path) && (result = scratch_folder(&folder, err)) == 0)
		result = grade_zip_unpack(path, folder, &unpacked, err);
	return result < 0 ? result : grade_package_open(unpacked ? unpacked : path, ret, err);
}

int grade_package_run(struct grading *grading, struct err *err)
{
	auto_package struct grade_package package = GRADE_PACKAGE_INIT;
	struct judging judging = {.grading = grading};

	if (open_package(grading->options->common.args[0], &package, err) < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	int result = judge_package(&judging, &package, err);
	grade_judge_clear(&judging.judge);
	json_object_put(judging.summary.warnings);
	return result;
}
