/* What is known of a request before it is answered: the scope that it needs, the revision that it speaks. */
#include "gateway.h"

#include "cgi/http/access.h"
#include "cgi/mcp/mcp_legacy.h"
#include "cgi/mcp/mcp_modern.h"
#include "cgi/mcp/mcp_request.h"
#include "cgi/mcp/tools.h"

static int never(struct mcp_call *call)
{
	(void)call;
	fail_msg("it was called");
	return -1;
}

/* Every row of both tables says what a token needs, and one that does not is refused, also to the operator. */
static void scopes(void **state)
{
	static const struct mcp_method forgotten = {.name = "x", .handle = never};
	const struct mcp_method *const tables[] = {legacy_methods, modern_methods};
	struct mcp_request request = {.message = {.kind = RPC_REQUEST, .method = "x"}, .method = &forgotten};
	const struct request http = {.hangup_fd = -1};
	auto_reply struct reply reply;
	struct http_exchange exchange = {.server = &fixture.server, .request = &http, .reply = &reply};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (const struct mcp_method *method = tables[i]; method->name; method++)
			assert_true(method->scope && method->handle);
	}
	auto_json struct json_object *tools =
		tools_describe(&fixture.server, STORE_SCOPE_ADMIN, TOOL_RESULTS_STRUCTURED);

	for (size_t i = 0; i < json_object_array_length(tools); i++) {
		struct json_object *tool = json_object_array_get_idx(tools, i);

		assert_true(tool_find(&fixture.server, json_get_string(tool, "name"))->scope);
	}
	reply_init(&reply);
	assert_false(mcp_request_begin(&exchange, &request));
	assert_int_equal(reply.status, 403);
	assert_non_null(strstr(reply.body.data, "no token may do this"));
}

/* What each revision has is said once: the table is whole, in order, and both eras have a newest one. */
static void revisions(void **state)
{
	char names[MCP_REVISIONS_TEXT];
	size_t assumed = 0, two_paths = 0;

	(void)state;
	for (const struct mcp_revision *revision = mcp_revisions; revision->name; revision++) {
		const struct mcp_revision *next = revision + 1;

		assert_true(!next->name || strcmp(revision->name, next->name) < 0);
		assert_true(!next->name || revision->modern <= next->modern);
		assert_true(strlen(revision->name) < sizeof(((struct session *)0)->protocol));
		assert_ptr_equal(mcp_revision_find(revision->name), revision);
		assert_int_equal(mcp_revision_claims_modern(revision->name), revision->modern);
		assumed += revision->assumed;
		two_paths += revision->two_paths;
	}
	assert_int_equal(assumed, 1);
	assert_int_equal(two_paths, 1);
	assert_string_equal(mcp_revision_newest(false)->name, "2025-11-25");
	assert_string_equal(mcp_revision_newest(true)->name, "2026-07-28");
	assert_null(mcp_revision_find("2026-07-29"));
	assert_null(mcp_revision_find(NULL));
	assert_true(mcp_revision_claims_modern("2027-01-01"));
	assert_false(mcp_revision_claims_modern(NULL));
	mcp_revision_names(names);
	assert_string_equal(names, "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28");
	assert_ptr_equal(mcp_revision_of("2031-01-01"), mcp_revisions); /* a later release's */
	assert_string_equal(mcp_revision_of("2025-06-18")->name, "2025-06-18");
}

#define SUBSCRIBE                                                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/subscribe\",\"params\":{\"uri\":\"sallyport://x\"}}"
#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"
#define NOTE "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}"

/* Legacy requests that name no session: what needs none is answered, in the header's revision or the assumed one. */
static void without_session(void **state)
{
	static const struct {
		const char *path, *body, *version; /* NULL: no header */
		int status, code;
	} cases[] = {
		{"/mcp", PING, NULL, 200, 0},
		{"/mcp/", PING, NULL, 200, 0},
		{"/mcp/x", PING, NULL, 404, 0},
		{"/mcp", LIST, NULL, 200, 0},
		{"/mcp", LIST, "2025-11-25", 200, 0},
		{"/mcp", LIST, "1999-01-01", 400, RPC_INVALID_REQUEST},
		{"/mcp", NOTE, NULL, 202, 0},
		{"/mcp", SUBSCRIBE, NULL, 400, RPC_INVALID_REQUEST},
		{"/mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}", NULL, 200, RPC_METHOD_NOT_FOUND},
		{"/mcp", "[" PING "," LIST "," NOTE "]", NULL, 200, 0},
		{"/mcp", "[" PING "]", "2025-06-18", 400, RPC_INVALID_REQUEST},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *version =
			xasprintf("HTTP_MCP_PROTOCOL_VERSION=%s", cases[i].version ? cases[i].version : "");
		auto_answer struct answer answer = ask(&fixture, "POST", cases[i].path, cases[i].body, version, NULL);

		if (answer.status != cases[i].status || rpc_code(&answer) != cases[i].code)
			fail_msg("%s %s: %d %s", cases[i].path, cases[i].body, answer.status, answer.body);
		assert_null(header_of(&answer, "Mcp-Session-Id"));
	}
	auto_answer struct answer stream = ask(&fixture, "GET", "/mcp", NULL, NULL);

	assert_true(stream.status >= 400);
}

static void compressed(void **state)
{
	(void)state;
	auto_answer struct answer gzip = ask(&fixture, "POST", "/mcp", PING, "HTTP_CONTENT_ENCODING=gzip", NULL);
	auto_answer struct answer plain = ask(&fixture, "POST", "/mcp", PING, "HTTP_CONTENT_ENCODING=Identity", NULL);

	assert_int_equal(gzip.status, 415);
	assert_string_equal(header_of(&gzip, "Accept-Encoding"), "identity");
	assert_non_null(strstr(rpc_text(&gzip), "compressed"));
	assert_int_equal(plain.status, 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(scopes), cmocka_unit_test(revisions),
					   cmocka_unit_test(without_session), cmocka_unit_test(compressed)};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
