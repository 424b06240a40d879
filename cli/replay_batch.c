/*
 * replay_batch.c - the threads of a replay, and what is printed of their results: see replay_batch.h.
 *
 * So many threads as --jobs says work on the list, each with a connection to the jailer (or a private jailer) of its
 * own; the main thread takes the reports in the list's order as they become complete. The threads share the index of
 * the next execution and the finished results that wait for their turn. With --json a report is printed at its turn;
 * for people the matrix comes first, so until then reports wait in a file without a name, not in memory.
 */
#include "replay_batch.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/upstream/upstream.h"

void replay_batch_init(struct replay_batch *batch)
{
	*batch = (struct replay_batch){.lock = PTHREAD_MUTEX_INITIALIZER, .old.lock = PTHREAD_MUTEX_INITIALIZER};
	pthread_cond_init(&batch->more, NULL);
	pthread_cond_init(&batch->room, NULL);
}

void replay_batch_clear(struct replay_batch *batch)
{
	for (size_t i = 0; i < REPLAY_AHEAD_MAX; i++)
		free(batch->ahead[i].result.report);
	job_secrets_clear(&batch->secrets);
	free(batch->items);
	jail_client_free(batch->client);
	jail_client_free(batch->old.client);
	upstream_close(batch->upstream);
	json_put_pointer(&batch->runners);
	json_put_pointer(&batch->settings.old_runners);
	store_results_close(batch->results);
	report_free(batch->report);
	if (batch->reports)
		fclose(batch->reports);
	pthread_cond_destroy(&batch->more);
	pthread_cond_destroy(&batch->room);
}

/* -------- the threads --------------------------------------------------------------------------------- */

static void do_one(struct replay_batch *batch, struct replay_runner *runner, const struct replay_item *item,
		   struct store_result *ret)
{
	char key[SHA256_HEX_SIZE];

	if (item->done && replay_stored(batch, item, ret, NULL) == 1)
		return;
	replay_one(runner, item->id, ret);
	replay_settings_item_key(batch->key, item->generation, key);
	if (batch->results && store_results_put(batch->results, item->id, key, ret, NULL) < 0)
		return; /* it is printed all the same, and will be run again by --resume */
}

/* With the lock. The next one's index, when there is room for its result; false: there is none. */
static bool take_next(struct replay_batch *batch, size_t *ret)
{
	while (!batch->stop && batch->next < batch->count && batch->next - batch->taken >= REPLAY_AHEAD_MAX)
		pthread_cond_wait(&batch->room, &batch->lock);
	if (batch->stop || batch->next >= batch->count)
		return false;
	*ret = batch->next++;
	return true;
}

/* With the lock. */
static void put_result(struct replay_batch *batch, size_t i, const struct store_result *result)
{
	batch->ahead[i % REPLAY_AHEAD_MAX].result = *result;
	batch->ahead[i % REPLAY_AHEAD_MAX].ready = true;
	pthread_cond_signal(&batch->more);
}

static void *worker(void *arg)
{
	struct replay_batch *batch = arg;
	struct replay_runner runner = {.config = batch->config,
				       .store = batch->store,
				       .settings = &batch->settings,
				       .runners = batch->runners,
				       .bless = batch->bless,
				       .old = batch->old.client ? &batch->old : NULL,
				       .upstream = batch->upstream};
	size_t i;

	pthread_mutex_lock(&batch->lock);
	runner.client = steal(&batch->client);
	while (take_next(batch, &i)) {
		struct store_result result = {0};

		pthread_mutex_unlock(&batch->lock);
		do_one(batch, &runner, &batch->items[i], &result);
		pthread_mutex_lock(&batch->lock);
		put_result(batch, i, &result);
	}
	pthread_mutex_unlock(&batch->lock);
	jail_client_free(runner.client);
	return NULL;
}

/* -------- what is printed ----------------------------------------------------------------------------- */

static bool as_recorded(const struct store_result *result)
{
	enum replay_class class = replay_class_from(result->class);

	return class <= REPLAY_EQUAL || class == REPLAY_NEW || class == REPLAY_NOT_REPLAYABLE;
}

static int print(struct replay_batch *batch, const struct store_result *result, struct cli_progress *progress,
		 struct err *err)
{
	const struct replay_options *options = batch->options;

	replay_report_add(batch->report, batch->store, result);
	if (options->quiet && streq(result->class, replay_class_text(REPLAY_IDENTICAL)))
		return 0;
	if (options->common.json) {
		cli_progress_hide(progress);
		puts(result->report);
		fflush(stdout);
		return 0;
	}
	return fprintf(batch->reports, "%s\n", result->report) < 0 ? err_errno(err, "keeping a report") : 0;
}

/* Waits for the one whose turn it is; the caller frees its report. */
static struct store_result take_one(struct replay_batch *batch, size_t i)
{
	struct store_result result;

	pthread_mutex_lock(&batch->lock);
	while (!batch->ahead[i % REPLAY_AHEAD_MAX].ready)
		pthread_cond_wait(&batch->more, &batch->lock);
	result = batch->ahead[i % REPLAY_AHEAD_MAX].result;
	batch->ahead[i % REPLAY_AHEAD_MAX].result.report = NULL;
	batch->ahead[i % REPLAY_AHEAD_MAX].ready = false;
	batch->taken = i + 1;
	batch->stop = batch->stop || (batch->options->fail_fast && !as_recorded(&result));
	pthread_cond_broadcast(&batch->room);
	pthread_mutex_unlock(&batch->lock);
	return result;
}

static void stop(struct replay_batch *batch)
{
	pthread_mutex_lock(&batch->lock);
	batch->stop = true;
	pthread_cond_broadcast(&batch->room);
	pthread_mutex_unlock(&batch->lock);
}

/* Each in its turn; `produce` NULL: threads do. */
static int take_all(struct replay_batch *batch,
		    int (*produce)(void *arg, const struct replay_item *item, struct store_result *ret,
				   struct err *err),
		    void *arg, struct replay_summary *summary, struct err *err)
{
	struct cli_progress progress;
	int result = 0;

	cli_progress_start(&progress, "replay", (int64_t)batch->count);
	for (size_t i = 0; i < batch->count && !batch->stop && result == 0; i++) {
		struct store_result one = {0};

		if (produce)
			result = produce(arg, &batch->items[i], &one, err);
		if (produce && result == 0)
			put_result(batch, i, &one);
		if (result < 0)
			break;
		one = take_one(batch, i);
		replay_summary_add(summary, &one);
		result = print(batch, &one, &progress, err);
		free(one.report);
		cli_progress_step(&progress, (int64_t)i + 1);
	}
	cli_progress_hide(&progress);
	if (result < 0)
		stop(batch);
	return result;
}

static int put_reports(struct replay_batch *batch, struct err *err)
{
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	if (fflush(batch->reports) != 0 || fseek(batch->reports, 0, SEEK_SET) < 0)
		return err_errno(err, "keeping the reports");
	while ((length = getline(&line, &size, batch->reports)) > 0) {
		line[length - 1] = '\0';
		replay_print(stdout, line);
	}
	free(line);
	return 0;
}

/* Printed, and the reports are complete. */
static int put_summary(struct replay_batch *batch, struct replay_summary *summary, struct err *err)
{
	auto_json struct json_object *object = replay_summary_json(summary);
	auto_buf struct buf line = {0};
	int result = 0;

	if (batch->options->common.json) {
		cli_print_json(stdout, object, false);
	} else {
		replay_summary_matrix(stdout, summary);
		result = put_reports(batch, err);
		replay_summary_print(stdout, summary);
	}
	if (batch->taken < batch->count)
		fprintf(stderr, "sallyport: ended with the first that differs: %zu were not looked at\n",
			batch->count - batch->taken);
	buf_init(&line, SIZE_MAX / 2);
	json_print(&line, object);
	return result < 0 ? result : report_finish(batch->report, line.data, summary->seconds, err);
}

static int begin(struct replay_batch *batch, struct err *err)
{
	batch->reports = batch->options->common.json ? NULL : tmpfile();
	return batch->reports || batch->options->common.json
		       ? 0
		       : err_errno(err, "making a file for the reports (TMPDIR has no room?)");
}

int replay_batch_run(struct replay_batch *batch, struct err *err)
{
	const struct replay_options *options = batch->options;
	int64_t jobs = options->jobs ? options->jobs : MIN(sysconf(_SC_NPROCESSORS_ONLN), REPLAY_JOBS_MAX);
	int64_t began = clock_monotonic_us();
	struct replay_summary summary = {.bless = options->bless.on};
	size_t n_threads = MIN((size_t)jobs, batch->count), started = 0;
	pthread_t threads[REPLAY_JOBS_MAX];
	int result = begin(batch, err);

	while (result == 0 && started < n_threads && pthread_create(&threads[started], NULL, worker, batch) == 0)
		started++;
	if (result == 0 && started == 0 && n_threads > 0)
		result = err_set(err, ERR_SYSTEM, "cannot start a thread");
	if (result == 0)
		result = take_all(batch, NULL, NULL, &summary, err);
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	summary.seconds = (double)(clock_monotonic_us() - began) / 1e6;
	if (result == 0)
		result = put_summary(batch, &summary, err);
	if (result < 0)
		return result;
	return report_kept(batch->results, batch->results_wanted, replay_summary_exit(&summary));
}

/* -------- what the shards found ----------------------------------------------------------------------- */

static int result_of_shards(void *arg, const struct replay_item *item, struct store_result *ret, struct err *err)
{
	return replay_shards_result(arg, item->id, item->generation, ret, err);
}

/* As if it had been run here. */
int replay_batch_merge(struct replay_batch *batch, struct err *err)
{
	const struct bind_strings *files = &batch->options->merge;
	auto_shards struct replay_shards shards = {0};
	struct replay_summary summary = {0};
	int64_t began = clock_monotonic_us();
	int result = replay_shards_open(files->items, files->count, &shards, err);

	if (result == 0 && shards.count == 0)
		return CLI_INCOMPLETE;
	if (result == 0)
		result = begin(batch, err);
	if (result == 0)
		result = take_all(batch, result_of_shards, &shards, &summary, err);
	summary.seconds = (double)(clock_monotonic_us() - began) / 1e6;
	if (result == 0)
		result = put_summary(batch, &summary, err);
	if (result < 0)
		return result;
	return replay_shards_missing(&shards) > 0 ? CLI_INCOMPLETE : replay_summary_exit(&summary);
}
