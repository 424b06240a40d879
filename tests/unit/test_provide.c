/* Resources, prompts, completion: dispatch, altered cursors and states, and that the fixtures are there only when they
 * are asked for. */
#include "gateway.h"
#include "tests/gateway/conformance.h"

#include "cgi/mcp/signed.h"

#define META                                                                                                           \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/"             \
	"clientCapabilities\":{}}"
#define META_ASKED                                                                                                     \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                       \
	"\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{}}}"
#define V    "HTTP_MCP_PROTOCOL_VERSION=2026-07-28"

static int open_conformance(void **state)
{
	(void)state;
	fixture_open(&fixture);
	fixture.server.fixtures = &conformance_fixtures;
	fixture.server.tables.next = &conformance_fixtures.tables;
	const char *url = fixture.config.public_base_url;

	fixture.config.public_base_url = "http://127.0.0.1:8080"; /* they are served on loopback alone */
	const int result = conformance_fixtures.open(&fixture.server, NULL);

	fixture.config.public_base_url = url;
	return result;
}

/* A modern request; `params` in front of _meta, with its comma. `name`: Mcp-Name or NULL. */
static struct answer call(const char *method, const char *params, const char *name)
{
	auto_free char *body =
		xasprintf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s" META "}}", method, params);
	auto_free char *header = xasprintf("HTTP_MCP_METHOD=%s", method),
		       *named = name ? xasprintf("HTTP_MCP_NAME=%s", name) : NULL;

	return ask(&fixture, "POST", "/mcp", body, V, header, named, NULL);
}

static struct json_object *list_of(const struct answer *answer, const char *name)
{
	return json_get(json_get(answer->json, "result", json_type_object), name, json_type_array);
}

static void no_fixtures_in_production(void **state)
{
	(void)state;
	auto_answer struct answer list = call("resources/list", "", NULL),
				  templates = call("resources/templates/list", "", NULL);
	auto_answer struct answer read =
		call("resources/read", "\"uri\":\"test://static-text\",", "test://static-text");
	auto_answer struct answer prompts = call("prompts/list", "", NULL);
	auto_answer struct answer get = call("prompts/get", "\"name\":\"test_simple_prompt\",", "test_simple_prompt");

	assert_non_null(list_of(&list, "resources"));
	assert_non_null(list_of(&templates, "resourceTemplates"));
	assert_non_null(list_of(&prompts, "prompts"));
	assert_null(strstr(list.body, "test://"));
	assert_null(strstr(templates.body, "test://"));
	assert_null(strstr(prompts.body, "test_"));
	assert_int_equal(rpc_code(&read), RPC_INVALID_PARAMS);
	assert_non_null(strstr(read.body, "\"data\":{\"uri\":\"test://static-text\"}"));
	assert_int_equal(rpc_code(&get), RPC_INVALID_PARAMS);
}

static void fixtures(void **state)
{
	(void)state;
	auto_answer struct answer list = call("resources/list", "", NULL), prompts = call("prompts/list", "", NULL);
	auto_answer struct answer read =
		call("resources/read", "\"uri\":\"test://template/123/data\",", "test://template/123/data");
	auto_answer struct answer get =
		call("prompts/get",
		     "\"name\":\"test_prompt_with_arguments\",\"arguments\":{\"arg1\":\"one\",\"arg2\":\"two\"},",
		     "test_prompt_with_arguments");

	assert_int_equal(json_object_array_length(list_of(&list, "resources")), 3 + 2); /* and skills */
	assert_int_equal(json_object_array_length(list_of(&prompts, "prompts")), 5 + 1); /* and the one of production */
	assert_non_null(strstr(read.body, "123"));
	assert_non_null(strstr(read.body, "\"ttlMs\":0,\"cacheScope\":\"private\""));
	assert_non_null(strstr(get.body, "'one'"));
	assert_non_null(strstr(get.body, "'two'"));
}

static void prompt_arguments(void **state)
{
	static const char *const bad[] = {
		"\"arguments\":{\"arg1\":\"one\"},",
		"\"arguments\":{\"arg1\":\"one\",\"arg2\":2},",
		"\"arguments\":[],",
		"",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_free char *params = xasprintf("\"name\":\"test_prompt_with_arguments\",%s", bad[i]);
		auto_answer struct answer answer = call("prompts/get", params, "test_prompt_with_arguments");

		assert_int_equal(answer.status, 200);
		assert_int_equal(rpc_code(&answer), RPC_INVALID_PARAMS);
	}
}

static void completion(void **state)
{
	static const char *const bad[] = {
		"",
		"\"ref\":{\"type\":\"ref/prompt\",\"name\":\"test_prompt_with_arguments\"},",
		"\"ref\":{\"type\":\"ref/resource\",\"uri\":\"none://"
		"{a}\"},\"argument\":{\"name\":\"a\",\"value\":\"\"},",
		"\"ref\":{\"type\":\"ref/else\"},\"argument\":{\"name\":\"a\",\"value\":\"\"},",
	};

	(void)state;
	auto_answer struct answer answer =
		call("completion/complete",
		     "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"test_prompt_with_arguments\"},"
		     "\"argument\":{\"name\":\"arg1\",\"value\":\"test\"},",
		     NULL);
	auto_answer struct answer nothing = call("completion/complete",
						 "\"ref\":{\"type\":\"ref/prompt\",\"name\":\"none\"},"
						 "\"argument\":{\"name\":\"a\",\"value\":\"\"},",
						 NULL);

	assert_non_null(strstr(answer.body, "\"values\":[\"test1\",\"test2\"],\"total\":2,\"hasMore\":false"));
	assert_non_null(strstr(nothing.body, "\"values\":[],\"total\":0,\"hasMore\":false"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_answer struct answer refused = call("completion/complete", bad[i], NULL);

		assert_int_equal(rpc_code(&refused), RPC_INVALID_PARAMS);
	}
}

static void altered(void **state)
{
	struct store *store = fixture.server.store;
	auto_buf struct buf made = {0}, text = {0};

	(void)state;
	buf_init(&made, 1024);
	buf_init(&text, 1024);
	signed_make(store, "resources/list", "alice", "0:7", &made);
	assert_int_equal(signed_read(store, "resources/list", "alice", made.data, &text, NULL), 0);
	assert_string_equal(text.data, "0:7");
	assert_int_equal(signed_read(store, "resources/list", "bob", made.data, &text, NULL), -ERR_INVALID);
	assert_int_equal(signed_read(store, "other", "alice", made.data, &text, NULL), -ERR_INVALID);
	for (size_t i = 0; i < made.length; i++) {
		auto_free char *other = xstrdup(made.data);

		other[i] = other[i] == '0' ? '1' : '0';
		assert_int_equal(signed_read(store, "resources/list", "alice", other, &text, NULL), -ERR_INVALID);
		auto_free char *params = xasprintf("\"cursor\":\"%s\",", other);
		auto_answer struct answer answer = call("resources/list", params, NULL);

		assert_int_equal(rpc_code(&answer), RPC_INVALID_PARAMS);
	}
	auto_free char *params = xasprintf("\"cursor\":\"%s\",", made.data);
	auto_answer struct answer answer = call("resources/list", params, NULL);

	assert_int_equal(rpc_code(&answer), 0);
}

#define ASKS "test_input_required_result_request_state"

/* The second round of a tool that asked its client something, with this state, whose answer says this: the code of its
 * error, 0 none. */
static int second_round(const char *tool, const char *state, const char *says)
{
	auto_free char *body =
		xasprintf("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
			  "\"inputResponses\":{\"user_name\":{\"action\":\"accept\",\"content\":{\"name\":\"Ann\"}}},"
			  "\"requestState\":%s," META_ASKED "}}",
			  tool, state);
	auto_free char *named = xasprintf("HTTP_MCP_NAME=%s", tool);
	auto_answer struct answer answer =
		ask(&fixture, "POST", "/mcp", body, V, "HTTP_MCP_METHOD=tools/call", named, NULL);

	assert_non_null(strstr(answer.body, says));
	return rpc_code(&answer);
}

static void request_state(void **state)
{
	const char *owner = conformance_token.owner;
	struct store *store = fixture.server.store;
	auto_buf struct buf text = {0}, old = {0};

	(void)state;
	buf_init(&text, 1024);
	buf_init(&old, 1024);
	static const char first[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
				    "{\"name\":\"" ASKS "\"," META_ASKED "}}";
	auto_answer struct answer asked =
		ask(&fixture, "POST", "/mcp", first, V, "HTTP_MCP_METHOD=tools/call", "HTTP_MCP_NAME=" ASKS, NULL);
	const char *made = json_get_string(json_get(asked.json, "result", json_type_object), "requestState");

	assert_non_null(made);
	assert_int_equal(signed_read(store, "state " ASKS, owner, made, &text, NULL), 0);
	for (size_t i = 0; i < strlen(made); i++) {
		auto_free char *altered_state = xasprintf("\"%s\"", made);

		altered_state[i + 1] = altered_state[i + 1] == '0' ? '1' : '0';
		assert_int_equal(second_round(ASKS, altered_state, "requestState: not one of this server"),
				 RPC_INVALID_PARAMS);
	}
	auto_free char *whole = xasprintf("\"%s\"", made);

	assert_int_equal(second_round("test_input_required_result_tampered_state", whole, "not one of this server"),
			 RPC_INVALID_PARAMS);
	assert_int_equal(second_round(ASKS, "7", "not one of this server"), RPC_INVALID_PARAMS);
	assert_int_equal(second_round(ASKS, "\"\"", "not one of this server"), RPC_INVALID_PARAMS);
	signed_make(store, "state " ASKS, owner, "0:1", &old);
	auto_free char *expired = xasprintf("\"%s\"", old.data);

	assert_int_equal(second_round(ASKS, expired, "requestState: expired"), RPC_INVALID_PARAMS);
	assert_int_equal(second_round(ASKS, whole, "\"resultType\":\"complete\""), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_fixtures_in_production, open_fixture, close_fixture),
		cmocka_unit_test_setup_teardown(fixtures, open_conformance, close_fixture),
		cmocka_unit_test_setup_teardown(prompt_arguments, open_conformance, close_fixture),
		cmocka_unit_test_setup_teardown(completion, open_conformance, close_fixture),
		cmocka_unit_test_setup_teardown(request_state, open_conformance, close_fixture),
		cmocka_unit_test_setup_teardown(altered, open_fixture, close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
