/*
 * mcp_listen.c - subscriptions/listen of the modern era: a stream of notifications about what the client named.
 *
 * First what of it is honoured, then the notifications, each marked with the id of the request. Nothing that is not
 * advertised is honoured, and where nothing is left the answer follows at once. A client leaves by closing the
 * connection (over stdio: by notifications/cancelled); we end with the answer.
 */
#include "mcp.h"

#include <poll.h>

#include "cgi/http/access.h"
#include "cgi/http/hub.h"
#include "lib/base/util.h"
#include "mcp_stream.h"
#include "mcp_tasks.h"
#include "resources.h"

#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"
#define URIS_MAX                                                                                                       \
	48 /* resources and tasks that one stream may follow, more are not honoured: fewer than HUB_QUEUE_MAX */

static const struct {
	const char *name;
	enum hub_topic topic;
} kinds[] = {
	{"toolsListChanged", HUB_TOOLS_CHANGED},
	{"promptsListChanged", HUB_PROMPTS_CHANGED},
	{"resourcesListChanged", HUB_RESOURCES_CHANGED},
};

static struct json_object *subscription_meta(struct mcp_call *call)
{
	struct json_object *meta = json_object_new_object();

	json_add(meta, META_SUBSCRIPTION, json_object_get(call->message->id));
	return meta;
}

static void notify(struct mcp_call *call, const char *method, struct json_object *params)
{
	json_add(params, "_meta", subscription_meta(call));
	mcp_notify(call, method, params);
}

static bool may_read(const struct mcp_call *call)
{
	return access_allows(access_scopes(&call->exchange->token), STORE_SCOPE_FILES);
}

/* The resources among those asked for that can be followed. */
static struct json_object *honoured_uris(struct mcp_call *call, struct json_object *asked,
					 const char *ret[URIS_MAX + 1])
{
	struct json_object *uris = json_object_new_array();
	size_t count = 0;

	for (size_t i = 0; asked && may_read(call) && i < json_object_array_length(asked) && count < URIS_MAX; i++) {
		struct json_object *uri = json_object_array_get_idx(asked, i);
		const char *text = json_object_is_type(uri, json_type_string) ? json_object_get_string(uri) : "";
		const struct resource_provider *provider = resource_provider_find(call->exchange->server, text);

		if (!provider || !provider->subscribe || provider->subscribe(call, text, NULL) < 0)
			continue;
		ret[count++] = text;
		json_object_array_add(uris, json_object_get(uri));
	}
	ret[count] = NULL;
	return uris;
}

/* The owner's tasks among those asked for, their ids behind the resources. */
static struct json_object *honoured_tasks(struct mcp_call *call, struct json_object *asked,
					  const char *ret[URIS_MAX + 1])
{
	struct json_object *ids = json_object_new_array();
	size_t count = 0;

	while (ret[count])
		count++;
	if (!call->exchange->server->tasks)
		return ids;
	for (size_t i = 0; asked && i < json_object_array_length(asked) && count < URIS_MAX; i++) {
		struct json_object *id = json_object_array_get_idx(asked, i);
		const char *text = json_object_is_type(id, json_type_string) ? json_object_get_string(id) : "";
		struct store_task task;

		if (store_task_find(call->exchange->server->store, text, call->exchange->token.owner, &task, NULL) < 0)
			continue;
		store_task_clear(&task);
		ret[count++] = text;
		json_object_array_add(ids, json_object_get(id));
	}
	ret[count] = NULL;
	return ids;
}

static void notify_task(struct mcp_call *call, const char *id)
{
	struct json_object *task = mcp_task_describe(call, id);

	if (task)
		notify(call, mcp_topic_method(HUB_TASK_CHANGED), task);
}

/* What of `asked` is honoured, as an object and in *listener. */
static struct json_object *honour(struct mcp_call *call, struct json_object *asked, struct hub_listener *listener,
				  const char *uris[URIS_MAX + 1])
{
	struct json_object *honoured = json_object_new_object();
	struct json_object *followed =
		honoured_uris(call, json_get(asked, "resourceSubscriptions", json_type_array), uris);
	struct json_object *tasks = honoured_tasks(call, json_get(asked, "taskIds", json_type_array), uris);

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		/* Does this server tell of it, and may the client know? */
		const bool offered = kinds[i].topic == HUB_RESOURCES_CHANGED ? may_read(call)
									     : call->exchange->server->fixtures != NULL;

		if (!offered || !json_object_get_boolean(json_get(asked, kinds[i].name, json_type_boolean)))
			continue;
		listener->topics |= kinds[i].topic;
		json_add_bool(honoured, kinds[i].name, true);
	}
	if (json_object_array_length(followed)) {
		listener->topics |= HUB_RESOURCE_UPDATED;
		listener->uris = uris;
		json_add(honoured, "resourceSubscriptions", steal(&followed));
	}
	if (json_object_array_length(tasks)) {
		listener->topics |= HUB_TASK_CHANGED;
		listener->uris = uris;
		json_add(honoured, "taskIds", steal(&tasks));
	}
	json_object_put(tasks);
	json_object_put(followed);
	return honoured;
}

/* Until the client leaves, and then nothing more is said, or the server stops. */
static void follow(struct mcp_call *call, struct hub_listener *listener)
{
	struct pollfd left = {.fd = call->hangup_fd, .events = POLLRDHUP};
	struct hub *hub = call->exchange->server->hub;
	int64_t looked_us = clock_monotonic_us();
	enum hub_wait what;

	do {
		auto_hub_message struct hub_message *message = NULL;

		what = hub_wait(hub, listener, call->hangup_fd, stream_patience_ms(call->stream), &message);
		if (!access_still_good(call->exchange, &looked_us))
			break;
		if (message && message->topic == HUB_TASK_CHANGED) {
			notify_task(call, message->uri);
		} else if (message) {
			struct json_object *params = json_object_new_object();

			if (message->topic == HUB_RESOURCE_UPDATED)
				json_add_string(params, "uri", message->uri);
			notify(call, mcp_topic_method(message->topic), params);
		}
		stream_keep_alive(call->stream);
	} while (what != HUB_GONE && !call->stream->gone);
	call->silent = poll(&left, 1, 0) > 0;
}

int mcp_listen(struct mcp_call *call)
{
	struct json_object *asked = json_get(call->message->params, "notifications", json_type_object);
	struct hub_listener listener = {.owner = call->exchange->token.owner};
	const char *uris[URIS_MAX + 1];
	struct err err = ERR_INIT;

	if (!asked)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: notifications: must be an object");
	if (json_get(asked, "taskIds", json_type_array) && call->exchange->server->tasks && mcp_require_tasks(call) < 0)
		return -1;
	if (!call->stream)
		return mcp_fail(call, RPC_INTERNAL, "Internal error: this reply cannot be a stream");
	struct json_object *params = json_object_new_object();

	json_add(params, "notifications", honour(call, asked, &listener, uris));
	if (listener.topics && hub_listen(call->exchange->server->hub, &listener, &err) < 0) {
		json_object_put(params);
		return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err.text);
	}
	notify(call, "notifications/subscriptions/acknowledged", params);
	for (size_t i = 0; listener.topics & HUB_TASK_CHANGED && uris[i]; i++)
		notify_task(call, uris[i]); /* as it is now: it may have ended before we listened */
	if (listener.topics) {
		follow(call, &listener);
		hub_leave(call->exchange->server->hub, &listener);
	}
	call->result = json_object_new_object();
	json_add(call->result, "_meta", subscription_meta(call));
	return 0;
}
