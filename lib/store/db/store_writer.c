/*
 * store_writer.c - the writing thread: everything that changes the database goes through here.
 *
 * Callers queue operations. The thread takes what has queued up, opens one transaction for all of it, runs each
 * operation under a savepoint of its own, commits, and only then answers the callers, in their order. While it waits
 * for the disk, the next group queues up: with many writers an fsync is shared by all of them, with one it costs no
 * extra hop of time.
 * A large operation (the beginning of a run in a conversation of thousands of files) has a transaction of its own, and
 * then the thread is the others' for as long as it took: no owner's large runs take more than half of it.
 *
 * How an operation can end:
 *   - its work fails: its savepoint is rolled back, the others go on;
 *   - SQLite gives the whole transaction up (disk full, I/O error) in one operation: all that ran so far in this group
 * fail with that error, the rest gets a transaction of its own;
 *   - the commit fails: all of the group fail. Nobody hears "done" before the commit came back.
 *
 * A run whose end could not be recorded (store_execution_abandon) is kept in a list; while there is one the thread
 * tries again twice a second, and after each group, to end its row as interrupted. What is left when the store closes
 * is found by the next start.
 *
 * Every commit is synced: the connection is at synchronous = FULL from its opening to its end (store_query.c sets it
 * and reads it back). Commits that are not synced next to others that are saved an fsync at a run's beginning; but
 * SQLite applies the pragma when it is prepared and not when it is stepped, so the first synced commits were not, and a
 * disk that fails for moments damaged files that were written in both ways.
 */
#include <errno.h>
#include <time.h>

#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "lib/store/record/store_execution.h"
#include "store_txn.h"

#define STACK_SIZE   (1024 * 1024)
#define PAUSE_MAX_US 50000
#define LARGE_WAIT_US 20000 /* so long a large operation lets others go first */

int64_t store_txn_now(struct store_txn *txn)
{
	txn->store->last_us = MAX(clock_now_us(), txn->store->last_us + 1);
	return txn->store->last_us;
}

static int run(struct store_conn *conn, enum store_sql which, struct err *err)
{
	auto_query struct query q = query_begin(conn, which);

	return query_run(&q, NULL, err);
}

static void run_op(struct store *store, struct store_op *op)
{
	struct store_txn txn = {store, store->writer};

	op->result = run(store->writer, SQL_SAVEPOINT, &op->err);
	if (op->result < 0)
		return;
	op->result = op->work(&txn, op->arg, &op->err);
	if (op->result < 0 && !store_conn_idle(store->writer)) {
		struct err ignored = ERR_INIT;

		run(store->writer, SQL_ROLLBACK_TO, &ignored);
	}
	if (!store_conn_idle(store->writer)) {
		struct err release = ERR_INIT;
		int failed = run(store->writer, SQL_RELEASE, &release);

		if (failed < 0 && op->result == 0) {
			op->result = failed;
			op->err = release;
		}
	}
}

/* Nothing from `first` up to `end` came to be. */
static void fail_all(struct store_op *first, const struct store_op *end, int result, const struct err *err)
{
	for (struct store_op *op = first; op != end; op = op->next) {
		if (op->result < 0)
			continue; /* has an error of its own */
		op->result = result;
		op->err = *err;
	}
}

static int64_t processor_us(void)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

int64_t store_used_us(struct store *store)
{
	return store->used_us;
}

int64_t store_longest_us(struct store *store)
{
	return store->longest_us;
}

/* Works on the beginning of the list; returns what is left of it. */
static struct store_op *run_group(struct store *store, struct store_op *first)
{
	struct store_op *op, *end = first;
	struct err err = ERR_INIT;

	for (int n = 0; end != NULL && n < STORE_BATCH_MAX; n++)
		end = end->next;
	int failed = run(store->writer, SQL_BEGIN_WRITE, &err);
	const int64_t held = clock_monotonic_us(), used = processor_us();

	if (failed < 0) {
		metrics_add(METRIC_STORE_ERRORS, NULL, NULL, 1);
		fail_all(first, end, failed, &err);
		return end;
	}
	for (op = first; op != end; op = op->next) {
		run_op(store, op);
		if (store_conn_idle(store->writer)) {
			metrics_add(METRIC_STORE_ERRORS, NULL, NULL, 1);
			if (op->result == 0)
				op->result = err_set(&op->err, ERR_INTERNAL, "the transaction ended early");
			fail_all(first, op, op->result, &op->err);
			return op->next;
		}
	}
	const int64_t began = clock_monotonic_us();

	failed = run(store->writer, SQL_COMMIT, &err);
	const int64_t ended = clock_monotonic_us();

	metrics_observe(METRIC_COMMIT, NULL, NULL, ended - began);
	metrics_observe(METRIC_HOLD, NULL, NULL, ended - held);
	store->used_us += processor_us() - used;
	store->longest_us = MAX(store->longest_us, processor_us() - used);
	if (failed < 0) {
		struct err ignored = ERR_INIT;

		if (!store_conn_idle(store->writer))
			run(store->writer, SQL_ROLLBACK, &ignored);
		metrics_add(METRIC_STORE_ERRORS, NULL, NULL, 1);
		log_event(LOG_ERROR, "commit failed", "why", err.text, NULL);
		fail_all(first, end, failed, &err);
	}
	return end;
}

static void tell(struct store *store, struct store_op *first, const struct store_op *end)
{
	struct store_op *next;

	for (struct store_op *op = first; op != end; op = next) {
		metrics_add(METRIC_STORE_QUEUE, NULL, NULL, -1);
		next = op->next; /* the operation is its owner's again in a moment */
		if (op->done != NULL) {
			op->done(op->arg, op->result, &op->err);
			free(op);
			continue;
		}
		pthread_mutex_lock(&store->queue_lock);
		op->over = true;
		pthread_cond_signal(&op->wake);
		pthread_mutex_unlock(&store->queue_lock);
	}
}

int store_writer_run(struct store *store, store_work work, void *arg, struct err *err)
{
	struct store_op op = {.work = work, .arg = arg, .err = ERR_INIT};

	run_group(store, &op);
	if (op.result < 0)
		*err = op.err;
	return op.result;
}

void store_execution_abandon(struct store *store, const char *id)
{
	struct store_abandoned *abandoned = xcalloc(1, sizeof(*abandoned));

	snprintf(abandoned->id, sizeof(abandoned->id), "%s", id);
	pthread_mutex_lock(&store->queue_lock);
	abandoned->next = store->abandoned;
	store->abandoned = abandoned;
	pthread_cond_signal(&store->queue_more);
	pthread_mutex_unlock(&store->queue_lock);
}

/* Tries each once; those whose row could not be written either stay in the list. */
static void end_abandoned(struct store *store)
{
	struct store_abandoned *list, *next;

	pthread_mutex_lock(&store->queue_lock);
	list = store->abandoned;
	store->abandoned = NULL;
	pthread_mutex_unlock(&store->queue_lock);
	for (; list != NULL; list = next) {
		struct err err = ERR_INIT;

		next = list->next;
		if (store->abandoned_end(store, list->id, &err) == 0) {
			free(list);
			continue;
		}
		pthread_mutex_lock(&store->queue_lock);
		list->next = store->abandoned;
		store->abandoned = list;
		pthread_mutex_unlock(&store->queue_lock);
	}
}

/* Under the queue's lock, which it gives up meanwhile. */
static void wait_more(struct store *store, int64_t wait_us)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += wait_us / 1000000;
	until.tv_nsec += wait_us % 1000000 * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&store->queue_more, &store->queue_lock, &until);
}

/* For how long the large operations rest yet; INT64_MAX: none waits. When the store closes they rest no more. */
static int64_t large_rest_us(const struct store *store)
{
	if (store->large.first == NULL)
		return INT64_MAX;
	return store->stopping ? 0 : MAX(0, store->large_us - clock_monotonic_us());
}

/* Under the queue's lock. Returns when there is work, when the store closes, or when it is time to try again. */
static void wait_for_work(struct store *store)
{
	const int64_t retry_us = clock_monotonic_us() + STORE_RETRY_MS * 1000;

	while (store->queue.first == NULL && store->idle.first == NULL && !store->stopping) {
		const int64_t rest_us = large_rest_us(store), left_us = retry_us - clock_monotonic_us();
		const int64_t wait_us = store->abandoned == NULL ? rest_us : MIN(rest_us, left_us);

		if (wait_us <= 0)
			return;
		if (wait_us == INT64_MAX)
			pthread_cond_wait(&store->queue_more, &store->queue_lock);
		else
			wait_more(store, wait_us);
	}
}

static struct store_op *take_first(struct store_queue *queue)
{
	struct store_op *op = queue->first;

	queue->first = op->next;
	if (op->next == NULL)
		queue->end = &queue->first;
	op->next = NULL;
	return op;
}

/* Does it wait for longer than others may keep it waiting? */
static bool is_old(const struct store_op *op, int64_t most_us)
{
	return clock_monotonic_us() - op->since_us >= most_us;
}

/* Under the queue's lock: a large one alone, where it is its turn; else all that wait, and one of the idle ones where
 * there are none, or where that one has been idle for long. */
static struct store_op *take_work(struct store *store, bool *large)
{
	const struct store_op *idle = store->idle.first;
	struct store_op *list = store->queue.first;

	/* Two never follow each other while somebody waits. */
	*large = large_rest_us(store) == 0 &&
		 (list == NULL || (!*large && is_old(store->large.first, LARGE_WAIT_US)));
	if (*large)
		return take_first(&store->large);
	if (idle != NULL && (list == NULL || is_old(idle, STORE_IDLE_US)))
		*(list == NULL ? &list : store->queue.end) = take_first(&store->idle);
	store->queue = (struct store_queue){NULL, &store->queue.first};
	return list;
}

static void *writer(void *arg)
{
	struct store *store = arg;
	bool large = false; /* is this one, was the last one? */

	for (;;) {
		pthread_mutex_lock(&store->queue_lock);
		wait_for_work(store);
		struct store_op *list = take_work(store, &large);
		bool leave = list == NULL && store->stopping, abandoned = store->abandoned != NULL;
		const int64_t began_us = clock_monotonic_us();

		pthread_mutex_unlock(&store->queue_lock);
		if (leave)
			return NULL;
		while (list != NULL) {
			struct store_op *rest = run_group(store, list);

			tell(store, list, rest);
			list = rest;
		}
		if (large)
			store->large_us = 2 * clock_monotonic_us() - began_us;
		if (abandoned)
			end_abandoned(store);
	}
}

int store_writer_start(struct store *store,
		       int (*abandoned_end)(struct store *store, const char *id, struct err *err), struct err *err)
{
	pthread_attr_t attr;

	store->abandoned_end = abandoned_end;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	int error = pthread_create(&store->thread, &attr, writer, store);

	pthread_attr_destroy(&attr);
	errno = error;
	if (error != 0)
		return err_errno(err, "starting the writing thread");
	store->writer_started = true;
	return 0;
}

void store_writer_stop(struct store *store)
{
	pthread_mutex_lock(&store->queue_lock);
	store->stopping = true;
	pthread_cond_signal(&store->queue_more);
	pthread_mutex_unlock(&store->queue_lock);
	pthread_join(store->thread, NULL);
	store->writer_started = false;
	while (store->abandoned != NULL) {
		struct store_abandoned *next = store->abandoned->next;

		free(store->abandoned);
		store->abandoned = next;
	}
}

static void enqueue(struct store *store, struct store_queue *queue, struct store_op *op)
{
	op->since_us = clock_monotonic_us();
	metrics_add(METRIC_STORE_QUEUE, NULL, NULL, 1);
	*queue->end = op;
	queue->end = &op->next;
	pthread_cond_signal(&store->queue_more);
}

static int commit(struct store *store, struct store_queue *queue, store_work work, void *arg, struct err *err)
{
	struct store_op op = {.work = work, .arg = arg, .err = ERR_INIT};

	if (!store->writer_started)
		return err_set(err, ERR_DENIED, "the record is open for reading only");
	if (pthread_equal(pthread_self(), store->thread))
		return err_set(err, ERR_INTERNAL, "store_commit on the writing thread would wait for itself");
	pthread_cond_init(&op.wake, NULL);
	pthread_mutex_lock(&store->queue_lock);
	enqueue(store, queue, &op);
	while (!op.over)
		pthread_cond_wait(&op.wake, &store->queue_lock);
	pthread_mutex_unlock(&store->queue_lock);
	pthread_cond_destroy(&op.wake);
	if (op.result < 0 && err != NULL)
		*err = op.err;
	return op.result;
}

int store_commit(struct store *store, store_work work, void *arg, struct err *err)
{
	return commit(store, &store->queue, work, arg, err);
}

void store_hurry(struct store *store)
{
	store->hurries = true;
}

int store_hurried(struct store *store, struct err *err)
{
	return store->hurries ? err_set(err, ERR_UNAVAILABLE, "the record is being closed") : 0;
}

int store_commit_gently(struct store *store, store_work work, void *arg, struct err *err)
{
	const int64_t began = clock_monotonic_us();
	int result = store_hurried(store, err);

	if (result < 0)
		return result;
	result = commit(store, &store->idle, work, arg, err);
	const int64_t pause = MIN(clock_monotonic_us() - began, PAUSE_MAX_US);

	nanosleep(&(struct timespec){.tv_nsec = pause * 1000}, NULL);
	return result;
}

static void commit_async(struct store *store, struct store_queue *queue, store_work work, void *arg,
			 void (*done)(void *arg, int result, const struct err *err))
{
	if (!store->writer_started) {
		struct err err = ERR_INIT;
		int result = err_set(&err, ERR_DENIED, "the record is open for reading only");

		done(arg, result, &err);
		return;
	}
	struct store_op *op = xcalloc(1, sizeof(*op));

	op->work = work;
	op->arg = arg;
	op->done = done;
	pthread_mutex_lock(&store->queue_lock);
	enqueue(store, queue, op);
	pthread_mutex_unlock(&store->queue_lock);
}

void store_commit_async(struct store *store, store_work work, void *arg,
			void (*done)(void *arg, int result, const struct err *err))
{
	commit_async(store, &store->queue, work, arg, done);
}

void store_commit_large(struct store *store, store_work work, void *arg,
			void (*done)(void *arg, int result, const struct err *err))
{
	commit_async(store, &store->large, work, arg, done);
}
