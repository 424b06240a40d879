/*
 * mcp.c - the router of eras; see mcp.h.
 *
 * The order of the checks is the protocol's: media type (415), size (413), JSON (400, -32700), batches, the JSON-RPC
 * envelope (400, -32600), then the era. A request is modern when its params._meta names a protocol version, or when it
 * has none but its header claims a modern one (then it is malformed; mcp_request.c).
 */
#include "mcp.h"

#include <stdarg.h>
#include <strings.h>

#include "cgi/http/access.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/base/version.h"
#include "mcp_request.h"
#include "mcp_tasks.h"

#define VERSION_HEADER_MAX 64

const char mcp_instructions[] = "Sallyport runs code in an isolated sandbox and keeps the files of a conversation "
				"between calls. Choose one conversationId "
				"for a conversation and use it in every call. Put input in place with upload_file (or "
				"the files argument), run programs with "
				"run_code: they work in /data, and what they write there stays for the next call and "
				"can be downloaded from the URLs in the "
				"result. list_runners tells which languages and libraries there are.";

struct json_object *mcp_server_info(void)
{
	struct json_object *info = json_object_new_object();

	json_add_string(info, "name", "sallyport");
	json_add_string(info, "title", "Sallyport code sandbox");
	json_add_string(info, "version", SALLYPORT_VERSION);
	return info;
}

/* listChanged and subscribe are promises of notifications, which need streams, and logging is one of messages: lists of
 * tools and prompts that change are only the fixtures', and so are messages in the modern era, where they are
 * deprecated. */
struct json_object *mcp_capabilities(const struct exchange *exchange, const char *protocol)
{
	struct json_object *capabilities = json_object_new_object();
	struct json_object *tools = json_object_new_object(), *resources = json_object_new_object(),
			   *prompts = json_object_new_object();

	json_add(capabilities, "tools", tools);
	json_add(capabilities, "resources", resources);
	json_add(capabilities, "prompts", prompts);
	json_add(capabilities, "completions", json_object_new_object());
	mcp_task_capabilities(exchange->server, protocol, capabilities);
	if (stream_offered(exchange->request)) {
		json_add_bool(resources, "listChanged", true);
		json_add_bool(resources, "subscribe", true);
		if (!streq(protocol, MCP_MODERN_VERSION) || exchange->server->fixtures)
			json_add(capabilities, "logging", json_object_new_object());
	}
	if (!exchange->server->fixtures)
		return capabilities;
	json_add_bool(tools, "listChanged", true);
	json_add_bool(prompts, "listChanged", true);
	return capabilities;
}

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

void (*mcp_observer)(const struct mcp_seen *seen);

void mcp_observe(const struct mcp_call *call, struct json_object *message)
{
	if (mcp_observer)
		mcp_observer(
			&(struct mcp_seen){.message = message, .call = call, .protocol = call ? call->protocol : NULL});
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

struct json_object *mcp_answer(struct mcp_call *call)
{
	struct json_object *answer;

	if (!call->code) {
		answer = rpc_result(call->message->id, steal(&call->result));
	} else {
		json_object_put(steal(&call->result));
		answer = rpc_error(call->message->id, call->code, call->text, steal(&call->data));
	}
	mcp_observe(call, answer);
	return answer;
}

void mcp_reply(struct reply *reply, int status, struct json_object *answer)
{
	reply_json(reply, status, answer);
	json_object_put(answer);
}

void mcp_reply_error(struct reply *reply, int status, struct json_object *id, int code, const char *text)
{
	struct json_object *answer = rpc_error(id, code, text, NULL);

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

void mcp_refuse(struct reply *reply, struct json_object *id, const struct access_refusal *refusal)
{
	if (refusal->retry_seconds)
		reply_header(reply, "Retry-After", "%lld", (long long)refusal->retry_seconds);
	if (refusal->status == 403)
		reply_header(reply, "WWW-Authenticate",
			     "Bearer realm=\"sallyport\", error=\"insufficient_scope\", "
			     "error_description=\"%s is needed\", scope=\"%s\"",
			     refusal->scope, refusal->scope);
	mcp_reply_error(reply, refusal->status, id, RPC_INVALID_REQUEST, refusal->text);
}

static void route_message(struct exchange *exchange, const struct mcp_request *request, struct json_object *document,
			  const char *version)
{
	const struct rpc_message *message = &request->message;

	if (message->kind == RPC_REQUEST && streq(message->method, "initialize") && !request->modern &&
	    !request->named && mcp_claims_modern(version)) {
		mcp_reply_error(exchange->reply, 400, message->id, RPC_HEADER_MISMATCH,
				"Header mismatch: initialize belongs to the revisions before " MCP_MODERN_VERSION);
	} else if (!request->modern) {
		legacy_message(exchange, request, document, version);
	} else if (message->kind == RPC_REQUEST) {
		modern_message(exchange, request, version);
	} else {
		/* The modern era defines no notification from a client over HTTP: it is taken and dropped. */
		mcp_observe_received(MCP_MODERN_VERSION, document);
		mcp_accepted(exchange->reply);
	}
}

static bool is_json(const char *content_type)
{
	static const char type[] = "application/json";

	return content_type && strncasecmp(content_type, type, sizeof(type) - 1) == 0 &&
	       strchr("; \t", content_type[sizeof(type) - 1]); /* the NUL counts: end of the value */
}

/* Clients must accept JSON and event streams; we refuse only those who say that they take neither. */
static bool accepts(const char *accept)
{
	static const char *const types[] = {"*/*", "application/json", "application/*", "text/event-stream", "text/*"};

	if (!accept || !*accept)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (strcasestr(accept, types[i]))
			return true;
	}
	return false;
}

/* Reads the body within limits.body_mb; what is known to be too large is refused unread. */
static int read_body(struct exchange *exchange, struct buf *body)
{
	const char *length = request_param(exchange->request, "CONTENT_LENGTH");
	int64_t megabytes = exchange->server->config->limits.body_mb;
	struct err err = ERR_INIT;
	uint64_t bytes = 0;
	char text[128];

	if (length && *length && parse_u64(length, 0, INT64_MAX, &bytes) < 0) {
		mcp_reply_error(exchange->reply, 400, NULL, RPC_INVALID_REQUEST, "Invalid Request: bad Content-Length");
		return -ERR_INVALID;
	}
	if (bytes <= (uint64_t)megabytes << 20) {
		if (exchange->request->read_body(exchange->request->arg, body, &err) < 0) {
			mcp_reply_error(exchange->reply, 400, NULL, RPC_INVALID_REQUEST, err.text);
			return -ERR_INVALID;
		}
		if (!body->overflow)
			return 0;
	}
	snprintf(text, sizeof(text), "Request too large: at most %lld MiB", (long long)megabytes);
	mcp_reply_error(exchange->reply, 413, NULL, RPC_INVALID_REQUEST, text);
	return -ERR_LIMIT;
}

bool mcp_read_document(struct exchange *exchange, struct json_object **ret)
{
	struct reply *reply = exchange->reply;
	struct err err = ERR_INIT;
	auto_buf struct buf body = {0};

	buf_init(&body, (size_t)exchange->server->config->limits.body_mb << 20);
	if (!is_json(request_param(exchange->request, "CONTENT_TYPE"))) {
		mcp_reply_error(reply, 415, NULL, RPC_INVALID_REQUEST,
				"Unsupported Media Type: Content-Type must be application/json");
		return false;
	}
	if (!accepts(request_param(exchange->request, "HTTP_ACCEPT"))) {
		mcp_reply_error(reply, 406, NULL, RPC_INVALID_REQUEST,
				"Not Acceptable: Accept must list application/json and text/event-stream");
		return false;
	}
	if (read_body(exchange, &body) < 0)
		return false;
	if (json_parse(body.data, body.length, ret, &err) < 0) {
		err_wrap(&err, "Parse error");
		mcp_reply_error(reply, 400, NULL, RPC_PARSE_ERROR, err.text);
		return false;
	}
	return true;
}

static void post(struct exchange *exchange, const char *version)
{
	auto_json struct json_object *document = NULL;
	struct mcp_request request;
	struct err err = ERR_INIT;

	if (!mcp_read_document(exchange, &document))
		return;
	if (json_object_is_type(document, json_type_array)) {
		mcp_batch(exchange, document, version);
		return;
	}
	if (mcp_request_read(exchange, document, version, &request, &err) < 0) {
		mcp_reply_error(exchange->reply, 400, request.message.id, RPC_INVALID_REQUEST, err.text);
		return;
	}
	snprintf(exchange->reply->method, sizeof(exchange->reply->method), "%s",
		 request.message.method ? request.message.method : "(response)");
	if (!mcp_request_begin(exchange, &request))
		return;
	route_message(exchange, &request, document, version);
	mcp_request_end(exchange, &request);
}

void mcp_handle(struct exchange *exchange, const char *method, const char *rest)
{
	char buffer[VERSION_HEADER_MAX];
	const char *raw = request_param(exchange->request, "HTTP_MCP_PROTOCOL_VERSION");
	const char *version = request_header(exchange->request, "HTTP_MCP_PROTOCOL_VERSION", buffer, sizeof(buffer));

	(void)rest;
	if (raw && !version)
		version = raw; /* too long to be one of ours: it is compared and refused below */
	if (version && !*version)
		version = NULL;
	if (streq(method, "POST")) {
		post(exchange, version);
	} else if (mcp_claims_modern(version)) {
		reply_header(exchange->reply, "Allow", "POST");
		reply_refuse(exchange->reply, 405, "revision " MCP_MODERN_VERSION " uses POST only");
	} else if (streq(method, "GET")) {
		legacy_get(exchange, version);
	} else {
		legacy_delete(exchange);
	}
}
