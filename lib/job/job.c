/*
 * job.c - the job engine's door: what other threads call.
 *
 * A submitting thread checks the request, takes its place in the order (under the lock, where every bound is checked),
 * then writes the inputs into the blob folder - slow disk work that belongs to nobody but this caller - and lets the
 * reactor go on. The place is taken first so that a refused request has stored nothing and calls of one conversation
 * run in the order in which they came. After that the caller only waits: on the job's eventfd and, if it gave one, on
 * its client's descriptor.
 *
 * A job has two references while it runs, the caller's and the engine's, so a caller may leave at any time. An upload
 * is a job without a jail: the same order, the same bounds, one transaction.
 */
#include "job_internal.h"
#include "job_sandbox.h"
#include "lib/store/store_blob.h"
#include "lib/store/store_execution.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

char *json_text(struct json_object *object)
{
	struct buf text;

	buf_init(&text, SIZE_MAX);
	json_print(&text, object);
	return buf_steal(&text, NULL);
}

/* -------- a job's life -------------------------------------------------------------------------------- */

struct job *job_new(struct job_engine *engine)
{
	struct job *job = xcalloc(1, sizeof(*job));

	atomic_init(&job->references, 1);
	job->engine = engine;
	job->stage = JOB_RESERVED;
	job->code_fd = job->stdin_fd = job->stdout_fd = job->stderr_fd = -1;
	job->outputs_tail = &job->outputs;
	job->result.jail.exit_code = -1;
	job->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return job;
}

void job_reference(struct job *job)
{
	atomic_fetch_add(&job->references, 1);
}

static void outputs_free(struct job *job)
{
	struct job_output *next;

	for (struct job_output *output = job->outputs; output; output = next) {
		next = output->next;
		close_pointer(&output->fd);
		free(output->change.name);
		free(output);
	}
}

static void job_free(struct job *job)
{
	job_wipe_env(job);
	free(job->key);
	for (char **argument = job->args; argument && *argument; argument++)
		free(*argument);
	free(job->args);
	job_inputs_free(job->files, job->n_files);
	job_inputs_free(job->inputs, job->n_inputs);
	job_gone_clear(&job->gone);
	for (size_t i = 0; i < job->n_input_fds; i++)
		close_pointer(&job->input_fds[i]);
	outputs_free(job);
	close_pointer(&job->code_fd);
	close_pointer(&job->stdin_fd);
	close_pointer(&job->stdout_fd);
	close_pointer(&job->stderr_fd);
	close_pointer(&job->wake_fd);
	store_execution_clear(&job->record);
	job_result_clear(&job->result);
	free(job->changes);
	free(job);
}

void job_release(struct job *job)
{
	if (job && atomic_fetch_sub(&job->references, 1) == 1)
		job_free(job);
}

const char *job_id(const struct job *job)
{
	return job->result.id;
}

/* -------- the order of jobs; under the engine's lock -------------------------------------------------- */

static struct job_conversation *conversation_find(struct job_engine *engine, const char *hash)
{
	for (struct job_conversation *order = engine->conversations; order; order = order->next)
		if (streq(order->hash, hash))
			return order;
	return NULL;
}

static struct job_conversation *conversation_join(struct job_engine *engine, const char *hash)
{
	struct job_conversation *order = conversation_find(engine, hash);

	if (!order) {
		order = xcalloc(1, sizeof(*order));
		snprintf(order->hash, sizeof(order->hash), "%s", hash);
		order->next = engine->conversations;
		engine->conversations = order;
	}
	order->jobs++;
	return order;
}

static void conversation_leave(struct job_engine *engine, struct job_conversation *order)
{
	struct job_conversation **link = &engine->conversations;

	if (--order->jobs > 0)
		return;
	while (*link != order)
		link = &(*link)->next;
	*link = order->next;
	free(order);
}

/* Is there room? The three bounds, in the order of who is at fault: this conversation, this token, everybody. */
static int check_bounds(struct job_engine *engine, const struct job *job, struct err *err)
{
	const struct config_limits *limits = &engine->config->limits;
	const char *hash = job->result.conversation_hash;
	const struct job_conversation *order = *hash ? conversation_find(engine, hash) : NULL;
	int64_t in_flight = 0;

	if (engine->stopping)
		return err_set(err, ERR_UNAVAILABLE, "the server is stopping; try again in a moment");
	if (!engine->connected && !job->upload && clock_monotonic_us() - engine->away_since_us > JOB_JAILER_WAIT_US)
		return err_set(err, ERR_UNAVAILABLE, JOB_JAILER_AWAY);
	if (order && order->jobs > JOB_CONVERSATION_QUEUE)
		return err_set(err, ERR_BUSY, "%d calls wait in this conversation already; wait for their results",
			       JOB_CONVERSATION_QUEUE);
	/* Requests under way are bounded before they come here (cgi/http/access.c); this counts tasks, too, which go on
	 * without a request. */
	for (const struct job *other = engine->jobs; other; other = other->next)
		in_flight += streq(other->record.token_id, job->record.token_id);
	if (in_flight >= limits->in_flight)
		return err_set(err, ERR_BUSY, "%lld calls of this token are running already; wait for one of them",
			       (long long)in_flight);
	if (engine->n_jobs >= (size_t)(engine->config->jailer.jails + limits->queue))
		return err_set(err, ERR_BUSY,
			       "%zu calls are running or waiting on this server already; try again in a moment",
			       engine->n_jobs);
	return 0;
}

static int enter(struct job_engine *engine, struct job *job, struct err *err)
{
	int result = check_bounds(engine, job, err);

	if (result < 0)
		return result;
	if (*job->result.conversation_hash)
		job->order = conversation_join(engine, job->result.conversation_hash);
	job->previous = engine->jobs_last;
	if (job->previous)
		job->previous->next = job;
	else
		engine->jobs = job;
	engine->jobs_last = job;
	engine->n_jobs++;
	job_reference(job);
	return 0;
}

static void leave(struct job_engine *engine, struct job *job)
{
	if (job->previous)
		job->previous->next = job->next;
	else
		engine->jobs = job->next;
	if (job->next)
		job->next->previous = job->previous;
	else
		engine->jobs_last = job->previous;
	job->next = job->previous = NULL;
	engine->n_jobs--;
	if (job->order && job->stage == JOB_ACTIVE)
		job->order->busy = false;
	if (job->order)
		conversation_leave(engine, job->order);
	job->order = NULL;
}

void job_over(struct job *job)
{
	const uint64_t one = 1;

	pthread_mutex_lock(&job->engine->lock);
	leave(job->engine, job);
	pthread_mutex_unlock(&job->engine->lock);
	atomic_store(&job->finished, true);
	if (write(job->wake_fd, &one, sizeof(one)) < 0)
		log_event(LOG_ERROR, "job wake failed", "id", job->record.id, NULL);
	job_release(job);
}

/* -------- submitting ---------------------------------------------------------------------------------- */

/* The slow part: code, standard input and files go to disk. */
static int keep_inputs(struct job *job, const struct job_request *request, struct err *err)
{
	struct store *store = job->engine->store;
	int result;

	for (size_t i = 0; i < job->n_files; i++) {
		struct store_file *file = &job->files[i].file;

		file->size = (int64_t)request->files[i].length;
		result = store_blob_put(store, request->files[i].data, request->files[i].length, file->blob, err);
		store_media_type(file->name, file->name_length, (const unsigned char *)request->files[i].data,
				 request->files[i].length, file->media_type);
		if (result < 0)
			return err_wrap(err, "keeping the file \"%s\"", file->name);
	}
	if (job->upload)
		return 0;
	result = job_keep_text(store, &request->code, &job->record.code, &job->code_fd, err);
	if (result == 0 && request->stdin_text.data)
		result = job_keep_text(store, &request->stdin_text, &job->record.stdin_text, &job->stdin_fd, err);
	return result;
}

static int take(struct job *job, const struct job_request *request, struct err *err)
{
	struct job_engine *engine = job->engine;
	int result;

	if (job->wake_fd < 0)
		return err_errno(err, "cannot make an eventfd");
	pthread_mutex_lock(&engine->lock);
	result = job_take_request(job, request, engine->runners, err);
	if (result == 0)
		result = enter(engine, job, err);
	pthread_mutex_unlock(&engine->lock);
	if (result < 0)
		return result;

	result = keep_inputs(job, request, err);
	if (result < 0) {
		job_over(job);
		job_wake_reactor(engine);
		return result;
	}
	pthread_mutex_lock(&engine->lock);
	job->stage = JOB_WAITING;
	job->waiting_since_us = clock_monotonic_us();
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
	return 0;
}

enum kind { KIND_RUN, KIND_UPLOAD, KIND_RESET };

static int submit(struct job_engine *engine, const struct job_request *request, enum kind kind, struct job **ret,
		  struct err *err)
{
	struct job *job = job_new(engine);
	int result;

	job->upload = kind != KIND_RUN;
	job->reset = kind == KIND_RESET;
	result = take(job, request, err);
	if (result < 0)
		job_release(job);
	else
		*ret = job;
	return result;
}

int job_submit(struct job_engine *engine, const struct job_request *request, struct job **ret, struct err *err)
{
	return submit(engine, request, KIND_RUN, ret, err);
}

int job_wait_some(struct job *job, int hangup_fd, int wake_fd, int timeout_ms, struct err *err)
{
	struct pollfd fds[3] = {{.fd = job->wake_fd, .events = POLLIN},
				{.fd = hangup_fd, .events = POLLRDHUP},
				{.fd = wake_fd, .events = POLLIN}};
	int ready;

	if (atomic_load(&job->finished))
		return 0;
	ready = poll(fds, 3, timeout_ms);
	if (ready < 0 && errno != EINTR)
		return err_errno(err, "waiting for a job");
	if (atomic_load(&job->finished))
		return 0;
	if (ready > 0 && (fds[1].revents & (POLLRDHUP | POLLHUP | POLLERR)))
		return err_set(err, ERR_CANCELLED, "the client went away");
	return ready > 0 && fds[2].revents ? JOB_WOKEN : JOB_TIME;
}

int job_wait(struct job *job, int hangup_fd, const struct job_result **ret, struct err *err)
{
	int result;

	while ((result = job_wait_some(job, hangup_fd, -1, -1, err)) > 0)
		;
	if (result < 0)
		return result;
	if (job->error.code != ERR_NONE) {
		if (err)
			*err = job->error;
		return -(int)job->error.code;
	}
	if (ret)
		*ret = &job->result;
	return 0;
}

size_t job_output_read(struct job *job, int stream, int64_t offset, char *ret, size_t size)
{
	if (!atomic_load(&job->has_output))
		return 0;
	ssize_t n = pread(stream == 1 ? job->stdout_fd : job->stderr_fd, ret, size, offset);

	return n > 0 ? (size_t)n : 0;
}

void job_cancel(struct job *job)
{
	struct job_engine *engine = job->engine;

	if (atomic_load(&job->finished))
		return;
	atomic_store(&job->cancelled, true);
	pthread_mutex_lock(&engine->lock);
	engine->cancels = true;
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
}

/* What acts on a conversation without a run. The job is over, and the caller's. */
static int submit_and_wait(struct job_engine *engine, const struct job_request *request, enum kind kind,
			   struct job **ret, struct err *err)
{
	struct job *job;
	int result;

	if (!request->conversation)
		return err_member(err, "conversationId", "is missing");
	if ((result = submit(engine, request, kind, &job, err)) < 0)
		return result;
	if ((result = job_wait(job, -1, NULL, err)) < 0)
		job_release(job);
	else
		*ret = job;
	return result;
}

int job_upload(struct job_engine *engine, const struct job_request *who, const struct job_file *file,
	       struct store_file *ret, char ret_hash[SHA256_HEX_SIZE], struct err *err)
{
	struct job_request request = {.owner = who->owner, .token_id = who->token_id, .session_id = who->session_id,
				      .conversation = who->conversation, .files = file, .n_files = 1,
				      .key = who->key, .key_hash = who->key_hash};
	struct job *job;
	int result = submit_and_wait(engine, &request, KIND_UPLOAD, &job, err);

	if (result < 0)
		return result;
	*ret = job->files[0].file;
	ret->name = NULL;
	ret->name_length = 0;
	snprintf(ret_hash, SHA256_HEX_SIZE, "%s", job->result.conversation_hash);
	job_release(job);
	return 0;
}

int job_reset(struct job_engine *engine, const struct job_request *who, size_t *ret_ended, struct err *err)
{
	struct job_request request = {.owner = who->owner, .token_id = who->token_id, .session_id = who->session_id,
				      .conversation = who->conversation, .language = who->language};
	struct job *job;
	int result = submit_and_wait(engine, &request, KIND_RESET, &job, err);

	if (result < 0)
		return result;
	*ret_ended = job->n_reset;
	job_release(job);
	return 0;
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

uint64_t job_engine_generation(struct job_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	uint64_t generation = engine->generation;

	pthread_mutex_unlock(&engine->lock);
	return generation;
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
	job_keepers_stop(engine);
	json_put_pointer(&engine->runners);
	json_put_pointer(&engine->info);
	close_pointer(&engine->wake_fd);
	pthread_cond_destroy(&engine->keep_more);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

static int engine_begin(struct job_engine *engine, struct err *err)
{
	int result, error;

	engine->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine->wake_fd < 0)
		return err_errno(err, "cannot make an eventfd");
	if ((result = job_jailer_begin(engine, err)) < 0 || (result = job_keepers_start(engine, err)) < 0)
		return result;
	error = pthread_create(&engine->reactor, NULL, job_reactor, engine);
	if (error) {
		errno = error;
		return err_errno(err, "cannot start the job reactor");
	}
	return 0;
}

int job_engine_start(const struct config *config, struct store *store, struct job_engine **ret, struct err *err)
{
	struct job_engine *engine = xcalloc(1, sizeof(*engine));
	int result;

	engine->config = config;
	engine->store = store;
	pthread_mutex_init(&engine->lock, NULL);
	pthread_cond_init(&engine->keep_more, NULL);
	result = engine_begin(engine, err);
	if (result < 0)
		engine_free(engine);
	else
		*ret = engine;
	return result;
}

void job_engine_stop(struct job_engine *engine)
{
	if (!engine)
		return;
	pthread_mutex_lock(&engine->lock);
	engine->stopping = true;
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
	pthread_join(engine->reactor, NULL);
	engine_free(engine);
}
