/*
 * cmd_replay.c - `sallyport replay`: runs recorded executions again on their stored inputs and says what comes out
 * differently.
 *
 * The database is only read, but for --bless (replay_bless.c). Which executions: by id, or by the filters of `log`, or
 * all; of these the ones of this shard. So many threads as --jobs says work on the list, each with a connection to the
 * jailer (or a private jailer) of its own; the main thread prints the reports in the list's order as they become
 * complete. The threads share nothing but the index of the next execution and the finished results.
 *
 * A result is stored as soon as it is there, in a file of its own (store_results.h), under a key of everything that it
 * depends on. So --resume takes what an interrupted replay had done, --only chooses by what was found, and --merge
 * makes one report of the files of several shards without running anything. Without a place for that file a replay
 * still works, but cannot be resumed.
 */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/grade/normalise_file.h"
#include "replay.h"
#include "replay_runner.h"
#include "replay_shard.h"

#define JOBS_MAX 64

struct replay_options {
	struct cli_common common;
	struct cli_filter filter;
	bool all, quiet, resume, fail_fast;
	int64_t jobs, repeat;
	const char *normalise, *compare, *results, *only, *shard;
	struct bind_strings merge, secrets;
	struct replay_runners runners;
	struct replay_bless bless;
	struct report_wanted reports;
	struct replay_normalisers normalisers;
};

static const char *const only_choices[] = {"failed", "missing", "flaky", NULL};

#define FIELD(member) offsetof(struct replay_options, member)
static const struct cli_option replay_options_table[] = {
	{.name = "all", .letter = 'a', .type = CLI_FLAG, .offset = FIELD(all), .help = "everything that was recorded"},
	{.name = "jobs",
	 .letter = 'j',
	 .type = CLI_INT,
	 .offset = FIELD(jobs),
	 .min = 1, .max = JOBS_MAX,
	 .value = "N",
	 .help = "so many at a time (default: processors)"},
	{.name = "quiet",
	 .letter = 'q',
	 .type = CLI_FLAG,
	 .offset = FIELD(quiet),
	 .help = "leave out what is identical"},
	{.name = "compare",
	 .type = CLI_STRING,
	 .offset = FIELD(compare),
	 .value = "LIST",
	 .help = "verdict,exit,stdout,stderr,files (default), cpu, memory; -NAME: all but that"},
	{.name = "normalise",
	 .type = CLI_STRING,
	 .offset = FIELD(normalise),
	 .value = "LIST",
	 .help = "what to take out of output before it differs: names, all, none; default,NAME; -NAME"},
	{.name = "repeat",
	 .type = CLI_INT,
	 .offset = FIELD(repeat),
	 .min = 1, .max = REPLAY_REPEAT_MAX,
	 .value = "N",
	 .help = "run each so often (default: once, three times where it differs)"},
	{.name = "results",
	 .type = CLI_STRING,
	 .offset = FIELD(results),
	 .value = "FILE",
	 .help = "keep results there (default: replay.db in the data folder)"},
	{.name = "resume", .type = CLI_FLAG, .offset = FIELD(resume), .help = "run only what has no result yet"},
	{.name = "only",
	 .type = CLI_STRING,
	 .offset = FIELD(only),
	 .value = "WHAT",
	 .help = "only what by its stored result is failed or flaky, or has none: missing",
	 .choices = only_choices},
	{.name = "fail-fast", .type = CLI_FLAG, .offset = FIELD(fail_fast), .help = "end with the first that differs"},
	{.name = "shard",
	 .type = CLI_STRING,
	 .offset = FIELD(shard),
	 .value = "K/N", .help = "only the Kth of N parts; /N: the batch system says which"},
	{.name = "merge",
	 .type = CLI_STRINGS,
	 .offset = FIELD(merge),
	 .value = "FILE", .help = "run nothing, report what the shards found; repeatable"},
	{.name = "runner",
	 .type = CLI_STRINGS,
	 .offset = FIELD(runners.list),
	 .value = "NAME=PATH",
	 .help = "with this interpreter of the language NAME; repeatable: one replay after the other"},
	{.name = "first-bad",
	 .type = CLI_FLAG,
	 .offset = FIELD(runners.first_bad),
	 .help = "which --runner is the first to differ, of a list from good to bad"},
	{.name = "secret",
	 .type = CLI_STRINGS,
	 .offset = FIELD(secrets),
	 .value = "NAME[=VALUE]",
	 .help = "a secret that runs were given; without a value our variable NAME's; repeatable"},
	{0},
};
static const struct cli_group replay_groups[] = {
	{replay_options_table, 0},
	{replay_bless_options, FIELD(bless)},
	{report_options, FIELD(reports)},
	{replay_normaliser_options, FIELD(normalisers)},
	{cli_filter_options, FIELD(filter)},
	{0},
};

struct item {
	char id[ID_SIZE];
	int64_t generation; /* of what is expected */
	bool done;          /* by an earlier replay */
};

struct work {
	const struct config *config;
	struct store *store;
	struct store_results *results; /* NULL: not kept */
	struct replay_settings settings;
	const struct replay_bless *bless; /* NULL: not wanted */
	struct job_secrets secrets;
	struct report *report;            /* NULL: none is wanted */
	char key[SHA256_HEX_SIZE];
	struct item *items;
	size_t count, size;
	struct jail_client *client; /* for the thread that comes first */

	pthread_mutex_t lock; /* for the rest */
	pthread_cond_t more;
	size_t next;
	bool stop;
	struct store_result *done; /* by index */
	bool *ready;
};

/* -------- which --------------------------------------------------------------------------------------- */

static void add_item(struct work *work, const struct store_execution *execution)
{
	if (work->count == work->size) {
		work->size = work->size ? 2 * work->size : 64;
		work->items = xrealloc(work->items, work->size, sizeof(*work->items));
	}
	work->items[work->count] = (struct item){.generation = execution->generation};
	snprintf(work->items[work->count++].id, ID_SIZE, "%s", execution->id);
}

/* Only its id is kept: a list can be longer than memory holds code and output. */
static int add_listed(void *arg, const struct store_execution *execution)
{
	add_item(arg, execution);
	return 0;
}

static void keep_shard(struct work *work, const struct replay_shard *shard)
{
	size_t kept = 0;

	for (size_t i = 0; shard->count > 0 && i < work->count; i++)
		if (replay_shard_of(work->items[i].id, shard->count) == shard->number)
			work->items[kept++] = work->items[i];
	work->count = shard->count > 0 ? kept : work->count;
}

/* Does --only want what has this result? */
static bool wanted(const char *only, const struct store_result *stored)
{
	enum replay_class class = stored ? replay_class_from(stored->class) : REPLAY_MISSING;

	if (streq(only, "missing"))
		return !stored;
	if (streq(only, "flaky"))
		return class == REPLAY_FLAKY;
	return stored && (class == REPLAY_SANDBOX_ERROR || (class > REPLAY_EQUAL && class < REPLAY_FLAKY));
}

static int stored_result(struct work *work, const struct item *item, struct store_result *ret, struct err *err)
{
	char key[SHA256_HEX_SIZE];

	replay_settings_item_key(work->key, item->generation, key);
	return store_results_get(work->results, item->id, key, ret, err);
}

/* What the stored results say: which are chosen, which are done. */
static int look_up(struct work *work, const struct replay_options *options, struct err *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < work->count; i++) {
		struct store_result stored = {0};
		int found = stored_result(work, &work->items[i], &stored, err);

		if (found < 0)
			return found;
		if (!options->only || wanted(options->only, found ? &stored : NULL)) {
			work->items[kept] = work->items[i];
			work->items[kept++].done = options->resume && !options->only && found &&
						   !streq(stored.class, replay_class_text(REPLAY_SANDBOX_ERROR));
		}
		free(stored.report);
	}
	work->count = kept;
	return 0;
}

/* -------- the threads --------------------------------------------------------------------------------- */

static void do_one(struct work *work, struct replay_runner *runner, const struct item *item, struct store_result *ret)
{
	char key[SHA256_HEX_SIZE];

	if (item->done && stored_result(work, item, ret, NULL) == 1)
		return;
	replay_one(runner, item->id, ret);
	replay_settings_item_key(work->key, item->generation, key);
	if (work->results && store_results_put(work->results, item->id, key, ret, NULL) < 0)
		return; /* it is printed all the same, and will be run again by --resume */
}

static void *worker(void *arg)
{
	struct work *work = arg;
	struct replay_runner runner = {
		.config = work->config, .store = work->store, .settings = &work->settings, .bless = work->bless};

	pthread_mutex_lock(&work->lock);
	runner.client = steal(&work->client);
	while (work->next < work->count && !work->stop) {
		size_t i = work->next++;

		pthread_mutex_unlock(&work->lock);
		do_one(work, &runner, &work->items[i], &work->done[i]);
		pthread_mutex_lock(&work->lock);
		work->ready[i] = true;
		pthread_cond_signal(&work->more);
	}
	pthread_mutex_unlock(&work->lock);
	jail_client_free(runner.client);
	return NULL;
}

static bool as_recorded(const struct store_result *result)
{
	enum replay_class class = replay_class_from(result->class);

	return class <= REPLAY_EQUAL || class == REPLAY_NEW || class == REPLAY_NOT_REPLAYABLE;
}

static bool is_quiet(const struct replay_options *options, const struct store_result *result)
{
	return options->quiet && streq(result->class, replay_class_text(REPLAY_IDENTICAL));
}

/* Counts them; --json prints each as soon as it is its turn. Returns how many there are. */
static size_t take_results(struct work *work, const struct replay_options *options, struct replay_summary *summary)
{
	struct cli_progress progress;
	size_t i;

	cli_progress_start(&progress, "replay", (int64_t)work->count);
	for (i = 0; i < work->count && !work->stop; i++) {
		pthread_mutex_lock(&work->lock);
		while (!work->ready[i])
			pthread_cond_wait(&work->more, &work->lock);
		work->stop = options->fail_fast && !as_recorded(&work->done[i]);
		pthread_mutex_unlock(&work->lock);
		replay_summary_add(summary, &work->done[i]);
		replay_report_add(work->report, &work->done[i]);
		if (options->common.json && !is_quiet(options, &work->done[i])) {
			cli_progress_hide(&progress);
			puts(work->done[i].report);
			fflush(stdout);
		}
		if (options->common.json || is_quiet(options, &work->done[i]))
			free(steal(&work->done[i].report));
		cli_progress_step(&progress, (int64_t)i + 1);
	}
	cli_progress_hide(&progress);
	return i;
}

/* Printed, and the reports are complete. */
static int put_summary(struct work *work, const struct replay_options *options, struct replay_summary *summary,
		       size_t count, struct err *err)
{
	auto_json struct json_object *object = replay_summary_json(summary);
	auto_buf struct buf line = {0};

	if (options->common.json) {
		cli_print_json(stdout, object, false);
	} else {
		replay_summary_matrix(stdout, summary);
		for (size_t i = 0; i < count; i++)
			if (work->done[i].report)
				replay_print(stdout, work->done[i].report);
		replay_summary_print(stdout, summary);
	}
	if (count < work->count)
		fprintf(stderr, "sallyport: ended with the first that differs: %zu were not looked at\n",
			work->count - count);
	buf_init(&line, SIZE_MAX / 2);
	json_print(&line, object);
	return report_finish(work->report, line.data, summary->seconds, err);
}

static int replay_all(struct work *work, const struct replay_options *options, struct err *err)
{
	int64_t jobs = options->jobs ? options->jobs : MIN(sysconf(_SC_NPROCESSORS_ONLN), JOBS_MAX);
	int64_t began = clock_monotonic_us();
	struct replay_summary summary = {.bless = options->bless.on};
	size_t n_threads = MIN((size_t)jobs, work->count), started = 0, count;
	pthread_t threads[JOBS_MAX];

	work->done = xcalloc(work->count + 1, sizeof(*work->done));
	work->ready = xcalloc(work->count + 1, sizeof(*work->ready));
	while (started < n_threads && pthread_create(&threads[started], NULL, worker, work) == 0)
		started++;
	if (started == 0 && n_threads > 0)
		return err_set(err, ERR_SYSTEM, "cannot start a thread");
	count = take_results(work, options, &summary);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	summary.seconds = (double)(clock_monotonic_us() - began) / 1e6;
	int result = put_summary(work, options, &summary, count, err);

	return result < 0 ? result : replay_summary_exit(&summary);
}

/* -------- results of earlier replays, and of shards ----------------------------------------------------- */

static int open_results(struct work *work, const struct replay_options *options, const struct replay_shard *shard,
			struct err *err)
{
	const bool needed = options->results || options->resume || options->only || shard->count > 0;
	auto_free char *part = shard->count > 0 ? xasprintf("-%d-of-%d", shard->number, shard->count) : xstrdup("");
	auto_free char *place = xasprintf("%s/replay%s.db", work->config->data_dir, part);
	const struct store_shard mark = {.number = shard->count > 0 ? shard->number : 1, .count = MAX(shard->count, 1)};
	int result = store_results_open(options->results ? options->results : place, true, &work->results,
					needed ? err : NULL);

	if (result < 0)
		return needed ? result : 0;
	struct store_shard with_key = mark;

	memcpy(with_key.key, work->key, sizeof(with_key.key));
	result = store_results_shard(work->results, &with_key, err);
	return result < 0 ? result : look_up(work, options, err);
}

static int open_runners(struct work *work, struct err *err)
{
	auto_json struct json_object *runners = NULL;
	int result = cli_open_jailer(work->config, &work->client, err);

	if (result == 0)
		result = jail_client_runners(work->client, &runners, err);
	if (result == 0)
		replay_settings_key(&work->settings, runners, work->key);
	return result;
}

/* What the shards found, as if it had been run here. */
static int merge_all(struct work *work, const struct replay_options *options, struct err *err)
{
	auto_shards struct replay_shards shards = {0};
	struct replay_summary summary = {0};
	int64_t began = clock_monotonic_us();
	int result = replay_shards_open(options->merge.items, options->merge.count, &shards, err);

	work->done = xcalloc(work->count + 1, sizeof(*work->done));
	work->ready = xcalloc(work->count + 1, sizeof(*work->ready));
	for (size_t i = 0; result == 0 && i < work->count; i++) {
		result = replay_shards_result(&shards, work->items[i].id, work->items[i].generation, &work->done[i],
					      err);
		work->ready[i] = true;
	}
	if (result < 0)
		return result;
	size_t count = take_results(work, options, &summary);

	summary.seconds = (double)(clock_monotonic_us() - began) / 1e6;
	if ((result = put_summary(work, options, &summary, count, err)) < 0)
		return result;
	return replay_shards_missing(&shards) > 0 ? CLI_INCOMPLETE : replay_summary_exit(&summary);
}

/* -------- all of it ----------------------------------------------------------------------------------- */

static int run_work(struct work *work, const struct replay_options *options, struct err *err)
{
	const struct cli_selection selection = {&options->common, &options->filter, options->all};
	struct replay_shard shard = {0};
	int result = replay_settings_by(options->compare, &work->settings.by, err);

	work->settings.repeat = options->repeat;
	work->settings.normalisers = normalise_defaults();
	if (result == 0 && options->normalise)
		result = normalise_parse(options->normalise, &work->settings.normalisers, err);
	if (result == 0)
		result = report_open(&options->reports, "sallyport replay", &work->report, err);
	if (result == 0)
		result = cli_select(work->store, &selection, add_listed, work, err);
	if (result == 0 && options->merge.count > 0)
		return merge_all(work, options, err);
	if (result == 0)
		result = replay_shard_choose(options->shard, &shard, err);
	if (result < 0)
		return result;
	keep_shard(work, &shard);
	result = cli_catch_interrupts("sallyport: interrupted: --resume goes on from here\n", err);
	if (result == 0)
		result = cli_audit_read(work->config, STORE_AUDIT_REPLAY, (int64_t)work->count, err);
	if (result == 0 && work->count + (size_t)shard.count > 0)
		result = open_runners(work, err);
	if (result == 0 && *work->key)
		result = open_results(work, options, &shard, err);
	return result == 0 ? replay_all(work, options, err) : result;
}

static int replay_run(void *arg, struct err *err)
{
	struct replay_options *options = arg;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	struct work work = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
	int result = replay_bless_check(&options->bless, err);

	if (result == 0)
		result = replay_normalisers_load(&options->normalisers, err);
	if (result == 0 && options->bless.on && options->merge.count > 0)
		result = err_set(err, ERR_INVALID, "--merge runs nothing, so there is nothing to bless");
	if (result == 0)
		result = cli_open_store(&options->common, options->bless.on ? STORE_WRITE : STORE_READ, &config, &store,
					err);
	if (result == 0 && options->runners.list.count > 0)
		return replay_runners_run(&options->runners, &config, options->common.json, err);
	if (result < 0)
		return result;
	work.bless = options->bless.on ? &options->bless : NULL;
	work.config = &config;
	work.store = store;
	work.settings.secrets = &work.secrets;
	result = replay_settings_secrets(&options->secrets, &work.secrets, err);
	if (result == 0)
		result = run_work(&work, options, err);
	for (size_t i = 0; work.done && i < work.count; i++)
		free(work.done[i].report);
	job_secrets_clear(&work.secrets);
	free(work.items);
	free(work.done);
	free(work.ready);
	jail_client_free(work.client);
	store_results_close(work.results);
	report_free(work.report);
	normalise_file_forget();
	return result;
}

const struct cli_command cmd_replay = {
	.name = "replay",
	.summary = "Runs recorded executions again and says what differs",
	.arguments = "[ID]…",
	.help = "Verdict, exit code, signal, both streams and the files made are compared. Of runs that were ended\n"
		"for their time, memory or output, the verdict and the common beginning of the streams are. What "
		"differs\n"
		"from run to run (addresses, process ids, times …) is taken out of output that differs, and the "
		"report\n"
		"says so. Not replayable are runs that were cancelled, interrupted or given secrets that --secret "
		"does\n"
		"not name (they are never stored). Nothing is recorded in the database, but for --bless; --json "
		"prints\n"
		"one object a line and the sums last.\n\n"
		"Examples:\n"
		"  sallyport replay 019bf2\n"
		"  sallyport replay --all -j 2\n"
		"  sallyport replay --language python --since 2d --quiet\n"
		"  sallyport replay --all --runner python=/usr/bin/pypy3\n"
		"  API_KEY=... sallyport replay --secret API_KEY 019bf2\n"
		"  sallyport replay 019bf2 --bless --reason \"the message names the file now\"\n\n"
		"Exit codes: 0 identical; 1 something differs or is flaky; 2 the command line is wrong; 3 the sandbox "
		"or "
		"the store\n"
		"failed; 5 incomplete: interrupted, or a shard is missing.\n",
	.groups = replay_groups,
	.size = sizeof(struct replay_options),
	.max_args = SIZE_MAX,
	.run = replay_run,
};
