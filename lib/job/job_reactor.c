/*
 * job_reactor.c - the one thread that owns the connection to the jailer and decides which job runs next.
 *
 * It sleeps in poll() on two descriptors, the jailer's and an eventfd on which everybody else rings, and wakes by the
 * clock only while the jailer is away, something runs in it (it is asked for signs of life) or the engine stops. Each
 * turn it works off the inbox, lets the jail client read and write, passes on cancellations, and looks through the
 * waiting jobs in the order of their arrival: one starts when no other of its conversation runs, when no earlier one of
 * it waits, when it does not repeat an earlier one that is not over (the same idempotency key: that one's result will
 * be its own), and when a jail is free.
 *
 * When the jailer is lost every job in a jail ends as XX at once. Then the reactor connects again, at growing
 * intervals; jobs that wait are refused with a message after JOB_JAILER_WAIT_US. A private jailer is simply started
 * again. A service that is not there yet when the engine starts is one that was lost.
 */
#include "jail/client/client_runners.h"
#include "job_internal.h"
#include "job_sandbox.h"
#include "lib/base/metrics.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define RETRY_FIRST_US 20000
#define RETRY_MOST_US  1000000

/* Takes the list over. `known`: with the versions and libraries of all. */
static void take_runners(struct job_engine *engine, struct json_object *list, bool known)
{
	auto_json struct json_object *runners = jail_runners_offered(list);

	pthread_mutex_lock(&engine->lock);
	if (!engine->learned && !json_object_equal(engine->runners, runners)) {
		struct json_object *old = engine->runners;

		engine->runners = steal(&runners);
		runners = old;
		job_metrics_runners(engine->runners);
		engine->generation++;
	}
	engine->runners_known = known;
	pthread_cond_broadcast(&engine->runners_wake);
	pthread_mutex_unlock(&engine->lock);
}

static void on_runners_known(void *arg, struct json_object *list)
{
	take_runners(arg, list, true);
}

/* Takes the client over. Runs go on at once: the jailer may be asking its runners for versions, each of which a run of
 * that runner waits for, and no other run. */
static int adopt(struct job_engine *engine, struct jail_client *client, struct err *err)
{
	auto_json struct json_object *info = NULL;
	struct json_object *runners = NULL, *old;
	int result;

	if ((result = jail_client_info(client, &info, err)) < 0 ||
	    (result = jail_client_runners_known(client, &runners, err)) < 0) {
		jail_client_free(client);
		return result;
	}
	engine->client = client;
	take_runners(engine, runners, false);
	pthread_mutex_lock(&engine->lock);
	old = engine->info;
	engine->info = info;
	info = old;
	metrics_set(METRIC_JAILER, NULL, 1);
	engine->connected = true;
	engine->generation++;
	pthread_mutex_unlock(&engine->lock);
	engine->retry_delay_us = RETRY_FIRST_US;
	/* Where it cannot be asked, the connection is lost, which the next dispatch finds. */
	jail_client_runners_follow(client, on_runners_known, engine, NULL);
	return 0;
}

int job_jailer_begin(struct job_engine *engine, struct err *err)
{
	const char *socket = engine->config->jailer.socket;
	struct err cause = ERR_INIT;
	struct jail_client *client;
	int result = jail_client_dial(engine->config, &client, 1, &cause);

	if (result == 0)
		result = adopt(engine, client, &cause);
	if (result < 0 && !(socket && *socket))
		return err_set(err, cause.code, "%s", cause.text);
	if (result < 0) {
		log_event(LOG_WARN, "jailer away", "cause", cause.text, NULL);
		engine->away_since_us = clock_monotonic_us();
		engine->retry_delay_us = RETRY_FIRST_US;
	}
	return 0;
}

/* -------- the active jobs ----------------------------------------------------------------------------- */

/* Calls `each` on every active job; jobs may come to their end meanwhile. */
static void each_active(struct job_engine *engine, void (*each)(struct job *job, const char *why), const char *why)
{
	size_t count = 0;

	pthread_mutex_lock(&engine->lock);
	auto_free struct job **jobs = xcalloc(engine->n_turns + 1, sizeof(*jobs));

	for (struct job_turn *turn = engine->turns; turn; turn = turn->next)
		if (turn->job && job_turn_active(turn)) {
			job_reference(turn->job);
			jobs[count++] = turn->job;
		}
	pthread_mutex_unlock(&engine->lock);
	for (size_t i = 0; i < count; i++) {
		each(jobs[i], why);
		job_release(jobs[i]);
	}
}

static void reap(struct job *job, const char *why)
{
	(void)why;
	if (job->engine->client)
		job->turn.advance(&job->turn, JOB_ROOM);
	if (job->engine->client)
		job_tools_tell(job);
	job_jail_reap(job);
}

static void pass_cancel(struct job *job, const char *why)
{
	(void)why;
	if (atomic_load(&job->turn.cancelled) && job->run.jail && job->run.started)
		jail_cancel(job->run.jail);
}

static void cancel(struct job *job, const char *why)
{
	atomic_store(&job->turn.cancelled, true);
	pass_cancel(job, why);
}

/* -------- the jailer ---------------------------------------------------------------------------------- */

static void jailer_lost(struct job_engine *engine, const char *why)
{
	auto_free char *text = xasprintf("the jailer was lost while the program was running: %s", why);

	log_event(LOG_ERROR, "jailer lost", "cause", why, NULL);
	pthread_mutex_lock(&engine->lock);
	metrics_set(METRIC_JAILER, NULL, 0);
	engine->connected = false;
	engine->jails = (struct jail_census){.count = {0}};
	engine->generation++;
	engine->away_since_us = clock_monotonic_us();
	pthread_cond_broadcast(&engine->runners_wake);
	pthread_mutex_unlock(&engine->lock);
	job_sandboxes_lost(engine);
	each_active(engine, job_jail_lost, text);
	jail_client_free(engine->client);
	engine->client = NULL;
	engine->retry_us = clock_monotonic_us() + RETRY_FIRST_US;
}

/* 1: the candidate lives; 0: it is not known yet. */
static int candidate_lives(struct job_engine *engine, struct err *err)
{
	int result = jail_client_dispatch(engine->candidate, err);

	if (result < 0)
		return result;
	if (jail_client_pinged_us(engine->candidate) == 0)
		return 1;
	if (clock_monotonic_us() - jail_client_pinged_us(engine->candidate) < JOB_SILENT_US)
		return 0;
	jail_client_kill(engine->candidate);
	return err_set(err, ERR_UNAVAILABLE, "it takes connections but does not answer: it hangs, or was stopped");
}

/* A connection is the kernel's word; before anything is asked that has to be waited for, the jailer must have given a
 * sign of life. */
static void jailer_retry(struct job_engine *engine)
{
	struct err err = ERR_INIT;
	int result = 0;

	if (engine->client || (!engine->candidate && clock_monotonic_us() < engine->retry_us))
		return;
	if (!engine->candidate)
		result = jail_client_dial(engine->config, &engine->candidate, 1, &err);
	else
		result = candidate_lives(engine, &err);
	if (result > 0) {
		result = adopt(engine, steal(&engine->candidate), &err);
		if (result == 0)
			log_event(LOG_INFO, "jailer back", NULL);
	} else if (result == 0) {
		result = jail_client_ping(engine->candidate, &err);
	}
	if (result < 0) {
		const bool growing = engine->retry_delay_us < RETRY_MOST_US;

		jail_client_free(steal(&engine->candidate));
		engine->retry_delay_us = MIN(engine->retry_delay_us * 2, RETRY_MOST_US);
		if (growing && engine->retry_delay_us == RETRY_MOST_US)
			log_event(LOG_WARN, "jailer away", "cause", err.text, NULL);
		engine->retry_us = clock_monotonic_us() + engine->retry_delay_us;
	}
}

static void jailer_dispatch(struct job_engine *engine)
{
	struct err err = ERR_INIT;

	if (engine->client && engine->storing < engine->backlog && jail_client_dispatch(engine->client, &err) < 0)
		jailer_lost(engine, err.text);
}

/* Somebody wants figures. */
static void jailer_ask(struct job_engine *engine)
{
	struct err err = ERR_INIT;

	pthread_mutex_lock(&engine->lock);
	const bool asks = engine->asks;

	engine->asks = false;
	if (engine->client)
		engine->jails = *jail_client_census(engine->client);
	pthread_mutex_unlock(&engine->lock);
	if (asks && engine->client && jail_client_ping(engine->client, &err) < 0)
		jailer_lost(engine, err.text);
}

/* A jailer that hangs keeps its connection. It is watched only while something runs: an idle process must not wake. */
static void jailer_watch(struct job_engine *engine)
{
	const int64_t now = clock_monotonic_us();
	struct err err = ERR_INIT;

	if (!engine->client || engine->running == 0 ||
	    engine->storing >= engine->backlog) /* then nobody reads its answer */
		return;
	int64_t since = jail_client_pinged_us(engine->client);

	if (since && now - since >= JOB_SILENT_US) {
		jail_client_kill(engine->client);
		jailer_lost(engine, "it has not answered for 15 s: it hangs, or was stopped");
	} else if (!since && now >= engine->ping_us) {
		engine->ping_us = now + JOB_PING_US;
		if (jail_client_ping(engine->client, &err) < 0)
			jailer_lost(engine, err.text);
	}
}

/* -------- whose turn it is ---------------------------------------------------------------------------- */

/* Is the call that this one repeats still on its way? One that repeats it with other arguments does not wait: it is
 * refused. */
static bool repeats(const struct job_engine *engine, const struct job_turn *turn)
{
	if (!turn->key)
		return false;
	for (const struct job_turn *first = engine->turns; first != turn; first = first->next)
		if (first->key && streq(first->key, turn->key) && streq(first->key_hash, turn->key_hash) &&
		    streq(first->owner, turn->owner))
			return true;
	return false;
}

enum readiness { NOT_YET, START, TURN_AWAY };

/* Of a turn that has not begun. */
static enum readiness readiness_of(const struct job_engine *engine, const struct job_turn *turn)
{
	const int64_t patience_us = clock_monotonic_us() - JOB_JAILER_WAIT_US;
	const size_t jails = (size_t)engine->config->jailer.jails;

	if (turn->step == JOB_RECEIVING)
		return NOT_YET;
	if (atomic_load(&turn->cancelled))
		return TURN_AWAY;
	if (turn->job && !engine->connected && engine->away_since_us < patience_us && turn->since_us < patience_us)
		return TURN_AWAY;
	if (turn->queue && (turn->queue->holder || turn->queue->scan == engine->scan)) /* an earlier one waits */
		return NOT_YET;
	if (repeats(engine, turn))
		return NOT_YET;
	if (!turn->job)
		return START;
	if (!engine->connected)
		return NOT_YET;
	return engine->running + job_sandboxes_idle(engine) < jails || job_sandbox_waits(turn->job) ? START : NOT_YET;
}

/* The first turn for which something can be done; NULL: none. One that may start holds its queue from now on. */
static struct job_turn *scan(struct job_engine *engine, enum readiness *ret_readiness)
{
	engine->scan++;
	for (struct job_turn *turn = engine->turns; turn; turn = turn->next) {
		if (job_turn_active(turn))
			continue;
		*ret_readiness = readiness_of(engine, turn);
		if (*ret_readiness == START && turn->queue)
			turn->queue->holder = turn;
		if (*ret_readiness != NOT_YET)
			return turn;
		if (turn->queue)
			turn->queue->scan = engine->scan;
	}
	return NULL;
}

static void schedule(struct job_engine *engine)
{
	enum readiness readiness = NOT_YET;
	struct job_turn *turn;

	for (;;) {
		pthread_mutex_lock(&engine->lock);
		turn = scan(engine, &readiness);
		pthread_mutex_unlock(&engine->lock);
		if (!turn)
			return;
		if (readiness == START) {
			turn->advance(turn, JOB_TURN);
			continue;
		}
		if (atomic_load(&turn->cancelled))
			err_set(&turn->error, ERR_CANCELLED, "cancelled before it was started");
		else
			err_set(&turn->error, ERR_UNAVAILABLE, JOB_JAILER_AWAY);
		turn->advance(turn, JOB_TURNED_AWAY);
	}
}

/* -------- a turn -------------------------------------------------------------------------------------- */

static void take_inbox(struct job_engine *engine)
{
	struct job_work_item *work_item;
	bool cancels;

	for (;;) {
		pthread_mutex_lock(&engine->lock);
		work_item = job_work_items_take(&engine->inbox);
		pthread_mutex_unlock(&engine->lock);
		if (!work_item)
			break;
		work_item->back(work_item);
	}
	pthread_mutex_lock(&engine->lock);
	cancels = engine->cancels;
	engine->cancels = false;
	pthread_mutex_unlock(&engine->lock);
	if (cancels)
		each_active(engine, pass_cancel, NULL);
}

static void stop_enter(struct job_engine *engine, enum stop_phase phase, int64_t until_us)
{
	engine->stop_phase = phase;
	engine->stop_us = until_us;
}

/* A phase of the stop has begun, or its time is over: drain, then cancel what is left, then give the jailer up. */
static void stop_go_on(struct job_engine *engine)
{
	const int64_t now = clock_monotonic_us();

	switch (engine->stop_phase) {
	case STOP_NOT:
		stop_enter(engine, STOP_DRAINING, now + (int64_t)JOB_DRAIN_SECONDS * 1000000);
		break;
	case STOP_DRAINING:
		each_active(engine, cancel, NULL);
		stop_enter(engine, STOP_CANCELLING, now + JOB_CANCEL_GRACE_US);
		break;
	case STOP_CANCELLING:
		stop_enter(engine, STOP_GIVEN_UP, INT64_MAX);
		if (engine->client)
			jailer_lost(engine, "it did not answer to the cancelling of its runs");
		break;
	case STOP_GIVEN_UP:
		break;
	}
}

/* True once nothing is left. */
static bool stopping_over(struct job_engine *engine)
{
	bool stopping, empty;

	pthread_mutex_lock(&engine->lock);
	stopping = engine->stopping;
	empty = !engine->turns && engine->removing == 0;
	if (engine->stop_phase >= STOP_CANCELLING)
		for (struct job_turn *turn = engine->turns; turn; turn = turn->next)
			if (turn->step == JOB_WAITING)
				atomic_store(&turn->cancelled, true);
	pthread_mutex_unlock(&engine->lock);
	if (!stopping || empty)
		return stopping;
	if (engine->stop_phase == STOP_NOT || clock_monotonic_us() >= engine->stop_us)
		stop_go_on(engine);
	return false;
}

/* Does the reactor connect again when the jailer is away? */
static bool retries(const struct job_engine *engine)
{
	return engine->stop_phase < STOP_CANCELLING;
}

/* When the connection to the jailer has to be looked at without a message: INT64_MAX: never. */
static int64_t jailer_deadline(const struct job_engine *engine, bool reading)
{
	if (engine->client) {
		if (!reading || engine->running == 0)
			return INT64_MAX;
		if (jail_client_pinged_us(engine->client))
			return jail_client_pinged_us(engine->client) + JOB_SILENT_US;
		return engine->ping_us;
	}
	if (engine->candidate)
		return jail_client_pinged_us(engine->candidate) + JOB_SILENT_US;
	return retries(engine) ? engine->retry_us : INT64_MAX;
}

static void await(struct job_engine *engine)
{
	const bool reading = engine->client && engine->storing < engine->backlog;
	const struct jail_client *heard = reading ? engine->client : engine->client ? NULL : engine->candidate;
	struct pollfd fds[2] = {{.fd = engine->wake_fd, .events = POLLIN}, {.fd = -1}};
	int64_t now = clock_monotonic_us(), until = jailer_deadline(engine, reading);
	uint64_t count;

	if (heard) {
		fds[1].fd = jail_client_fd(heard);
		fds[1].events = jail_client_poll_events(heard);
	}
	until = MIN(until, job_sandboxes_deadline(engine));
	if (engine->stop_phase != STOP_NOT)
		until = MIN(until, engine->stop_us);
	poll(fds, 2, until == INT64_MAX ? -1 : (int)((MAX(until - now, 0) + 999) / 1000));
	if ((fds[0].revents & POLLIN) && read(engine->wake_fd, &count, sizeof(count)) < 0)
		return; /* somebody else's ring: the inbox is looked at in any case */
}

void *job_reactor(void *arg)
{
	struct job_engine *engine = arg;

	while (!stopping_over(engine)) {
		await(engine);
		take_inbox(engine);
		jailer_dispatch(engine);
		jailer_ask(engine);
		jailer_watch(engine);
		if (retries(engine))
			jailer_retry(engine);
		job_sandboxes_expire(engine);
		schedule(engine);
		jailer_dispatch(engine); /* what was queued goes out at once */
		each_active(engine, reap, NULL);
	}
	return NULL;
}
