/*
 * cmd_replay.c - `sallyport replay`: runs recorded executions again on their stored inputs and says what comes out
 * differently.
 *
 * The database is only read. Which executions: by id, or by the filters of `log`, or all. With -j N so many threads
 * work on the list, each with a connection to the jailer (or a private jailer) of its own; the main thread prints the
 * reports in the list's order as they become complete. A report is complete in memory before it is printed, so the
 * threads share nothing but the index of the next execution and the finished reports.
 *
 * A lost jailer costs the run under way (REPLAY_FAILED); the thread connects again for the next one.
 */
#include <pthread.h>
#include <string.h>

#include "lib/base/util.h"
#include "replay.h"

#define JOBS_MAX 64

struct replay_options {
	struct cli_common common;
	struct cli_filter filter;
	bool all, quiet;
	int64_t jobs;
};

static const struct cli_option replay_options_table[] = {
	{.name = "all",
	 .letter = 'a',
	 .type = CLI_FLAG,
	 .offset = offsetof(struct replay_options, all),
	 .help = "everything that was recorded"},
	{.name = "jobs",
	 .letter = 'j',
	 .type = CLI_INT,
	 .offset = offsetof(struct replay_options, jobs),
	 .min = 1,
	 .max = JOBS_MAX,
	 .value = "N",
	 .help = "so many at a time (default 1)"},
	{.name = "quiet",
	 .letter = 'q',
	 .type = CLI_FLAG,
	 .offset = offsetof(struct replay_options, quiet),
	 .help = "leave out what is identical"},
	{0},
};
static const struct cli_group replay_groups[] = {
	{replay_options_table, 0},
	{cli_filter_options, offsetof(struct replay_options, filter)},
	{0},
};

struct item {
	char id[ID_SIZE];
	struct store_execution *execution; /* NULL: not read yet */
};

struct work {
	const struct config *config;
	struct store *store;
	struct item *items;
	size_t count, size;

	pthread_mutex_t lock; /* for the rest */
	pthread_cond_t more;
	size_t next;
	struct replay_report *reports; /* by index */
	bool *ready;
};

/* -------- which --------------------------------------------------------------------------------------- */

static struct item *add_item(struct work *work, const char *id)
{
	struct item *item;

	if (work->count == work->size) {
		work->size = work->size ? 2 * work->size : 64;
		work->items = xrealloc(work->items, work->size, sizeof(*work->items));
	}
	item = &work->items[work->count++];
	*item = (struct item){0};
	snprintf(item->id, sizeof(item->id), "%s", id);
	return item;
}

/* Only its id is kept: a list can be longer than memory holds code and output. */
static int add_listed(void *arg, const struct store_execution *execution)
{
	add_item(arg, execution->id);
	return 0;
}

static int choose(struct work *work, const struct replay_options *options, struct err *err)
{
	const bool filtered = !cli_filter_empty(&options->filter);
	struct store_filter filter;

	if ((options->common.n_args > 0) + options->all + filtered == 0)
		return err_set(err, ERR_INVALID,
			       "which executions? Give ids, filters, or --all (see sallyport replay --help)");
	if (options->common.n_args > 0 && (options->all || filtered))
		return err_set(err, ERR_INVALID, "give either ids, or --all and filters");
	for (size_t i = 0; i < options->common.n_args; i++) {
		struct store_execution *execution = xcalloc(1, sizeof(*execution));
		int result = store_execution_find(work->store, options->common.args[i], execution, err);

		if (result < 0) {
			free(execution);
			return result;
		}
		add_item(work, execution->id)->execution = execution;
	}
	if (options->common.n_args > 0)
		return 0;
	cli_filter_to_store(&options->filter, &filter);
	return store_execution_list(work->store, &filter, add_listed, work, err);
}

/* -------- one of them --------------------------------------------------------------------------------- */

struct comparison {
	struct store *store;
	struct replay_report *report; /* about this execution; a sandbox's earlier runs come before it */
	int64_t reached;              /* the last run's number */
	bool done;
};

/* Every run: the one that is asked for, and those of its sandbox before it. */
static int compare_run(void *arg, const struct store_execution *execution, const struct job_replay *now,
		       struct err *err)
{
	struct comparison *comparison = arg;
	struct replay_report *report = comparison->report, one = {0};
	auto_free char *why = replay_incomparable(execution);
	int result = 0;

	comparison->done = streq(execution->id, report->id);
	comparison->reached = execution->sandbox_seq;
	if (why && !comparison->done) {
		report->reason = xasprintf("run %lld of its sandbox cannot be repeated: %s",
					   (long long)execution->sandbox_seq, why);
		result = err_set(err, ERR_CANCELLED, "not comparable");
	} else if (now->jail.verdict == JAIL_XX) {
		result = err_set(err, ERR_SYSTEM, "the sandbox failed: %s", now->jail.message);
	} else if (comparison->done) {
		result = replay_compare(comparison->store, execution, now, report, err);
	} else {
		result = replay_compare(comparison->store, execution, now, &one, err);
		replay_report_earlier(report, &one, execution->sandbox_seq);
	}
	return result;
}

static int compare_execution(struct work *work, struct jail_client **client, const struct store_execution *execution,
			     struct replay_report *report, struct err *err)
{
	struct comparison comparison = {.store = work->store, .report = report};
	int result = 0;

	if (!*client)
		result = cli_open_jailer(work->config, client, err);
	if (result < 0)
		return result;
	result = job_replay(work->store, *client, execution, compare_run, &comparison, err);
	if (result == 0 && !comparison.done)
		replay_report_unreached(report, comparison.reached);
	if (result == 0 && report->n_differences > 0)
		report->outcome = REPLAY_DIFFERENT;
	if (report->reason) {
		report->outcome = REPLAY_INCOMPARABLE;
		return 0;
	}
	return result;
}

static void item_clear(struct item *item)
{
	if (item->execution)
		store_execution_clear(item->execution);
	free(steal(&item->execution));
}

static int item_read(struct work *work, struct item *item, struct err *err)
{
	int result;

	if (item->execution)
		return 0;
	item->execution = xcalloc(1, sizeof(*item->execution));
	result = store_execution_find(work->store, item->id, item->execution, err);
	if (result < 0)
		free(steal(&item->execution));
	return result;
}

static void report_on(struct work *work, struct jail_client **client, struct item *item, struct replay_report *report)
{
	struct err err = ERR_INIT;
	int result = item_read(work, item, &err);

	snprintf(report->id, sizeof(report->id), "%s", item->id);
	if (result == 0) {
		snprintf(report->language, sizeof(report->language), "%s", item->execution->language);
		report->reason = replay_incomparable(item->execution);
		report->outcome = report->reason ? REPLAY_INCOMPARABLE : REPLAY_IDENTICAL;
		if (!report->reason)
			result = compare_execution(work, client, item->execution, report, &err);
		if (result < 0) {
			jail_client_free(*client);
			*client = NULL;
		}
	}
	if (result < 0) {
		report->outcome = REPLAY_FAILED;
		report->reason = xstrdup(err.text);
	}
	item_clear(item);
}

static void *worker(void *arg)
{
	struct work *work = arg;
	struct jail_client *client = NULL;

	pthread_mutex_lock(&work->lock);
	while (work->next < work->count) {
		size_t i = work->next++;

		pthread_mutex_unlock(&work->lock);
		report_on(work, &client, &work->items[i], &work->reports[i]);
		pthread_mutex_lock(&work->lock);
		work->ready[i] = true;
		pthread_cond_signal(&work->more);
	}
	pthread_mutex_unlock(&work->lock);
	jail_client_free(client);
	return NULL;
}

/* -------- all of them --------------------------------------------------------------------------------- */

static void print_report(const struct replay_options *options, struct replay_report *report)
{
	if (options->quiet && report->outcome == REPLAY_IDENTICAL)
		return;
	if (options->common.json) {
		auto_json struct json_object *object = replay_report_json(report);

		cli_print_json(stdout, object, false);
	} else {
		replay_report_print(stdout, report);
	}
	fflush(stdout);
}

static void print_reports(struct work *work, const struct replay_options *options, size_t counts[REPLAY_OUTCOMES])
{
	struct cli_progress progress;

	cli_progress_start(&progress, "replay", (int64_t)work->count);
	for (size_t i = 0; i < work->count; i++) {
		pthread_mutex_lock(&work->lock);
		while (!work->ready[i])
			pthread_cond_wait(&work->more, &work->lock);
		pthread_mutex_unlock(&work->lock);
		cli_progress_hide(&progress);
		counts[work->reports[i].outcome]++;
		print_report(options, &work->reports[i]);
		replay_report_clear(&work->reports[i]);
		cli_progress_step(&progress, (int64_t)i + 1);
	}
	cli_progress_hide(&progress);
}

static void print_summary(const struct replay_options *options, const size_t counts[REPLAY_OUTCOMES])
{
	auto_json struct json_object *object = NULL;

	if (!options->common.json) {
		printf("%zu identical, %zu differ, %zu not comparable", counts[REPLAY_IDENTICAL],
		       counts[REPLAY_DIFFERENT], counts[REPLAY_INCOMPARABLE]);
		if (counts[REPLAY_FAILED] > 0)
			printf(", %zu failed", counts[REPLAY_FAILED]);
		putchar('\n');
		return;
	}
	object = json_object_new_object();
	json_add_int(object, "identical", (int64_t)counts[REPLAY_IDENTICAL]);
	json_add_int(object, "different", (int64_t)counts[REPLAY_DIFFERENT]);
	json_add_int(object, "not_comparable", (int64_t)counts[REPLAY_INCOMPARABLE]);
	json_add_int(object, "failed", (int64_t)counts[REPLAY_FAILED]);
	cli_print_json(stdout, object, false);
}

static int replay_all(struct work *work, const struct replay_options *options, struct err *err)
{
	size_t counts[REPLAY_OUTCOMES] = {0}, n_threads = MIN((size_t)MAX(options->jobs, 1), work->count), started = 0;
	pthread_t threads[JOBS_MAX];

	work->reports = xcalloc(work->count + 1, sizeof(*work->reports));
	work->ready = xcalloc(work->count + 1, sizeof(*work->ready));
	while (started < n_threads && pthread_create(&threads[started], NULL, worker, work) == 0)
		started++;
	if (started == 0 && n_threads > 0)
		return err_set(err, ERR_SYSTEM, "cannot start a thread");
	print_reports(work, options, counts);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	print_summary(options, counts);
	if (counts[REPLAY_FAILED] > 0)
		return CLI_FAILED;
	return counts[REPLAY_DIFFERENT] > 0 ? CLI_DIFFERENT : CLI_OK;
}

static int replay_run(void *arg, struct err *err)
{
	const struct replay_options *options = arg;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	struct work work = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
	int result = cli_open_store(&options->common, STORE_READ, &config, &store, err);

	if (result < 0)
		return result;
	work.config = &config;
	work.store = store;
	result = choose(&work, options, err);
	if (result == 0)
		result = replay_all(&work, options, err);
	for (size_t i = 0; i < work.count; i++)
		item_clear(&work.items[i]);
	free(work.items);
	free(work.reports);
	free(work.ready);
	return result;
}

const struct cli_command cmd_replay = {
	.name = "replay",
	.summary = "Runs recorded executions again and says what differs",
	.arguments = "[ID]…",
	.help = "Verdict, exit code, signal, both streams and the files made are compared. Of runs that were ended\n"
		"for their time, memory or output, the verdict and the common beginning of the streams are. Not\n"
		"comparable are runs that were cancelled, interrupted or given secrets (which are never stored).\n"
		"Nothing is recorded; --json prints one object a line and the sums last.\n\n"
		"Examples:\n"
		"  sallyport replay 019bf2\n"
		"  sallyport replay --all -j 2\n"
		"  sallyport replay --language python --since 2d --quiet\n\n"
		"Exit codes: 0 identical; 1 something differs; 2 the command line is wrong; 3 the sandbox or the store "
		"failed.\n",
	.groups = replay_groups,
	.size = sizeof(struct replay_options),
	.max_args = SIZE_MAX,
	.run = replay_run,
};
