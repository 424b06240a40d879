/*
 * tasks.h - calls that go on after their request was answered (mcp_tasks.c shows them to clients,
 * lib/store/record/store_task.h keeps them).
 *
 * A task at work has a thread that waits for its run, or is its body; the row is there before the client learns of the
 * task, and its end is written before anybody hears of it. Cancelling ends the row first and the run after that. What a
 * body asks the client for (the conformance fixtures do) is known to this process only: a task that waits for an answer
 * when the process ends has failed. Only a server that stays has tasks: as a plain CGI program there are none
 * (server->tasks is NULL). Thread-safe.
 */
#pragma once

#include "cgi/http/server.h"
#include "lib/base/json.h"
#include "lib/store/record/store_task.h"
#include "lib/store/record/store_token.h"

#define TASKS_AT_WORK_MAX 256    /* threads: one more is refused with a message */
#define TASKS_POLL_MS     1000   /* how often clients are asked to ask */
#define TASKS_RETRY_US    500000 /* between two attempts to write a task's end, while the disk is full */

struct tasks *tasks_new(struct server *server);
/* When the engine has drained: waits for the threads. NULL is fine. */
void tasks_free(struct tasks *tasks);

struct running_task;
/* What a task does where it is no run; on a thread of its own. *ret: a CallToolResult, the caller's. A failure is the
 * task's. */
typedef int (*task_body)(struct running_task *work, const char *argument, struct json_object **ret, struct err *err);
/* Tells the client of a session: of the task's end, or (`text` not NULL) of its progress: what its run printed, or what
 * a server said of a call. False: nobody listens there, so that what was printed shall be told later. On the task's
 * thread. */
typedef bool (*task_tell)(struct server *server, const struct store_task *task, const char *token, int64_t progress,
			  const char *text);
/* What a run's calls have for its client while it is under way. On the task's thread, but for `answer`. */
struct task_asks {
	int fd; /* readable when the questions may be others than before; -1: it asks nothing */
	/* {"key":{"method","params"}}, the caller's; NULL: none now */
	struct json_object *(*questions)(struct task_asks *asks);
	void (*answer)(struct task_asks *asks, const char *key, struct json_object *response);
	/* Appends what a server said last of its progress; false: nothing since the last time. NULL: nobody wants to
	 * hear of it. */
	bool (*progress)(struct task_asks *asks, struct buf *ret);
	void (*free)(struct task_asks *asks);
};
/* What becomes a task: a run, or a body. */
struct task_start {
	const struct store_token *token;
	const char *session_id; /* NULL: none */
	const char *tool;
	int64_t ttl_ms;            /* as asked for; <= 0: the default */
	struct job_engine *engine; /* NULL: the body */
	const struct job_request *request;
	struct task_asks *asks; /* of the run; taken over, also on failure; NULL: there is nothing */
	task_body body;
	const char *argument;       /* copied */
	task_tell tell;             /* NULL: no notifications */
	const char *progress_token; /* JSON, copied; NULL: only the end is notified */
};
/* Keeps the task, then submits the run: one that is refused (ERR_BUSY, or what job_submit returns) leaves nothing.
 */
int tasks_start(struct tasks *tasks, const struct task_start *start, struct store_task *ret, struct err *err);
/* Is its thread still at work? (A cancelled one is until its run has ended.) */
bool tasks_at_work(struct tasks *tasks, const char *id);
/* ERR_NOT_FOUND; ERR_CONFLICT: it has ended. *ret: as it is now. */
int tasks_cancel(struct tasks *tasks, const char *id, const char *owner, struct store_task *ret, struct err *err);
/* What the task asks its client for: {"key":{"method","params"}}, the caller's; NULL: nothing. `ret_message` (NULL:
 * nobody wants it) becomes what a server said last of the progress of a call of the task's run. */
struct json_object *tasks_questions(struct tasks *tasks, const char *id, char ret_message[ERR_TEXT_SIZE]);
/* Answers by key; what nobody asked is ignored. The owner was checked. */
void tasks_answer(struct tasks *tasks, const char *id, struct json_object *responses);

/* For a body. False, or ERR_CANCELLED: the task was cancelled, or the server stops. */
bool task_sleep(struct running_task *work, int64_t us);
/* Puts the questions (taken over) and waits until all of them are answered; *ret: {"key":answer}, the caller's. */
int task_ask(struct running_task *work, struct json_object *questions, struct json_object **ret, struct err *err);
