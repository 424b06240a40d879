/* What a token needs for a request: every method and every tool says it. */
#include "gateway.h"

#include "cgi/http/access.h"
#include "cgi/mcp/mcp_legacy.h"
#include "cgi/mcp/mcp_modern.h"
#include "cgi/mcp/mcp_request.h"
#include "cgi/tool/tools.h"

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
	struct exchange exchange = {.server = &fixture.server, .request = &http, .reply = &reply};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		for (const struct mcp_method *method = tables[i]; method->name; method++)
			assert_true(method->scope && method->handle);
	}
	auto_json struct json_object *tools = tools_describe(&fixture.server, STORE_SCOPE_ADMIN);

	for (size_t i = 0; i < json_object_array_length(tools); i++) {
		struct json_object *tool = json_object_array_get_idx(tools, i);

		assert_true(tool_find(&fixture.server, json_get_string(tool, "name"))->scope);
	}
	reply_init(&reply);
	assert_false(mcp_request_begin(&exchange, &request));
	assert_int_equal(reply.status, 403);
	assert_non_null(strstr(reply.body.data, "no token may do this"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(scopes)};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
