/* mcp_request.c - see mcp_request.h. */
#include "mcp_request.h"

#include "cgi/http/access.h"
#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "mcp_legacy.h"
#include "mcp_modern.h"
#include "tools.h"

/* The member params._meta[key], whatever its type; false: absent. */
static bool meta_has(struct json_object *params, const char *key)
{
	struct json_object *ignored;

	return json_object_object_get_ex(json_get(params, "_meta", json_type_object), key, &ignored);
}

static void look_up(const struct http_exchange *exchange, struct mcp_request *request)
{
	const struct rpc_message *message = &request->message;
	const char *name = json_get_string(message->params, "name");

	if (message->kind != RPC_REQUEST)
		return;
	request->method = mcp_method_find(request->modern ? modern_methods : legacy_methods, message->method);
	if (mcp_request_calls(request) && name)
		request->tool = tool_find(exchange->server, name);
}

void mcp_request_note(const struct http_exchange *exchange, const struct mcp_request *request)
{
	const char *name = "(response)";

	if (request->method)
		name = request->method->name;
	else if (request->message.method)
		name = request->message.kind == RPC_REQUEST ? "(unknown)" : "(notification)";
	snprintf(exchange->reply->method, sizeof(exchange->reply->method), "%s", name);
}

int mcp_request_read(const struct http_exchange *exchange, struct json_object *document, const char *version,
		     struct mcp_request *ret, struct err *err)
{
	*ret = (struct mcp_request){0};
	int result = rpc_parse(document, &ret->message, err);

	if (result < 0)
		return result;
	const struct rpc_message *message = &ret->message;

	ret->named = meta_has(message->params, MCP_META_VERSION);
	ret->modern = message->kind != RPC_RESPONSE && (ret->named || mcp_revision_claims_modern(version));
	/* `initialize` with an incomplete envelope stays legacy, as the SDKs have it. */
	if (message->kind == RPC_REQUEST && streq(message->method, "initialize") &&
	    modern_envelope(message->params, NULL) < 0)
		ret->modern = false;
	look_up(exchange, ret);
	return 0;
}

int mcp_request_read_legacy(const struct http_exchange *exchange, struct json_object *document, struct mcp_request *ret,
			    struct err *err)
{
	*ret = (struct mcp_request){0};
	int result = rpc_parse(document, &ret->message, err);

	if (result < 0)
		return result;
	ret->named = meta_has(ret->message.params, MCP_META_VERSION);
	look_up(exchange, ret);
	return 0;
}

static void declare_operation(const char *method, const char *tool)
{
	char pair[METRICS_PAIR];

	metrics_declare(METRICS_OPERATION, metrics_pair(pair, method, tool));
}

static void declare_methods(const struct mcp_method *method)
{
	for (; method->name; method++)
		declare_operation(method->name, "");
}

void mcp_declare(const struct server_tables *tables)
{
	static const char *const errors[] = {"", "tool_error", "server_error"};
	char pair[METRICS_PAIR];

	declare_methods(legacy_methods);
	declare_methods(modern_methods);
	for (; tables; tables = tables->next)
		for (const struct tool *const *tool = tables->tools; tool && *tool; tool++) {
			metrics_declare(METRICS_TOOL, (*tool)->name);
			declare_operation("tools/call", (*tool)->name);
		}
	for (const struct mcp_revision *revision = mcp_revisions; revision->name; revision++)
		for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
			metrics_declare(METRICS_ANSWER, metrics_pair(pair, errors[i], revision->name));
}

bool mcp_request_calls(const struct mcp_request *request)
{
	return request->method && request->method->scope == MCP_SCOPE_TOOL;
}

unsigned mcp_request_scope(const struct mcp_request *request)
{
	struct json_object *ref = json_get(request->message.params, "ref", json_type_object);
	const char *type = json_get_string(ref, "type");

	if (!request->method)
		return ACCESS_FREE; /* nothing will be done */
	switch (request->method->scope) {
	case MCP_SCOPE_TOOL:
		return request->tool ? request->tool->scope : ACCESS_FREE;
	case MCP_SCOPE_REF:
		return type && streq(type, "ref/resource") ? STORE_SCOPE_FILES : ACCESS_FREE;
	default:
		return request->method->scope;
	}
}

bool mcp_request_allowed(const struct http_exchange *exchange, const struct mcp_request *request,
			 struct access_refusal *ret)
{
	const bool changes = request->tool && !request->tool->read_only;

	return access_scope(exchange, mcp_request_scope(request), ret) && (!changes || access_open(exchange, ret));
}

bool mcp_request_begin(struct http_exchange *exchange, const struct mcp_request *request)
{
	struct access_refusal refusal;

	if (mcp_request_allowed(exchange, request, &refusal) &&
	    (!mcp_request_calls(request) || access_enter(exchange, &refusal)))
		return true;
	mcp_refuse(exchange, request->message.id, &refusal);
	return false;
}

void mcp_request_end(struct http_exchange *exchange, const struct mcp_request *request)
{
	if (mcp_request_calls(request))
		access_leave(exchange);
}
