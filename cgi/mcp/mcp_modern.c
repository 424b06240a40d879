/*
 * mcp_modern.c - revision 2026-07-28: every request carries its version and the client's capabilities, nothing is
 * remembered.
 *
 * The checks are a ladder, the first that fails answers; clients and the conformance suite probe every boundary:
 *   a. params._meta is whole                      400 -32602
 *   b. MCP-Protocol-Version is there and equal    400 -32020
 *   c. that version is ours                       400 -32022, data {supported, requested}
 *   d. Mcp-Method is there and equal              400 -32020
 *   e. Mcp-Name is there and equal, where it must 400 -32020
 *   f. the method is known                        404 -32601
 *   g. Mcp-Param-… equal the arguments, where the tool's schema says so (x-mcp-header)  400 -32020
 *   h. the client has what the method needs       400 -32021 (mcp_require)
 *   i. everything else                            200 with a JSON-RPC error
 * Leaving is cancelling.
 */
#include "mcp_modern.h"

#include <ctype.h>

#include "cgi/http/access.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "mcp_about.h"
#include "mcp_stream.h"
#include "mcp_tasks.h"
#include "prompts.h"
#include "resources.h"
#include "skills.h"
#include "tools.h"

#define HEADER_MAX  (8 * 1024) /* one header's value: the web servers' own limit */
#define DISCOVER_MS 3600000    /* how long clients may keep server/discover … */
#define LIST_MS     60000      /* … and lists that may differ by the next start; what any call may change: 0 */

/* The names of the era's revisions. */
static struct json_object *supported(void)
{
	struct json_object *list = json_object_new_array();

	for (const struct mcp_revision *revision = mcp_revisions; revision->name; revision++) {
		if (revision->modern)
			json_object_array_add(list, json_object_new_string(revision->name));
	}
	return list;
}

static int discover(struct mcp_call *call)
{
	call->result = json_object_new_object();
	json_add(call->result, "supportedVersions", supported());
	json_add(call->result, "capabilities", mcp_capabilities(call->exchange, call->revision));
	mcp_add_instructions(call->exchange->server, call->result);
	return 0;
}

#define CACHE_PRIVATE .cache = MCP_CACHE_PRIVATE
const struct mcp_method modern_methods[] = {
	MCP_METHOD("server/discover", discover, ACCESS_FREE, .cache = MCP_CACHE_PUBLIC, .ttl_ms = DISCOVER_MS),
	MCP_METHOD("tools/list", mcp_tools_list, ACCESS_FREE, CACHE_PRIVATE, .ttl_ms = LIST_MS),
	MCP_METHOD("tools/call", mcp_tools_call, MCP_SCOPE_TOOL, .header = "name"),
	MCP_METHOD("resources/list", mcp_resources_list, STORE_SCOPE_FILES, CACHE_PRIVATE),
	MCP_METHOD("resources/templates/list", mcp_resources_templates, ACCESS_FREE, CACHE_PRIVATE, .ttl_ms = LIST_MS),
	MCP_METHOD("resources/read", mcp_resources_read, STORE_SCOPE_FILES, CACHE_PRIVATE, .header = "uri"),
	MCP_METHOD("resources/directory/read", mcp_directory_read, STORE_SCOPE_FILES),
	MCP_METHOD("skills/list", mcp_skills_list, STORE_SCOPE_FILES, CACHE_PRIVATE, .ttl_ms = LIST_MS),
	MCP_METHOD("skills/get", mcp_skills_get, STORE_SCOPE_FILES, CACHE_PRIVATE, .ttl_ms = LIST_MS),
	MCP_METHOD("prompts/list", mcp_prompts_list, ACCESS_FREE, CACHE_PRIVATE, .ttl_ms = LIST_MS),
	MCP_METHOD("prompts/get", mcp_prompts_get, ACCESS_FREE, .header = "name"),
	MCP_METHOD("completion/complete", mcp_completion, MCP_SCOPE_REF),
	MCP_METHOD("subscriptions/listen", mcp_listen, ACCESS_FREE), /* it leaves out what the token may not read */
	MCP_METHOD("tasks/get", mcp_tasks_get, STORE_SCOPE_RUN, .header = "taskId"),
	MCP_METHOD("tasks/update", mcp_tasks_update, STORE_SCOPE_RUN, .header = "taskId"),
	MCP_METHOD("tasks/cancel", mcp_tasks_cancel, STORE_SCOPE_RUN, .header = "taskId"),
	{0},
};

int modern_envelope(struct json_object *params, struct err *err)
{
	struct json_object *meta = json_get(params, "_meta", json_type_object), *level;

	if (!meta)
		return err_set(err, ERR_INVALID, "Invalid params: _meta is missing");
	if (!json_get_string(meta, MCP_META_VERSION))
		return err_set(err, ERR_INVALID, "Invalid params: _meta: " MCP_META_VERSION " must be a string");
	if (!json_get(meta, MCP_META_CAPABILITIES, json_type_object))
		return err_set(err, ERR_INVALID, "Invalid params: _meta: " MCP_META_CAPABILITIES " must be an object");
	if (!json_object_object_get_ex(meta, MCP_META_LOG_LEVEL, &level))
		return 0;
	if (mcp_log_level(json_get_string(meta, MCP_META_LOG_LEVEL)) >= 0)
		return 0;
	return err_set(err, ERR_INVALID,
		       "Invalid params: _meta: " MCP_META_LOG_LEVEL " must be one of debug … emergency");
}

/* "=?base64?…?=" is decoded, anything else is literal; ERR_INVALID for bad base64. */
static int decode_header(const char *value, struct buf *ret, struct err *err)
{
	static const char prefix[] = "=?base64?";
	size_t length = strlen(value), begin = sizeof(prefix) - 1;

	if (!str_starts(value, prefix) || length < begin + 2 || !streq(value + length - 2, "?=")) {
		buf_puts(ret, value);
		return 0;
	}
	return base64_decode(value + begin, length - begin - 2, ret, err);
}

/* Step e; true: the header is as it must be. */
static bool name_matches(struct http_exchange *exchange, const struct mcp_request *request, struct err *err)
{
	const char *member = request->method ? request->method->header : NULL;
	auto_free char *buffer = xmalloc(HEADER_MAX);
	auto_buf struct buf decoded = {0};

	buf_init(&decoded, HEADER_MAX);
	struct json_object *expected = member ? json_get(request->message.params, member, json_type_string) : NULL;
	const char *value = request_header(exchange->request, "HTTP_MCP_NAME", buffer, HEADER_MAX);

	if (!expected)
		return true;
	if (!value) {
		err_set(err, ERR_INVALID, "Header mismatch: Mcp-Name is missing (it must equal params.%s)", member);
		return false;
	}
	if (decode_header(value, &decoded, err) < 0) {
		err_wrap(err, "Header mismatch: Mcp-Name");
		return false;
	}
	if (decoded.length == (size_t)json_object_get_string_len(expected) &&
	    memcmp(decoded.data, json_object_get_string(expected), decoded.length) == 0)
		return true;
	err_set(err, ERR_INVALID, "Header mismatch: Mcp-Name differs from params.%s", member);
	return false;
}

/* Mcp-Param-NAME equals the argument that the tool's schema marks with x-mcp-header. */
static bool header_matches(const struct request *request, const struct tool_header *header,
			   struct json_object *arguments, struct err *err)
{
	auto_free char *buffer = xmalloc(HEADER_MAX);
	struct json_object *argument = NULL; /* absent or null: the header must not be there */
	auto_free char *name = xasprintf("HTTP_MCP_PARAM_%s", header->name);
	auto_buf struct buf decoded = {0};

	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
	buf_init(&decoded, HEADER_MAX);
	const char *value = request_header(request, name, buffer, HEADER_MAX);

	if (!json_object_object_get_ex(arguments, header->argument, &argument) || !argument)
		return true;
	if (!value)
		err_set(err, ERR_INVALID, "Header mismatch: Mcp-Param-%s is missing (it must equal arguments.%s)",
			header->name, header->argument);
	else if (decode_header(value, &decoded, err) < 0)
		err_wrap(err, "Header mismatch: Mcp-Param-%s", header->name);
	else if (streq(decoded.data, json_object_get_string(argument))) /* integers in decimal, true and false */
		return true;
	else
		err_set(err, ERR_INVALID, "Header mismatch: Mcp-Param-%s differs from arguments.%s", header->name,
			header->argument);
	return false;
}

static void refuse_version(struct reply *reply, struct json_object *id, const char *requested)
{
	struct json_object *data = json_object_new_object();

	json_add(data, "supported", supported());
	json_add_string(data, "requested", requested);
	struct json_object *answer = rpc_error(id, RPC_UNSUPPORTED_VERSION, "Unsupported protocol version", data);

	mcp_observe(NULL, answer);
	mcp_reply(reply, 400, answer);
}

/* A client of a later revision, whose envelope may be another, learns what there is. */
static bool is_later(const struct mcp_request *request, const char *version)
{
	struct json_object *meta = json_get(request->message.params, "_meta", json_type_object);
	const char *named = json_get_string(meta, MCP_META_VERSION);

	return version && !mcp_revision_find(version) && (!request->named || (named && streq(named, version)));
}

/* Steps a to e; true: go on, in this revision. */
static bool ladder(struct http_exchange *exchange, const struct mcp_request *request, const char *version,
		   const struct mcp_revision **ret)
{
	const struct rpc_message *message = &request->message;
	char method[256];
	struct reply *reply = exchange->reply;
	struct err err = ERR_INIT;

	if (is_later(request, version)) {
		refuse_version(reply, message->id, version);
		return false;
	}
	if (modern_envelope(message->params, &err) < 0) {
		mcp_reply_error(reply, 400, message->id, RPC_INVALID_PARAMS, err.text);
		return false;
	}
	const char *requested = json_get_string(json_get(message->params, "_meta", json_type_object), MCP_META_VERSION);

	if (!version || !streq(version, requested)) {
		mcp_reply_error(reply, 400, message->id, RPC_HEADER_MISMATCH,
				version ? "Header mismatch: MCP-Protocol-Version differs from _meta"
					: "Header mismatch: MCP-Protocol-Version is missing");
		return false;
	}
	const struct mcp_revision *revision = mcp_revision_find(requested);

	if (!revision || !revision->modern) {
		refuse_version(reply, message->id, requested);
		return false;
	}
	const char *value = request_header(exchange->request, "HTTP_MCP_METHOD", method, sizeof(method));

	if (!value || !streq(value, message->method)) {
		mcp_reply_error(reply, 400, message->id, RPC_HEADER_MISMATCH,
				value ? "Header mismatch: Mcp-Method differs from the method"
				      : "Header mismatch: Mcp-Method is missing");
		return false;
	}
	if (!name_matches(exchange, request, &err)) {
		mcp_reply_error(reply, 400, message->id, RPC_HEADER_MISMATCH, err.text);
		return false;
	}
	*ret = revision;
	return true;
}

/* What every modern result has besides its own members; one that is not complete says so itself. */
static void complete(const struct mcp_method *method, struct json_object *result)
{
	struct json_object *meta = json_get(result, "_meta", json_type_object);

	if (!meta) {
		meta = json_object_new_object();
		json_add(result, "_meta", meta);
	}
	json_add(meta, MCP_META_SERVER, mcp_server_info());
	if (json_get_string(result, "resultType"))
		return;
	json_add_string(result, "resultType", "complete");
	if (method->cache == MCP_CACHE_UNSAID)
		return;
	json_add_int(result, "ttlMs", method->ttl_ms);
	json_add_string(result, "cacheScope", method->cache == MCP_CACHE_PUBLIC ? "public" : "private");
}

void modern_message(struct http_exchange *exchange, const struct mcp_request *request, const char *version)
{
	const struct rpc_message *message = &request->message;
	const struct mcp_method *method = request->method;
	struct stream stream;
	struct mcp_call call = {
		.exchange = exchange,
		.message = message,
		.tool = request->tool,
		.revision = mcp_revision_newest(true),
		.hangup_fd = exchange->request->hangup_fd,
		.stream = &stream,
	};
	struct err err = ERR_INIT;

	if (!ladder(exchange, request, version, &call.revision))
		return;
	if (!method) {
		mcp_fail_name(&call, RPC_METHOD_NOT_FOUND, "Method not found", message->method);
		mcp_reply(exchange->reply, 404, mcp_answer(&call));
		return;
	}
	/* Step g. */
	struct json_object *arguments = json_get(message->params, "arguments", json_type_object);

	for (const struct tool_header *header = call.tool ? call.tool->headers : NULL; header && header->name;
	     header++) {
		if (!header_matches(exchange->request, header, arguments, &err)) {
			mcp_reply_error(exchange->reply, 400, message->id, RPC_HEADER_MISMATCH, err.text);
			return;
		}
	}
	stream_init(&stream, exchange->request, exchange->reply);
	if (!stream_possible(&stream))
		call.stream = NULL;
	if (method->handle(&call) == 0)
		complete(method, call.result);
	mcp_finish(&call, call.code && call.status ? call.status : 200);
}
