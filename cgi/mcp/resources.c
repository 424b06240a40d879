/*
 * resources.c - resources/list, templates/list, read, subscribe: dispatch to the providers; see resources.h.
 *
 * The list goes through the providers in their order. A cursor says with which of them the
 * next page begins and where in it; it is signed, so a provider's position is one that it gave itself.
 */
#include "resources.h"

#include <limits.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/record/store_subscription.h"
#include "signed.h"

/* The one with this number; NULL: there are no more. */
static const struct resource_provider *provider_at(const struct server *server, size_t index)
{
	for (const struct server_tables *tables = &server->tables; tables; tables = tables->next) {
		for (const struct resource_provider *const *provider = tables->resources; *provider; provider++) {
			if (index-- == 0)
				return *provider;
		}
	}
	return NULL;
}

const struct resource_provider *resource_provider_find(const struct server *server, const char *uri)
{
	const struct resource_provider *provider;
	size_t i = 0;

	while ((provider = provider_at(server, i)) && !str_starts(uri, provider->scheme))
		i++;
	return provider;
}

/* A provider's failure as the JSON-RPC error of this era. */
static int fail(struct mcp_call *call, const char *uri, const struct err *err)
{
	if (err->code == ERR_NOT_FOUND) {
		call->data = json_object_new_object();
		json_add_string(call->data, "uri", uri);
		return mcp_fail_name(call, call->revision->modern ? RPC_INVALID_PARAMS : RPC_RESOURCE_NOT_FOUND,
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
	auto_buf struct buf text = {0};
	uint64_t index;

	if (!mcp_cursor(call))
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
	if (parse_u64(text.data, 0, INT_MAX, &index) < 0 ||
	    !provider_at(call->exchange->server, index))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: not one of this list");
	buf_puts(position, colon + 1);
	return (int)index;
}

int mcp_resources_list(struct mcp_call *call)
{
	const struct resource_provider *provider;
	auto_json struct json_object *resources = json_object_new_array();
	auto_buf struct buf position = {0}, next = {0};
	struct err err = ERR_INIT;

	buf_init(&position, RESOURCE_CURSOR_MAX);
	buf_init(&next, RESOURCE_CURSOR_MAX / 2);
	int index = read_cursor(call, &position);

	if (index < 0)
		return -1;
	call->result = json_object_new_object();
	for (size_t i = (size_t)index; next.length == 0 && (provider = provider_at(call->exchange->server, i)); i++) {
		const char *from = position.length ? position.data : NULL;

		if (provider->list(call, from, resources, &next, &err) < 0)
			return fail(call, "", &err);
		if (next.length > 0) {
			auto_free char *text = xasprintf("%zu:%s", i, next.data);
			auto_buf struct buf cursor = {0};

			buf_init(&cursor, RESOURCE_CURSOR_MAX);
			signed_make(call->exchange->server->store, "resources/list", call->exchange->token.owner, text,
				    &cursor);
			json_add_string(call->result, "nextCursor", cursor.data);
		}
		buf_reset(&position);
	}
	json_add(call->result, "resources", steal(&resources));
	return 0;
}

int mcp_resources_templates(struct mcp_call *call)
{
	struct json_object *templates = json_object_new_array();
	const struct resource_provider *provider;

	call->result = json_object_new_object();
	json_add(call->result, "resourceTemplates", templates);
	if (mcp_cursor(call))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: unknown (the list has one page)");
	for (size_t i = 0; (provider = provider_at(call->exchange->server, i)); i++) {
		if (provider->templates)
			provider->templates(call, templates);
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
	const struct resource_provider *provider = resource_provider_find(call->exchange->server, uri);

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
		return mcp_fail_name(call, RPC_METHOD_NOT_FOUND, "Method not found (streams are not available here)",
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
