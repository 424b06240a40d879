/*
 * tasks.c - see tasks.h.
 *
 * One list under one lock: the tasks at work, with what their bodies ask and were answered. Everything else is read
 * from the store. A thread is detached and counts itself off the list when its task's end is written; nobody holds the
 * lock while the store writes. A thread that waits for a change of a task listens at the hub (HUB_TASK_CHANGED) and
 * looks at the store again: the row is always written before the hub announces it. When the server closes, runs have
 * been drained by the engine, bodies are asked to stop, and the last thread is waited for.
 */
#include "tasks.h"

#include <errno.h>

#include "cgi/http/hub.h"
#include "cgi/http/server.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "mcp_stream.h"
#include "progress.h"

struct running_task {
	struct running_task *next;
	struct tasks *tasks;
	struct store_task task; /* as it began */
	struct job *job;
	struct task_asks *asks;
	task_body body;
	char *argument, *progress_token;
	task_tell tell;
	int64_t offset[2], progress; /* that the client has: how much of each stream; the last value */
	bool cancelled;
	char message[ERR_TEXT_SIZE];             /* of a server, on the progress of a call; "": none yet */
	struct json_object *questions, *answers; /* questions: only those without an answer; NULL: none */
};

struct tasks {
	struct server *server;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* something of the list */
	struct running_task *first;
	size_t count; /* reserved places, too */
	bool stopping;
};

struct tasks *tasks_new(struct server *server)
{
	struct tasks *tasks = xcalloc(1, sizeof(*tasks));
	pthread_condattr_t attributes;

	tasks->server = server;
	pthread_mutex_init(&tasks->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&tasks->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return tasks;
}

void tasks_free(struct tasks *tasks)
{
	if (!tasks)
		return;
	pthread_mutex_lock(&tasks->lock);
	tasks->stopping = true;
	pthread_cond_broadcast(&tasks->changed);
	while (tasks->count > 0)
		pthread_cond_wait(&tasks->changed, &tasks->lock);
	pthread_mutex_unlock(&tasks->lock);
	pthread_cond_destroy(&tasks->changed);
	pthread_mutex_destroy(&tasks->lock);
	free(tasks);
}

static void tell(struct tasks *tasks, const struct store_task *task)
{
	hub_publish(tasks->server->hub, task->owner, HUB_TASK_CHANGED, task->id);
}

/* Under the lock. */
static struct running_task *find(struct tasks *tasks, const char *id)
{
	struct running_task *work = tasks->first;

	while (work && !streq(work->task.id, id))
		work = work->next;
	return work;
}

/* -------- one task's thread --------------------------------------------------------------------------- */

/* What the run asks now takes the place of what it asked before. */
static void ask_for_run(struct running_task *work)
{
	struct json_object *questions = work->asks->questions(work->asks);
	struct tasks *tasks = work->tasks;

	pthread_mutex_lock(&tasks->lock);
	const bool other = questions || work->questions;

	json_object_put(work->questions);
	work->questions = questions;
	pthread_mutex_unlock(&tasks->lock);
	if (other)
		tell(tasks, &work->task);
}

/* False: nobody listens. */
static bool tell_progress(struct running_task *work, int64_t bytes, const char *text)
{
	const int64_t progress = MAX(bytes, work->progress + 1);

	if (!work->progress_token ||
	    !work->tell(work->tasks->server, &work->task, work->progress_token, progress, text))
		return false;
	work->progress = progress;
	return true;
}

/* Clients that listen hear of it, those that ask find it in the task. */
static void tell_servers(struct running_task *work, struct buf *text)
{
	if (!work->asks->progress(work->asks, text))
		return;
	pthread_mutex_lock(&work->tasks->lock);
	snprintf(work->message, sizeof(work->message), "%.*s",
		 (int)utf8_cut(text->data, text->length, sizeof(work->message) - 1), text->data);
	pthread_mutex_unlock(&work->tasks->lock);
	tell(work->tasks, &work->task);
	tell_progress(work, 0, text->data);
	buf_reset(text);
}

/* Waits for the run; its client hears meanwhile of its progress, if it listens, and is asked what the run needs. */
static int wait_run(struct running_task *work, const struct job_result **ret, struct err *err)
{
	const bool servers = work->asks && work->asks->progress;
	const int pause_ms = work->progress_token || servers ? MCP_PROGRESS_PAUSE_US / 1000 : -1;
	const int asks_fd = work->asks ? work->asks->fd : -1;
	auto_buf struct buf text = {0};
	int what;

	buf_init(&text, 2 * MCP_PROGRESS_TEXT_MAX);
	while ((pause_ms >= 0 || asks_fd >= 0) && (what = job_wait_some(work->job, -1, asks_fd, pause_ms, NULL)) > 0) {
		if (what == JOB_WOKEN)
			ask_for_run(work);
		if (work->progress_token) {
			int64_t after[2] = {work->offset[0], work->offset[1]};

			progress_new_output(work->job, after, &text);
			if (text.length > 0 && tell_progress(work, after[0] + after[1], text.data))
				memcpy(work->offset, after, sizeof(after));
			buf_reset(&text);
		}
		if (servers)
			tell_servers(work, &text);
	}
	return job_wait(work->job, -1, ret, err);
}

/* How the task ends, after its run or its body did. */
static int outcome(struct running_task *work, struct store_task *end, struct err *err)
{
	struct json_object *result = NULL;
	const struct job_result *run;
	struct buf text;
	int failed;

	if (work->job) {
		failed = wait_run(work, &run, err);
		if (failed < 0)
			return failed;
		memcpy(end->execution, run->id, sizeof(end->execution));
		end->is_error = run->jail.verdict != JAIL_OK;
		snprintf(end->message, sizeof(end->message), "%s", run->jail.message);
		return 0;
	}
	failed = work->body(work, work->argument, &result, err);
	if (failed < 0)
		return failed;
	end->is_error = json_object_get_boolean(json_get(result, "isError", json_type_boolean));
	buf_init(&text, SIZE_MAX);
	json_print(&text, result);
	end->result = buf_steal(&text, NULL);
	json_object_put(result);
	return 0;
}

/* Off the list; the last thing that a thread does with `tasks`. */
static void leave(struct running_task *work)
{
	struct tasks *tasks = work->tasks;

	pthread_mutex_lock(&tasks->lock);
	for (struct running_task **link = &tasks->first; *link; link = &(*link)->next) {
		if (*link == work) {
			*link = work->next;
			break;
		}
	}
	pthread_mutex_unlock(&tasks->lock);
	tell(tasks, &work->task);
	job_release(work->job);
	if (work->asks)
		work->asks->free(work->asks);
	json_object_put(work->questions);
	json_object_put(work->answers);
	free(work->argument);
	free(work->progress_token);
	free(work);
	pthread_mutex_lock(&tasks->lock);
	tasks->count--;
	pthread_cond_broadcast(&tasks->changed);
	pthread_mutex_unlock(&tasks->lock);
}

/* A disk that is full now may have room later. Until then the task is at work: with a row that says `working` for ever,
 * its client would wait for ever, too. False: the process after this one must end it, or a cancel has. */
static bool record(struct running_task *work, const struct store_task *end)
{
	for (bool told = false;; told = true) {
		struct err err = ERR_INIT;

		if (store_task_end(work->tasks->server->store, end, &err) == 0)
			return true;
		if (err.code == ERR_CONFLICT)
			return false;
		if (!told)
			log_event(LOG_ERROR, "the end of a task is not recorded yet", "id", end->id, "error", err.text,
				  NULL);
		if (!task_sleep(work, TASKS_RETRY_US))
			return false;
	}
}

static void *run(void *arg)
{
	struct running_task *work = arg;
	struct store_task end = work->task;
	struct err err = ERR_INIT;

	end.state = STORE_TASK_COMPLETED;
	if (outcome(work, &end, &err) < 0) {
		end.state = STORE_TASK_FAILED;
		snprintf(end.message, sizeof(end.message), "%s", err.text);
	}
	end.updated_us = clock_now_us();
	if (record(work, &end) && work->tell)
		work->tell(work->tasks->server, &end, NULL, 0, NULL);
	store_task_clear(&end);
	leave(work);
	return NULL;
}

/* -------- beginning and ending ------------------------------------------------------------------------ */

static int reserve(struct tasks *tasks, struct err *err)
{
	int result = 0;

	pthread_mutex_lock(&tasks->lock);
	if (tasks->stopping)
		result = err_set(err, ERR_UNAVAILABLE, "the server is stopping: try again in a moment");
	else if (tasks->count >= TASKS_AT_WORK_MAX)
		result = err_set(err, ERR_BUSY, "%d tasks are already running on this server: try again later",
				 TASKS_AT_WORK_MAX);
	else
		tasks->count++;
	pthread_mutex_unlock(&tasks->lock);
	return result;
}

static int add_row(struct tasks *tasks, const struct task_start *start, struct store_task *ret, struct err *err)
{
	const struct config_limits *limits = &tasks->server->config->limits;
	int64_t ttl = start->ttl_ms > 0 ? start->ttl_ms : limits->task_seconds * 1000;
	struct store_task task = {.ttl_ms = MIN(ttl, limits->task_seconds_max * 1000)};

	snprintf(task.owner, sizeof(task.owner), "%s", start->token->owner);
	snprintf(task.token_id, sizeof(task.token_id), "%s", start->token->id);
	snprintf(task.session_id, sizeof(task.session_id), "%s", start->session_id ? start->session_id : "");
	snprintf(task.tool, sizeof(task.tool), "%s", start->tool);
	if (start->request)
		id_new(task.execution);
	int result = store_task_add(tasks->server->store, &task, limits->tasks, err);

	if (result == 0)
		*ret = task;
	return result;
}

int tasks_start(struct tasks *tasks, const struct task_start *start, struct store_task *ret, struct err *err)
{
	struct store_task task = {0};
	int result = reserve(tasks, err);

	if (result < 0 && start->asks)
		start->asks->free(start->asks);
	if (result < 0)
		return result;
	struct running_task *work = xcalloc(1, sizeof(*work));

	*work = (struct running_task){.tasks = tasks, .body = start->body, .asks = start->asks};
	work->argument = start->argument ? xstrdup(start->argument) : NULL;
	work->tell = start->tell;
	work->progress_token = start->tell && start->progress_token ? xstrdup(start->progress_token) : NULL;
	result = add_row(tasks, start, &work->task, err);
	task = work->task;
	if (result == 0 && start->request) {
		struct job_request request = *start->request;

		request.id = work->task.execution;
		request.task_id = work->task.id;
		result = job_submit(start->engine, &request, &work->job, err);
	}
	if (result == 0) {
		pthread_t thread;

		pthread_mutex_lock(&tasks->lock);
		work->next = tasks->first;
		tasks->first = work;
		pthread_mutex_unlock(&tasks->lock);
		errno = server_thread(&thread, true, run, work);
		result = errno ? err_errno(err, "cannot start a thread for the task") : 0;
	}
	if (result == 0) {
		*ret = task;
		return 0;
	}
	if (work->job)
		job_cancel(work->job);
	if (task.id[0])
		store_task_drop(tasks->server->store, task.id, NULL);
	leave(work);
	return result;
}

bool tasks_at_work(struct tasks *tasks, const char *id)
{
	pthread_mutex_lock(&tasks->lock);
	bool found = find(tasks, id);

	pthread_mutex_unlock(&tasks->lock);
	return found;
}

int tasks_cancel(struct tasks *tasks, const char *id, const char *owner, struct store_task *ret, struct err *err)
{
	struct store_task task;
	int result = store_task_find(tasks->server->store, id, owner, &task, err);

	if (result < 0)
		return result;
	store_task_clear(&task);
	task.state = STORE_TASK_CANCELLED;
	snprintf(task.message, sizeof(task.message), "cancelled by the client");
	result = store_task_end(tasks->server->store, &task, err);
	if (result < 0)
		return result;
	pthread_mutex_lock(&tasks->lock);
	struct running_task *work = find(tasks, id);

	if (work) {
		work->cancelled = true;
		pthread_cond_broadcast(&tasks->changed);
	}
	if (work && work->job)
		job_cancel(work->job);
	pthread_mutex_unlock(&tasks->lock);
	tell(tasks, &task);
	task.updated_us = clock_now_us(); /* its row may have expired with this */
	*ret = task;
	return 0;
}

/* -------- questions and bodies ------------------------------------------------------------------------ */

/* A copy: json-c counts references without atomics. */
static struct json_object *copy_of(struct json_object *object)
{
	struct json_object *copy = NULL;

	json_object_deep_copy(object, &copy, NULL);
	return copy;
}

struct json_object *tasks_questions(struct tasks *tasks, const char *id, char ret_message[ERR_TEXT_SIZE])
{
	struct json_object *questions = NULL;

	pthread_mutex_lock(&tasks->lock);
	const struct running_task *work = find(tasks, id);

	if (work && work->questions && !work->cancelled)
		questions = copy_of(work->questions);
	if (work && work->message[0] && ret_message)
		memcpy(ret_message, work->message, sizeof(work->message));
	pthread_mutex_unlock(&tasks->lock);
	return questions;
}

void tasks_answer(struct tasks *tasks, const char *id, struct json_object *responses)
{
	struct store_task task;
	bool answered = false;

	pthread_mutex_lock(&tasks->lock);
	struct running_task *work = find(tasks, id);

	if (work && work->questions) {
		task = work->task;
		json_object_object_foreach(responses, key, value)
		{
			if (!json_get(work->questions, key, json_type_object) ||
			    !json_object_is_type(value, json_type_object))
				continue;
			if (work->asks)
				work->asks->answer(work->asks, key, value);
			else
				json_add(work->answers, key, copy_of(value));
			json_object_object_del(work->questions, key);
			answered = true;
		}
		pthread_cond_broadcast(&tasks->changed);
	}
	pthread_mutex_unlock(&tasks->lock);
	if (answered)
		tell(tasks, &task);
}

bool task_sleep(struct running_task *work, int64_t us)
{
	struct tasks *tasks = work->tasks;
	struct timespec until;
	int64_t at = clock_monotonic_us() + us;

	until = (struct timespec){.tv_sec = at / 1000000, .tv_nsec = at % 1000000 * 1000};
	pthread_mutex_lock(&tasks->lock);
	while (!work->cancelled && !tasks->stopping &&
	       pthread_cond_timedwait(&tasks->changed, &tasks->lock, &until) != ETIMEDOUT)
		;
	bool whole = !work->cancelled && !tasks->stopping;

	pthread_mutex_unlock(&tasks->lock);
	return whole;
}

int task_ask(struct running_task *work, struct json_object *questions, struct json_object **ret, struct err *err)
{
	struct tasks *tasks = work->tasks;

	pthread_mutex_lock(&tasks->lock);
	work->questions = questions;
	work->answers = json_object_new_object();
	pthread_mutex_unlock(&tasks->lock);
	tell(tasks, &work->task);
	pthread_mutex_lock(&tasks->lock);
	while (!work->cancelled && !tasks->stopping && json_object_object_length(work->questions) > 0)
		pthread_cond_wait(&tasks->changed, &tasks->lock);
	struct json_object *answers = steal(&work->answers);
	bool over = work->cancelled || tasks->stopping;

	json_put_pointer(&work->questions);
	work->questions = NULL;
	pthread_mutex_unlock(&tasks->lock);
	if (over) {
		json_object_put(answers);
		return err_set(err, ERR_CANCELLED, "the task was cancelled, or the server stopped");
	}
	*ret = answers;
	return 0;
}
