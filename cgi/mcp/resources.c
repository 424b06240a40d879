/* resources.c - resources/list, templates/list, read, subscribe: dispatch to the providers; see resources.h. */
#include "resources.h"

#include "cgi/conformance.h"
#include "cgi/signed.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/store_subscription.h"
#include "resource_record.h"

static const struct resource_provider *const providers[] = {
	&resource_record,
	&conformance_resources,
};

static bool enabled(const struct resource_provider *provider, const struct config *config)
{
	return !provider->enabled || provider->enabled(config);
}

const struct resource_provider *resource_provider_find(const struct config *config, const char *uri)
{
	for (size_t i = 0; i < ARRAY_SIZE(providers); i++) {
		if (enabled(providers[i], config) && str_starts(uri, providers[i]->scheme))
			return providers[i];
	}
	return NULL;
}

/* A provider's failure as the JSON-RPC error of this era. */
static int fail(struct mcp_call *call, const char *uri, const struct err *err)
{
	if (err->code == ERR_NOT_FOUND) {
		call->data = json_object_new_object();
		json_add_string(call->data, "uri", uri);
		return mcp_fail_name(call, call->modern ? RPC_INVALID_PARAMS : RPC_RESOURCE_NOT_FOUND,
				     "Resource not found", uri);
	}
	if (err->code == ERR_INVALID || err->code == ERR_LIMIT)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: %s", err->text);
	log_event(LOG_ERROR, "resource failed", "error", err->text, NULL);
	return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err->text);
}

/* The cursor's text is "INDEX:POSITION": a provider and where it goes on. Returns the index, or negative. */
static int read_cursor(struct mcp_call *call, struct buf *position)
{
	struct json_object *value;
	auto_buf struct buf text = {0};
	uint64_t index;

	if (!call->message->params || !json_object_object_get_ex(call->message->params, "cursor", &value) || !value)
		return 0;
	const char *cursor = json_get_string(call->message->params, "cursor");
	struct store *store = call->exchange->server->store;

	buf_init(&text, RESOURCE_CURSOR_MAX);
	if (!cursor || strlen(cursor) > RESOURCE_CURSOR_MAX ||
	    signed_read(store, "resources/list", call->exchange->token.owner, cursor, &text, NULL) < 0)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: not one of this list");
	char *colon = strchr(text.data, ':');

	if (!colon)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: not one of this list");
	*colon = '\0';
	if (parse_u64(text.data, 0, ARRAY_SIZE(providers) - 1, &index) < 0)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: not one of this list");
	buf_puts(position, colon + 1);
	return (int)index;
}

static void add_cursor(struct mcp_call *call, size_t index, const char *position)
{
	auto_free char *text = xasprintf("%zu:%s", index, position);
	auto_buf struct buf cursor = {0};

	buf_init(&cursor, RESOURCE_CURSOR_MAX);
	signed_make(call->exchange->server->store, "resources/list", call->exchange->token.owner, text, &cursor);
	json_add_string(call->result, "nextCursor", cursor.data);
}

int mcp_resources_list(struct mcp_call *call)
{
	const struct config *config = call->exchange->server->config;
	auto_json struct json_object *resources = json_object_new_array();
	auto_buf struct buf position = {0}, next = {0};
	struct err err = ERR_INIT;

	buf_init(&position, RESOURCE_CURSOR_MAX);
	buf_init(&next, RESOURCE_CURSOR_MAX / 2);
	int index = read_cursor(call, &position);

	if (index < 0)
		return -1;
	call->result = json_object_new_object();
	for (size_t i = (size_t)index; i < ARRAY_SIZE(providers) && next.length == 0; i++) {
		const char *from = position.length ? position.data : NULL;

		if (enabled(providers[i], config) && providers[i]->list(call, from, resources, &next, &err) < 0)
			return fail(call, "", &err);
		if (next.length)
			add_cursor(call, i, next.data);
		buf_reset(&position);
	}
	json_add(call->result, "resources", steal(&resources));
	return 0;
}

int mcp_resources_templates(struct mcp_call *call)
{
	struct json_object *templates = json_object_new_array(), *cursor;

	call->result = json_object_new_object();
	json_add(call->result, "resourceTemplates", templates);
	if (call->message->params && json_object_object_get_ex(call->message->params, "cursor", &cursor) && cursor)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: unknown (the list has one page)");
	for (size_t i = 0; i < ARRAY_SIZE(providers); i++) {
		if (enabled(providers[i], call->exchange->server->config) && providers[i]->templates)
			providers[i]->templates(call, templates);
	}
	return 0;
}

/* The provider of params.uri; NULL: the call has failed. */
static const struct resource_provider *provider_of(struct mcp_call *call, const char **ret_uri)
{
	const char *uri = json_get_string(call->message->params, "uri");

	if (!uri) {
		mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: uri: must be a string");
		return NULL;
	}
	const struct resource_provider *provider = resource_provider_find(call->exchange->server->config, uri);

	if (!provider)
		fail(call, uri, &(struct err){.code = ERR_NOT_FOUND});
	*ret_uri = uri;
	return provider;
}

int mcp_resources_read(struct mcp_call *call)
{
	auto_json struct json_object *contents = json_object_new_array();
	const char *uri;
	struct err err = ERR_INIT;
	const struct resource_provider *provider = provider_of(call, &uri);

	if (!provider)
		return -1;
	if (provider->read(call, uri, contents, &err) < 0)
		return fail(call, uri, &err);
	call->result = json_object_new_object();
	json_add(call->result, "contents", steal(&contents));
	return 0;
}

int mcp_resources_subscribe(struct mcp_call *call)
{
	const char *uri;
	struct server *server = call->exchange->server;
	struct err err = ERR_INIT;
	const struct resource_provider *provider = provider_of(call, &uri);

	if (!provider)
		return -1;
	if (!stream_offered(call->exchange->request))
		return mcp_fail_name(call, RPC_METHOD_NOT_FOUND, "Method not found (there are no streams here)",
				     call->message->method);
	if (!provider->subscribe)
		return mcp_fail(call, RPC_INVALID_PARAMS,
				"Invalid params: uri: this resource does not tell when it changes");
	if (provider->subscribe(call, uri, &err) < 0 ||
	    store_subscription_add(server->store, call->session->id, uri, &err) < 0)
		return fail(call, uri, &err);
	hub_follow_uri(server->hub, call->session->id, uri,
		       true); /* behind the store: a stream that is opened meanwhile reads it there */
	call->result = json_object_new_object();
	return 0;
}

int mcp_resources_unsubscribe(struct mcp_call *call)
{
	const char *uri = json_get_string(call->message->params, "uri");
	struct server *server = call->exchange->server;
	struct err err = ERR_INIT;

	if (!uri)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: uri: must be a string");
	if (store_subscription_remove(server->store, call->session->id, uri, &err) < 0)
		return fail(call, uri, &err);
	hub_follow_uri(server->hub, call->session->id, uri, false);
	call->result = json_object_new_object();
	return 0;
}
