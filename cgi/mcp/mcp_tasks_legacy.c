/*
 * mcp_tasks_legacy.c - what only revision 2025-11-25 has of tasks: tasks/result and tasks/list; see mcp_tasks.h.
 */
#include "mcp_tasks.h"

#include <poll.h>

#include "cgi/http/hub.h"
#include "signed.h"
#include "lib/base/util.h"
#include "mcp_stream.h"

#define CURSOR_MAX 512
#define CURSOR_OF  "tasks/list"

/* -------- tasks/result -------------------------------------------------------------------------------- */

/* Sleeps until the task may have changed. ERR_CANCELLED: nobody waits for the answer any more; ERR_UNAVAILABLE: the
 * server stops. */
static int wait_change(struct mcp_call *call, struct hub_listener *listener, struct err *err)
{
	struct hub *hub = call->exchange->server->hub;
	struct pollfd fds[] = {{.fd = listener->wake_fd, .events = POLLIN},
			       {.fd = call->inflight ? call->inflight->wake_fd : -1, .events = POLLIN},
			       {.fd = call->hangup_fd, .events = POLLRDHUP}};
	auto_hub_message struct hub_message *message = NULL;

	poll(fds, 3, call->stream ? stream_patience_ms(call->stream) : -1);
	if (fds[2].revents || (fds[1].revents && hub_cancelled(hub, call->inflight)))
		return err_set(err, ERR_CANCELLED, "cancelled");
	mcp_keep_alive(call);
	if (hub_wait(hub, listener, -1, 0, &message) == HUB_GONE)
		return err_set(err, ERR_UNAVAILABLE, "the server is stopping: ask again in a moment");
	return 0;
}

/* Until the task has ended, its run included. */
static int wait_end(struct mcp_call *call, const char *id, struct store_task *ret, struct err *err)
{
	struct server *server = call->exchange->server;
	const char *ids[] = {id, NULL};
	struct hub_listener listener = {.owner = call->exchange->token.owner, .topics = HUB_TASK_CHANGED, .uris = ids};
	int result = hub_listen(server->hub, &listener, err);

	if (result < 0)
		return result;
	for (;;) {
		/* In this order: a thread that leaves in between has written the end before. */
		bool at_work = tasks_at_work(server->tasks, id);

		result = store_task_find(server->store, id, call->exchange->token.owner, ret, err);
		if (result < 0 || (ret->state != STORE_TASK_WORKING && !at_work))
			break;
		store_task_clear(ret);
		result = wait_change(call, &listener, err);
		if (result < 0)
			break;
	}
	hub_leave(server->hub, &listener);
	return result;
}

int mcp_tasks_result(struct mcp_call *call)
{
	struct store_task task = {0};
	struct err err = ERR_INIT;
	const char *id;

	if (mcp_task_check(call, &id) < 0 || mcp_results(call) < 0)
		return -1;
	if (wait_end(call, id, &task, &err) < 0) {
		call->silent = err.code == ERR_CANCELLED;
		return mcp_task_fail(call, id, &err);
	}
	int result = task.state == STORE_TASK_FAILED ? err_set(&err, ERR_UNAVAILABLE, "%s", task.message)
						     : mcp_task_result(call, &task, &call->result, &err);

	store_task_clear(&task);
	if (result < 0) /* one that was cancelled before its run began has no record */
		return mcp_fail(call, RPC_INTERNAL, "Internal error: %s",
				task.state == STORE_TASK_CANCELLED ? "the task was cancelled" : err.text);
	mcp_task_add_related(call->result, id);
	return 0;
}

/* -------- tasks/list ---------------------------------------------------------------------------------- */

struct listing {
	struct mcp_call *call;
	struct json_object *tasks;
	char last[ID_SIZE];
};

static int list_one(void *arg, const struct store_task *task)
{
	struct listing *listing = arg;
	struct json_object *object;

	if (json_object_array_length(listing->tasks) == MCP_TASKS_PAGE) { /* there is one more than fits */
		auto_buf struct buf cursor = {0};

		buf_init(&cursor, CURSOR_MAX);
		signed_make(listing->call->exchange->server->store, CURSOR_OF, task->owner, listing->last, &cursor);
		json_add_string(listing->call->result, "nextCursor", cursor.data);
		return 1;
	}
	struct store_task shown = *task;
	auto_json struct json_object *questions =
		tasks_questions(listing->call->exchange->server->tasks, task->id,
				task->state == STORE_TASK_WORKING ? shown.message : NULL);

	object = json_object_new_object();
	mcp_task_print(listing->call, &shown, questions != NULL, object);
	json_object_array_add(listing->tasks, object);
	memcpy(listing->last, task->id, ID_SIZE);
	return 0;
}

/* The id that the page comes after, STORE_ID_ABOVE for the first. */
static int read_cursor(struct mcp_call *call, struct buf *before)
{
	const char *cursor = json_get_string(call->message->params, "cursor");

	if (!mcp_cursor(call)) {
		buf_puts(before, STORE_ID_ABOVE);
		return 0;
	}
	if (cursor && strlen(cursor) <= CURSOR_MAX &&
	    signed_read(call->exchange->server->store, CURSOR_OF, call->exchange->token.owner, cursor, before, NULL) ==
		    0)
		return 0;
	return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: not one of this list");
}

int mcp_tasks_list(struct mcp_call *call)
{
	struct listing listing = {.call = call};
	auto_buf struct buf before = {0};
	struct err err = ERR_INIT;

	buf_init(&before, CURSOR_MAX);
	if (mcp_task_check(call, NULL) < 0 || read_cursor(call, &before) < 0)
		return -1;
	const struct store_task_page page = {call->exchange->token.owner, before.data, MCP_TASKS_PAGE + 1};

	call->result = json_object_new_object();
	listing.tasks = json_object_new_array();
	json_add(call->result, "tasks", listing.tasks);
	return store_task_list(call->exchange->server->store, &page, list_one, &listing, &err) < 0
		       ? mcp_task_fail(call, "", &err)
		       : 0;
}
