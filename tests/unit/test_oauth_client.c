/* test_oauth_client.c - what clients may say of themselves (documents, registrations), which addresses they may name,
 * and the forms that they send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/util.h"
#include "lib/oauth/oauth_client.h"
#include "lib/oauth/oauth_form.h"
#include "lib/oauth/oauth_who.h"

static const char *private_schemes[] = {"cursor://anysphere.cursor-mcp/oauth/callback"};
static const char *redirect_hosts[] = {"grok.com"};

static struct config plain(void)
{
	struct config config = {.public_base_url = "https://box.example"};

	config.oauth.private_schemes = (struct bind_strings){private_schemes, 1};
	config.oauth.redirect_hosts = (struct bind_strings){redirect_hosts, 1};
	return config;
}

static void redirects_allowed(void **state)
{
	static const struct {
		const char *uri;
		bool good;
	} rows[] = {
		{"https://claude.ai/api/mcp/auth_callback", true},
		{"https://a.example:8443/x?y=1", true},
		{"http://localhost/callback", true},
		{"http://127.0.0.1:33418/", true},
		{"http://[::1]:7/x", true},
		{"cursor://anysphere.cursor-mcp/oauth/callback", true},
		{"cursor://anysphere.cursor-mcp/oauth/callback2", false},
		{"cursor://other", false},
		{"http://evil.example/", false},
		{"http://localhost.evil.example/", false},
		{"http://127.0.0.1.evil.example/", false},
		{"http://127.0.0.2/", false},
		{"http://LOCALHOST/", false},
		{"http://2130706433/", false},
		{"https://a.example/x#y", false},
		{"https://user@a.example/", false},
		{"https://user:word@a.example/", false},
		{"https://a.example\\@evil.example/", false},
		{"https://a.example/ x", false},
		{"https://a.example/\r\nX: y", false},
		{"https://a.example/\"onload=", false},
		{"https://", false},
		{"//a.example/", false},
		{"/callback", false},
		{"javascript:alert(1)", false},
		{"data:text/html,x", false},
		{"", false},
	};
	const struct config config = plain();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (oauth_redirect_allowed(&config, rows[i].uri) != rows[i].good)
			fail_msg("%s", rows[i].uri);
	auto_free char *path = xmalloc(OAUTH_REDIRECT_MAX);

	memset(path, 'x', OAUTH_REDIRECT_MAX - 1);
	path[OAUTH_REDIRECT_MAX - 1] = '\0';
	auto_free char *longest = xasprintf("https://a.example/%s", path);

	assert_false(oauth_redirect_allowed(&config, longest));
	longest[OAUTH_REDIRECT_MAX] = '\0';
	assert_true(oauth_redirect_allowed(&config, longest));
}

static void redirects_match(void **state)
{
	static const struct {
		const char *registered, *asked;
		bool good;
	} rows[] = {
		{"https://a.example/cb", "https://a.example/cb", true},
		{"https://a.example/cb", "https://a.example/cb/", false},
		{"https://a.example/cb", "https://a.example/cb?x=1", false},
		{"https://a.example/cb", "https://a.example:443/cb", false},
		{"https://a.example/cb", "https://a.example:8443/cb", false},
		{"https://a.example/cb", "https://A.example/cb", false},
		{"https://a.example/cb", "https://a.example//cb", false},
		{"https://a.example/cb", "https://a.example/%63b", false},
		{"https://a.example/cb", "https://a.example/x/../cb", false},
		{"https://a.example/cb", "https://a.example/cb#x", false},
		{"http://localhost/cb", "http://localhost:49152/cb", true},
		{"http://localhost:3334/cb", "http://localhost/cb", true},
		{"http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb", true},
		{"http://[::1]:1/cb", "http://[::1]:2/cb", true},
		{"http://localhost/cb", "http://127.0.0.1/cb", false},
		{"http://localhost/cb", "http://localhost:1/cb?x", false},
		{"http://localhost/cb", "http://localhost:1/c", false},
		{"http://localhost/cb", "http://localhost:99999/cb", false},
		{"http://localhost/cb", "http://localhost:1@evil.example/cb", false},
		{"http://localhost/cb", "http://localhost.evil.example/cb", false},
		{"http://localhost/cb", "https://localhost:1/cb", false},
		{"http://[::1]/cb", "http://[0:0:0:0:0:0:0:1]/cb", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (oauth_redirect_matches(rows[i].registered, rows[i].asked) != rows[i].good)
			fail_msg("%s %s", rows[i].registered, rows[i].asked);
}

static void document_addresses(void **state)
{
	static const struct {
		const char *id;
		bool good;
	} rows[] = {
		{"https://claude.ai/oauth/mcp-oauth-client-metadata", true},
		{"https://a.example/x?y", true},
		{"https://a.example/.x/..y/...", true},
		{"https://a.example", false},
		{"https://a.example/", false},
		{"http://a.example/x", false},
		{"http://localhost/x", false},
		{"https://a.example/x/../y", false},
		{"https://a.example/x/%2E%2e/y", false},
		{"https://a.example/./y", false},
		{"https://a.example/x#y", false},
		{"https://u@a.example/x", false},
		{"https://a.example:22/x", false},
		{"https://a.example:6379/x", false},
		{"https://box.example/authorize", false}, /* this server */
		{"https://BOX.example/x", false},
		{"https://0x7f.1/x", false},
		{"https://2130706433/x", false},
		{"https://a.example/x y", false},
		{"https://a.example\\x/", false},
		{"spd_00", false},
	};
	struct config config = plain();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if ((oauth_redirect_document(&config, rows[i].id, NULL) == 0) != rows[i].good)
			fail_msg("%s", rows[i].id);
	config.public_base_url = "http://localhost:8080"; /* of a test: other ports are programs of its own */
	assert_int_equal(oauth_redirect_document(&config, "https://localhost:9000/x", NULL), 0);
}

static void resources(void **state)
{
	static const char *const good[] = {"https://box.example",     "https://box.example/",
					   "https://box.example/mcp", "https://box.example/mcp/",
					   "https://box.example/sse", "HTTPS://Box.Example/mcp"};
	static const char *const bad[] = {"https://box.example.evil/mcp", "https://box.example/mcp#x",
					  "https://box.example/other", "http://box.example/mcp", ""};
	const struct config config = plain();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(oauth_redirect_resource(&config, good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(oauth_redirect_resource(&config, bad[i]));
}

#define ID      "https://a.example/client.json"
#define CLIENT  "\"client_id\":\"" ID "\",\"client_name\":\"A\","
#define GOOD_CB "\"redirect_uris\":[\"https://a.example/cb\"]"

static void documents(void **state)
{
	static const struct {
		const char *text, *redirects; /* NULL: refused */
	} rows[] = {
		{"{" CLIENT GOOD_CB "}", "[\"https://a.example/cb\"]"},
		{"{" CLIENT GOOD_CB ",\"token_endpoint_auth_method\":\"none\",\"grant_types\":[\"authorization_code\","
		 "\"urn:ietf:params:oauth:grant-type:jwt-bearer\"]}",
		 "[\"https://a.example/cb\"]"},
		{"{" CLIENT GOOD_CB ",\"token_endpoint_auth_method\":\"private_key_jwt\","
		 "\"token_endpoint_auth_methods_supported\":[\"none\",\"private_key_jwt\"]}",
		 "[\"https://a.example/cb\"]"},
		/* What may not be named is passed over. */
		{"{" CLIENT "\"redirect_uris\":[\"https://evil.example/cb\",\"http://a.example/cb\",7,null,"
		 "\"http://127.0.0.1/cb\",\"https://grok.com/cb\",\"cursor://anysphere.cursor-mcp/oauth/callback\"]}",
		 "[\"http://127.0.0.1/cb\",\"https://grok.com/cb\",\"cursor://anysphere.cursor-mcp/oauth/callback\"]"},
		{"{" CLIENT "\"redirect_uris\":[\"https://evil.example/cb\"]}", NULL},
		{"{" CLIENT "\"redirect_uris\":[]}", NULL},
		{"{" CLIENT "\"redirect_uris\":\"https://a.example/cb\"}", NULL},
		{"{" CLIENT GOOD_CB ",\"client_secret\":\"x\"}", NULL},
		{"{" CLIENT GOOD_CB ",\"token_endpoint_auth_method\":\"client_secret_post\"}", NULL},
		{"{" CLIENT GOOD_CB ",\"token_endpoint_auth_method\":\"private_key_jwt\"}", NULL},
		{"{\"client_id\":\"https://a.example/Client.json\"," GOOD_CB "}", NULL},
		{"{\"client_id\":\"https://a.example/client.json/\"," GOOD_CB "}", NULL},
		{"{\"client_id\":\"https://a.example/client%2Ejson\"," GOOD_CB "}", NULL},
		{"{" GOOD_CB "}", NULL},
		{"{\"client_id\":\"" ID "\",\"client_name\":\"a\\u202eb\"," GOOD_CB "}", NULL},
		{"{\"client_id\":\"" ID "\",\"client_name\":7," GOOD_CB "}", NULL},
		{"[]", NULL},
		{"null", NULL},
		{"<html>", NULL},
		{"", NULL},
	};
	const struct config config = plain();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
		struct err err = ERR_INIT;
		int result = oauth_client_document(&config, ID, rows[i].text, strlen(rows[i].text), &client, &err);

		if (result != (rows[i].redirects ? 0 : -ERR_INVALID))
			fail_msg("%s: %d %s", rows[i].text, result, err.text);
		if (rows[i].redirects)
			assert_string_equal(client.redirects, rows[i].redirects);
	}
}

static void registrations(void **state)
{
	static const struct {
		const char *text, *error; /* NULL: good */
	} rows[] = {
		{"{" GOOD_CB "}", NULL},
		{"{\"client_name\":\"Claude\"," GOOD_CB ",\"scope\":\"mcp:tools\",\"token_endpoint_auth_method\":"
		 "\"client_secret_post\",\"client_id\":\"mine\",\"logo_uri\":\"x\"}",
		 NULL},
		{"{\"redirect_uris\":[\"http://localhost:3334/oauth/callback\"],\"application_type\":\"native\"}",
		 NULL},
		{"{\"redirect_uris\":[\"http://localhost:3334/oauth/callback\"],\"application_type\":\"web\"}",
		 OAUTH_BAD_REDIRECT},
		{"{}", OAUTH_BAD_REDIRECT},
		{"{\"redirect_uris\":null}", OAUTH_BAD_REDIRECT},
		{"{\"redirect_uris\":[null]}", OAUTH_BAD_REDIRECT},
		{"{\"redirect_uris\":[\"https://a.example/\\u0000\"]}", OAUTH_BAD_REDIRECT},
		{"{\"redirect_uris\":[\"javascript:alert(1)\"]}", OAUTH_BAD_REDIRECT},
		{"{\"redirect_uris\":[\"https://a.example/1\",\"http://evil.example/\"]}", OAUTH_BAD_REDIRECT},
		{"{" GOOD_CB ",\"response_types\":[\"token\"]}", OAUTH_BAD_METADATA},
		{"{" GOOD_CB ",\"response_types\":\"code\"}", OAUTH_BAD_METADATA},
		{"{" GOOD_CB ",\"grant_types\":{}}", OAUTH_BAD_METADATA},
		{"{" GOOD_CB ",\"grant_types\":[\"client_credentials\"]}", OAUTH_BAD_METADATA},
		{"{" GOOD_CB ",\"software_statement\":\"x\"}", OAUTH_BAD_METADATA},
		{"{" GOOD_CB ",\"client_name\":\"a\\nb\"}", OAUTH_BAD_METADATA},
		{"{" GOOD_CB ",\"client_name\":[]}", OAUTH_BAD_METADATA},
		{"[]", OAUTH_BAD_METADATA},
	};
	const struct config config = plain();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
		auto_json struct json_object *body = NULL;
		const char *error = NULL;
		struct err err = ERR_INIT;

		assert_int_equal(json_parse(rows[i].text, strlen(rows[i].text), &body, NULL), 0);
		int result = oauth_client_register(&config, body, &client, &error, &err);

		if ((result == 0) != (rows[i].error == NULL) || (rows[i].error && !streq(error, rows[i].error)))
			fail_msg("%s: %d %s", rows[i].text, result, err.text);
		assert_null(strpbrk(err.text, "\"\\"));
	}
}

static void known_clients(void **state)
{
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	auto_json struct json_object *list = NULL;
	const struct config config = plain();

	(void)state;
	assert_false(oauth_client_known(ID, &client));
	assert_true(oauth_client_known("https://claude.ai/oauth/claude-code-client-metadata", &client));
	assert_true(oauth_client_local(&client));
	assert_string_equal(oauth_client_redirect(&client, "http://localhost:54321/callback", &list),
			    "http://localhost:54321/callback");
	json_put_pointer(&list);
	list = NULL;
	assert_null(oauth_client_redirect(&client, "https://claude.ai/api/mcp/auth_callback", &list));
	json_put_pointer(&list);
	list = NULL;
	assert_null(oauth_client_redirect(&client, NULL, &list)); /* it has two */
	assert_int_equal(oauth_redirect_document(&config, client.id, NULL), 0);
}

static void forms(void **state)
{
	static const struct {
		const char *text, *name, *value; /* name NULL: refused */
	} rows[] = {
		{"a=b&c=d+e%20f", "c", "d e f"},
		{"a=&b=1", "a", NULL},
		{"a", "a", NULL},
		{"&&a=1&", "a", "1"},
		{"a=b=c", "a", "b=c"},
		{"a=%C3%A4", "a", "\xc3\xa4"},
		{"resource=1&resource=2", "resource", "1"},
		{"%61=1", "a", "1"},
		{"a=1&a=1", NULL, NULL},
		{"a=1&%61=1", NULL, NULL},
		{"a=&a=", NULL, NULL},
		{"a=%", NULL, NULL},
		{"a=%4", NULL, NULL},
		{"a=%zz", NULL, NULL},
		{"a=%00", NULL, NULL},
		{"a=%ff", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_form struct oauth_form form = {.count = 0};
		struct err err = ERR_INIT;
		int result = oauth_form_parse(rows[i].text, strlen(rows[i].text), &form, &err);

		if (result != (rows[i].name ? 0 : -ERR_INVALID))
			fail_msg("%s: %d", rows[i].text, result);
		const char *value = rows[i].name ? oauth_form_get(&form, rows[i].name) : NULL;

		if ((value == NULL) != (rows[i].value == NULL) || (value && !streq(value, rows[i].value)))
			fail_msg("%s: %s", rows[i].text, value ? value : "nothing");
	}
	auto_buf struct buf many = {0};

	buf_init(&many, SIZE_MAX / 2);
	for (int i = 0; i <= OAUTH_FORM_FIELDS; i++)
		buf_printf(&many, "p%d=1&", i);
	struct oauth_form form = {.count = 0};

	assert_int_equal(oauth_form_parse(many.data, many.length, &form, NULL), -ERR_INVALID);
}

static void scopes(void **state)
{
	bool offline = true;

	(void)state;
	assert_int_equal(oauth_who_asked(NULL, &offline), 0);
	assert_false(offline);
	assert_int_equal(oauth_who_asked(" run  files", &offline), STORE_SCOPE_RUN | STORE_SCOPE_FILES);
	assert_int_equal(oauth_who_asked("claudeai mcp:tools RUN openid runs", &offline), 0);
	assert_int_equal(oauth_who_asked("admin offline_access", &offline), STORE_SCOPE_ADMIN);
	assert_true(offline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redirects_allowed),
		cmocka_unit_test(redirects_match),
		cmocka_unit_test(document_addresses),
		cmocka_unit_test(resources),
		cmocka_unit_test(documents),
		cmocka_unit_test(registrations),
		cmocka_unit_test(known_clients),
		cmocka_unit_test(forms),
		cmocka_unit_test(scopes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
