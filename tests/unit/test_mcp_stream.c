/* What is sent before the answer: the bound on a stream's events, relays, questions where nobody can be asked. */
#include "gateway.h"

#include "cgi/http/hub.h"
#include "cgi/mcp/mcp_stream.h"
#include "lib/store/record/store_event.h"

/* A tools/call with a progressToken in a session of its own, on a reply whose bytes are kept. */
struct talk {
	struct json_object *params, *id;
	struct rpc_message message;
	struct reply reply;
	struct request request;
	struct http_exchange exchange;
	struct session session;
	struct hub_inflight inflight;
	struct stream stream;
	struct mcp_call call;
	struct buf sent;
};

static int keep_bytes(void *arg, const void *data, size_t length)
{
	buf_add(&((struct talk *)arg)->sent, data, length);
	return 0;
}

static void talk_begin(struct talk *talk, const char *protocol)
{
	static const char *const params[] = {NULL};
	const struct session_client client = {.protocol = protocol};
	struct server *server = &fixture.server;

	*talk = (struct talk){.id = json_object_new_int(1)};
	assert_int_equal(json_parse("{\"_meta\":{\"progressToken\":7}}", 29, &talk->params, NULL), 0);
	talk->message = (struct rpc_message){
		.kind = RPC_REQUEST, .id = talk->id, .method = "tools/call", .params = talk->params};
	buf_init(&talk->sent, SIZE_MAX);
	reply_init(&talk->reply);
	talk->request = (struct request){.params = params, .send = keep_bytes, .arg = talk, .hangup_fd = -1};
	talk->exchange = (struct http_exchange){
		.server = server, .request = &talk->request, .reply = &talk->reply, .token = fixture.alice};
	assert_int_equal(sessions_add(server->sessions, &fixture.alice, &client, &talk->session, NULL), 0);
	talk->inflight = (struct hub_inflight){.session = talk->session.id, .id = "1", .stream = "", .wake_fd = -1};
	assert_int_equal(hub_inflight_begin(server->hub, &talk->inflight, NULL), 0);
	stream_init(&talk->stream, &talk->request, &talk->reply);
	talk->call = (struct mcp_call){.exchange = &talk->exchange,
				       .message = &talk->message,
				       .session = &talk->session,
				       .revision = mcp_revision_find(protocol),
				       .hangup_fd = -1,
				       .stream = &talk->stream,
				       .inflight = &talk->inflight};
}

static void talk_end(struct talk *talk)
{
	hub_inflight_end(fixture.server.hub, &talk->inflight);
	reply_clear(&talk->reply);
	buf_clear(&talk->sent);
	json_object_put(talk->params);
	json_object_put(talk->id);
}

static size_t count(const char *text, const char *part)
{
	size_t found = 0;

	for (; (text = strstr(text, part)); text++)
		found++;
	return found;
}

static int count_event(void *arg, const struct store_event *event)
{
	(void)event;
	++*(size_t *)arg;
	return 0;
}

/* Beyond MCP_EVENTS_MAX nothing is sent and nothing is kept, but the answer is. */
static void many_events(void **state)
{
	struct talk talk;
	size_t kept = 0;

	(void)state;
	talk_begin(&talk, "2025-11-25");
	for (int i = 1; i <= MCP_EVENTS_MAX + 100; i++)
		mcp_progress(&talk.call, i, -1, NULL);
	assert_int_equal(count(talk.sent.data, "notifications/progress"), MCP_EVENTS_MAX);
	talk.call.result = json_object_new_object();
	mcp_finish(&talk.call, 200);
	assert_int_equal(count(talk.sent.data, "\"result\":{}"), 1);
	const struct store_event_filter all = {talk.session.id, talk.call.stream_id, 0};

	assert_int_equal(store_event_list(fixture.server.store, &all, count_event, &kept, NULL), 0);
	assert_int_equal(kept, 1 + MCP_EVENTS_MAX + 1); /* the opening and the answer are no notifications */
	talk_end(&talk);
}

static void progress_grows(void **state)
{
	static const int64_t given[] = {1, 5, 5, 3, 6, 0, -1};
	struct talk talk;

	(void)state;
	talk_begin(&talk, "2025-06-18");
	for (size_t i = 0; i < ARRAY_SIZE(given); i++)
		mcp_progress(&talk.call, given[i], -1, NULL);
	assert_int_equal(count(talk.sent.data, "notifications/progress"), 3);
	talk_end(&talk);
}

static int take(void *arg, const char *data)
{
	struct buf *taken = arg;

	buf_puts(taken, data);
	buf_putc(taken, '\n');
	return count(taken->data, "\n") < 3 ? 0 : -1;
}

/* Whole messages, no head, no signs of life; one that nobody takes any more is gone. */
static void relays(void **state)
{
	auto_buf struct buf taken = {0};
	struct talk talk;

	(void)state;
	buf_init(&taken, SIZE_MAX);
	talk_begin(&talk, "2024-11-05");
	stream_init_forward(&talk.stream, take, &taken);
	talk.stream.sent_us -= (STREAM_KEEP_ALIVE_SECONDS + 1) * 1000000LL;
	assert_int_equal(stream_patience_ms(&talk.stream), 0);
	stream_keep_alive(&talk.stream);
	assert_true(stream_patience_ms(&talk.stream) > 0); /* whoever waits for the next one sleeps */
	assert_int_equal(taken.length, 0);
	mcp_progress(&talk.call, 1, -1, "a");
	talk.call.result = json_object_new_object();
	mcp_finish(&talk.call, 200);
	assert_string_equal(taken.data, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
					"{\"progressToken\":7,\"progress\":1,\"message\":\"a\"}}\n"
					"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
	stream_event(&talk.stream, NULL, NULL, "x");
	assert_true(talk.stream.gone);
	stream_event(&talk.stream, NULL, NULL, "y");
	assert_null(strchr(taken.data, 'y'));
	stream_end(&talk.stream);
	assert_int_equal(talk.sent.length, 0);
	talk_end(&talk);
}

/* A call that was cancelled is not answered, on either kind of stream. */
static void silence(void **state)
{
	auto_buf struct buf taken = {0};
	struct talk talk;

	(void)state;
	buf_init(&taken, SIZE_MAX);
	talk_begin(&talk, "2024-11-05");
	stream_init_forward(&talk.stream, take, &taken);
	talk.call.silent = true;
	mcp_fail(&talk.call, RPC_INTERNAL, "cancelled");
	mcp_finish(&talk.call, 200);
	assert_int_equal(taken.length, 0);
	assert_int_equal(talk.reply.body.length, 0);
	talk_end(&talk);
}

static void nobody_to_ask(void **state)
{
	struct json_object *answer = NULL;
	struct err err = ERR_INIT;
	struct talk talk;

	(void)state;
	talk_begin(&talk, "2025-11-25");
	talk.call.stream = NULL;
	assert_int_equal(mcp_ask(&talk.call, "roots/list", json_object_new_object(), &answer, &err), -ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "cannot be asked"));
	assert_null(answer);
	talk_end(&talk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_events), cmocka_unit_test(progress_grows), cmocka_unit_test(relays),
		cmocka_unit_test(silence),     cmocka_unit_test(nobody_to_ask),
	};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
