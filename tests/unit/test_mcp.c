/* The protocol: envelopes, the router of eras, every boundary of the modern ladder, legacy sessions. */
#include "gateway.h"

#include "cgi/mcp/mcp_batch.h"

#include "lib/store/db/crypto.h"

#define META                                                                                                           \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"             \
	"clientCapabilities\":{}}"
#define V    "HTTP_MCP_PROTOCOL_VERSION=2026-07-28"

static struct json_object *result_of(const struct answer *answer)
{
	return json_get(answer->json, "result", json_type_object);
}

/* initialize; the session's header line is written to ret. */
static void open_session(const char *version, char ret[128])
{
	auto_free char *body = xasprintf(
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"%s\","
		"\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}}",
		version);
	auto_answer struct answer answer = ask(&fixture, "POST", "/mcp", body, NULL);

	assert_int_equal(answer.status, 200);
	assert_non_null(header_of(&answer, "Mcp-Session-Id"));
	snprintf(ret, 128, "HTTP_MCP_SESSION_ID=%.100s", header_of(&answer, "Mcp-Session-Id"));
}

static void envelopes(void **state)
{
	static const char *const bad[] = {
		"null",
		"7",
		"\"x\"",
		"{}",
		"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
		"{\"id\":1,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\\u0000b\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
		"{\"jsonrpc\":\"2.0\",\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
		"[]",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_answer struct answer answer = ask(&fixture, "POST", "/mcp", bad[i], NULL);

		if (answer.status != 400 || rpc_code(&answer) != RPC_INVALID_REQUEST)
			fail_msg("%s: %d %s", bad[i], answer.status, answer.body);
		assert_true(strlen(rpc_text(&answer)) > 10);
	}
	static const char *const broken[] = {
		"", "{", "{'a':1}", "{\"a\":1,\"a\":2}", "{\"a\":\"\xff\"}", "{\"a\":NaN}", "nul"};

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		auto_answer struct answer answer = ask(&fixture, "POST", "/mcp", broken[i], NULL);

		assert_int_equal(answer.status, 400);
		assert_int_equal(rpc_code(&answer), RPC_PARSE_ERROR);
	}
}

/* The id comes back with type and value, in success and failure, string, zero, negative. */
static void ids(void **state)
{
	static const char *const texts[] = {"\"a\"", "0", "-7", "9007199254740993", "\"\""};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		auto_free char *body = xasprintf(
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"server/discover\",\"params\":{" META "}}",
			texts[i]);
		auto_free char *expected = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":%s,", texts[i]);
		auto_answer struct answer good =
			ask(&fixture, "POST", "/mcp", body, V, "HTTP_MCP_METHOD=server/discover", NULL);
		auto_answer struct answer bad = ask(&fixture, "POST", "/mcp", body, V, "HTTP_MCP_METHOD=x", NULL);

		assert_int_equal(good.status, 200);
		assert_int_equal(bad.status, 400);
		assert_true(str_starts(good.body, expected));
		assert_true(str_starts(bad.body, expected));
	}
}

struct step {
	const char *body;
	const char *version, *method, *name; /* variables; NULL: none */
	int status, code;
};

#define CALL(params) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" params "}}"
#define LIST(params) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" params "}}"
#define METHOD(name) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" name "\",\"params\":{" META "}}"
#define VERSION_KEY  "\"io.modelcontextprotocol/protocolVersion\":"
#define CAPS_KEY     "\"io.modelcontextprotocol/clientCapabilities\":"
#define LEVEL_KEY    "\"io.modelcontextprotocol/logLevel\":"
#define OLD          "HTTP_MCP_PROTOCOL_VERSION=v999.0.0"

static const struct step steps[] = {
	/* a: the envelope, before any header */
	{LIST("\"_meta\":{" VERSION_KEY "\"2026-07-28\"}"), NULL, NULL, NULL, 400, -32602},
	{LIST("\"_meta\":{" VERSION_KEY "7," CAPS_KEY "{}}"), NULL, NULL, NULL, 400, -32602},
	{LIST("\"_meta\":{" VERSION_KEY "\"2026-07-28\"," CAPS_KEY "[]}"), V, NULL, NULL, 400, -32602},
	{LIST("\"_meta\":{" VERSION_KEY "\"2026-07-28\"," CAPS_KEY "{}," LEVEL_KEY "\"loud\"}"), V, NULL, NULL, 400,
	 -32602},
	{LIST("\"_meta\":{" VERSION_KEY "\"2026-07-28\"," CAPS_KEY "{}," LEVEL_KEY "7}"), V, NULL, NULL, 400, -32602},
	/* no envelope, but the header claims the era */
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", V, NULL, NULL, 400, -32602},
	{LIST(""), "HTTP_MCP_PROTOCOL_VERSION=2027-01-01", NULL, NULL, 400, -32022},
	{METHOD("initialize"), V, "HTTP_MCP_METHOD=initialize", NULL, 404, -32601},
	{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}", V, NULL, NULL, 400, -32020},
	/* b: the version header, before c */
	{LIST(META), NULL, "HTTP_MCP_METHOD=tools/list", NULL, 400, -32020},
	{LIST(META), "HTTP_MCP_PROTOCOL_VERSION=2025-11-25", "HTTP_MCP_METHOD=tools/list", NULL, 400, -32020},
	{LIST("\"_meta\":{" VERSION_KEY "\"v999.0.0\"," CAPS_KEY "{}}"), V, "HTTP_MCP_METHOD=tools/list", NULL, 400,
	 -32020},
	/* c: the version, before d */
	{LIST("\"_meta\":{" VERSION_KEY "\"v999.0.0\"," CAPS_KEY "{}}"), OLD, NULL, NULL, 400, -32022},
	{LIST("\"_meta\":{" VERSION_KEY "\"2025-11-25\"," CAPS_KEY "{}}"), "HTTP_MCP_PROTOCOL_VERSION=2025-11-25", NULL,
	 NULL, 400, -32022},
	/* d: Mcp-Method, before f */
	{LIST(META), V, NULL, NULL, 400, -32020},
	{LIST(META), V, "HTTP_MCP_METHOD=Tools/list", NULL, 400, -32020},
	{METHOD("x/y"), V, "HTTP_MCP_METHOD=tools/list", NULL, 400, -32020},
	/* e: Mcp-Name */
	{CALL("\"name\":\"list_runners\"," META), V, "HTTP_MCP_METHOD=tools/call", NULL, 400, -32020},
	{CALL("\"name\":\"list_runners\"," META), V, "HTTP_MCP_METHOD=tools/call", "HTTP_MCP_NAME=run_code", 400,
	 -32020},
	{CALL("\"name\":\"list_runners\"," META), V, "HTTP_MCP_METHOD=tools/call", "HTTP_MCP_NAME=List_runners", 400,
	 -32020},
	{CALL("\"name\":\"list_runners\"," META), V, "HTTP_MCP_METHOD=tools/call",
	 "HTTP_MCP_NAME==?base64?bGlzdF9ydW5uZXJz=?=", 400, -32020},
	{CALL("\"name\":\"list_runners\"," META), V, "HTTP_MCP_METHOD=tools/call",
	 "HTTP_MCP_NAME==?base64?bGlz!F9ydW5uZXJz?=", 400, -32020},
	{METHOD("prompts/get"), V, "HTTP_MCP_METHOD=prompts/get", NULL, 200, -32602}, /* no name to compare with */
	/* f: the method */
	{METHOD("x/y"), V, "HTTP_MCP_METHOD=x/y", NULL, 404, -32601},
	{METHOD("ping"), V, "HTTP_MCP_METHOD=ping", NULL, 404, -32601},
	{METHOD("logging/setLevel"), V, "HTTP_MCP_METHOD=logging/setLevel", NULL, 404, -32601},
	{METHOD("tasks/list"), V, "HTTP_MCP_METHOD=tasks/list", NULL, 404, -32601},
	/* i: the rest is JSON-RPC on 200 */
	{CALL(META), V, "HTTP_MCP_METHOD=tools/call", NULL, 200, -32602},
	{CALL("\"name\":7," META), V, "HTTP_MCP_METHOD=tools/call", NULL, 200, -32602},
	{CALL("\"name\":\"zz\"," META), V, "HTTP_MCP_METHOD=tools/call", "HTTP_MCP_NAME=zz", 200, -32602},
	{CALL("\"name\":\"run_code\",\"arguments\":[]," META), V, "HTTP_MCP_METHOD=tools/call",
	 "HTTP_MCP_NAME=run_code", 200, -32602},
	{LIST("\"cursor\":\"x\"," META), V, "HTTP_MCP_METHOD=tools/list", NULL, 200, -32602},
	/* and the good ones: header values are trimmed, names may be base64, ids of sessions are ignored */
	{LIST(META), "HTTP_MCP_PROTOCOL_VERSION= \t2026-07-28 ", "HTTP_MCP_METHOD=\ttools/list ", NULL, 200, 0},
	{CALL("\"name\":\"run_code\"," META), V, "HTTP_MCP_METHOD=tools/call",
	 "HTTP_MCP_NAME==?base64?cnVuX2NvZGU=?=", 200, 0},
	{LIST(META), V, "HTTP_MCP_METHOD=tools/list", "HTTP_MCP_SESSION_ID=whatever", 200, 0},
};

static void ladder(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		const struct step *step = &steps[i];
		const char *params[4] = {NULL};
		size_t n = 0;

		if (step->version)
			params[n++] = step->version;
		if (step->method)
			params[n++] = step->method;
		if (step->name)
			params[n++] = step->name;
		auto_answer struct answer answer =
			ask(&fixture, "POST", "/mcp", step->body, params[0], params[1], params[2], NULL);

		if (answer.status != step->status || rpc_code(&answer) != step->code)
			fail_msg("step %zu: %d %d, not %d %d: %s", i, answer.status, rpc_code(&answer), step->status,
				 step->code, answer.body);
		if (step->code)
			assert_int_equal(json_object_get_int(json_get(answer.json, "id", json_type_int)), 1);
	}
}

static void unsupported_data(void **state)
{
	(void)state;
	auto_answer struct answer answer = ask(
		&fixture, "POST", "/mcp", LIST("\"_meta\":{" VERSION_KEY "\"v999.0.0\"," CAPS_KEY "{}}"), OLD, NULL);

	assert_non_null(strstr(answer.body, "\"data\":{\"supported\":[\"2026-07-28\"],\"requested\":\"v999.0.0\"}"));
}

static void modern_results(void **state)
{
	(void)state;
	auto_answer struct answer discover =
		ask(&fixture, "POST", "/mcp", METHOD("server/discover"), V, "HTTP_MCP_METHOD=server/discover", NULL);
	auto_answer struct answer list =
		ask(&fixture, "POST", "/mcp", LIST(META), V, "HTTP_MCP_METHOD=tools/list", NULL);
	const struct answer *both[] = {&discover, &list};

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		struct json_object *result = result_of(both[i]);
		struct json_object *info =
			json_get(json_get(result, "_meta", json_type_object), MCP_META_SERVER, json_type_object);

		assert_string_equal(json_get_string(result, "resultType"), "complete");
		assert_string_equal(json_get_string(info, "name"), "sallyport");
		assert_non_null(json_get(result, "ttlMs", json_type_int));
		assert_non_null(json_get_string(result, "cacheScope"));
		assert_null(header_of(both[i], "Mcp-Session-Id"));
	}
	assert_string_equal(json_object_get_string(json_object_array_get_idx(
				    json_get(result_of(&discover), "supportedVersions", json_type_array), 0)),
			    "2026-07-28");
	assert_int_equal(json_object_array_length(json_get(result_of(&list), "tools", json_type_array)), 11);
}

static void notifications(void **state)
{
	char session[128];
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";

	(void)state;
	open_session("2025-11-25", session);
	auto_answer struct answer legacy = ask(&fixture, "POST", "/mcp", body, session, NULL);
	auto_answer struct answer modern = ask(&fixture, "POST", "/mcp", body, V, NULL);
	auto_answer struct answer response =
		ask(&fixture, "POST", "/mcp", "{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"result\":{}}", session, NULL);
	auto_answer struct answer lost = ask(&fixture, "POST", "/mcp", body, NULL);

	assert_int_equal(legacy.status, 202);
	assert_string_equal(legacy.body, "");
	assert_int_equal(modern.status, 202);
	assert_string_equal(modern.body, "");
	assert_int_equal(response.status, 202);
	assert_int_equal(lost.status, 202); /* it names no session, and changes nothing */
}

static void negotiation(void **state)
{
	static const struct {
		const char *asked, *given;
	} cases[] = {
		{"2024-11-05", "2024-11-05"}, {"2025-03-26", "2025-03-26"}, {"2025-06-18", "2025-06-18"},
		{"2025-11-25", "2025-11-25"}, {"2024-10-07", "2025-11-25"}, {"2026-07-28", "2025-11-25"},
		{"", "2025-11-25"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
						 "\"protocolVersion\":\"%s\"}}",
						 cases[i].asked);
		auto_answer struct answer answer =
			ask(&fixture, "POST", "/mcp", body, "HTTP_MCP_PROTOCOL_VERSION=2025-06-18", NULL);

		assert_int_equal(answer.status, 200);
		assert_string_equal(json_get_string(result_of(&answer), "protocolVersion"), cases[i].given);
		assert_null(json_get_string(result_of(&answer), "resultType"));
	}
	auto_answer struct answer none =
		ask(&fixture, "POST", "/mcp", "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\"}", NULL);

	assert_int_equal(none.status, 200);
	assert_int_equal(rpc_code(&none), RPC_INVALID_PARAMS);
	assert_null(header_of(&none, "Mcp-Session-Id"));
	/* an incomplete modern envelope does not make initialize modern */
	auto_answer struct answer half = ask(&fixture, "POST", "/mcp",
					     "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
					     "\"protocolVersion\":\"2025-06-18\","
					     "\"_meta\":{" VERSION_KEY "\"2026-07-28\"}}}",
					     V, NULL);

	assert_int_equal(half.status, 200);
	assert_int_equal(rpc_code(&half), 0);
}

static void sessions(void **state)
{
	static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}";
	char session[128], unknown[] = "HTTP_MCP_SESSION_ID=0190c0de-0000-7000-8000-000000000000";
	auto_free char *bob = xasprintf("HTTP_AUTHORIZATION=Bearer %s", fixture.other);

	(void)state;
	open_session("2025-06-18", session);
	auto_answer struct answer good = ask(&fixture, "POST", "/mcp", ping, session, NULL);
	auto_answer struct answer none = ask(&fixture, "POST", "/mcp", ping, NULL);
	auto_answer struct answer other = ask(&fixture, "POST", "/mcp", ping, session, bob, NULL);
	auto_answer struct answer wrong = ask(&fixture, "POST", "/mcp", ping, unknown, NULL);
	auto_answer struct answer junk = ask(&fixture, "POST", "/mcp", ping, "HTTP_MCP_SESSION_ID=../etc", NULL);
	auto_answer struct answer version =
		ask(&fixture, "POST", "/mcp", ping, session, "HTTP_MCP_PROTOCOL_VERSION=1999-01-01", NULL);
	auto_answer struct answer method =
		ask(&fixture, "POST", "/mcp", "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"x\"}", session, NULL);

	assert_string_equal(good.body, "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}");
	assert_string_equal(none.body, good.body); /* ping needs none */
	assert_int_equal(other.status, 404);
	assert_int_equal(wrong.status, 404);
	assert_int_equal(junk.status, 404);
	assert_int_equal(version.status, 400);
	assert_int_equal(method.status, 200);
	assert_int_equal(rpc_code(&method), RPC_METHOD_NOT_FOUND);

	auto_answer struct answer foreign = ask(&fixture, "DELETE", "/mcp", NULL, session, bob, NULL);
	auto_answer struct answer modern = ask(&fixture, "DELETE", "/mcp", NULL, session, V, NULL);
	auto_answer struct answer still = ask(&fixture, "POST", "/mcp", ping, session, NULL);
	auto_answer struct answer end = ask(&fixture, "DELETE", "/mcp", NULL, session, NULL);
	auto_answer struct answer gone = ask(&fixture, "POST", "/mcp", ping, session, NULL);
	auto_answer struct answer again = ask(&fixture, "DELETE", "/mcp", NULL, session, NULL);
	auto_answer struct answer without = ask(&fixture, "DELETE", "/mcp", NULL, NULL);

	assert_int_equal(foreign.status, 404);
	assert_int_equal(modern.status, 405);
	assert_int_equal(still.status, 200);
	assert_int_equal(end.status, 200);
	assert_int_equal(gone.status, 404);
	assert_int_equal(again.status, 404);
	assert_int_equal(without.status, 400);
}

/* More sessions than the cache has slots: every one still works, and none costs more memory than its slot. */
static void many_sessions(void **state)
{
	enum { COUNT = SESSIONS_CACHED + 8 };
	/* none of which has more than STORE_SESSIONS_MAX */
	static const struct store_token tokens[] = {
		{.owner = "one"}, {.owner = "two"}, {.owner = "three"}, {.owner = "four"}};
	const struct session_client client = {.protocol = "2025-06-18", .name = "client"};
	struct sessions *cache = sessions_new(fixture.server.store);
	auto_free struct session *opened = xcalloc(COUNT, sizeof(*opened));
	struct session found;
	struct err err = ERR_INIT;

	(void)state;
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(sessions_add(cache, &tokens[i % ARRAY_SIZE(tokens)], &client, &opened[i], &err), 0);
	sessions_free(cache);
	cache = sessions_new(fixture.server.store); /* as after a restart */
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(sessions_find(cache, opened[i].id, tokens[i % ARRAY_SIZE(tokens)].owner, &found, &err),
				 0);
		assert_string_equal(found.protocol, "2025-06-18");
		assert_int_equal(sessions_find(cache, opened[i].id, "bob", &found, &err), -ERR_NOT_FOUND);
	}
	sessions_free(cache);
}

static void long_client_name(void **state)
{
	auto_free char *name = xcalloc(1, 301);
	const struct session_client client = {.protocol = "2025-06-18", .name = name, .version = name};
	struct session session;
	struct err err = ERR_INIT;

	(void)state;
	for (int i = 0; i < 100; i++)
		memcpy(name + 3 * i, "\xe2\x82\xac", 3);
	assert_int_equal(sessions_add(fixture.server.sessions, &fixture.alice, &client, &session, &err), 0);
}

#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"ping\"}"
#define NOTE     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"

static void batches(void **state)
{
	char session[128], later[128];
	auto_buf struct buf many = {0};

	(void)state;
	open_session("2025-03-26", session);
	open_session("2025-06-18", later);
	auto_answer struct answer good =
		ask(&fixture, "POST", "/mcp", "[" PING(1) "," NOTE "," PING(2) ",7]", session, NULL);
	auto_answer struct answer notes = ask(&fixture, "POST", "/mcp", "[" NOTE "," NOTE "]", session, NULL);
	auto_answer struct answer newer = ask(&fixture, "POST", "/mcp", "[" PING(1) "]", later, NULL);
	auto_answer struct answer none = ask(&fixture, "POST", "/mcp", "[" PING(1) "]", NULL);
	auto_answer struct answer modern = ask(&fixture, "POST", "/mcp", "[" PING(1) "," LIST(META) "]", session, NULL);
	auto_answer struct answer opening =
		ask(&fixture, "POST", "/mcp",
		    "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}]", session, NULL);

	assert_int_equal(good.status, 200);
	assert_int_equal(json_object_array_length(good.json), 3);
	assert_non_null(strstr(good.body, "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}"));
	assert_int_equal(notes.status, 202);
	assert_int_equal(newer.status, 400);
	assert_int_equal(rpc_code(&newer), RPC_INVALID_REQUEST);
	assert_int_equal(none.status, 200); /* the assumed revision has batches */
	assert_int_equal(modern.status, 400);
	assert_non_null(strstr(opening.body, "-32600"));

	buf_init(&many, 1 << 20);
	for (int i = 0; i < MCP_BATCH_MAX; i++)
		buf_printf(&many, "%s" PING(1), i ? "," : "[");
	buf_putc(&many, ']');
	auto_answer struct answer most = ask(&fixture, "POST", "/mcp", many.data, session, NULL);

	assert_int_equal(most.status, 200);
	many.data[many.length - 1] = ',';
	buf_puts(&many, PING(1) "]");
	auto_answer struct answer more = ask(&fixture, "POST", "/mcp", many.data, session, NULL);

	assert_int_equal(more.status, 400);
}

static void get_is_not_served(void **state)
{
	(void)state;
	auto_answer struct answer legacy = ask(&fixture, "GET", "/mcp", NULL, NULL);
	auto_answer struct answer modern = ask(&fixture, "GET", "/mcp", NULL, V, NULL);

	assert_int_equal(legacy.status, 405);
	assert_int_equal(modern.status, 405);
	assert_non_null(header_of(&legacy, "Allow"));
}

/* A name that is cut for the message stays UTF-8. */
static void long_names(void **state)
{
	auto_free char *name = xcalloc(1, 3001), *body = NULL;

	(void)state;
	for (int i = 0; i < 1000; i++)
		memcpy(name + 3 * i, "\xe2\x82\xac", 3);
	char session[128];

	open_session("2025-11-25", session);
	body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}", name);
	auto_answer struct answer answer = ask(&fixture, "POST", "/mcp", body, session, NULL);

	assert_int_equal(rpc_code(&answer), RPC_METHOD_NOT_FOUND);
	assert_true(strlen(rpc_text(&answer)) < 200);
}

/* A header that is longer than any good value is as bad as a wrong one, never as good as a missing one. */
static void overlong_headers(void **state)
{
	auto_free char *version = xasprintf("HTTP_MCP_PROTOCOL_VERSION=2026-07-28%0200d", 0),
		       *old = xasprintf("HTTP_MCP_PROTOCOL_VERSION=1%0200d", 0);
	auto_free char *name = xasprintf("HTTP_MCP_NAME=list_runners%09000d", 0),
		       *id = xasprintf("HTTP_MCP_SESSION_ID=%0200d", 0);
	auto_free char *method = xasprintf("HTTP_MCP_METHOD=tools/list%0300d", 0);
	char session[128];

	(void)state;
	open_session("2025-11-25", session);
	auto_answer struct answer modern =
		ask(&fixture, "POST", "/mcp", LIST(META), version, "HTTP_MCP_METHOD=tools/list", NULL);
	auto_answer struct answer legacy =
		ask(&fixture, "POST", "/mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", old, session, NULL);
	auto_answer struct answer named_tool = ask(&fixture, "POST", "/mcp", CALL("\"name\":\"list_runners\"," META), V,
						   "HTTP_MCP_METHOD=tools/call", name, NULL);
	auto_answer struct answer unknown =
		ask(&fixture, "POST", "/mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", id, NULL);
	auto_answer struct answer list = ask(&fixture, "POST", "/mcp", LIST(META), V, method, NULL);

	assert_int_equal(rpc_code(&modern), RPC_HEADER_MISMATCH);
	assert_int_equal(legacy.status, 400);
	assert_int_equal(rpc_code(&named_tool), RPC_HEADER_MISMATCH);
	assert_int_equal(unknown.status, 404);
	assert_int_equal(rpc_code(&list), RPC_HEADER_MISMATCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(envelopes),      cmocka_unit_test(ids),
		cmocka_unit_test(ladder),         cmocka_unit_test(unsupported_data),
		cmocka_unit_test(modern_results), cmocka_unit_test(notifications),
		cmocka_unit_test(negotiation),    cmocka_unit_test(sessions),
		cmocka_unit_test(many_sessions),  cmocka_unit_test(long_client_name),
		cmocka_unit_test(batches),        cmocka_unit_test(get_is_not_served),
		cmocka_unit_test(long_names),     cmocka_unit_test(overlong_headers),
	};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
