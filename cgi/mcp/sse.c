/*
 * sse.c - see sse.h.
 *
 * A message is accepted (202) before it is worked off, in the thread that took it; its answer, and progress before it,
 * is handed to the thread that holds the session's stream. There is nothing to take up again here: that belongs to the
 * later transport.
 */
#include "sse.h"

#include "cgi/http/hub.h"
#include "cgi/http/stream.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "mcp_about.h"
#include "mcp_endpoint.h"
#include "mcp_legacy_get.h"
#include "mcp_legacy.h"
#include "mcp_request.h"

static bool switched_on(struct http_exchange *exchange)
{
	if (exchange->server->config->gateway.http_sse && exchange->request->send)
		return true;
	reply_refuse(exchange->reply, 404,
		     "nothing here: the endpoint is /mcp (gateway.http_sse turns the old transport on)");
	return false;
}

void sse_stream(struct http_exchange *exchange, const char *method, const char *rest)
{
	const struct session_client client = {.protocol = mcp_revision_two_paths()->name};
	struct hub_listener listener = {0};
	struct session session;
	struct stream stream;
	struct err err = ERR_INIT;

	(void)method;
	(void)rest;
	snprintf(exchange->reply->method, sizeof(exchange->reply->method), "(sse)");
	if (!switched_on(exchange))
		return;
	stream_init(&stream, exchange->request, exchange->reply);
	if (sessions_add(exchange->server->sessions, &exchange->token, &client, &session, &err) < 0) {
		log_event(LOG_ERROR, "session not opened", "error", err.text, NULL);
		reply_refuse(exchange->reply, 503, "the session cannot be opened: try again");
		return;
	}
	listener.session = session.id;
	if (legacy_listen(exchange, &listener, &err) < 0) {
		reply_header(exchange->reply, "Retry-After", "10");
		reply_refuse(exchange->reply, err.code == ERR_BUSY ? 429 : 503, err.text);
	} else {
		/* Where messages go: below the path of public_base_url, if it has one. */
		const char *host = strstr(exchange->server->config->public_base_url, "://");
		const char *path = host ? strchr(host + 3, '/') : NULL;
		auto_free char *address = xasprintf("%s/messages?sessionId=%s", path ? path : "", session.id);

		stream_event(&stream, NULL, "endpoint", address);
		legacy_follow(exchange, &session, &listener, &stream);
	}
	if (sessions_end(exchange->server->sessions, session.id, session.owner, &err) < 0)
		log_event(LOG_WARN, "session not ended", "error", err.text, NULL);
}

/* "sessionId=…" of the query; false: there is none of the right size. */
static bool query_session(const struct request *request, char ret[ID_SIZE])
{
	const char *query = request_param(request, "QUERY_STRING"), *found = query ? strstr(query, "sessionId=") : NULL;

	if (!found || (found != query && found[-1] != '&'))
		return false;
	found += strlen("sessionId=");
	if (strcspn(found, "&") != ID_SIZE - 1)
		return false;
	memcpy(ret, found, ID_SIZE - 1);
	ret[ID_SIZE - 1] = '\0';
	return true;
}

struct target {
	struct hub *hub;
	const char *session;
};

static int forward(void *arg, const char *data)
{
	const struct target *target = arg;

	if (hub_tell(target->hub, target->session, data))
		return 0;
	log_event(LOG_INFO, "message to a stream that has ended", "session", target->session, NULL);
	return -1;
}

static void work(struct http_exchange *exchange, const struct mcp_request *request, struct json_object *document,
		 const struct session *session)
{
	const struct rpc_message *message = &request->message;
	struct target target = {exchange->server->hub, session->id};
	auto_reply struct reply answer;
	struct http_exchange own = *exchange;
	struct stream stream;

	reply_init(&answer);
	stream_init_forward(&stream, forward, &target);
	own.reply = &answer;
	if (message->kind != RPC_REQUEST)
		legacy_note(&own, message, session, document);
	else if (!streq(message->method, "initialize"))
		legacy_request(&own, request, session, &stream);
	else { /* it names no session of its own here: the stream is it */
		const struct mcp_revision *revision = mcp_revision_two_paths();
		struct mcp_call call = {.exchange = &own, .message = message, .revision = revision, .hangup_fd = -1};

		call.result = json_object_new_object();
		json_add_string(call.result, "protocolVersion", revision->name);
		json_add(call.result, "capabilities", mcp_capabilities(&own, revision));
		json_add(call.result, "serverInfo", mcp_server_info());
		mcp_add_instructions(own.server, call.result);
		mcp_reply(&answer, 200, mcp_answer(&call));
	}
	if (answer.body.length > 0) /* what was answered without the stream: initialize, a refusal */
		stream_event(&stream, NULL, NULL, answer.body.data);
	memcpy(exchange->reply->tool, answer.tool, sizeof(answer.tool));
	memcpy(exchange->reply->outcome, answer.outcome, sizeof(answer.outcome));
}

void sse_message(struct http_exchange *exchange, const char *method, const char *rest)
{
	auto_json struct json_object *document = NULL;
	struct mcp_request request;
	struct session session;
	char id[ID_SIZE];
	struct err err = ERR_INIT;

	(void)method;
	(void)rest;
	if (!switched_on(exchange))
		return;
	if (!query_session(exchange->request, id) ||
	    sessions_find(exchange->server->sessions, id, exchange->token.owner, &session, &err) < 0 ||
	    !mcp_revision_of(session.protocol)->two_paths) {
		mcp_reply_error(exchange->reply, 404, NULL, RPC_SESSION_NOT_FOUND,
				"Session not found: open /sse again");
		return;
	}
	if (!mcp_read_document(exchange, &document))
		return;
	if (mcp_request_read_legacy(exchange, document, &request, &err) < 0) {
		mcp_reply_error(exchange->reply, 400, request.message.id, RPC_INVALID_REQUEST, err.text);
		return;
	}
	mcp_request_note(exchange, &request);
	if (!mcp_request_begin(exchange, &request))
		return;
	auto_buf struct buf head = {0};

	buf_init(&head, 2 * HTTP_HEADER_MAX);
	exchange->reply->status = 202;
	exchange->reply->streamed = true;
	reply_print_head(exchange->reply, &head);
	exchange->request->send(exchange->request->arg, head.data, head.length);
	exchange->request->end(exchange->request->arg);
	work(exchange, &request, document, &session);
	mcp_request_end(exchange, &request);
}
