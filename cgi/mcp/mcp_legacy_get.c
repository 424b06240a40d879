/*
 * mcp_legacy_get.c - GET of the legacy era: the session's own stream, and taking up a stream that broke.
 *
 * The session's stream carries what belongs to no request. With Last-Event-ID the stream of a request is taken up: what
 * it sent after that event comes from the store, and as long as its handler is at work in this process, what follows,
 * too. A stream whose handler died with an earlier gateway gets an error as answer: its run is recorded as interrupted.
 */
#include "mcp_legacy_get.h"

#include "cgi/http/access.h"
#include "cgi/http/hub.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/record/store_event.h"
#include "lib/store/record/store_subscription.h"
#include "mcp_legacy.h"
#include "mcp_stream.h"

static void refuse_listener(struct http_exchange *exchange, const struct err *err)
{
	int status = err->code == ERR_CONFLICT ? 409 : err->code == ERR_BUSY ? 429 : 503;

	if (status != 409)
		reply_header(exchange->reply, "Retry-After", "10");
	mcp_reply_error(exchange->reply, status, NULL, RPC_INVALID_REQUEST, err->text);
}

/* What the session's client is sent of a message from the hub, as JSON text; the caller's. */
static char *notification(const struct session *session, const struct hub_message *message)
{
	auto_json struct json_object *object = json_object_new_object();
	struct buf text;

	if (message->text) /* made for this session, and observed there */
		return xstrdup(message->text);
	json_add_string(object, "jsonrpc", "2.0");
	json_add_string(object, "method", mcp_topic_method(message->topic));
	if (message->topic == HUB_RESOURCE_UPDATED) {
		struct json_object *params = json_object_new_object();

		json_add_string(params, "uri", message->uri);
		json_add(object, "params", params);
	}
	buf_init(&text, SIZE_MAX);
	json_print(&text, object);
	mcp_observe_unasked(session->protocol, text.data);
	return buf_steal(&text, NULL);
}

_Static_assert(HUB_FOLLOWED_MAX >= STORE_SUBSCRIPTIONS_MAX, "what a session may subscribe to must fit its listener");

struct following {
	struct hub *hub;
	const char *session;
};

static int follow(void *arg, const char *uri)
{
	const struct following *following = arg;

	hub_follow_uri(following->hub, following->session, uri, true);
	return 0;
}

int legacy_listen(struct http_exchange *exchange, struct hub_listener *listener, struct err *err)
{
	struct server *server = exchange->server;
	struct following following = {server->hub, listener->session};

	listener->owner = exchange->token.owner;
	listener->exclusive = true;
	listener->topics = HUB_TOOLS_CHANGED | HUB_PROMPTS_CHANGED;
	if (access_allows(access_scopes(&exchange->token), STORE_SCOPE_FILES))
		listener->topics |= HUB_RESOURCES_CHANGED | HUB_RESOURCE_UPDATED;
	int result = hub_listen(server->hub, listener, err);

	if (result < 0)
		return result;
	/* After hub_listen: a client that subscribes meanwhile finds the listener. */
	result = store_subscription_list(server->store, listener->session, follow, &following, err);
	if (result < 0)
		hub_leave(server->hub, listener);
	return result;
}

void legacy_follow(struct http_exchange *exchange, const struct session *session, struct hub_listener *listener,
		   struct stream *stream)
{
	struct hub *hub = exchange->server->hub;
	int64_t looked_us = clock_monotonic_us();
	enum hub_wait what;

	do {
		auto_hub_message struct hub_message *message = NULL;
		auto_free char *text = NULL;

		what = hub_wait(hub, listener, exchange->request->hangup_fd, stream_patience_ms(stream), &message);
		text = message ? notification(session, message) : NULL;
		if (!access_still_good(exchange, &looked_us))
			break;
		if (text)
			stream_event(stream, NULL, NULL, text);
		stream_keep_alive(stream);
	} while (what != HUB_GONE && !stream->gone);
	hub_leave(hub, listener);
}

struct resend {
	struct stream *stream;
	int64_t next; /* the first number that was not sent yet */
	bool known, over;
	char *request_id; /* JSON */
};

static int send_event(void *arg, const struct store_event *event)
{
	struct resend *resend = arg;
	char id[MCP_EVENT_ID_MAX];

	resend->known = true;
	if (event->number == 0 && !resend->request_id)
		resend->request_id = xstrdup(event->message);
	resend->over = event->last;
	if (event->number < resend->next)
		return 0;
	resend->next = event->number + 1;
	mcp_event_id(event->stream, event->number, id);
	if (event->number > 0 && event->length > 0)
		stream_event(resend->stream, id, NULL, event->message);
	return resend->stream->gone;
}

static void take_up(struct http_exchange *exchange, const struct session *session, const char *stream_id,
		    struct resend *resend)
{
	struct hub *hub = exchange->server->hub;
	struct hub_listener listener = {.owner = exchange->token.owner, .session = session->id, .stream = stream_id};
	enum hub_wait what = HUB_MESSAGE;
	struct err err = ERR_INIT;
	int64_t looked_us = clock_monotonic_us();

	if (hub_listen(hub, &listener, &err) < 0) {
		refuse_listener(exchange, &err);
		return;
	}
	/* Before anything is sent: events are content. */
	while (access_still_good(exchange, &looked_us) && what != HUB_GONE && !resend->over && !resend->stream->gone) {
		/* In this order: a handler that ends in between has stored its answer before. */
		bool live = hub_stream_live(hub, stream_id);
		auto_hub_message struct hub_message *message = NULL;
		const struct store_event_filter filter = {session->id, stream_id, resend->known ? resend->next : 0};

		if (store_event_list(exchange->server->store, &filter, send_event, resend, &err) < 0) {
			log_event(LOG_ERROR, "events not read", "error", err.text, NULL);
			break;
		}
		if (!resend->known) {
			mcp_reply_error(exchange->reply, 400, NULL, RPC_INVALID_REQUEST,
					"Bad Request: Last-Event-ID: no such event in this session");
			break;
		}
		stream_open(resend->stream);
		if (!live && !resend->over) {
			/* The answer that the lost handler can't give any more. */
			auto_free char *text = xasprintf(
				"{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":%d,\"message\":\"Internal error: "
				"the server was started again while this ran; what ran is recorded as interrupted\"}}",
				resend->request_id, RPC_INTERNAL);

			mcp_observe_unasked(session->protocol, text);
			stream_event(resend->stream, NULL, NULL, text);
			break;
		}
		if (resend->over)
			break;
		what = hub_wait(hub, &listener, exchange->request->hangup_fd, stream_patience_ms(resend->stream),
				&message);
		stream_keep_alive(resend->stream);
	}
	hub_leave(hub, &listener);
}

void legacy_get(struct http_exchange *exchange, const char *version)
{
	const char *accept = request_param(exchange->request, "HTTP_ACCEPT");
	const char *last = request_param(exchange->request, "HTTP_LAST_EVENT_ID");
	char stream_id[ID_SIZE];
	struct session session;
	struct stream stream;
	int64_t number = 0;

	snprintf(exchange->reply->method, sizeof(exchange->reply->method), last ? "(stream again)" : "(stream)");
	stream_init(&stream, exchange->request, exchange->reply);
	if (!exchange->request->send) {
		reply_header(exchange->reply, "Allow", "POST, DELETE");
		reply_refuse(exchange->reply, 405, "no streams where each request is a process of its own");
		return;
	}
	if (accept && *accept && !stream_possible(&stream)) {
		mcp_reply_error(exchange->reply, 406, NULL, RPC_INVALID_REQUEST,
				"Not Acceptable: Accept must list text/event-stream");
		return;
	}
	if (!legacy_session(exchange, NULL, version, &session))
		return;
	reply_header(exchange->reply, "Mcp-Session-Id", "%s", session.id);
	if (!last || !*last) {
		struct hub_listener listener = {.session = session.id};
		struct err err = ERR_INIT;

		if (legacy_listen(exchange, &listener, &err) < 0) {
			refuse_listener(exchange, &err);
			return;
		}
		stream_open(&stream);
		legacy_follow(exchange, &session, &listener, &stream);
		return;
	}
	if (!mcp_event_id_parse(last, stream_id, &number)) {
		mcp_reply_error(exchange->reply, 400, NULL, RPC_INVALID_REQUEST,
				"Bad Request: Last-Event-ID: not an id of this server");
		return;
	}
	struct resend resend = {.stream = &stream, .next = number + 1};

	take_up(exchange, &session, stream_id, &resend);
	free(resend.request_id);
}
