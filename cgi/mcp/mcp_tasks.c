/*
 * mcp_tasks.c - see mcp_tasks.h.
 *
 * Where the two forms differ although they share a name: a result that says isError makes the task `failed` in the
 * legacy form and `completed` in the modern one, whose `failed` is a JSON-RPC error alone; cancelling a task that has
 * ended is an error in the legacy form and changes nothing in the modern one; times to live are `ttl` or `ttlMs`.
 */
#include "mcp_tasks.h"

#include "cgi/http/hub.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "mcp_stream.h"

#define META_RELATED "io.modelcontextprotocol/related-task"

/* -------- who may have tasks -------------------------------------------------------------------------- */

static bool legacy_tasks(const struct server *server, const struct mcp_revision *revision)
{
	return server->tasks && revision->tasks == MCP_TASKS_CORE;
}

void mcp_task_capabilities(const struct server *server, const struct mcp_revision *revision,
			   struct json_object *capabilities)
{
	static const char core[] = "{\"list\":{},\"cancel\":{},\"requests\":{\"tools\":{\"call\":{}}}}";
	struct json_object *tasks;

	if (!server->tasks)
		return;
	if (revision->tasks == MCP_TASKS_BY_EXTENSION) {
		tasks = json_object_new_object();
		json_add(tasks, MCP_TASKS_EXTENSION, json_object_new_object());
		json_add(capabilities, "extensions", tasks);
	} else if (legacy_tasks(server, revision) && json_parse(core, sizeof(core) - 1, &tasks, NULL) == 0) {
		json_add(capabilities, "tasks", tasks);
	}
}

bool mcp_task_support_shown(const struct mcp_call *call)
{
	return legacy_tasks(call->exchange->server, call->revision);
}

void mcp_task_support(struct mcp_call *call, struct json_object *tools)
{
	static const char *const texts[] = {
		[TOOL_TASK_NEVER] = "forbidden", [TOOL_TASK_OPTIONAL] = "optional", [TOOL_TASK_REQUIRED] = "required"};
	const struct server *server = call->exchange->server;

	if (!mcp_task_support_shown(call))
		return;
	for (size_t i = 0; i < json_object_array_length(tools); i++) {
		struct json_object *tool = json_object_array_get_idx(tools, i), *execution = json_object_new_object();

		json_add_string(execution, "taskSupport",
				texts[tool_find(server, json_get_string(tool, "name"))->task]);
		json_add(tool, "execution", execution);
	}
}

static bool offers_tasks(const struct mcp_call *call)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object);
	struct json_object *extensions =
		json_get(json_get(meta, MCP_META_CAPABILITIES, json_type_object), "extensions", json_type_object);

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
	return mcp_fail(call, RPC_MISSING_CAPABILITY,
			"Missing required client capability: the extension " MCP_TASKS_EXTENSION);
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
			return mcp_fail(call, RPC_INVALID_PARAMS,
					"Invalid params: task.ttl: must be a number of milliseconds");
	}
	call->task.possible = call->task.asked = true;
	return 0;
}

int mcp_task_offer(struct mcp_call *call, const struct tool *tool)
{
	const struct server *server = call->exchange->server;

	if (!call->revision->modern)
		return legacy_tasks(server, call->revision) ? read_hint(call, tool) : 0;
	if (server->tasks && tool->task == TOOL_TASK_REQUIRED && mcp_require_tasks(call) < 0)
		return -1;
	call->task.possible = server->tasks && tool->task != TOOL_TASK_NEVER && offers_tasks(call);
	return 0;
}

/* -------- the shapes ---------------------------------------------------------------------------------- */

static const char *status_of(const struct mcp_call *call, const struct store_task *task, bool asks)
{
	switch (task->state) {
	case STORE_TASK_COMPLETED:
		return task->is_error && !call->revision->modern ? "failed" : "completed";
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
void mcp_task_print(struct mcp_call *call, const struct store_task *task, bool asks, struct json_object *ret)
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
	json_add_int(ret, call->revision->modern ? "ttlMs" : "ttl", task->ttl_ms);
	json_add_int(ret, call->revision->modern ? "pollIntervalMs" : "pollInterval", TASKS_POLL_MS);
}

/* The CallToolResult of a task that has ended, the caller's. */
int mcp_task_result(struct mcp_call *call, const struct store_task *task, struct json_object **ret, struct err *err)
{
	struct server *server = call->exchange->server;
	const struct tool_call tool_call = {
		.server = server, .token = &call->exchange->token, .revision = call->revision, .hangup_fd = -1};
	const struct tool *tool = tool_find(server, task->tool);
	struct job_result run;
	struct tool_result result;

	if (task->result)
		return json_parse(task->result, strlen(task->result), ret, err);
	if (!tool || !tool->result)
		return err_set(err, ERR_UNAVAILABLE, "the tool %s is switched off; its results are in the record",
			       task->tool);
	int failed = job_result_load(server->store, task->execution, job_answer_max(server->config), &run, err);

	if (failed < 0)
		return failed;
	tool->result(&tool_call, &run, &result);
	*ret = tool_result_object(&result, tool_results(&call->exchange->token));
	job_result_clear(&run);
	return 0;
}

static struct json_object *error_object(const char *text)
{
	struct json_object *error = json_object_new_object();

	json_add_int(error, "code", RPC_INTERNAL);
	json_add_string(error, "message", text);
	return error;
}

/* What the modern form has besides the task itself. */
static void add_details(struct mcp_call *call, const struct store_task *task, struct json_object *questions,
			struct json_object *ret)
{
	struct json_object *result;
	struct err err = ERR_INIT;

	if (questions)
		json_add(ret, "inputRequests", json_object_get(questions));
	if (task->state == STORE_TASK_FAILED)
		json_add(ret, "error", error_object(task->message));
	if (task->state != STORE_TASK_COMPLETED)
		return;
	if (mcp_task_result(call, task, &result, &err) == 0) {
		json_add_string(result, "resultType", "complete"); /* ext-tasks 0.2.2 wants it here, too */
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
	auto_json struct json_object *questions =
		task.state == STORE_TASK_WORKING ? tasks_questions(server->tasks, id, task.message) : NULL;
	struct json_object *object = json_object_new_object();

	mcp_task_print(call, &task, questions != NULL, object);
	if (call->revision->modern)
		add_details(call, &task, questions, object);
	store_task_clear(&task);
	return object;
}

int mcp_task_start(struct mcp_call *call, struct task_start *start, struct err *err)
{
	struct json_object *token = mcp_progress_token(call);
	struct store_task task;
	auto_buf struct buf text = {0};

	start->token = &call->exchange->token;
	start->session_id = call->session ? call->session->id : NULL;
	start->ttl_ms = call->task.ttl_ms;
	start->tell = call->session ? mcp_task_tell : NULL;
	buf_init(&text, HTTP_REPLY_MAX);
	if (token)
		json_print(&text, token);
	start->progress_token = token ? text.data : NULL;
	int result = tasks_start(call->exchange->server->tasks, start, &task, err);

	if (result < 0)
		return result;
	struct json_object *object = json_object_new_object();

	mcp_task_print(call, &task, false, object);
	if (call->revision->modern) {
		json_add_string(object, "resultType", "task");
		call->result = object;
	} else {
		call->result = json_object_new_object();
		json_add(call->result, "task", object);
	}
	return 0;
}

/* -------- the methods --------------------------------------------------------------------------------- */

/* The checks that all of them begin with; *ret_id: params.taskId. */
int mcp_task_check(struct mcp_call *call, const char **ret_id)
{
	const struct server *server = call->exchange->server;

	if (!server->tasks || (!call->revision->modern && !legacy_tasks(server, call->revision))) {
		call->status = call->revision->modern ? 404 : 0; /* as any other method that is not there */
		return mcp_fail_name(call, RPC_METHOD_NOT_FOUND, "Method not found", call->message->method);
	}
	if (call->revision->modern && mcp_require_tasks(call) < 0)
		return -1;
	if (!ret_id)
		return 0;
	*ret_id = json_get_string(call->message->params, "taskId");
	return *ret_id ? 0 : mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: taskId: must be a string");
}

/* Unknown, expired and another owner's are the same. */
int mcp_task_fail(struct mcp_call *call, const char *id, const struct err *err)
{
	if (err->code == ERR_NOT_FOUND)
		return mcp_fail_name(call, RPC_INVALID_PARAMS, "Invalid params: no such task (it may have expired)",
				     id);
	log_event(LOG_ERROR, "task failed", "error", err->text, NULL);
	return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err->text);
}

int mcp_tasks_get(struct mcp_call *call)
{
	const char *id;

	if (mcp_task_check(call, &id) < 0 || mcp_results(call) < 0)
		return -1;
	call->result = mcp_task_describe(call, id);
	return call->result ? 0 : mcp_task_fail(call, id, &(struct err){.code = ERR_NOT_FOUND});
}

int mcp_tasks_cancel(struct mcp_call *call)
{
	struct server *server = call->exchange->server;
	struct store_task task = {0};
	struct err err = ERR_INIT;
	const char *id;

	if (mcp_task_check(call, &id) < 0)
		return -1;
	int result = tasks_cancel(server->tasks, id, call->exchange->token.owner, &task, &err);

	if (result < 0 && err.code == ERR_CONFLICT) {
		if (!call->revision->modern)
			return mcp_fail_name(call, RPC_INVALID_PARAMS, "Invalid params: the task has ended already",
					     id);
	} else if (result < 0) {
		return mcp_task_fail(call, id, &err);
	}
	call->result = json_object_new_object();
	if (!call->revision->modern)
		mcp_task_print(call, &task, false, call->result);
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

	if (mcp_task_check(call, &id) < 0)
		return -1;
	if (!responses)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: inputResponses: must be an object");
	if (store_task_find(server->store, id, call->exchange->token.owner, &task, &err) < 0)
		return mcp_task_fail(call, id, &err);
	store_task_clear(&task);
	tasks_answer(server->tasks, id, responses);
	call->result = json_object_new_object();
	return 0;
}

/* -------- news without being asked, which only revision 2025-11-25 has --------------------------------- */

void mcp_task_add_related(struct json_object *result, const char *id)
{
	struct json_object *meta = json_get(result, "_meta", json_type_object), *related = json_object_new_object();

	if (!meta) {
		meta = json_object_new_object();
		json_add(result, "_meta", meta);
	}
	json_add_string(related, "taskId", id);
	json_add(meta, META_RELATED, related);
}

/* To the client of a legacy session, on the stream that belongs to no request: it may have none open. */
bool mcp_task_tell(struct server *server, const struct store_task *task, const char *token, int64_t progress,
		   const char *text)
{
	auto_json struct json_object *message = json_object_new_object();
	struct json_object *params = json_object_new_object(), *value = NULL;
	struct mcp_call call = {.revision = mcp_revision_newest(false)}; /* mcp_task_print() asks for no more */
	auto_buf struct buf line = {0};

	json_add_string(message, "jsonrpc", "2.0");
	json_add_string(message, "method", text ? "notifications/progress" : "notifications/tasks/status");
	json_add(message, "params", params);
	if (text && json_parse(token, strlen(token), &value, NULL) == 0) {
		json_add(params, "progressToken", value);
		json_add_int(params, "progress", progress);
		json_add_string(params, "message", text);
		mcp_task_add_related(params, task->id);
	} else {
		mcp_task_print(&call, task, false, params);
	}
	buf_init(&line, HTTP_REPLY_MAX);
	json_print(&line, message);
	bool told = hub_tell(server->hub, task->session_id, line.data);

	if (told)
		mcp_observe_unasked(call.revision->name, line.data);
	return told;
}
