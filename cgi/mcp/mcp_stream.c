/*
 * mcp_stream.c - see mcp_stream.h.
 *
 * The order for one event of a legacy stream: store it, wake the thread that follows the stream elsewhere (a GET that
 * took it up), send it. Sending may fail at any time, which changes nothing for the other two. Errors are sent without
 * an id: a client that saw an id and then an error would come back for a result that does not exist.
 */
#include "mcp_stream.h"

#include "cgi/http/hub.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/record/store_event.h"
#include "lib/store/record/store_session.h"

const char *const mcp_log_levels[] = {"debug",    "info",  "notice",    "warning", "error",
				      "critical", "alert", "emergency", NULL};

int mcp_log_level(const char *name)
{
	for (int i = 0; name && mcp_log_levels[i]; i++) {
		if (streq(name, mcp_log_levels[i]))
			return i;
	}
	return -1;
}

const char *mcp_topic_method(enum hub_topic topic)
{
	switch (topic) {
	case HUB_TOOLS_CHANGED:
		return "notifications/tools/list_changed";
	case HUB_PROMPTS_CHANGED:
		return "notifications/prompts/list_changed";
	case HUB_RESOURCES_CHANGED:
		return "notifications/resources/list_changed";
	case HUB_RESOURCE_UPDATED:
		return "notifications/resources/updated";
	case HUB_TASK_CHANGED:
		break;
	}
	return "notifications/tasks"; /* modern */
}

void mcp_event_id(const char *stream, int64_t number, char ret[MCP_EVENT_ID_MAX])
{
	snprintf(ret, MCP_EVENT_ID_MAX, "%s_%lld", stream, (long long)number);
}

bool mcp_event_id_parse(const char *text, char ret_stream[ID_SIZE], int64_t *ret_number)
{
	uint64_t number;
	char stream[ID_SIZE];

	if (strlen(text) < ID_SIZE + 1 || text[ID_SIZE - 1] != '_')
		return false;
	memcpy(stream, text, ID_SIZE - 1);
	stream[ID_SIZE - 1] = '\0';
	if (!id_valid(stream) || parse_u64(text + ID_SIZE, 0, INT64_MAX - 1, &number) < 0)
		return false;
	memcpy(ret_stream, stream, ID_SIZE);
	*ret_number = (int64_t)number;
	return true;
}

/* Keeps an event for clients that come back; the next number is its own. */
static void keep(struct mcp_call *call, const char *message, bool last)
{
	struct server *server = call->exchange->server;
	struct store_event event = {
		.number = call->stream_number, .last = last, .message = message, .length = strlen(message)};
	struct err err = ERR_INIT;

	memcpy(event.stream, call->stream_id, ID_SIZE);
	if (store_event_add(server->store, call->session->id, &event, &err) < 0)
		log_event(LOG_WARN, "event not kept", "error", err.text, NULL);
	hub_follow_wake(server->hub, call->stream_id);
}

static void begin(struct mcp_call *call)
{
	char id[MCP_EVENT_ID_MAX];

	if (call->stream->open || call->stream_id[0])
		return;
	if (call->revision->resumable && call->session && call->inflight && call->exchange->request->send) {
		auto_buf struct buf text = {0};

		buf_init(&text, SIZE_MAX);
		json_print(&text, call->message->id);
		id_new(call->stream_id);
		hub_inflight_stream(call->exchange->server->hub, call->inflight, call->stream_id);
		keep(call, text.data, false);
	}
	mcp_event_id(call->stream_id, 0, id);
	if (call->stream_id[0] && call->revision->primed)
		stream_prime(call->stream, id);
}

/* Sends one message; it is taken over. */
static void send_message(struct mcp_call *call, struct json_object *message, bool last, bool with_id)
{
	auto_json struct json_object *owned = message;
	auto_buf struct buf text = {0};
	char id[MCP_EVENT_ID_MAX];

	begin(call);
	buf_init(&text, HTTP_REPLY_MAX);
	json_print(&text, owned);
	if (call->stream_id[0]) {
		call->stream_number++;
		keep(call, text.data, last);
		mcp_event_id(call->stream_id, call->stream_number, id);
	}
	stream_event(call->stream, call->stream_id[0] && with_id ? id : NULL, NULL, text.data);
}

void mcp_notify(struct mcp_call *call, const char *method, struct json_object *params)
{
	struct json_object *message;

	if (!call->stream || call->stream_number >= MCP_EVENTS_MAX) {
		json_object_put(params);
		return;
	}
	message = json_object_new_object();
	json_add_string(message, "jsonrpc", "2.0");
	json_add_string(message, "method", method);
	if (params)
		json_add(message, "params", params);
	mcp_observe(call, message);
	send_message(call, message, false, true);
}

struct json_object *mcp_progress_token(const struct mcp_call *call)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object), *token;

	if (!json_object_object_get_ex(meta, "progressToken", &token))
		return NULL;
	return json_object_is_type(token, json_type_string) || json_object_is_type(token, json_type_int) ? token : NULL;
}

bool mcp_wants_progress(const struct mcp_call *call)
{
	return call->stream && mcp_progress_token(call);
}

void mcp_progress(struct mcp_call *call, int64_t progress, int64_t total, const char *text)
{
	if (!mcp_wants_progress(call) || progress <= call->progress)
		return;
	struct json_object *params = json_object_new_object();

	call->progress = progress;
	json_add(params, "progressToken", json_object_get(mcp_progress_token(call)));
	json_add_int(params, "progress", progress);
	if (total >= 0)
		json_add_int(params, "total", total);
	if (text)
		json_add_string(params, "message", text);
	mcp_notify(call, "notifications/progress", params);
}

/* The least that this client wants to hear of; -1: nothing. */
static int least_level(const struct mcp_call *call)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object);
	bool fixtures = call->exchange->server->fixtures;

	if (call->revision->modern)
		return fixtures ? mcp_log_level(json_get_string(meta, MCP_META_LOG_LEVEL)) : -1;
	if (call->session && call->session->log_level >= 0)
		return call->session->log_level;
	return fixtures ? 0 : -1;
}

void mcp_log(struct mcp_call *call, const char *level, const char *text)
{
	struct json_object *params;
	int least = least_level(call);

	if (least < 0 || mcp_log_level(level) < least)
		return;
	params = json_object_new_object();
	json_add_string(params, "level", level);
	json_add_string(params, "logger", "sallyport");
	json_add_string(params, "data", text);
	mcp_notify(call, "notifications/message", params);
}

void mcp_keep_alive(struct mcp_call *call)
{
	if (!call->stream || stream_patience_ms(call->stream) > 0)
		return;
	begin(call);
	stream_keep_alive(call->stream);
}

int mcp_question_begin(struct mcp_call *call, const char *method, struct json_object *params, struct mcp_question *ret,
		       struct err *err)
{
	struct hub *hub = call->exchange->server->hub;
	auto_json struct json_object *message = json_object_new_object();

	*ret = (struct mcp_question){.method = method};
	snprintf(ret->id, sizeof(ret->id), "s-%llu", (unsigned long long)hub_question_number(hub));
	snprintf(ret->quoted, sizeof(ret->quoted), "\"%s\"", ret->id);
	json_add_string(message, "jsonrpc", "2.0");
	json_add_string(message, "id", ret->id);
	json_add_string(message, "method", method);
	json_add(message, "params", params);
	if (!call->stream || !call->inflight || call->revision->modern)
		return err_set(err, ERR_UNAVAILABLE, "the client cannot be asked: its reply cannot be a stream");
	hub_question_begin(hub, call->inflight, ret->quoted);
	mcp_observe(call, message);
	send_message(call, steal(&message), false, true);
	return 0;
}

int mcp_question_poll(struct mcp_call *call, const struct mcp_question *question, int timeout_ms,
		      struct json_object **ret, struct err *err)
{
	auto_json struct json_object *answer = NULL;
	auto_free char *text = NULL;
	int result = hub_question_wait(call->exchange->server->hub, call->inflight, timeout_ms, &text, err);

	*ret = NULL;
	if (result < 0 || !text)
		return result;
	result = json_parse(text, strlen(text), &answer, err);
	if (result < 0)
		return result;
	struct json_object *value = json_get(answer, "result", json_type_object);

	if (!value)
		return err_set(err, ERR_UNAVAILABLE, "the client refused %s", question->method);
	*ret = json_object_get(value);
	return 0;
}

void mcp_question_end(struct mcp_call *call, const struct mcp_question *question, bool withdraw)
{
	hub_question_begin(call->exchange->server->hub, call->inflight, NULL);
	if (!withdraw)
		return;
	struct json_object *params = json_object_new_object();

	json_add_string(params, "requestId", question->id);
	mcp_notify(call, "notifications/cancelled", params);
}

int mcp_ask(struct mcp_call *call, const char *method, struct json_object *params, struct json_object **ret,
	    struct err *err)
{
	const int64_t until = clock_monotonic_us() + MCP_ASK_SECONDS * 1000000LL;
	struct json_object *answer = NULL;
	struct mcp_question question;
	int result = mcp_question_begin(call, method, params, &question, err);

	if (result < 0)
		return result;
	while (result == 0 && !answer) {
		if (clock_monotonic_us() >= until)
			result = err_set(err, ERR_UNAVAILABLE, "the client did not answer within %d s",
					 MCP_ASK_SECONDS);
		else
			result = mcp_question_poll(call, &question, stream_patience_ms(call->stream), &answer, err);
		mcp_keep_alive(call);
	}
	mcp_question_end(call, &question, false);
	if (result == 0)
		*ret = answer;
	return result;
}

const char *mcp_cannot_elicit(const struct mcp_call *call)
{
	struct json_object *meta = json_get(call->message->params, "_meta", json_type_object);

	if (call->revision->modern && !call->exchange->server->tasks)
		return "this server does not stay for an answer (it is a CGI program)";
	if (call->revision->modern)
		return mcp_elicits(json_get(meta, MCP_META_CAPABILITIES, json_type_object))
			       ? NULL
			       : "this client cannot be asked (it has no elicitation capability)";
	if (!call->session || !(call->session->offers & STORE_ELICITATION))
		return "this client cannot be asked (it has no elicitation capability)";
	return call->stream && call->inflight ? NULL : "this client cannot be asked (it does not accept event streams)";
}

void mcp_finish(struct mcp_call *call, int status)
{
	/* The suite wants to see streams work where we would not need one. */
	bool shown = call->exchange->server->fixtures && !call->code;
	bool streams = call->stream && (call->stream->open || call->silent || shown);

	if (!streams) {
		mcp_reply(call->exchange->reply, status, mcp_answer(call));
		return;
	}
	if (call->silent) { /* nothing more is said, and a client that comes back gets that answer */
		json_object_put(mcp_answer(call));
		stream_open(call->stream);
		if (call->stream_id[0]) {
			call->stream_number++;
			keep(call, "", true);
		}
		return;
	}
	bool failed = call->code != 0;

	send_message(call, mcp_answer(call), true, !failed);
}
