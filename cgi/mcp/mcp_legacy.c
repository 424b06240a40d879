/*
 * mcp_legacy.c - the revisions up to 2025-11-25 over Streamable HTTP.
 *
 * `initialize` opens a session (a row in the store, bound to the token's owner), which later messages name: an unknown,
 * ended or foreign one is 404, upon which a client opens a new one. A message that names none is answered, too, unless
 * its method changes the session (400): it speaks the revision of its header, or the one that is assumed
 * (revision.h), nobody can cancel it, and its stream cannot be resumed. JSON-RPC errors go on HTTP 200, because clients
 * take any 4xx for a failure of the transport. A client that leaves does not cancel its run, ending its session does.
 * Requests before notifications/initialized are served: several clients race.
 */
#include "mcp_legacy.h"

#include <strings.h>

#include "cgi/http/access.h"
#include "cgi/http/hub.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/record/store_session.h"
#include "mcp_about.h"
#include "mcp_stream.h"
#include "mcp_tasks.h"
#include "prompts.h"
#include "resources.h"
#include "skills.h"
#include "tools.h"

#define SESSION_HEADER_MAX 128

/* What we may ask this client for. */
static unsigned offers_of(struct json_object *params)
{
	static const struct {
		const char *name;
		unsigned offer;
	} table[] = {{"sampling", STORE_SAMPLING}, {"elicitation", STORE_ELICITATION}, {"roots", STORE_ROOTS}};
	struct json_object *capabilities = json_get(params, "capabilities", json_type_object);
	unsigned offers = 0;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (json_get(capabilities, table[i].name, json_type_object))
			offers |= table[i].offer;
	}
	if (mcp_shows_apps(capabilities))
		offers |= STORE_APPS;
	return mcp_elicits(capabilities) ? offers : offers & ~(unsigned)STORE_ELICITATION;
}

static int initialize(struct mcp_call *call)
{
	struct json_object *params = call->message->params;
	struct json_object *client = json_get(params, "clientInfo", json_type_object);
	const char *requested = json_get_string(params, "protocolVersion");
	struct session session;
	struct err err = ERR_INIT;

	if (!requested)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: protocolVersion: must be a string");
	const struct mcp_revision *revision = mcp_revision_find(requested);

	if (!revision || revision->modern)
		revision = mcp_revision_newest(false);
	const struct session_client opening = {
		.protocol = revision->name,
		.name = json_get_string(client, "name"),
		.version = json_get_string(client, "version"),
		.offers = offers_of(params),
	};

	if (sessions_add(call->exchange->server->sessions, &call->exchange->token, &opening, &session, &err) < 0) {
		log_event(LOG_ERROR, "session not opened", "error", err.text, NULL);
		return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err.text);
	}
	reply_header(call->exchange->reply, "Mcp-Session-Id", "%s", session.id);
	memcpy(call->exchange->reply->session, session.id, ID_SIZE);
	call->revision = revision;
	call->result = json_object_new_object();
	json_add_string(call->result, "protocolVersion", revision->name);
	json_add(call->result, "capabilities", mcp_capabilities(call->exchange, revision));
	json_add(call->result, "serverInfo", mcp_server_info());
	mcp_add_instructions(call->exchange->server, call->result);
	return 0;
}

static int ping(struct mcp_call *call)
{
	call->result = json_object_new_object();
	return 0;
}

static int set_level(struct mcp_call *call)
{
	int level = mcp_log_level(json_get_string(call->message->params, "level"));
	struct err err = ERR_INIT;

	if (!stream_offered(call->exchange->request))
		return mcp_fail_name(call, RPC_METHOD_NOT_FOUND, "Method not found (streams are not available here)",
				     call->message->method);
	if (level < 0)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: level: must be one of debug … emergency");
	if (sessions_set_log_level(call->exchange->server->sessions, call->session->id, level, &err) < 0)
		return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err.text);
	call->result = json_object_new_object();
	return 0;
}

const struct mcp_method legacy_methods[] = {
	MCP_METHOD("initialize", initialize, ACCESS_FREE),
	MCP_METHOD("ping", ping, ACCESS_FREE),
	MCP_METHOD("tools/list", mcp_tools_list, ACCESS_FREE),
	MCP_METHOD("tools/call", mcp_tools_call, MCP_SCOPE_TOOL, .cancellable = true),
	MCP_METHOD("resources/list", mcp_resources_list, STORE_SCOPE_FILES),
	MCP_METHOD("resources/templates/list", mcp_resources_templates, ACCESS_FREE),
	MCP_METHOD("resources/read", mcp_resources_read, STORE_SCOPE_FILES),
	MCP_METHOD("resources/subscribe", mcp_resources_subscribe, STORE_SCOPE_FILES, .session = true),
	MCP_METHOD("resources/unsubscribe", mcp_resources_unsubscribe, STORE_SCOPE_FILES, .session = true),
	MCP_METHOD("resources/directory/read", mcp_directory_read, STORE_SCOPE_FILES),
	MCP_METHOD("skills/list", mcp_skills_list, STORE_SCOPE_FILES),
	MCP_METHOD("skills/get", mcp_skills_get, STORE_SCOPE_FILES),
	MCP_METHOD("prompts/list", mcp_prompts_list, ACCESS_FREE),
	MCP_METHOD("prompts/get", mcp_prompts_get, ACCESS_FREE),
	MCP_METHOD("completion/complete", mcp_completion, MCP_SCOPE_REF),
	MCP_METHOD("logging/setLevel", set_level, ACCESS_FREE, .session = true),
	MCP_METHOD("tasks/get", mcp_tasks_get, STORE_SCOPE_RUN),
	MCP_METHOD("tasks/result", mcp_tasks_result, STORE_SCOPE_RUN, .cancellable = true),
	MCP_METHOD("tasks/list", mcp_tasks_list, STORE_SCOPE_RUN),
	MCP_METHOD("tasks/cancel", mcp_tasks_cancel, STORE_SCOPE_RUN),
	{0},
};

void legacy_handle(struct mcp_call *call, const struct mcp_method *method)
{
	if (!method)
		mcp_fail_name(call, RPC_METHOD_NOT_FOUND, "Method not found", call->message->method);
	else if (method->handle == initialize)
		mcp_fail(call, RPC_INVALID_REQUEST, "Invalid Request: initialize cannot be part of a batch");
	else if (method->session && !call->session) {
		call->status = 400;
		mcp_fail(call, RPC_INVALID_REQUEST,
			 "Bad Request: this method needs a session: send initialize first");
	} else {
		method->handle(call);
	}
}

char *mcp_id_text(struct json_object *id)
{
	auto_json struct json_object *plain = rpc_id(id);
	auto_buf struct buf text = {0};

	buf_init(&text, SIZE_MAX);
	json_print(&text, plain);
	return buf_steal(&text, NULL);
}

void legacy_request(struct http_exchange *exchange, const struct mcp_request *request, const struct session *session,
		    struct stream *stream)
{
	const struct rpc_message *message = &request->message;
	struct hub *hub = exchange->server->hub;
	auto_free char *id = mcp_id_text(message->id);
	struct hub_inflight inflight = {.session = session->id, .id = id, .stream = "", .wake_fd = -1};
	struct mcp_call call = {.exchange = exchange,
				.message = message,
				.tool = request->tool,
				.session = *session->id ? session : NULL,
				.revision = mcp_revision_of(session->protocol),
				.hangup_fd = -1,
				.stream = stream};
	struct err err = ERR_INIT;

	/* Without a session nobody can name it: ids of different clients are the same. */
	if (call.session && request->method && request->method->cancellable) {
		if (hub_inflight_begin(hub, &inflight, &err) < 0) {
			mcp_reply_error(exchange->reply, 503, message->id, RPC_INTERNAL, err.text);
			return;
		}
		call.inflight = &inflight;
	}
	legacy_handle(&call, request->method);
	mcp_finish(&call, call.code && call.status ? call.status : 200);
	if (call.inflight)
		hub_inflight_end(hub, &inflight);
}

/* A notification or a response; nothing comes of one that nobody waits for. */
void legacy_note(struct http_exchange *exchange, const struct rpc_message *message, const struct session *session,
		 struct json_object *document)
{
	struct hub *hub = exchange->server->hub;
	struct json_object *request;

	mcp_observe_received(session->protocol, document);
	if (!*session->id)
		return;
	if (message->kind == RPC_RESPONSE) {
		auto_free char *id = mcp_id_text(message->id), *text = mcp_id_text(document);

		hub_answer(hub, session->id, id, text);
	} else if (streq(message->method, "notifications/cancelled") &&
		   json_object_object_get_ex(message->params, "requestId", &request)) {
		auto_free char *id = mcp_id_text(request);

		hub_cancel(hub, session->id, id);
	}
}

/* MCP-Protocol-Version, if it is there, names a revision; false: the reply says which there are. */
static bool known_version(struct http_exchange *exchange, struct json_object *id, const char *version)
{
	const struct mcp_revision *revision = mcp_revision_find(version);
	char names[MCP_REVISIONS_TEXT], text[256];

	if (!version || (revision && !revision->modern))
		return true;
	mcp_revision_names(names);
	snprintf(text, sizeof(text),
		 "Bad Request: Unsupported protocol version in MCP-Protocol-Version (supported: %s)", names);
	mcp_reply_error(exchange->reply, 400, id, RPC_INVALID_REQUEST, text);
	return false;
}

bool legacy_session(struct http_exchange *exchange, struct json_object *id, const char *version, struct session *ret)
{
	char buffer[SESSION_HEADER_MAX];
	const char *raw = request_param(exchange->request, "HTTP_MCP_SESSION_ID");
	const char *session_id = request_header(exchange->request, "HTTP_MCP_SESSION_ID", buffer, sizeof(buffer));
	struct err err = ERR_INIT;

	if (!raw || !*raw) {
		mcp_reply_error(exchange->reply, 400, id, RPC_INVALID_REQUEST,
				"Bad Request: there is no session yet: send initialize first (over HTTP, then the "
				"Mcp-Session-Id header with each request)");
		return false;
	}
	if (!session_id ||
	    sessions_find(exchange->server->sessions, session_id, exchange->token.owner, ret, &err) < 0) {
		if (session_id && err.code != ERR_NOT_FOUND) {
			log_event(LOG_ERROR, "session not read", "error", err.text, NULL);
			mcp_reply_error(exchange->reply, 503, id, RPC_INTERNAL,
					"Internal error: the session cannot be read: try again");
			return false;
		}
		mcp_reply_error(exchange->reply, 404, id, RPC_SESSION_NOT_FOUND,
				"Session not found: send initialize again");
		return false;
	}
	return known_version(exchange, id, version);
}

bool legacy_session_or_none(struct http_exchange *exchange, struct json_object *id, const char *version,
			    struct session *ret)
{
	const char *raw = request_param(exchange->request, "HTTP_MCP_SESSION_ID");

	if (raw && *raw)
		return legacy_session(exchange, id, version, ret);
	if (!known_version(exchange, id, version))
		return false;
	*ret = (struct session){.log_level = -1};
	snprintf(ret->owner, sizeof(ret->owner), "%s", exchange->token.owner);
	snprintf(ret->protocol, sizeof(ret->protocol), "%s", version ? version : mcp_revision_assumed()->name);
	return true;
}

void legacy_message(struct http_exchange *exchange, const struct mcp_request *request, struct json_object *document,
		    const char *version)
{
	const struct rpc_message *message = &request->message;
	struct session session;
	struct stream stream;

	if (request->method && request->method->handle == initialize) {
		struct mcp_call call = {.exchange = exchange,
					.message = message,
					.revision = mcp_revision_newest(false),
					.hangup_fd = -1};

		initialize(&call);
		mcp_reply(exchange->reply, 200, mcp_answer(&call));
		return;
	}
	if (!legacy_session_or_none(exchange, message->id, version, &session))
		return;
	if (message->kind != RPC_REQUEST) {
		legacy_note(exchange, message, &session, document);
		mcp_accepted(exchange->reply);
		return;
	}
	stream_init(&stream, exchange->request, exchange->reply);
	legacy_request(exchange, request, &session, stream_possible(&stream) ? &stream : NULL);
}

void legacy_delete(struct http_exchange *exchange)
{
	struct session session;
	struct err err = ERR_INIT;
	auto_json struct json_object *body = json_object_new_object();

	snprintf(exchange->reply->method, sizeof(exchange->reply->method), "(end of session)");
	if (!legacy_session(exchange, NULL, NULL, &session))
		return;
	if (sessions_end(exchange->server->sessions, session.id, exchange->token.owner, &err) < 0) {
		log_event(LOG_ERROR, "session not ended", "error", err.text, NULL);
		mcp_reply_error(exchange->reply, 503, NULL, RPC_INTERNAL,
				"Internal error: the session cannot be ended: try again");
		return;
	}
	hub_cut(exchange->server->hub, session.id);
	hub_cancel(exchange->server->hub, session.id, NULL);
	reply_json(exchange->reply, 200, body);
}
