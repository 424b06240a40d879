/*
 * job.c - the job engine's door: what other threads call.
 *
 * A submitting thread checks the request, takes its place in the order (under the lock, where every bound is checked),
 * then writes the inputs into the blob folder - slow disk work that belongs to nobody but this caller - and posts that
 * it is through. The place is taken first so that a refused request has stored nothing and calls of one conversation
 * run in the order in which they came. After that the caller only waits: on the job's eventfd and, if it gave one, on
 * its client's descriptor.
 *
 * A job has two references while it runs, the caller's and the engine's, so a caller may leave at any time.
 */
#include "job_internal.h"
#include "job_runtime.h"
#include "job_sandbox.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "jail/client/client_runners.h"
#include "lib/store/record/store_space.h"

#define DAY_US (24 * 3600 * INT64_C(1000000))

bool job_keyed(const struct job *job)
{
	return job->turn.key != NULL;
}

const char *job_id(const struct job *job)
{
	return job->asked.row.id;
}

void job_set_retention(const struct config *config, struct store *store)
{
	store_set_retention(store, &(struct store_retention){
					   .owner_bytes = config->retention.owner_mb << 20,
					   .conversation_ttl_us = config->retention.conversation_days * DAY_US,
					   .execution_ttl_us = config->retention.execution_days * DAY_US,
					   .output_ttl_us = config->retention.output_days * DAY_US,
					   .oldest = streq(config->retention.when_full, "oldest"),
					   .free_bytes = config->retention.free_mb << 20,
					   .free_inodes = config->retention.free_inodes,
				   });
}

/* -------- submitting ---------------------------------------------------------------------------------- */

int job_submit(struct job_engine *engine, const struct job_request *request, struct job **ret, struct err *err)
{
	struct job *job = job_new(engine, job_advance);
	struct job_asked *asked = &job->asked;
	struct job_turn *turn = &job->turn;
	int result = store_space_check(engine->store, err);

	auto_buf struct buf own = {0};
	struct bind_text code;

	if (request->tools)
		request->tools->references++;
	asked->tools = request->tools;
	if (result == 0 && job->wake_fd < 0)
		result = err_errno(err, "cannot make an eventfd");
	if (result == 0) {
		pthread_mutex_lock(&engine->lock);
		result = job_take_request(job, request, engine->runners, err);
		turn->owner = asked->row.owner;
		turn->token_id = asked->row.token_id;
		turn->placed = request->placed;
		turn->place = asked->place;
		turn->key = asked->key;
		turn->key_hash = asked->key_hash;
		if (result == 0)
			result = job_turn_enter(turn, err);
		if (result == 0)
			job_reference(job); /* the engine's, until it is over */
		pthread_mutex_unlock(&engine->lock);
	}
	if (result == 0) { /* the slow part: files, code and standard input go to disk */
		job_source(asked->row.language, &request->code, &own, &code);
		result = job_store_files(engine->store, request, &asked->files, err);
		if (result == 0)
			result = job_store_text(engine->store, &code, &asked->row.code, &asked->code_fd, err);
		if (result == 0 && request->stdin_text.data)
			result = job_store_text(engine->store, &request->stdin_text, &asked->row.stdin_text,
						&asked->stdin_fd, err);
		turn->work_item.code = result;
		job_post(&turn->work_item);
	}
	if (result < 0)
		job_release(job);
	else
		*ret = job;
	return result;
}

int job_wait_some(struct job *job, int hangup_fd, int wake_fd, int timeout_ms, struct err *err)
{
	struct pollfd fds[3] = {{.fd = job->wake_fd, .events = POLLIN},
				{.fd = hangup_fd, .events = POLLRDHUP},
				{.fd = wake_fd, .events = POLLIN}};
	int ready;

	if (atomic_load(&job->over))
		return 0;
	ready = poll(fds, 3, timeout_ms);
	if (ready < 0 && errno != EINTR)
		return err_errno(err, "waiting for a job");
	if (atomic_load(&job->over))
		return 0;
	if (ready > 0 && (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR)))
		return err_set(err, ERR_CANCELLED, "the client disconnected");
	return ready > 0 && fds[2].revents ? JOB_WOKEN : JOB_TIME;
}

int job_wait(struct job *job, int hangup_fd, const struct job_result **ret, struct err *err)
{
	int result;

	while ((result = job_wait_some(job, hangup_fd, -1, -1, err)) > 0)
		;
	if (result < 0)
		return result;
	if (job->end.error.code != ERR_NONE) {
		if (err)
			*err = job->end.error;
		return -(int)job->end.error.code;
	}
	if (ret)
		*ret = &job->end.result;
	return 0;
}

size_t job_output_read(struct job *job, int stream, int64_t offset, char *ret, size_t size)
{
	if (!atomic_load(&job->has_output))
		return 0;
	int fd = job->cover.mask ? job_cover_shown(&job->cover, stream, false, NULL)
		 : stream == 1   ? job->stdout_fd
				 : job->stderr_fd;
	ssize_t n = pread(fd, ret, size, offset);

	return n > 0 ? (size_t)n : 0;
}

void job_cancel(struct job *job)
{
	struct job_engine *engine = job->engine;

	if (atomic_load(&job->over))
		return;
	atomic_store(&job->turn.cancelled, true);
	pthread_mutex_lock(&engine->lock);
	engine->cancels = true;
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
}

bool job_engine_cancel(struct job_engine *engine, const char *id)
{
	struct job *found = NULL;

	pthread_mutex_lock(&engine->lock);
	for (struct job_turn *turn = engine->turns; turn && !found; turn = turn->next)
		if (turn->job && streq(turn->job->asked.row.id, id))
			found = turn->job;
	if (found)
		job_reference(found);
	pthread_mutex_unlock(&engine->lock);
	if (!found)
		return false;
	job_cancel(found);
	job_release(found);
	return true;
}

/* -------- the engine ---------------------------------------------------------------------------------- */

/* A copy: json-c counts references without atomics, and the callers are other threads. */
struct json_object *job_engine_runners(struct job_engine *engine)
{
	struct json_object *copy = NULL;

	pthread_mutex_lock(&engine->lock);
	if (engine->connected)
		json_object_deep_copy(engine->runners, &copy, NULL);
	pthread_mutex_unlock(&engine->lock);
	return copy;
}

char *job_engine_runner_name(struct job_engine *engine, const char *language)
{
	char *copy = NULL;

	pthread_mutex_lock(&engine->lock);
	struct json_object *runner = engine->connected ? jail_runner_named(engine->runners, language) : NULL;
	const char *name = runner ? json_get_string(runner, "name") : NULL;

	if (name)
		copy = xstrdup(name);
	pthread_mutex_unlock(&engine->lock);
	return copy;
}

bool job_engine_connected(struct job_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	bool connected = engine->connected;

	pthread_mutex_unlock(&engine->lock);
	return connected;
}

void job_engine_jails(struct job_engine *engine, void (*each)(void *arg, const char *state, int64_t count), void *arg)
{
	pthread_mutex_lock(&engine->lock);
	const struct jail_census jails = engine->jails;

	engine->asks = true;
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
	for (int state = 0; state < JAIL_STATES; state++)
		each(arg, jail_state_text((enum jail_state)state), jails.count[state]);
}

void job_engine_watch(struct job_engine *engine, void (*tell)(void *arg, const struct job_news *news), void *arg)
{
	pthread_mutex_lock(&engine->lock); /* for the reactor, which takes it before it gets at a job */
	engine->tell = tell;
	engine->tell_arg = arg;
	pthread_mutex_unlock(&engine->lock);
}

static void engine_free(struct job_engine *engine)
{
	job_sandboxes_free(engine);
	jail_client_free(engine->client);
	jail_client_free(engine->candidate);
	for (size_t i = 0; i < ARRAY_SIZE(engine->pictures.places); i++)
		jail_client_free(engine->pictures.places[i].client);
	job_io_stop(engine);
	json_put_pointer(&engine->runners);
	json_put_pointer(&engine->info);
	job_runtimes_free(engine->runtimes);
	workspace_close(engine->workspace);
	fd_close(&engine->wake_fd);
	pthread_cond_destroy(&engine->io_wake);
	pthread_cond_destroy(&engine->runners_wake);
	pthread_cond_destroy(&engine->pictures.left);
	pthread_mutex_destroy(&engine->pictures.lock);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

int job_engine_start(const struct config *config, struct store *store, struct job_engine **ret, struct err *err)
{
	struct job_engine *engine = xcalloc(1, sizeof(*engine));
	int result;

	job_metrics_begin();
	engine->config = config;
	engine->store = store;
	engine->runtimes = job_runtimes_new();
	pthread_mutex_init(&engine->lock, NULL);
	pthread_mutex_init(&engine->pictures.lock, NULL);
	pthread_cond_init(&engine->pictures.left, NULL);
	pthread_cond_init(&engine->io_wake, NULL);
	pthread_cond_init(&engine->runners_wake, NULL);
	engine->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine->wake_fd < 0) {
		result = err_errno(err, "cannot make an eventfd");
	} else if ((result = job_workspace_start(engine, err)) == 0 && (result = job_jailer_begin(engine, err)) == 0 &&
		   (result = job_io_start(engine, err)) == 0) {
		errno = pthread_create(&engine->reactor, NULL, job_reactor, engine);
		if (errno)
			result = err_errno(err, "cannot start the job reactor");
	}
	if (result < 0)
		engine_free(engine);
	else
		*ret = engine;
	return result;
}

void job_engine_drain(struct job_engine *engine)
{
	if (!engine || engine->drained)
		return;
	pthread_mutex_lock(&engine->lock);
	engine->stopping = true;
	pthread_cond_broadcast(&engine->runners_wake);
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
	pthread_join(engine->reactor, NULL);
	engine->drained = true;
}

void job_engine_stop(struct job_engine *engine)
{
	job_engine_drain(engine);
	if (engine)
		engine_free(engine);
}
