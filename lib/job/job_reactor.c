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
 * intervals; jobs that wait are refused in words after JOB_JAILER_WAIT_US. A private jailer is simply started again. A
 * service that is not there yet when the engine starts is one that was lost.
 */
#include "job_internal.h"
#include "job_sandbox.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define RETRY_FIRST_US 20000
#define RETRY_MOST_US 1000000

static int dial(const struct config *config, struct jail_client **ret, struct err *err)
{
	auto_free char *folder = NULL, *program = NULL;

	if (config->jailer.socket && *config->jailer.socket)
		return jail_client_connect(config->jailer.socket, ret, err);
	if (config->jailer.program && *config->jailer.program) {
		program = xstrdup(config->jailer.program);
	} else {
		folder = config_program_dir();
		program = xasprintf("%s/sallyport-jailer", folder);
	}
	return jail_client_spawn(program, config->path, ret, err);
}

/* Takes the client over. */
static int adopt(struct job_engine *engine, struct jail_client *client, struct err *err)
{
	auto_json struct json_object *info = NULL, *runners = NULL;
	struct json_object *old;
	int result;

	if ((result = jail_client_info(client, &info, err)) < 0 ||
	    (result = jail_client_runners(client, &runners, err)) < 0) {
		jail_client_free(client);
		return result;
	}
	engine->client = client;
	pthread_mutex_lock(&engine->lock);
	old = engine->info;
	engine->info = info;
	info = old;
	old = engine->runners;
	engine->runners = runners;
	runners = old;
	engine->connected = true;
	engine->generation++;
	pthread_mutex_unlock(&engine->lock);
	engine->retry_delay_us = RETRY_FIRST_US;
	return 0;
}

int job_jailer_begin(struct job_engine *engine, struct err *err)
{
	const char *socket = engine->config->jailer.socket;
	struct err cause = ERR_INIT;
	struct jail_client *client;
	int result = dial(engine->config, &client, &cause);

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

static size_t active_jobs(struct job_engine *engine, struct job ***ret)
{
	size_t count = 0, i = 0;

	pthread_mutex_lock(&engine->lock);
	for (struct job *job = engine->jobs; job; job = job->next)
		count += job->stage == JOB_ACTIVE;
	*ret = xcalloc(count + 1, sizeof(**ret));
	for (struct job *job = engine->jobs; job; job = job->next)
		if (job->stage == JOB_ACTIVE) {
			job_reference(job);
			(*ret)[i++] = job;
		}
	pthread_mutex_unlock(&engine->lock);
	return count;
}

/* Calls `each` on every active job; jobs may come to their end meanwhile. */
static void each_active(struct job_engine *engine, void (*each)(struct job *job, const char *why), const char *why)
{
	auto_free struct job **jobs = NULL;
	size_t count = active_jobs(engine, &jobs);

	for (size_t i = 0; i < count; i++) {
		each(jobs[i], why);
		job_release(jobs[i]);
	}
}

static void sweep(struct job *job, const char *why)
{
	(void)why;
	if (job->engine->client)
		job_fill_next(job);
	job_jail_sweep(job);
}

static void pass_cancel(struct job *job, const char *why)
{
	(void)why;
	if (atomic_load(&job->cancelled) && job->jail && job->run_started)
		jail_cancel(job->jail);
}

static void cancel(struct job *job, const char *why)
{
	atomic_store(&job->cancelled, true);
	pass_cancel(job, why);
}

/* Ends a job that has not begun. */
static void turn_away(struct job *job, enum err_code code, const char *text)
{
	err_set(&job->error, code, "%s", text);
	job_over(job);
}

/* -------- the jailer ---------------------------------------------------------------------------------- */

static void jailer_lost(struct job_engine *engine, const char *why)
{
	log_event(LOG_ERROR, "jailer lost", "cause", why, NULL);
	pthread_mutex_lock(&engine->lock);
	engine->connected = false;
	engine->generation++;
	engine->away_since_us = clock_monotonic_us();
	pthread_mutex_unlock(&engine->lock);
	job_sandboxes_lost(engine);
	each_active(engine, job_jail_lost, "the jailer ended while the program was running");
	jail_client_free(engine->client);
	engine->client = NULL;
	engine->retry_us = clock_monotonic_us() + RETRY_FIRST_US;
}

static void retry_later(struct job_engine *engine, const struct err *err)
{
	bool growing = engine->retry_delay_us < RETRY_MOST_US;

	engine->retry_delay_us = MIN(engine->retry_delay_us * 2, RETRY_MOST_US);
	if (growing && engine->retry_delay_us == RETRY_MOST_US)
		log_event(LOG_WARN, "jailer away", "cause", err->text, NULL);
	engine->retry_us = clock_monotonic_us() + engine->retry_delay_us;
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
		result = dial(engine->config, &engine->candidate, &err);
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
		jail_client_free(steal(&engine->candidate));
		retry_later(engine, &err);
	}
}

static void jailer_dispatch(struct job_engine *engine)
{
	struct err err = ERR_INIT;

	if (engine->client && engine->keeping < JOB_KEEP_BACKLOG && jail_client_dispatch(engine->client, &err) < 0)
		jailer_lost(engine, err.text);
}

/* A jailer that hangs keeps its connection. It is watched only while something runs: an idle process must not wake. */
static void jailer_watch(struct job_engine *engine)
{
	const int64_t now = clock_monotonic_us();
	struct err err = ERR_INIT;

	if (!engine->client || engine->running == 0 ||
	    engine->keeping >= JOB_KEEP_BACKLOG) /* then nobody reads its answer */
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

/* Is the call that this one repeats still on its way? Those that repeat it with other arguments are refused without
 * waiting. */
static bool repeats(const struct job_engine *engine, const struct job *job)
{
	const struct job *first = engine->jobs;

	while (job->key && first != job &&
	       !(first->key && streq(first->key, job->key) && streq(first->key_hash, job->key_hash) &&
		 streq(first->record.owner, job->record.owner)))
		first = first->next;
	return job->key && first != job;
}

/* The next job that may start, made active; or one that must be turned away (*ret_away). Under the lock. */
static struct job *pick(struct job_engine *engine, bool *ret_away)
{
	const int64_t patience_us = clock_monotonic_us() - JOB_JAILER_WAIT_US;
	const bool room = engine->connected &&
			  engine->running + job_sandboxes_idle(engine) < (size_t)engine->config->jailer.jails;

	engine->scan++;
	for (struct job *job = engine->jobs; job; job = job->next) {
		bool held =
			(job->order && (job->order->busy || job->order->scan == engine->scan)) || repeats(engine, job);

		if (job->stage == JOB_ACTIVE)
			continue;
		*ret_away = job->stage == JOB_WAITING &&
			    (atomic_load(&job->cancelled) ||
			     (!job->upload && !engine->connected && engine->away_since_us < patience_us &&
			      job->waiting_since_us < patience_us));
		if (*ret_away)
			return job;
		if (job->stage == JOB_RESERVED || held ||
		    !(room || job->upload || (engine->connected && job_sandbox_waits(job)))) {
			if (job->order)
				job->order->scan = engine->scan;
			continue;
		}
		job->stage = JOB_ACTIVE;
		if (job->order)
			job->order->busy = true;
		return job;
	}
	return NULL;
}

static void schedule(struct job_engine *engine)
{
	for (;;) {
		bool away = false;
		struct job *job;

		pthread_mutex_lock(&engine->lock);
		job = pick(engine, &away);
		pthread_mutex_unlock(&engine->lock);
		if (!job)
			return;
		if (!away)
			job_start(job);
		else if (atomic_load(&job->cancelled))
			turn_away(job, ERR_CANCELLED, "cancelled before it was started");
		else
			turn_away(job, ERR_UNAVAILABLE, JOB_JAILER_AWAY);
	}
}

/* -------- a turn -------------------------------------------------------------------------------------- */

static void take_inbox(struct job_engine *engine)
{
	struct job_task *task;
	bool cancels;

	for (;;) {
		pthread_mutex_lock(&engine->lock);
		task = job_tasks_take(&engine->inbox);
		pthread_mutex_unlock(&engine->lock);
		if (!task)
			break;
		task->done(task);
	}
	pthread_mutex_lock(&engine->lock);
	cancels = engine->cancels;
	engine->cancels = false;
	pthread_mutex_unlock(&engine->lock);
	if (cancels)
		each_active(engine, pass_cancel, NULL);
}

/* The stop: drain, then cancel what is left, then give the jailer up. True once nothing is left. */
static bool stopping_over(struct job_engine *engine)
{
	const int64_t now = clock_monotonic_us();
	bool stopping, empty;

	pthread_mutex_lock(&engine->lock);
	stopping = engine->stopping;
	empty = !engine->jobs && engine->removing == 0;
	for (struct job *job = engine->jobs; job && engine->drain_us < 0; job = job->next)
		if (job->stage == JOB_WAITING)
			atomic_store(&job->cancelled, true);
	pthread_mutex_unlock(&engine->lock);
	if (!stopping || empty)
		return stopping;
	if (engine->drain_us == 0) {
		engine->drain_us = now + (int64_t)JOB_DRAIN_SECONDS * 1000000;
	} else if (engine->drain_us > 0 && now >= engine->drain_us) {
		each_active(engine, cancel, NULL);
		engine->drain_us = -(now + JOB_CANCEL_GRACE_US);
	} else if (engine->drain_us < 0 && now >= -engine->drain_us) {
		engine->drain_us = -INT64_MAX;
		if (engine->client)
			jailer_lost(engine, "it did not answer to the cancelling of its runs");
	}
	return false;
}

static void await(struct job_engine *engine)
{
	const bool reading = engine->client && engine->keeping < JOB_KEEP_BACKLOG;
	struct pollfd fds[2] = {{.fd = engine->wake_fd, .events = POLLIN}, {.fd = -1}};
	int64_t now = clock_monotonic_us(), until = INT64_MAX;
	uint64_t count;

	if (reading) {
		fds[1].fd = jail_client_fd(engine->client);
		fds[1].events = jail_client_poll_events(engine->client);
	}
	if (reading && engine->running > 0)
		until = jail_client_pinged_us(engine->client) ? jail_client_pinged_us(engine->client) + JOB_SILENT_US
							      : engine->ping_us;
	if (!engine->client && engine->candidate) {
		fds[1].fd = jail_client_fd(engine->candidate);
		fds[1].events = jail_client_poll_events(engine->candidate);
		until = jail_client_pinged_us(engine->candidate) + JOB_SILENT_US;
	} else if (!engine->client && engine->drain_us >= 0)
		until = MIN(until, engine->retry_us);
	until = MIN(until, job_sandboxes_deadline(engine));
	if (engine->drain_us != 0)
		until = MIN(until, engine->drain_us < 0 ? -engine->drain_us : engine->drain_us);
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
		jailer_watch(engine);
		if (engine->drain_us >= 0)
			jailer_retry(engine);
		job_sandboxes_sweep(engine);
		schedule(engine);
		jailer_dispatch(engine); /* what was queued goes out at once */
		each_active(engine, sweep, NULL);
	}
	return NULL;
}
