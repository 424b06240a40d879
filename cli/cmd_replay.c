/*
 * cmd_replay.c - `sallyport replay`: runs recorded executions again on their stored inputs and says what comes out
 * differently.
 *
 * The database is only read, but for --bless (replay_bless.c). Which executions: by id, or by the filters of `log`, or
 * all; of these the ones of this shard (replay_choose.c). Threads work on the list (replay_batch.c), each execution is
 * run as often as it takes (replay_work.c) and compared with the record (replay_compare.c).
 *
 * A result is stored as soon as it is there, in a file of its own (store_results.h), under a key of everything that it
 * depends on. So --resume takes what an interrupted replay had done, --only chooses by what was found, and --merge
 * makes one report of the files of several shards without running anything. Without a place for that file a replay
 * still works, but cannot be resumed.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"
#include "replay_batch.h"
#include "replay_tools.h"

static const char *const only_choices[] = {"failed", "missing", "flaky", NULL};

#define FIELD(member) offsetof(struct replay_options, member)
static const struct cli_option replay_options_table[] = {
	{.name = "all", .letter = 'a', .type = CLI_FLAG, .offset = FIELD(all), .help = "select all recorded runs"},
	{.name = "jobs", .letter = 'j', .type = CLI_INT, .offset = FIELD(jobs), .min = 1, .max = REPLAY_JOBS_MAX,
	 .value = "N",
	 .help = "run N at a time [one for each processor]"},
	{.name = "quiet", .letter = 'q', .type = CLI_FLAG, .offset = FIELD(quiet), .help = "leave out identical runs"},
	{.name = "compare", .type = CLI_STRING, .offset = FIELD(compare), .value = "LIST",
	 .help = "compare these, with commas between: verdict, exit, stdout, stderr, files, cpu, memory, or the sets default and all; -NAME leaves one out [verdict,exit,stdout,stderr,files]"},
	{.name = "normalise", .type = CLI_STRING, .offset = FIELD(normalise), .value = "LIST",
	 .help = "apply these normalisers to output that differs, with commas between; default, all and none are sets; -NAME leaves one out [default]"},
	{.name = "repeat", .type = CLI_INT, .offset = FIELD(repeat), .min = 1, .max = REPLAY_REPEAT_MAX, .value = "N",
	 .help = "run each N times [once, and three times if it differs]"},
	{.name = "results", .type = CLI_STRING, .offset = FIELD(results), .value = "FILE",
	 .help = "store results in FILE [replay.db in the data folder]"},
	{.name = "resume", .type = CLI_FLAG, .offset = FIELD(resume),
	 .help = "run only executions without a stored result"},
	{.name = "only", .type = CLI_STRING, .offset = FIELD(only), .value = "WHAT", .choices = only_choices,
	 .help = "run only executions whose stored result is WHAT"},
	{.name = "fail-fast", .type = CLI_FLAG, .offset = FIELD(fail_fast), .help = "stop at the first difference"},
	{.name = "shard", .type = CLI_STRING, .offset = FIELD(shard), .value = "K/N",
	 .help = "run only the Kth of N parts; /N: the batch system sets K"},
	{.name = "merge", .type = CLI_STRINGS, .offset = FIELD(merge), .value = "FILE",
	 .help = "run nothing, report the results that shards stored in FILE; repeatable"},
	{.name = "runner", .type = CLI_STRINGS, .offset = FIELD(runners), .value = "NAME=PATH",
	 .help = "use the interpreter at PATH for the language NAME; repeatable: one replay follows the other"},
	{.name = "first-bad", .type = CLI_FLAG, .offset = FIELD(first_bad),
	 .help = "find the first --runner that differs, in a list from good to bad"},
	{.name = "old-runners", .type = CLI_STRING, .offset = FIELD(old_runners), .value = "FOLDER", .input = true,
	 .help = "judge speed and memory against the runner files in FOLDER [the record; with --runner: the configured runners]"},
	{.name = "deterministic", .type = CLI_FLAG, .offset = FIELD(deterministic),
	 .help = "fix clock, random bytes, hash seed, addresses and the number of processors (1)"},
	{.name = "live", .type = CLI_FLAG, .offset = FIELD(live),
	 .help = "let the real servers answer calls of tools, instead of the record: they may act"},
	{.name = "upstream", .type = CLI_STRING, .offset = FIELD(upstream_file), .value = "FILE", .input = true,
	 .help = "with --live, read the list of MCP servers from FILE [upstream.file]"},
	{.name = "secret", .type = CLI_STRINGS, .offset = FIELD(secrets), .value = "NAME[=VALUE]",
	 .help = "give the value of a secret that the runs used [the environment variable NAME]; repeatable"},
	{0},
};
static const struct cli_group replay_groups[] = {
	{replay_options_table, 0},
	{replay_bless_options, FIELD(bless)},
	{report_options, FIELD(reports)},
	{replay_normaliser_options, FIELD(normalisers)},
	{cli_priority_options, FIELD(priority)},
	{cli_filter_options, FIELD(filter)},
	{cli_tag_options, FIELD(filter)},
	{0},
};

/* A private jailer with the runner files of the old side. No thread is there yet that could read the environment. */
static int open_old(struct replay_batch *batch, struct err *err)
{
	static const char name[] = "SALLYPORT_JAILER_RUNNERS_DIR";
	struct config config = *batch->config; /* the same strings */
	const char *now = getenv(name);
	auto_free char *kept = now ? xstrdup(now) : NULL;

	config.jailer.socket = NULL;
	setenv(name, batch->options->old_runners, 1);
	int result = cli_open_jailer(&config, &batch->old.client, 1, err);

	if (result == 0)
		result = jail_client_runners(batch->old.client, &batch->settings.old_runners, err);
	if (kept)
		setenv(name, kept, 1);
	else
		unsetenv(name);
	return result < 0 ? err_wrap(err, "--old-runners") : 0;
}

static int open_runners(struct replay_batch *batch, struct err *err)
{
	int result = cli_open_jailer(batch->config, &batch->client, 1, err);

	if (result == 0)
		result = jail_client_runners(batch->client, &batch->runners, err);
	if (result == 0 && batch->options->old_runners && (batch->settings.by & (REPLAY_BY_CPU | REPLAY_BY_MEMORY)))
		result = open_old(batch, err);
	if (result == 0)
		replay_settings_key(&batch->settings, batch->runners, batch->key);
	if (result == 0 && batch->settings.live)
		result = replay_tools_connect(batch->config, &batch->upstream, err);
	return result;
}

static int read_settings(struct replay_batch *batch, struct err *err)
{
	const struct replay_options *options = batch->options;
	int result = replay_settings_by(options->compare, &batch->settings.by, err);

	batch->settings.repeat = options->repeat;
	batch->settings.deterministic = options->deterministic;
	batch->settings.live = options->live || options->bless.record;
	batch->settings.normalisers = normalise_defaults();
	if (result == 0 && options->normalise)
		result = normalise_parse(options->normalise, &batch->settings.normalisers, err);
	if (result == 0)
		result = replay_settings_secrets(&options->secrets, &batch->secrets, err);
	batch->settings.secrets = &batch->secrets;
	return result;
}

static int run_batch(struct replay_batch *batch, struct err *err)
{
	const struct replay_options *options = batch->options;
	const bool merges = options->merge.count > 0;
	struct replay_shard shard = {0};
	int result = read_settings(batch, err);

	if (result == 0)
		result = report_open(&options->reports, "sallyport replay", &batch->report, err);
	if (result == 0 && !merges)
		result = replay_shard_choose(options->shard, &shard, err);
	if (result == 0)
		result = replay_choose(batch, &shard, err);
	if (result == 0 && merges)
		return replay_batch_merge(batch, err);
	if (result == 0)
		result = cli_catch_interrupts("sallyport: interrupted: --resume goes on from here\n", err);
	if (result == 0)
		result = cli_audit_read(batch->config, STORE_AUDIT_REPLAY, (int64_t)batch->count, err);
	if (result == 0 && batch->count + (size_t)shard.count > 0)
		result = open_runners(batch, err);
	if (result == 0 && *batch->key)
		result = replay_open_results(batch, &shard, err);
	return result == 0 ? replay_batch_run(batch, err) : result;
}

#define HEAP_KEPT (64 * 1024)

static int check_live(const struct replay_options *options, struct err *err)
{
	const bool live = options->live || options->bless.record;

	if (options->upstream_file && !live)
		return err_set(err, ERR_INVALID, "--upstream: without --live the record answers the calls of tools");
	if (live && options->runners.count > 0)
		return err_set(err, ERR_INVALID,
			       "--live: cannot be combined with --runner: each interpreter would call the tools again");
	if (live && options->merge.count > 0)
		return err_set(err, ERR_INVALID, "--merge runs nothing, so no server is asked");
	if (options->live && options->bless.on && !options->bless.record)
		return err_set(err, ERR_INVALID,
			       "--live and --bless: say --record, which keeps what the servers answered, too");
	return 0;
}

static int check_runners(const struct replay_options *options, struct err *err)
{
	if (options->first_bad && options->runners.count == 0)
		return err_set(err, ERR_INVALID, "--first-bad: of which interpreters? Give them with --runner");
	if (options->runners.count > 1 && options->reports.files.count > 0)
		return err_set(err, ERR_INVALID, "--report: a file has room for one replay, and each --runner is one");
	return 0;
}

static int replay_all(const struct replay_trying *trying, struct err *err)
{
	const struct replay_options *options = trying->options;
	struct replay_batch batch;

	replay_batch_init(&batch);
	batch.options = options;
	batch.bless = options->bless.on ? &options->bless : NULL;
	batch.config = trying->config;
	batch.store = trying->store;
	const int result = run_batch(&batch, err);

	replay_batch_clear(&batch);
	return result;
}

static int replay_run(void *arg, struct err *err)
{
	struct replay_options *options = arg;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	int result = replay_bless_check(&options->bless, err);

	/* One heap for all threads, whose free end goes back to the kernel: with one each they grew by 1.4 kB a run,
	 * because what a thread makes the main thread frees. The threads wait for jails, not for the heap. Before the
	 * first of them. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	if (result == 0)
		result = replay_normalisers_load(&options->normalisers, err);
	if (result == 0)
		result = check_live(options, err);
	if (result == 0)
		result = check_runners(options, err);
	if (result == 0 && options->bless.on && options->merge.count > 0)
		result = err_set(err, ERR_INVALID, "--merge runs nothing, so there is nothing to bless");
	if (result == 0)
		result = cli_open_store(&options->common, options->bless.on ? STORE_WRITE : STORE_READ, &config, &store,
					err);
	if (result < 0)
		return result;
	if (options->upstream_file)
		config.upstream.file = options->upstream_file;
	cli_give_way(&config, &options->priority);
	struct replay_trying trying = {options, &config, store, replay_all, NULL, NULL};

	result = options->runners.count > 0 ? replay_runners_run(&trying, err) : replay_all(&trying, err);
	normalise_file_forget();
	return result;
}

const struct cli_command cmd_replay = {
	.name = "replay",
	.summary = "Run executions again and report differences",
	.arguments = "[ID]…",
	.help = "The executions are given by id, by filters or with --all. "
		"Verdict, exit code, signal, both streams and new files are compared; of runs that a limit ended, the verdict and the common beginning of the streams. "
		"Output that differs is compared once more after normalising: without addresses, process ids, times and so on. "
		"Calls of tools are answered from the record. "
		"The record is not changed, except with --bless and --record.\n\n"
		"Cancelled and interrupted runs cannot be replayed, nor can runs whose secrets --secret does not give: secrets are never stored. "
		"--json prints one object a line and the sums last.",
	.examples = "sallyport replay 019bf2\n"
		"sallyport replay --all -j 2\n"
		"sallyport replay --language python --since 2d --quiet\n"
		"sallyport replay --all --runner python=/usr/bin/pypy3\n"
		"API_KEY=... sallyport replay --secret API_KEY 019bf2\n"
		"sallyport replay 019bf2 --bless --reason \"the message names the file now\"\n"
		"sallyport replay --tool 'github.*' --live\n",
	.exits = "0 all are identical or equal after normalising, or were blessed\n"
		"1 something differs or is flaky\n"
		"3 no such execution\n"
		"5 incomplete: interrupted, a shard is missing, or results could not be stored\n"
		"13 the sandbox or the record failed\n",
	.groups = replay_groups,
	.size = sizeof(struct replay_options),
	.max_args = SIZE_MAX,
	.run = replay_run,
};
