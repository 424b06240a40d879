/*
 * cmd_grade.c - `sallyport grade`: judges the submissions of a problem package (lib/grade) and compares with what is
 * expected.
 *
 * Exit codes are those that scripts know from test runners: 0 all as expected, 1 something is not, 2 the package cannot
 * be read, 3 a judge error remained, 5 interrupted. A thread waits for SIGINT and SIGTERM and ends the program at once:
 * what is complete was printed, and everything that runs dies with our connections to the jailer.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grade.h"
#include "lib/base/util.h"

struct grade_options {
	struct cli_common common;
	int64_t jobs, time_limit_us;
	bool no_cache;
};

static const struct cli_option grade_options_table[] = {
	{.name = "jobs",
	 .letter = 'j',
	 .type = CLI_INT,
	 .offset = offsetof(struct grade_options, jobs),
	 .min = 1,
	 .max = GRADE_JOBS_MAX,
	 .value = "N",
	 .help = "run so many cases at a time (default: processors)"},
	{.name = "time-limit",
	 .type = CLI_SECONDS,
	 .offset = offsetof(struct grade_options, time_limit_us),
	 .min = 1000,
	 .max = (int64_t)(GRADE_TIME_LIMIT_MAX * 1000000),
	 .value = "SECONDS",
	 .help = "CPU time of a case, instead of the package's limit"},
	{.name = "no-cache",
	 .type = CLI_FLAG,
	 .offset = offsetof(struct grade_options, no_cache),
	 .help = "compile everything, and keep no executables"},
	{0},
};
static const struct cli_group grade_groups[] = {{grade_options_table, 0}, {0}};

struct grading {
	const struct grade_options *options;
	const struct config *config;
	struct grade_judge judge;
	struct grade_summary summary;
	struct cli_progress progress;
};

static int connect_jailer(void *arg, struct jail_client **ret, struct err *err)
{
	const struct grading *grading = arg;

	return cli_open_jailer(grading->config, ret, err);
}

static void on_done(void *arg, const struct grade_submission *submission)
{
	struct grading *grading = arg;

	cli_progress_hide(&grading->progress);
	grade_report_submission(&grading->judge, submission, grading->options->common.json, &grading->summary);
}

static void on_progress(void *arg, size_t done, size_t all)
{
	struct grading *grading = arg;

	grading->progress.total = (int64_t)all;
	cli_progress_step(&grading->progress, (int64_t)done);
}

/* A private jailer takes its caps from the configuration, and that from the environment: it has to allow what the
 * package says. */
static void raise_cap(const char *variable, int64_t cap, int64_t needed)
{
	char text[24];

	if (needed <= cap)
		return;
	snprintf(text, sizeof(text), "%lld", (long long)needed);
	setenv(variable, text, 1);
}

static void raise_caps(const struct config *config, const struct grade_judge *judge)
{
	const struct grade_package *package = judge->package;
	const struct config_limits *limits = &config->limits;
	double seconds = judge->time_limit ? judge->time_limit : GRADE_FREE_SECONDS;
	int64_t wall_us = (int64_t)(2 * seconds + 1) * 1000000;
	int64_t memory = MAX(package->memory_bytes, MAX(package->validation_bytes, package->compile_bytes));
	int64_t output = MAX(package->output_bytes, package->validation_output_bytes);

	if (*config->jailer.socket)
		return; /* the service's caps are its operator's */
	wall_us = MAX(wall_us, MAX(package->validation_us + wall_us, package->compile_us));
	raise_cap("SALLYPORT_LIMITS_WALL_SECONDS_MAX", limits->wall_seconds_max, wall_us / 1000000 + 1);
	raise_cap("SALLYPORT_LIMITS_MEMORY_MB_MAX", limits->memory_mb_max, (memory + (1 << 20) - 1) >> 20);
	raise_cap("SALLYPORT_LIMITS_OUTPUT_MB", limits->output_mb, (output + (1 << 20) - 1) >> 20);
}

static int exit_code(const struct grading *grading, int result)
{
	if (result < 0 || grading->summary.judge_errors)
		return CLI_JUDGE_ERROR;
	return grading->summary.unexpected ? CLI_DIFFERENT : CLI_OK;
}

static int judge_package(struct grading *grading, struct grade_package *package, struct err *err)
{
	const struct grade_options *options = grading->options;
	auto_free char *cache = options->no_cache ? NULL : grade_program_cache();
	struct grade_judge *judge = &grading->judge;
	int64_t began = clock_monotonic_us();

	*judge = (struct grade_judge){
		.package = package,
		.jobs = (int)(options->jobs ? options->jobs : MIN(sysconf(_SC_NPROCESSORS_ONLN), GRADE_JOBS_MAX)),
		.time_limit = (double)options->time_limit_us / 1e6,
		.cache = cache,
		.connect = connect_jailer,
		.done = on_done,
		.progress = on_progress,
		.arg = grading,
	};
	if (grade_judge_open(judge, options->common.args + 1, options->common.n_args - 1, err) < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	raise_caps(grading->config, judge);
	cli_progress_start(&grading->progress, "cases", (int64_t)(judge->n_cases * judge->count));
	int result = cli_catch_interrupts(
		"sallyport: interrupted: the submissions that are not listed were not judged\n", err);

	if (result == 0)
		result = grade_judge_run(judge, err);
	cli_progress_hide(&grading->progress);
	if (result < 0)
		cli_complain(err);
	else
		grade_report_summary(judge, &grading->summary, options->common.json,
				     (double)(clock_monotonic_us() - began) / 1e6);
	return exit_code(grading, result);
}

static int grade_run(void *arg, struct err *err)
{
	auto_config struct config config = {0};
	auto_package struct grade_package package = GRADE_PACKAGE_INIT;
	struct grading grading = {.options = arg, .config = &config};
	int result = config_load(grading.options->common.config, &config, err);

	if (result < 0)
		return result;
	if (grade_package_open(grading.options->common.args[0], &package, err) < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	result = judge_package(&grading, &package, err);
	grade_judge_clear(&grading.judge);
	return result;
}

const struct cli_command cmd_grade = {
	.name = "grade",
	.summary = "Judges submissions of a problem package",
	.arguments = "PACKAGE [SUBMISSION…]",
	.help = "PACKAGE is the folder of a problem package (Kattis/ICPC format: legacy, 2023-07, 2025-09). Without a "
		"SUBMISSION all "
		"programs in\n"
		"submissions/ are judged and compared with what the package expects of them. A SUBMISSION is a path "
		"below "
		"submissions/, else a\n"
		"file or folder anywhere.\n\n"
		"Examples:\n"
		"  sallyport grade problems/hello\n"
		"  sallyport grade --json problems/hello accepted/fast.cpp ~/my-solution.py\n\n"
		"Exit codes: 0 all as expected; 1 something is not; 2 the package cannot be read; 3 a judge error; 5 "
		"interrupted.\n",
	.groups = grade_groups,
	.size = sizeof(struct grade_options),
	.min_args = 1,
	.max_args = SIZE_MAX,
	.run = grade_run,
};
