/*
 * mcp_tasks.c - see mcp_tasks.h.
 *
 * Where the two forms differ although they share a name: a result that says isError makes the task `failed` in the legacy form and
 * `completed` in the modern one, whose `failed` is a JSON-RPC error alone; cancelling a task that has ended is an error in the legacy form
 * and changes nothing in the modern one; times to live are `ttl` or `ttlMs`.
 */
#include "mcp_tasks.h"

#include <poll.h>

#include "../lib/log.h"
#include "../lib/util.h"
#include "hub.h"
#include "mcp_stream.h"
#include "signed.h"

#define META_RELATED "io.modelcontextprotocol/related-task"
#define CURSOR_MAX   512
#define CURSOR_OF    "tasks/list"

/* --- who may have tasks ----------------------------------------------------------------------------------------------------- */

static bool legacy_tasks(const struct server *server, const char *protocol)
{
	return server->tasks && streq(protocol, MCP_TASKS_SINCE);
}

void mcp_task_capabilities(const struct server *server, const char *protocol, struct json_object *capabilities)
{
	static const char legacy[] = "{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}";
	struct json_object *tasks;

	if (!server->tasks)
		return;
	if (streq(protocol, MCP_MODERN_VERSION)) {
		tasks = json_object_new_object();
		json_add(tasks, MCP_TASKS_EXTENSION, json_object_new_object());
		json_add(capabilities, "extensions", tasks);
	} else if (legacy_tasks(server, protocol) && json_parse(legacy, sizeof(legacy) - 1, &tasks, NULL) == 0) {
		json_add(capabilities, "tasks", tasks);
	}
}

void mcp_task_support(struct mcp_call *call, struct json_object *tools)
{
	static const char *const texts[] = {
		[TOOL_TASK_NEVER] = "forbidden", [TOOL_TASK_OPTIONAL] = "optional", [TOOL_TASK_REQUIRED] = "required"};
	const struct server *server = call->exchange->server;

	if (call->modern || !legacy_tasks(server, call->protocol))
		return;
	for (size_t i = 0; i < json_object_array_length(tools); i++) {
		struct json_object *tool = json_object_array_get_idx(tools, i), *execution = json_object_new_object();

		json_add_string(execution, "taskSupport", texts[tool_find(server->config, json_get_string(tool, "name"))->task]);
		json_add(tool, "execution", execution);
	}
}

static bool offers_tasks(const struct mcp_call *call)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object);
	struct json_object *extensions = json_get(json_get(meta, MCP_META_CAPABILITIES, json_type_object), "extensions", json_type_object);

	return json_get(extensions, MCP_TASKS_EXTENSION, json_type_object);
}

int mcp_require_tasks(struct mcp_call *call)
{
	struct json_object *required = json_object_new_object(), *extensions = json_object_new_object();

	if (offers_tasks(call)) {
		json_object_put(required);
		json_object_put(extensions);
		return 0;
	}
	json_add(extensions, MCP_TASKS_EXTENSION, json_object_new_object());
	json_add(required, "extensions", extensions);
	json_object_put(call->data);
	call->data = json_object_new_object();
	json_add(call->data, "requiredCapabilities", required);
	call->status = 400;
	return mcp_fail(call, RPC_MISSING_CAPABILITY, "Missing required client capability: the extension " MCP_TASKS_EXTENSION);
}

/* params.task, where it counts. */
static int read_hint(struct mcp_call *call, const struct tool *tool)
{
	struct json_object *hint, *ttl;

	if (!json_object_object_get_ex(call->message->params, "task", &hint) || !hint) {
		if (tool->task == TOOL_TASK_REQUIRED)
			return mcp_fail_name(call, RPC_METHOD_NOT_FOUND, "Only as a task (params.task)", tool->name);
		return 0;
	}
	if (!json_object_is_type(hint, json_type_object))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: task: must be an object");
	if (tool->task == TOOL_TASK_NEVER)
		return mcp_fail_name(call, RPC_METHOD_NOT_FOUND, "Not as a task", tool->name);
	if (json_object_object_get_ex(hint, "ttl", &ttl) && ttl) {
		call->task.ttl_ms = json_object_is_type(ttl, json_type_int) ? json_object_get_int64(ttl) : 0;
		if (call->task.ttl_ms <= 0)
			return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: task.ttl: must be a number of milliseconds");
	}
	call->task.possible = call->task.asked = true;
	return 0;
}

int mcp_task_offer(struct mcp_call *call, const struct tool *tool)
{
	const struct server *server = call->exchange->server;

	if (!call->modern)
		return legacy_tasks(server, call->protocol) ? read_hint(call, tool) : 0;
	if (server->tasks && tool->task == TOOL_TASK_REQUIRED && mcp_require_tasks(call) < 0)
		return -1;
	call->task.possible = server->tasks && tool->task != TOOL_TASK_NEVER && offers_tasks(call);
	return 0;
}

/* --- the shapes --------------------------------------------------------------------------------------------------------------- */

static const char *status_of(const struct mcp_call *call, const struct store_task *task, bool asks)
{
	switch (task->state) {
	case STORE_TASK_COMPLETED:
		return task->is_error && !call->modern ? "failed" : "completed";
	case STORE_TASK_FAILED:
		return "failed";
	case STORE_TASK_CANCELLED:
		return "cancelled";
	case STORE_TASK_WORKING:
		break;
	}
	return asks ? "input_required" : "working";
}

/* The members of a Task, put into *ret. */
static void describe(struct mcp_call *call, const struct store_task *task, bool asks, struct json_object *ret)
{
	char created[CLOCK_TEXT_SIZE], updated[CLOCK_TEXT_SIZE];

	clock_text(task->created_us, created);
	clock_text(task->updated_us, updated);
	json_add_string(ret, "taskId", task->id);
	json_add_string(ret, "status", status_of(call, task, asks));
	if (task->message[0])
		json_add_string(ret, "statusMessage", task->message);
	json_add_string(ret, "createdAt", created);
	json_add_string(ret, "lastUpdatedAt", updated);
	json_add_int(ret, call->modern ? "ttlMs" : "ttl", task->ttl_ms);
	json_add_int(ret, call->modern ? "pollIntervalMs" : "pollInterval", TASKS_POLL_MS);
}

/* The CallToolResult of a task that has ended, the caller's. */
static int result_of(struct mcp_call *call, const struct store_task *task, struct json_object **ret, struct err *err)
{
	struct server *server = call->exchange->server;
	const struct tool_call tool_call = {
		.server = server, .token = &call->exchange->token, .protocol = call->protocol, .hangup_fd = -1};
	const struct tool *tool = tool_find(server->config, task->tool);
	const struct job_result *run;
	struct tool_result result;
	struct job_engine *engine;
	struct job *job;

	if (task->result)
		return json_parse(task->result, strlen(task->result), ret, err);
	if (!tool || !tool->result)
		return err_set(err, ERR_UNAVAILABLE, "the tool %s is switched off, its results are in the record", task->tool);
	int failed = server_engine(server, &engine, err);

	if (failed == 0)
		failed = job_recall(engine, task->execution, &job, err);
	if (failed < 0)
		return failed;
	failed = job_wait(job, -1, &run, err);
	if (failed == 0) {
		tool->result(&tool_call, run, &result);
		*ret = tool_result_object(&result);
	}
	job_release(job);
	return failed;
}

static struct json_object *error_object(const char *text)
{
	struct json_object *error = json_object_new_object();

	json_add_int(error, "code", RPC_INTERNAL);
	json_add_string(error, "message", text);
	return error;
}

/* What the modern form has besides the task itself. */
static void add_details(struct mcp_call *call, const struct store_task *task, struct json_object *questions, struct json_object *ret)
{
	struct json_object *result;
	struct err err = ERR_INIT;

	if (questions)
		json_add(ret, "inputRequests", json_object_get(questions));
	if (task->state == STORE_TASK_FAILED)
		json_add(ret, "error", error_object(task->message));
	if (task->state != STORE_TASK_COMPLETED)
		return;
	if (result_of(call, task, &result, &err) == 0) {
		json_add(ret, "result", result);
		return;
	}
	log_event(LOG_ERROR, "the result of a task cannot be read", "id", task->id, "error", err.text, NULL);
	json_add_string(ret, "status", "failed");
	json_add(ret, "error", error_object(err.text));
}

struct json_object *mcp_task_describe(struct mcp_call *call, const char *id)
{
	struct server *server = call->exchange->server;
	struct store_task task;

	if (store_task_find(server->store, id, call->exchange->token.owner, &task, NULL) < 0)
		return NULL;
	auto_json struct json_object *questions = task.state == STORE_TASK_WORKING ? tasks_questions(server->tasks, id) : NULL;
	struct json_object *object = json_object_new_object();

	describe(call, &task, questions != NULL, object);
	if (call->modern)
		add_details(call, &task, questions, object);
	store_task_clear(&task);
	return object;
}

int mcp_task_start(struct mcp_call *call, struct task_start *start, struct err *err)
{
	struct store_task task;

	start->token = &call->exchange->token;
	start->session_id = call->session ? call->session->id : NULL;
	start->ttl_ms = call->task.ttl_ms;
	int result = tasks_start(call->exchange->server->tasks, start, &task, err);

	if (result < 0)
		return result;
	struct json_object *object = json_object_new_object();

	describe(call, &task, false, object);
	if (call->modern) {
		json_add_string(object, "resultType", "task");
		call->result = object;
	} else {
		call->result = json_object_new_object();
		json_add(call->result, "task", object);
	}
	return 0;
}

/* --- the methods -------------------------------------------------------------------------------------------------------------- */

/* The checks that all of them begin with; *ret_id: params.taskId. */
static int check(struct mcp_call *call, const char **ret_id)
{
	const struct server *server = call->exchange->server;

	if (!server->tasks || (!call->modern && !legacy_tasks(server, call->protocol)))
		return mcp_fail_name(call, RPC_METHOD_NOT_FOUND, "Method not found", call->message->method);
	if (call->modern && mcp_require_tasks(call) < 0)
		return -1;
	if (!ret_id)
		return 0;
	*ret_id = json_get_string(call->message->params, "taskId");
	return *ret_id ? 0 : mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: taskId: must be a string");
}

/* Unknown, expired and another owner's are the same. */
static int fail(struct mcp_call *call, const char *id, const struct err *err)
{
	if (err->code == ERR_NOT_FOUND)
		return mcp_fail_name(call, RPC_INVALID_PARAMS, "Invalid params: no such task (it may have expired)", id);
	log_event(LOG_ERROR, "task failed", "error", err->text, NULL);
	return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err->text);
}

int mcp_tasks_get(struct mcp_call *call)
{
	const char *id;

	if (check(call, &id) < 0)
		return -1;
	call->result = mcp_task_describe(call, id);
	return call->result ? 0 : fail(call, id, &(struct err){.code = ERR_NOT_FOUND});
}

int mcp_tasks_cancel(struct mcp_call *call)
{
	struct server *server = call->exchange->server;
	struct store_task task = {0};
	struct err err = ERR_INIT;
	const char *id;

	if (check(call, &id) < 0)
		return -1;
	int result = tasks_cancel(server->tasks, id, call->exchange->token.owner, &task, &err);

	if (result < 0 && err.code == ERR_CONFLICT) {
		if (!call->modern)
			return mcp_fail_name(call, RPC_INVALID_PARAMS, "Invalid params: the task has ended already", id);
	} else if (result < 0) {
		return fail(call, id, &err);
	}
	call->result = json_object_new_object();
	if (!call->modern)
		describe(call, &task, false, call->result);
	store_task_clear(&task);
	return 0;
}

int mcp_tasks_update(struct mcp_call *call)
{
	struct server *server = call->exchange->server;
	struct json_object *responses = json_get(call->message->params, "inputResponses", json_type_object);
	struct store_task task;
	struct err err = ERR_INIT;
	const char *id;

	if (check(call, &id) < 0)
		return -1;
	if (!responses)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: inputResponses: must be an object");
	if (store_task_find(server->store, id, call->exchange->token.owner, &task, &err) < 0)
		return fail(call, id, &err);
	store_task_clear(&task);
	tasks_answer(server->tasks, id, responses);
	call->result = json_object_new_object();
	return 0;
}

/* --- tasks/result --------------------------------------------------------------------------------------------------------------- */

/* Sleeps until the task may have changed. ERR_CANCELLED: nobody waits for the answer any more; ERR_UNAVAILABLE: the server stops. */
static int wait_change(struct mcp_call *call, struct hub_listener *listener, struct err *err)
{
	struct hub *hub = call->exchange->server->hub;
	struct pollfd fds[] = {{.fd = listener->wake_fd, .events = POLLIN},
			       {.fd = call->flight ? call->flight->wake_fd : -1, .events = POLLIN},
			       {.fd = call->hangup_fd, .events = POLLRDHUP}};
	auto_free char *message = NULL;

	poll(fds, 3, call->stream ? stream_patience_ms(call->stream) : -1);
	if (fds[2].revents || (fds[1].revents && hub_cancelled(hub, call->flight)))
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

static void add_related(struct json_object *result, const char *id)
{
	struct json_object *meta = json_object_new_object(), *related = json_object_new_object();

	json_add_string(related, "taskId", id);
	json_add(meta, META_RELATED, related);
	json_add(result, "_meta", meta);
}

int mcp_tasks_result(struct mcp_call *call)
{
	struct store_task task = {0};
	struct err err = ERR_INIT;
	const char *id;

	if (check(call, &id) < 0)
		return -1;
	if (wait_end(call, id, &task, &err) < 0) {
		call->silent = err.code == ERR_CANCELLED;
		return fail(call, id, &err);
	}
	int result = task.state == STORE_TASK_FAILED ? err_set(&err, ERR_UNAVAILABLE, "%s", task.message)
						     : result_of(call, &task, &call->result, &err);

	store_task_clear(&task);
	if (result < 0) /* one that was cancelled before its run began has no record */
		return mcp_fail(call, RPC_INTERNAL, "Internal error: %s",
				task.state == STORE_TASK_CANCELLED ? "the task was cancelled" : err.text);
	add_related(call->result, id);
	return 0;
}

/* --- tasks/list ----------------------------------------------------------------------------------------------------------------- */

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
	auto_json struct json_object *questions = tasks_questions(listing->call->exchange->server->tasks, task->id);

	object = json_object_new_object();
	describe(listing->call, task, questions != NULL, object);
	json_object_array_add(listing->tasks, object);
	memcpy(listing->last, task->id, ID_SIZE);
	return 0;
}

/* The id that the page comes after, "g" for the first. */
static int read_cursor(struct mcp_call *call, struct buf *before)
{
	const char *cursor = json_get_string(call->message->params, "cursor");
	struct json_object *value;

	if (!json_object_object_get_ex(call->message->params, "cursor", &value) || !value) {
		buf_puts(before, "g");
		return 0;
	}
	if (cursor && strlen(cursor) <= CURSOR_MAX &&
	    signed_read(call->exchange->server->store, CURSOR_OF, call->exchange->token.owner, cursor, before, NULL) == 0)
		return 0;
	return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: not one of this list");
}

int mcp_tasks_list(struct mcp_call *call)
{
	struct listing listing = {.call = call};
	auto_buf struct buf before = {0};
	struct err err = ERR_INIT;

	buf_init(&before, CURSOR_MAX);
	if (check(call, NULL) < 0 || read_cursor(call, &before) < 0)
		return -1;
	const struct store_task_page page = {call->exchange->token.owner, before.data, MCP_TASKS_PAGE + 1};

	call->result = json_object_new_object();
	listing.tasks = json_object_new_array();
	json_add(call->result, "tasks", listing.tasks);
	return store_task_list(call->exchange->server->store, &page, list_one, &listing, &err) < 0 ? fail(call, "", &err) : 0;
}
