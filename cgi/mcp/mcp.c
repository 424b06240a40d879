/*
 * mcp.c - see mcp.h.
 *
 * What handlers and eras share: failing a call, reading the members of params that several methods have, making the
 * answer and its figures, and noting messages for the tests. Nothing here knows a method.
 */
#include "mcp.h"

#include <stdarg.h>

#include "cgi/http/access.h"
#include "lib/base/metrics.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "tools.h"

int mcp_fail(struct mcp_call *call, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(call->text, sizeof(call->text), format, arguments);
	va_end(arguments);
	call->code = code;
	return -1;
}

int mcp_fail_name(struct mcp_call *call, int code, const char *text, const char *name)
{
	return mcp_fail(call, code, "%s: %.*s", text, (int)utf8_cut(name, strlen(name), MCP_NAME_SHOWN), name);
}

bool mcp_offers(const struct mcp_call *call, const char *capability)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object);

	return json_get(json_get(meta, MCP_META_CAPABILITIES, json_type_object), capability, json_type_object);
}

bool mcp_elicits(struct json_object *capabilities)
{
	struct json_object *modes = json_get(capabilities, "elicitation", json_type_object);

	/* No mode at all means the form, as before there were modes. */
	return modes && (json_get(modes, "form", json_type_object) || !json_get(modes, "url", json_type_object));
}

bool mcp_shows_apps(struct json_object *capabilities)
{
	struct json_object *extensions = json_get(capabilities, "extensions", json_type_object);
	struct json_object *apps = json_get(extensions, MCP_APPS_EXTENSION, json_type_object);
	struct json_object *types = json_get(apps, "mimeTypes", json_type_array);

	for (size_t i = 0; types && i < json_object_array_length(types); i++) {
		if (streq(json_object_get_string(json_object_array_get_idx(types, i)), MCP_APP_TYPE))
			return true;
	}
	return apps && !types;
}

int mcp_require(struct mcp_call *call, const char *capability)
{
	struct json_object *required = json_object_new_object();

	if (mcp_offers(call, capability)) {
		json_object_put(required);
		return 0;
	}
	json_add(required, capability, json_object_new_object());
	call->data = json_object_new_object();
	json_add(call->data, "requiredCapabilities", required);
	call->status = 400;
	return mcp_fail(call, RPC_MISSING_CAPABILITY, "Missing required client capability: %s", capability);
}

int mcp_results(struct mcp_call *call)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object), *asked = NULL;
	struct store_token *token = &call->exchange->token;

	if (!json_object_object_get_ex(meta, TOOL_RESULTS_ASKED, &asked))
		return 0;
	const char *word = json_get_string(meta, TOOL_RESULTS_ASKED);

	if (!word || !config_results_valid(word))
		return mcp_fail(call, RPC_INVALID_PARAMS,
				"Invalid params: _meta: " TOOL_RESULTS_ASKED
				" must be content, structured, both or none");
	snprintf(token->results, sizeof(token->results), "%s", word);
	return 0;
}

int mcp_arguments(struct mcp_call *call, struct json_object **ret)
{
	struct json_object *arguments = NULL;

	if (call->message->params)
		json_object_object_get_ex(call->message->params, "arguments", &arguments);
	if (json_object_is_type(arguments, json_type_string))
		return mcp_fail(call, RPC_INVALID_PARAMS,
				"Invalid params: arguments: must be an object, not a text: send the object itself, "
				"{\"name\": \"value\"}, not its JSON between quotes");
	if (arguments && !json_object_is_type(arguments, json_type_object))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: arguments: must be an object");
	*ret = arguments;
	return 0;
}

struct json_object *mcp_cursor(const struct mcp_call *call)
{
	struct json_object *cursor = NULL;

	if (call->message->params)
		json_object_object_get_ex(call->message->params, "cursor", &cursor);
	return json_object_is_type(cursor, json_type_string) && json_object_get_string_len(cursor) == 0 ? NULL : cursor;
}

void (*mcp_observer)(const struct mcp_seen *seen);

void mcp_observe(const struct mcp_call *call, struct json_object *message)
{
	if (mcp_observer)
		mcp_observer(&(struct mcp_seen){
			.message = message, .call = call, .protocol = call ? call->revision->name : NULL});
}

void mcp_observe_unasked(const char *protocol, const char *text)
{
	auto_json struct json_object *message = NULL;

	if (!mcp_observer)
		return;
	json_parse(text, strlen(text), &message, NULL); /* NULL where it is no JSON: for the observer to see */
	mcp_observer(&(struct mcp_seen){.message = message, .protocol = protocol});
}

void mcp_observe_received(const char *protocol, struct json_object *message)
{
	if (mcp_observer)
		mcp_observer(&(struct mcp_seen){.message = message, .protocol = protocol, .received = true});
}

/* A person who reports an error can name the request: the logs have the same id. */
static struct json_object *request_name(const struct reply *reply)
{
	struct json_object *data = NULL;

	if (reply->request_id[0]) {
		data = json_object_new_object();
		json_add_string(data, "requestId", reply->request_id);
	}
	return data;
}

struct json_object *mcp_answer(struct mcp_call *call)
{
	char asked[METRICS_PAIR], answered[METRICS_PAIR];
	struct json_object *answer;

	if (!call->code) {
		answer = rpc_result(call->message->id, steal(&call->result));
	} else {
		json_object_put(steal(&call->result));
		if (!call->data)
			call->data = request_name(call->exchange->reply);
		answer = rpc_error(call->message->id, call->code, call->text, steal(&call->data));
	}
	mcp_observe(call, answer);
	struct json_object *result = json_get(answer, "result", json_type_object);
	const bool failed = json_object_get_boolean(json_get(result, "isError", json_type_boolean));
	/* A request that a client got wrong is not an error of ours. */
	const char *error = call->code == RPC_INTERNAL ? "server_error" : failed ? "tool_error" : "";

	if (call->tool)
		metrics_add(METRIC_TOOLS, call->tool->name, error, 1);
	if (call->exchange->began_us)
		metrics_observe(METRIC_OPERATION,
				metrics_pair(asked, call->message->method, call->tool ? call->tool->name : ""),
				metrics_pair(answered, error, call->revision->name),
				clock_monotonic_us() - call->exchange->began_us);
	return answer;
}

void mcp_reply(struct reply *reply, int status, struct json_object *answer)
{
	reply_json(reply, status, answer);
	json_object_put(answer);
}

void mcp_reply_error(struct reply *reply, int status, struct json_object *id, int code, const char *text)
{
	struct json_object *answer = rpc_error(id, code, text, request_name(reply));

	mcp_observe(NULL, answer);
	mcp_reply(reply, status, answer);
}

void mcp_accepted(struct reply *reply)
{
	reply->status = 202;
}

const struct mcp_method *mcp_method_find(const struct mcp_method *table, const char *name)
{
	for (; table->name; table++) {
		if (streq(table->name, name))
			return table;
	}
	return NULL;
}

void mcp_refuse(const struct http_exchange *exchange, struct json_object *id, const struct access_refusal *refusal)
{
	struct reply *reply = exchange->reply;

	if (refusal->retry_seconds)
		reply_header(reply, "Retry-After", "%lld", (long long)refusal->retry_seconds);
	if (refusal->status == 403)
		access_challenge_scope(exchange, refusal);
	mcp_reply_error(reply, refusal->status, id, RPC_INVALID_REQUEST, refusal->text);
}
