/* mcp_tools.c - tools/list and tools/call, the same in both eras; see mcp.h. */
#include "mcp.h"

#include "cgi/http/client.h"
#include "cgi/http/request.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/record/store_session.h"
#include "mcp_tasks.h"
#include "tools.h"
#include "tools_cache.h"

int mcp_tools_list(struct mcp_call *call)
{
	if (mcp_cursor(call))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: unknown (the list has one page)");
	const struct tool_provider *provider = call->exchange->server->tables.provider;
	struct json_object *tools = tools_cache_list(call);

	if (provider) {
		auto_buf struct buf list = {0};

		buf_init(&list, HTTP_REPLY_MAX);
		json_print(&list, tools);
		provider->list(call, &list);
		json_object_put(tools);
		tools = json_new_printed(list.data, list.length);
	}
	call->result = json_object_new_object();
	json_add(call->result, "tools", tools);
	return 0;
}

/* The message's own wins over the header's: a proxy may have made that one. */
static void find_trace(const struct mcp_call *call, char ret[REQUEST_TRACE_SIZE])
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object);

	if (!request_trace(json_get_string(meta, "traceparent"), ret))
		request_trace(request_param(call->exchange->request, "HTTP_TRACEPARENT"), ret);
}

/* What the client calls itself, in each request or when it opened the session, and what it calls the request. */
static void name_client(struct mcp_call *call)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object);
	struct json_object *client = json_get(meta, MCP_META_CLIENT, json_type_object);
	const struct session *session = call->session;

	client_named(&call->exchange->client, json_get_string(client, "name"), json_get_string(client, "version"));
	if (session)
		client_named(&call->exchange->client, session->client_name, session->client_version);
	client_came(&call->exchange->client, "mcp", json_object_get_string(call->message->id));
}

/* An app that shows the result needs its details, which hosts do not give to the model. What the client or the token
 * asks for holds. */
static void give_app_details(struct mcp_call *call)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object);
	struct store_token *token = &call->exchange->token;
	const bool shows = call->session ? call->session->offers & STORE_APPS
					 : mcp_shows_apps(json_get(meta, MCP_META_CAPABILITIES, json_type_object));

	if (shows && call->tool->app && !*token->results)
		snprintf(token->results, sizeof(token->results), "content");
}

int mcp_tools_call(struct mcp_call *call)
{
	struct json_object *params = call->message->params, *arguments = NULL;
	const char *name = json_get_string(params, "name");
	struct reply *reply = call->exchange->reply;
	char trace[REQUEST_TRACE_SIZE] = "";
	struct tool_call tool_call = {
		.mcp = call,
		.server = call->exchange->server,
		.token = &call->exchange->token,
		.session_id = call->session ? call->session->id : NULL,
		.revision = call->revision,
		.hangup_fd = call->hangup_fd,
		.client = &call->exchange->client,
		.trace = trace,
	};
	struct err err = ERR_INIT;

	name_client(call);
	find_trace(call, trace);
	if (!name)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: name: must be a string, the name of a tool");
	if (mcp_arguments(call, &arguments) < 0 || mcp_results(call) < 0)
		return -1;
	const struct tool *tool = call->tool;

	if (!tool)
		return mcp_fail_name(call, RPC_INVALID_PARAMS, "Unknown tool", name);
	snprintf(reply->tool, sizeof(reply->tool), "%s", tool->name);
	give_app_details(call);
	if (mcp_task_offer(call, tool) < 0)
		return -1;
	if (tool->serve)
		return tool->serve(call, arguments);
	if (tool_run(tool, &tool_call, arguments, &call->result, &err) == 0) {
		if (tool_call.task_needed && call->revision->modern && call->exchange->server->tasks)
			return mcp_require_tasks(call);
		if (call->code != 0)
			return -1;
		snprintf(reply->outcome, sizeof(reply->outcome), "%s", tool_call.outcome);
		return 0;
	}
	snprintf(reply->outcome, sizeof(reply->outcome), "%s", err_info(err.code)->name);
	if (err.code == ERR_CANCELLED) {
		call->silent = !call->revision->modern;
		reply->gone = call->revision->modern;
		return mcp_fail(call, RPC_INTERNAL, "cancelled");
	}
	log_event(LOG_ERROR, "tool failed", "tool", tool->name, "error", err.text, "request_id",
		  reply->request_id, NULL);
	return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err.text);
}
