/* HTTP rules of the gateway: paths, Host, Origin, tokens, methods, sizes. */
#include "cgi/http/access.h"
#include "cgi/http/request.h"
#include "cgi/http/uri.h"
#include "gateway.h"

static void hosts(void **state)
{
	static const char *const good[] = {"localhost",        "localhost:1",  "LOCALHOST:8080", "127.0.0.1",
					   "127.0.0.1:65535",  "[::1]",        "[::1]:80",       "box.example:8443",
					   "BOX.example:8443", "named.example"};
	static const char *const bad[] = {"",
					  "evil.example.com",
					  "localhost.evil.example",
					  "127.0.0.1.evil.example",
					  "localhost:",
					  "localhost:80x",
					  "box.example",
					  "box.example:8444",
					  "box.example:8443x",
					  "[::1",
					  "127.0.0.2",
					  "named.example.evil"};
	const char *named = "named.example";
	struct config config = {.public_base_url = "https://box.example:8443/x"};

	(void)state;
	config.gateway.allowed_hosts = (struct bind_strings){&named, 1};
	assert_true(http_host_allowed(&config, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (!http_host_allowed(&config, good[i]))
			fail_msg("%s refused", good[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (http_host_allowed(&config, bad[i]))
			fail_msg("%s allowed", bad[i]);
	}
}

static void origins(void **state)
{
	static const char *const good[] = {"http://localhost:3000", "https://localhost", "http://[::1]:1",
					   "https://box.example:8443", "https://chat.example"};
	static const char *const bad[] = {"",
					  "null",
					  "http://evil.example.com",
					  "http://box.example:8443",
					  "https://box.example",
					  "https://box.example:8443/x",
					  "localhost",
					  "file://localhost",
					  "https://chat.example.evil"};
	const char *named = "https://chat.example";
	struct config config = {.public_base_url = "https://box.example:8443/x"};

	(void)state;
	config.gateway.allowed_origins = (struct bind_strings){&named, 1};
	assert_true(http_origin_allowed(&config, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (!http_origin_allowed(&config, good[i]))
			fail_msg("%s refused", good[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (http_origin_allowed(&config, bad[i]))
			fail_msg("%s allowed", bad[i]);
	}
}

static void path_is(const char *uri, const char *script, const char *info, const char *expected)
{
	auto_free char *uri_param = xasprintf("REQUEST_URI=%s", uri),
		       *script_param = xasprintf("SCRIPT_NAME=%s", script);
	auto_free char *info_param = xasprintf("PATH_INFO=%s", info);
	const char *params[] = {uri_param, script_param, info_param, NULL};
	const struct request request = {.params = params};
	char path[HTTP_PATH_MAX];
	struct err err = ERR_INIT;

	assert_int_equal(http_path(&request, routes_known, path, &err), 0);
	assert_string_equal(path, expected);
}

static void paths(void **state)
{
	(void)state;
	path_is("/mcp", "/mcp", "", "/mcp");
	path_is("/mcp?a=/b", "/mcp", "", "/mcp");
	path_is("http://host:1/mcp?x", "/mcp", "", "/mcp");
	path_is("/gate/mcp", "/gate", "/mcp", "/mcp");
	path_is("/files/0/a", "/files", "/0/a", "/files/0/a"); /* an alias of the program */
	path_is("/gateway/mcp", "/gate", "/x", "/gateway/mcp"); /* another name that begins alike */
	path_is("/files/../mcp", "/mcp", "", "/files/../mcp");
	path_is("/%6dcp", "/mcp", "", "/%6dcp");

	const char *none[] = {"SCRIPT_NAME=/mcp", NULL};
	const struct request without = {.params = none};
	char path[HTTP_PATH_MAX];
	struct err err = ERR_INIT;

	assert_int_equal(http_path(&without, routes_known, path, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "REQUEST_URI"));
}

static void long_path(void **state)
{
	auto_free char *uri = xcalloc(1, HTTP_PATH_MAX + 1);

	(void)state;
	memset(uri, 'a', HTTP_PATH_MAX);
	uri[0] = '/';
	auto_answer struct answer at = ask(&fixture, "GET", uri, NULL, NULL);

	assert_int_equal(at.status, 400);
	uri[HTTP_PATH_MAX - 1] = '\0';
	auto_answer struct answer below = ask(&fixture, "GET", uri, NULL, NULL);

	assert_int_equal(below.status, 404);
}

static void escapes(void **state)
{
	static const char *const bad[] = {"%", "%4", "%zz", "a%00b", "%-1"};
	auto_buf struct buf out = {0};
	struct err err = ERR_INIT;

	(void)state;
	buf_init(&out, 64);
	assert_int_equal(uri_decode("a%20b%2Fc%252e%ff", &out, &err), 0);
	assert_string_equal(out.data, "a b/c%2e\xff");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(uri_decode(bad[i], &out, &err), -ERR_INVALID);
}

static void unknown_paths(void **state)
{
	static const char *const paths[] = {"/",
					    "/mcpx",
					    "/.well-known/oauth-protected-resource",
					    "/.well-known/oauth-protected-resource/mcp",
					    "/mcp/.well-known/openid-configuration",
					    "/files",
					    "/files/../mcp",
					    "/%6dcp"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		auto_answer struct answer answer = ask(&fixture, "GET", paths[i], NULL, "HTTP_AUTHORIZATION=", NULL);

		assert_int_equal(answer.status, 404);
		assert_string_equal(json_get_string(answer.json, "error"), "not_found");
		assert_non_null(json_get_string(answer.json, "error_description"));
		assert_null(header_of(&answer, "WWW-Authenticate"));
	}
}

/* Host and Origin come before the token, the token before the method. */
static void order(void **state)
{
	auto_answer struct answer host =
		ask(&fixture, "POST", "/mcp", "{}", "HTTP_HOST=evil.example.com", "HTTP_AUTHORIZATION=", NULL);
	auto_answer struct answer origin =
		ask(&fixture, "POST", "/mcp", "{}", "HTTP_ORIGIN=http://evil.example.com", "HTTP_AUTHORIZATION=", NULL);
	auto_answer struct answer token = ask(&fixture, "PATCH", "/mcp", "{}", "HTTP_AUTHORIZATION=", NULL);
	auto_answer struct answer method = ask(&fixture, "PATCH", "/mcp", "{}", "CONTENT_TYPE=text/plain", NULL);
	auto_answer struct answer type =
		ask(&fixture, "POST", "/mcp", "{}", "CONTENT_TYPE=text/plain", "CONTENT_LENGTH=999999999", NULL);
	auto_answer struct answer size = ask(&fixture, "POST", "/mcp", "{", "CONTENT_LENGTH=999999999", NULL);

	(void)state;
	assert_int_equal(host.status, 403);
	assert_int_equal(origin.status, 403);
	assert_int_equal(token.status, 401);
	assert_int_equal(method.status, 405);
	assert_string_equal(header_of(&method, "Allow"), "POST, GET, DELETE");
	assert_int_equal(type.status, 415);
	assert_int_equal(size.status, 413);
	assert_int_equal(rpc_code(&size), RPC_INVALID_REQUEST);
	assert_non_null(strstr(rpc_text(&size), "1 MiB"));
}

static void overlong_headers(void **state)
{
	auto_free char *host = xcalloc(1, 1024), *origin = xcalloc(1, 1024);

	(void)state;
	snprintf(host, 1024, "HTTP_HOST=%0900d", 1);
	snprintf(origin, 1024, "HTTP_ORIGIN=http://localhost:%0900d", 1);
	auto_answer struct answer one = ask(&fixture, "POST", "/mcp", "{}", host, NULL);
	auto_answer struct answer two = ask(&fixture, "POST", "/mcp", "{}", origin, NULL);

	assert_int_equal(one.status, 403);
	assert_int_equal(two.status, 403);
}

static void tokens(void **state)
{
	static const char *const bad[] = {"HTTP_AUTHORIZATION=Bearer", "HTTP_AUTHORIZATION=Bearer ",
					  "HTTP_AUTHORIZATION=Basic YTpi", "HTTP_AUTHORIZATION=Bearer sp_alice_0000",
					  "HTTP_AUTHORIZATION=x"};

	(void)state;
	auto_answer struct answer none = ask(&fixture, "GET", "/mcp", NULL, "HTTP_AUTHORIZATION=", NULL);

	assert_int_equal(none.status, 401);
	assert_string_equal(header_of(&none, "WWW-Authenticate"), "Bearer realm=\"sallyport\"");
	assert_string_equal(json_get_string(none.json, "error"), "invalid_token");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_answer struct answer answer = ask(&fixture, "GET", "/mcp", NULL, bad[i], NULL);

		assert_int_equal(answer.status, 401);
		assert_non_null(strstr(header_of(&answer, "WWW-Authenticate"), "error=\"invalid_token\""));
		assert_non_null(json_get_string(answer.json, "error_description"));
	}
	auto_free char *lower = xasprintf("HTTP_AUTHORIZATION=bearer   %s ", fixture.token);
	auto_answer struct answer scheme = ask(&fixture, "GET", "/mcp", NULL, lower, NULL);

	assert_int_equal(scheme.status, 405); /* the token was taken */
}

static void revoked_at_once(void **state)
{
	char text[STORE_TOKEN_TEXT];
	struct store_token token;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(store_token_add(fixture.server.store, "carol", "", text, &token, &err), 0);
	auto_free char *header = xasprintf("HTTP_AUTHORIZATION=Bearer %s", text);
	auto_answer struct answer before = ask(&fixture, "GET", "/mcp", NULL, header, NULL);

	assert_int_equal(before.status, 405);
	assert_int_equal(store_token_revoke(fixture.server.store, token.id, &token, &err), 0);
	auto_answer struct answer after = ask(&fixture, "GET", "/mcp", NULL, header, NULL);

	assert_int_equal(after.status, 401);
}

static void content_types(void **state)
{
	static const char *const good[] = {"CONTENT_TYPE=application/json",
					   "CONTENT_TYPE=Application/JSON; charset=utf-8",
					   "CONTENT_TYPE=application/json ;x"};
	static const char *const bad[] = {"CONTENT_TYPE=", "CONTENT_TYPE=text/json", "CONTENT_TYPE=application/jsonx",
					  "CONTENT_TYPE=application/json-rpc", "CONTENT_TYPE=multipart/form-data"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		auto_answer struct answer answer = ask(&fixture, "POST", "/mcp", "{", good[i], NULL);

		assert_int_equal(answer.status, 400);
		assert_int_equal(rpc_code(&answer), RPC_PARSE_ERROR);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_answer struct answer answer = ask(&fixture, "POST", "/mcp", "{", bad[i], NULL);

		assert_int_equal(answer.status, 415);
	}
	auto_answer struct answer neither = ask(&fixture, "POST", "/mcp", "{", "HTTP_ACCEPT=text/html", NULL);
	auto_answer struct answer any = ask(&fixture, "POST", "/mcp", "{", "HTTP_ACCEPT=*/*", NULL);

	assert_int_equal(neither.status, 406);
	assert_int_equal(any.status, 400);
}

/* Without a Content-Length the cap still holds: the body is not buffered beyond it. */
static void body_cap(void **state)
{
	size_t cap = (size_t)fixture.config.limits.body_mb << 20;
	auto_free char *body = xcalloc(1, cap + 2);

	(void)state;
	memset(body, ' ', cap);
	memcpy(body, "[]", 2);
	auto_answer struct answer at = ask(&fixture, "POST", "/mcp", body, NULL);

	assert_int_equal(at.status, 400); /* an empty batch: it was read */
	body[cap] = ' ';
	auto_answer struct answer above = ask(&fixture, "POST", "/mcp", body, NULL);

	assert_int_equal(above.status, 413);
	auto_answer struct answer nonsense = ask(&fixture, "POST", "/mcp", "{}", "CONTENT_LENGTH=-1", NULL);

	assert_int_equal(nonsense.status, 400);
}

static void health(void **state)
{
	(void)state;
	auto_answer struct answer near =
		ask(&fixture, "GET", "/healthz", NULL, "HTTP_AUTHORIZATION=", "REMOTE_ADDR=127.0.0.1", NULL);
	auto_answer struct answer far = ask(&fixture, "GET", "/healthz", NULL, "REMOTE_ADDR=192.0.2.1", NULL);

	assert_int_equal(near.status, 200);
	assert_string_equal(near.body, "ok\n");
	assert_int_equal(far.status, 404);
}

/* What the web server asks before it takes in a large body. */
static void token_alone(void **state)
{
	(void)state;
	auto_answer struct answer good = ask(&fixture, "GET", "/_token", NULL, NULL);
	auto_answer struct answer none = ask(&fixture, "GET", "/_token", NULL, "HTTP_AUTHORIZATION=", NULL);
	auto_answer struct answer bad = ask(&fixture, "GET", "/_token", NULL, "HTTP_AUTHORIZATION=Bearer sp_x", NULL);

	assert_int_equal(good.status, 204);
	assert_int_equal(none.status, 401);
	assert_int_equal(bad.status, 401);
}

/* A route's methods are said once: 405 and the preflight of a page name the same. */
static void methods_of_routes(void **state)
{
	static const struct {
		const char *path, *methods, *other;
	} routes[] = {
		{"/mcp", "POST, GET, DELETE", "PUT"},
		{"/sse", "GET", "POST"},
		{"/messages", "POST", "GET"},
		{"/files/x", "GET, HEAD, PUT, POST, DELETE", "PATCH"},
		{"/healthz", "GET, HEAD", "POST"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		auto_answer struct answer asked = ask(&fixture, "OPTIONS", routes[i].path, NULL,
						      "HTTP_ORIGIN=https://box.example:8443", "REMOTE_ADDR=127.0.0.1",
						      "HTTP_ACCESS_CONTROL_REQUEST_METHOD=POST", NULL);
		auto_answer struct answer other =
			ask(&fixture, routes[i].other, routes[i].path, NULL, "REMOTE_ADDR=127.0.0.1", NULL);
		auto_answer struct answer plain =
			ask(&fixture, "OPTIONS", routes[i].path, NULL, "REMOTE_ADDR=127.0.0.1", NULL);

		assert_int_equal(asked.status, 204);
		assert_string_equal(header_of(&asked, "Access-Control-Allow-Methods"), routes[i].methods);
		assert_int_equal(other.status, 405);
		assert_string_equal(header_of(&other, "Allow"), routes[i].methods);
		assert_int_equal(plain.status, 405);
	}
	auto_answer struct answer far = ask(&fixture, "POST", "/healthz", NULL, "REMOTE_ADDR=192.0.2.1", NULL);

	assert_int_equal(far.status, 404);
}

/* nginx's id, or one of ours; what is not one is not taken over. */
static void request_ids(void **state)
{
	static const char id[] = "0123456789abcdef0123456789abcdef";
	static const char *const bad[] = {"HTTP_X_REQUEST_ID=", "HTTP_X_REQUEST_ID=0123456789ABCDEF0123456789ABCDEF",
					  "HTTP_X_REQUEST_ID=0123456789abcdef0123456789abcdef0",
					  "HTTP_X_REQUEST_ID=../../../etc/passwd", NULL};

	(void)state;
	auto_answer struct answer given =
		ask(&fixture, "GET", "/nowhere", NULL, "HTTP_X_REQUEST_ID=0123456789abcdef0123456789abcdef", NULL);

	assert_string_equal(header_of(&given, "X-Request-Id"), id);
	assert_string_equal(json_get_string(given.json, "request_id"), id);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_answer struct answer made = ask(&fixture, "GET", "/nowhere", NULL, bad[i], NULL);
		const char *own = header_of(&made, "X-Request-Id");

		assert_int_equal(strlen(own), 32);
		assert_int_equal(strspn(own, "0123456789abcdef"), 32);
		assert_string_not_equal(own, id);
	}
}

static void trace_parents(void **state)
{
#define TRACE  "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
	static const char *const good[] = {"00-" TRACE "-" PARENT "-01", "cc-" TRACE "-" PARENT "-00",
					   "cc-" TRACE "-" PARENT "-00-what the future brings"};
	static const char *const bad[] = {NULL,
					  "",
					  "00",
					  "ff-" TRACE "-" PARENT "-01",
					  "00-" TRACE "-" PARENT "-01-x",
					  "00-" TRACE "-" PARENT "-01x",
					  "cc-" TRACE "-" PARENT "-01x",
					  "00-" TRACE "-" PARENT,
					  "00-" TRACE "-" PARENT "-1",
					  "00-00000000000000000000000000000000-" PARENT "-01",
					  "00-" TRACE "-0000000000000000-01",
					  "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
					  "00_" TRACE "-" PARENT "-01"};
	char trace[REQUEST_TRACE_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(request_trace(good[i], trace));
		assert_int_equal(strlen(trace), REQUEST_TRACE_SIZE - 1);
		assert_true(str_starts(good[i], trace));
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (request_trace(bad[i], trace))
			fail_msg("%s taken", bad[i]);
}

/* What monitors ask is read by no page, and only by who may. */
static void monitors(void **state)
{
	static const char *const paths[] = {"/metrics", "/readyz"};

	(void)state;
	fixture.config.metrics.enabled = fixture.config.health.ready = true;
	fixture.config.metrics.token = "monitor";
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		auto_answer struct answer near = ask(&fixture, "GET", paths[i], NULL, "REMOTE_ADDR=127.0.0.1",
						     "HTTP_ORIGIN=https://box.example:8443", NULL);
		auto_answer struct answer far = ask(&fixture, "GET", paths[i], NULL, "REMOTE_ADDR=192.0.2.1", NULL);
		auto_answer struct answer token =
			ask(&fixture, "GET", paths[i], NULL, "REMOTE_ADDR=192.0.2.1",
			    "HTTP_AUTHORIZATION=Bearer monitor", NULL);
		auto_answer struct answer posted =
			ask(&fixture, "POST", paths[i], NULL, "REMOTE_ADDR=127.0.0.1", NULL);

		assert_int_equal(near.status, i == 0 ? 200 : 503); /* there is no jailer here */
		assert_null(strstr(near.head, "Access-Control-Allow-Origin"));
		assert_int_equal(far.status, 404);
		assert_int_equal(token.status, near.status);
		assert_int_equal(posted.status, 405);
	}
	fixture.config.metrics.token = "";
	auto_answer struct answer empty = ask(&fixture, "GET", "/metrics", NULL, "REMOTE_ADDR=192.0.2.1",
					      "HTTP_AUTHORIZATION=Bearer ", NULL);

	assert_int_equal(empty.status, 404);
}

/* What this server is, for everybody and every page; its name is the host's, turned round. */
static void card(void **state)
{
	auto_answer struct answer answer = ask(&fixture, "GET", "/mcp/server-card", NULL, "HTTP_AUTHORIZATION=",
					       "HTTP_ORIGIN=https://anywhere.example", NULL);
	auto_answer struct answer asked =
		ask(&fixture, "OPTIONS", "/mcp/server-card", NULL, "HTTP_ORIGIN=https://anywhere.example",
		    "HTTP_ACCESS_CONTROL_REQUEST_METHOD=GET", NULL);
	auto_answer struct answer posted = ask(&fixture, "POST", "/mcp/server-card", "{}", NULL);
	auto_answer struct answer host =
		ask(&fixture, "GET", "/mcp/server-card", NULL, "HTTP_HOST=evil.example.com", NULL);
	struct json_object *remotes = json_get(answer.json, "remotes", json_type_array);

	(void)state;
	assert_int_equal(answer.status, 200);
	assert_string_equal(header_of(&answer, "Content-Type"), "application/mcp-server-card+json");
	assert_string_equal(header_of(&answer, "Access-Control-Allow-Origin"), "*");
	assert_string_equal(header_of(&answer, "Cache-Control"), "public, max-age=3600");
	assert_string_equal(json_get_string(answer.json, "name"), "example.box/sallyport");
	assert_in_range(strlen(json_get_string(answer.json, "description")), 1, 100);
	assert_int_equal(json_object_array_length(remotes), 1);
	assert_string_equal(json_get_string(json_object_array_get_idx(remotes, 0), "url"),
			    "https://box.example:8443/x/mcp");
	assert_int_equal(asked.status, 204);
	assert_int_equal(posted.status, 405);
	assert_int_equal(host.status, 403);
	fixture.config.public_base_url = "http://127.0.0.1:8080";
	fixture.config.gateway.http_sse = true;
	auto_answer struct answer near = ask(&fixture, "GET", "/mcp/server-card", NULL, NULL);

	fixture.config.public_base_url = "https://box.example:8443/x";
	fixture.config.gateway.http_sse = false;
	assert_string_equal(json_get_string(near.json, "name"), "localhost/sallyport");
	remotes = json_get(near.json, "remotes", json_type_array);
	assert_int_equal(json_object_array_length(remotes), 2);
	assert_string_equal(json_get_string(json_object_array_get_idx(remotes, 1), "type"), "sse");
}

static void header_injection(void **state)
{
	auto_reply struct reply reply;

	(void)state;
	reply_init(&reply);
	reply_header(&reply, "X", "a\r\nSet-Cookie: b\x7f");
	assert_string_equal(reply.headers.data, "X: a__Set-Cookie: b_\r\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts),           cmocka_unit_test(origins),          cmocka_unit_test(paths),
		cmocka_unit_test(long_path),       cmocka_unit_test(escapes),          cmocka_unit_test(unknown_paths),
		cmocka_unit_test(order),           cmocka_unit_test(overlong_headers), cmocka_unit_test(tokens),
		cmocka_unit_test(revoked_at_once), cmocka_unit_test(content_types),    cmocka_unit_test(body_cap),
		cmocka_unit_test(health),          cmocka_unit_test(methods_of_routes),
		cmocka_unit_test(monitors), cmocka_unit_test(request_ids),
		cmocka_unit_test(trace_parents), cmocka_unit_test(header_injection),
		cmocka_unit_test(token_alone), cmocka_unit_test(card),
	};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
