/*
 * cmd_grade.c - `sallyport grade`: judges programs (lib/grade) and says what they came to. The first argument says what
 * is graded: a folder or a ZIP archive is a problem package, a file that begins as SQLite's do a suite, another file
 * tasks as JSON Lines.
 *
 * Exit codes are those that scripts know from test runners: 0 all as expected, 1 something is not, 2 the package or
 * file cannot be read, 3 a judge error remained, 5 interrupted. A thread waits for SIGINT and SIGTERM and ends the
 * program at once: what is complete was printed, and everything that runs dies with our connections to the jailer.
 */
#include <string.h>
#include <sys/stat.h>

#include "grade.h"
#include "lib/base/util.h"
#include "lib/store/transfer/store_bundle.h"

static const char *const only_choices[] = {"failed", "missing", NULL};

static const struct cli_option grade_options_table[] = {
	{.name = "jobs", .letter = 'j', .type = CLI_INT, .offset = offsetof(struct grade_options, jobs), .min = 1,
	 .max = GRADE_JOBS_MAX, .value = "N",
	 .help = "run N cases at a time [one for each processor]"},
	{.name = "time-limit", .type = CLI_SECONDS, .offset = offsetof(struct grade_options, time_limit_us),
	 .min = 1000, .max = (int64_t)(GRADE_TIME_LIMIT_MAX * 1000000), .value = "SECONDS",
	 .help = "limit the CPU time of a case [the package's limit; TASKS: 3 s, in C++ and Go 10 s]"},
	{.name = "no-cache", .type = CLI_FLAG, .offset = offsetof(struct grade_options, no_cache),
	 .help = "compile everything, and keep no executables"},
	{.name = "samples", .type = CLI_STRING, .offset = offsetof(struct grade_options, samples), .value = "FILE",
	 .input = true,
	 .help = "TASKS: grade these completions [the tasks' own solutions]"},
	{.name = "strict", .type = CLI_FLAG, .offset = offsetof(struct grade_options, strict),
	 .help = "PACKAGE: a warning is a failure"},
	{.name = "raw", .type = CLI_FLAG, .offset = offsetof(struct grade_options, raw),
	 .help = "TASKS: take samples as they are, with fences of Markdown"},
	{.name = "require-split", .type = CLI_FLAG, .offset = offsetof(struct grade_options, require_split),
	 .help = "TASKS: skip samples whose tests cannot run in a process of their own"},
	{.name = "checkers", .type = CLI_STRING, .offset = offsetof(struct grade_options, checkers), .value = "FOLDER",
	 .input = true,
	 .help = "TASKS: let the program FOLDER/TASK_ID.* decide which output is right, where there is one"},
	{.name = "solution", .type = CLI_STRING, .offset = offsetof(struct grade_options, solution), .value = "MEMBER",
	 .help = "TASKS: grade this member of each task [canonical_solution or code]"},
	{.name = "language", .type = CLI_STRING, .offset = offsetof(struct grade_options, language), .value = "NAME",
	 .help = "set the language of all TASKS, or of the submissions to a SUITE"},
	{.name = "k", .type = CLI_STRING, .offset = offsetof(struct grade_options, k), .value = "LIST",
	 .help = "TASKS: values of k for pass@k [1,10,100]"},
	{.name = "tag", .type = CLI_STRINGS, .offset = offsetof(struct grade_options, tags), .value = "TAG",
	 .help = "SUITE: run only cases with this tag; repeatable"},
	{.name = "results", .type = CLI_STRING, .offset = offsetof(struct grade_options, results), .value = "FILE",
	 .help = "store each result in FILE as soon as it is known"},
	{.name = "resume", .type = CLI_FLAG, .offset = offsetof(struct grade_options, resume),
	 .help = "grade only what has no stored result [grade.db in the data folder]"},
	{.name = "fail-fast", .type = CLI_FLAG, .offset = offsetof(struct grade_options, fail_fast),
	 .help = "stop at the first failure"},
	{.name = "quiet", .letter = 'q', .type = CLI_FLAG, .offset = offsetof(struct grade_options, quiet),
	 .help = "leave out what passed or is as expected"},
	{.name = "only", .type = CLI_STRING, .offset = offsetof(struct grade_options, only), .value = "WHAT",
	 .choices = only_choices,
	 .help = "TASKS: grade only samples whose stored result is WHAT"},
	{.name = "shard", .type = CLI_STRING, .offset = offsetof(struct grade_options, shard), .value = "K/N",
	 .help = "TASKS: grade only the Kth of N parts; /N: the batch system sets K"},
	{.name = "merge", .type = CLI_STRINGS, .offset = offsetof(struct grade_options, merge), .value = "FILE",
	 .help = "TASKS: run nothing, report the results that shards stored in FILE; repeatable"},
	{0},
};
static const struct cli_group grade_groups[] = {
	{grade_options_table, 0},
	{report_options, offsetof(struct grade_options, reports)},
	{replay_normaliser_options, offsetof(struct grade_options, normalisers)},
	{cli_priority_options, offsetof(struct grade_options, priority)},
	{0},
};

enum kind { PACKAGE, TASKS, SUITE };

static enum kind kind_of(const char *path)
{
	struct stat st;

	if (streq(path, "-"))
		return TASKS;
	if (stat(path, &st) < 0 || S_ISDIR(st.st_mode) || grade_zip_is(path))
		return PACKAGE;
	return store_bundle_is(path) ? SUITE : TASKS;
}

/* Would be read as tasks, and be no JSON. */
static bool other_archive(const char *path)
{
	static const char *const ends[] = {".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst", ".7z", ".rar"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		found = found || str_ends(path, ends[i]);
	return found;
}

static int check_suite_options(const struct grade_options *options, bool suite, struct err *err)
{
	if (!suite && (options->tags.count > 0 || options->normalisers.files.count > 0))
		return err_set(err, ERR_INVALID, "--tag and --normalisers are for suites");
	if (suite && (options->time_limit_us || options->no_cache))
		return err_set(err, ERR_INVALID, "the cases of a suite have the limits that were recorded");
	return 0;
}

static bool for_tasks(const struct grade_options *options)
{
	return options->samples || options->solution || options->k || options->raw || options->require_split ||
	       options->shard || options->only || options->merge.count > 0 || options->checkers;
}

static int check_tasks_options(const struct grade_options *options, struct err *err)
{
	if (other_archive(options->common.args[0]))
		return err_set(err, ERR_INVALID,
			       "%s: a problem package is a folder or a ZIP archive: unpack it, and name the folder",
			       options->common.args[0]);
	const bool stored = options->results || options->resume || options->only || options->shard;

	if (options->samples && streq(options->samples, "-") && streq(options->common.args[0], "-"))
		return err_set(err, ERR_INVALID, "standard input holds TASKS or samples, not both");
	if (options->common.n_args > 1)
		return err_set(err, ERR_INVALID,
			       "a file of tasks takes no submissions: they are for packages and suites");
	if (options->checkers && stored)
		return err_set(err, ERR_INVALID, "--checkers: results that depend on your programs are not stored");
	if (options->merge.count > 0 && stored)
		return err_set(err, ERR_INVALID, "--merge runs nothing, and stores nothing");
	return 0;
}

static int check_options(const struct grade_options *options, enum kind kind, struct err *err)
{
	if (kind == TASKS && check_tasks_options(options, err) < 0)
		return -ERR_INVALID;
	if (kind != TASKS && for_tasks(options))
		return err_set(err, ERR_INVALID,
			       "--samples, --checkers, --solution, --k, --raw, --require-split, --shard, --only and "
			       "--merge are for files of tasks");
	if (kind != PACKAGE && options->strict)
		return err_set(err, ERR_INVALID, "--strict is for packages");
	if (kind == PACKAGE && options->language)
		return err_set(err, ERR_INVALID, "--language is for files of tasks, and for suites");
	return check_suite_options(options, kind == SUITE, err);
}

static int grade_run_command(void *arg, struct err *err)
{
	static int (*const kinds[])(struct grading * grading, struct err * err) = {grade_package_run, grade_tasks_run,
										   grade_suite_run};
	auto_config struct config config = {0};
	struct grading grading = {.options = arg, .config = &config};
	const struct grade_options *options = grading.options;
	int result = config_load(options->common.config, &config, err);

	if (result < 0)
		return result;
	cli_give_way(&config, &options->priority);
	enum kind kind = kind_of(options->common.args[0]);
	grading.parts = kind == TASKS;
	auto_free char *title = xasprintf("sallyport grade %s", options->common.args[0]);

	if (check_options(options, kind, err) < 0 ||
	    report_open(&options->reports, title, &grading.report, err) < 0 ||
	    grade_results_open(&grading, err) < 0) {
		cli_complain(err);
		return CLI_USAGE;
	}
	result = kinds[kind](&grading, err);
	int written = grading.summary ? report_finish(grading.report, grading.summary, grading.seconds, err) : 0;

	result = report_kept(grading.results, true, result);
	report_free(grading.report);
	store_results_close(grading.results);
	replay_shards_clear(&grading.shards);
	free(grading.summary);
	return written < 0 ? written : result;
}

const struct cli_command cmd_grade = {
	.name = "grade",
	.summary = "Judge submissions to a problem package or a suite, or samples of tasks",
	.arguments = "PACKAGE [SUBMISSION…] | TASKS | SUITE [SUBMISSION…]",
	.help = "PACKAGE is a problem package in the Kattis/ICPC format (legacy, legacy-icpc, 2023-07 or 2025-09), a folder or a ZIP archive. "
		"Every program in submissions/ is judged and compared with the result that the package expects of it, or only each SUBMISSION: a path below submissions/, else a file or folder anywhere.\n\n"
		"TASKS is a file (-: standard input) of JSON Lines, plain or compressed (gzip, xz, zstd): HumanEval, HumanEvalPack (Python, C++, JavaScript or Go) or MBPP. "
		"The tasks' own solutions are graded, or the completions of --samples. "
		"Tests and code run in different jails where the language allows it.\n\n"
		"SUITE is a file of sallyport promote. "
		"Each case runs again, with its recorded code or with each SUBMISSION in its place, and passes if the outcome is the recorded one.",
	.examples = "sallyport grade problems/hello\n"
		"sallyport grade hello.zip --resume\n"
		"sallyport grade --json problems/hello accepted/fast.cpp ~/my-solution.py\n"
		"sallyport grade HumanEval.jsonl.gz --samples samples.jsonl --k 1,10\n"
		"sallyport grade regress.suite --tag fast candidate.py\n"
		"sallyport grade problems/hello --report junit=hello.xml --report html=hello.html\n",
	.exits = "0 all submissions are as expected, or every sample or case passed\n"
		"1 one is not, or did not\n"
		"2 the command line is wrong, or the input cannot be read\n"
		"3 there is no such package, file or submission\n"
		"5 interrupted, or results could not be stored\n"
		"13 a judge error remained\n",
	.groups = grade_groups,
	.size = sizeof(struct grade_options),
	.min_args = 1,
	.max_args = SIZE_MAX,
	.n_inputs = 1,
	.run = grade_run_command,
};
