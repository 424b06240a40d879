/* Tools: what clients are told about them, refusals that name the argument, downloads. */
#include "gateway.h"

#include "cgi/http/files.h"
#include "cgi/mcp/tools.h"
#include "cgi/tool/run_result.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/blob/store_pack.h"
#include "lib/store/db/crypto.h"
#include "lib/store/record/store_file.h"
#include "lib/store/record/store_token.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct store_conversation conversation;

static const char *text_of(struct json_object *result)
{
	struct json_object *content = json_get(result, "content", json_type_array);

	return json_get_string(json_object_array_get_idx(content, 0), "text");
}

/* -------- what clients are told ----------------------------------------------------------------------- */

static void descriptions(void **state)
{
	auto_json struct json_object *tools =
		tools_describe(&fixture.server, STORE_SCOPE_ADMIN, TOOL_RESULTS_STRUCTURED);

	(void)state;
	assert_int_equal(json_object_array_length(tools), 11);
	for (size_t i = 0; i < json_object_array_length(tools); i++) {
		struct json_object *tool = json_object_array_get_idx(tools, i);
		struct json_object *input = json_get(tool, "inputSchema", json_type_object);
		struct json_object *output = json_get(tool, "outputSchema", json_type_object);
		const char *name = json_get_string(tool, "name");

		assert_non_null(tool_find(&fixture.server, name));
		assert_true(strlen(name) <= 64 && strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name));
		assert_in_range(strlen(json_get_string(tool, "description")), 40, TOOL_DESCRIPTION_MAX);
		assert_non_null(json_get_string(tool, "title"));
		assert_string_equal(json_get_string(input, "type"), "object");
		assert_non_null(output);
		assert_string_equal(json_get_string(output, "type"), "object");
		assert_non_null(json_get(tool, "annotations", json_type_object));
	}
	assert_null(tool_find(&fixture.server, "Run_code"));
	assert_null(tool_find(&fixture.server, ""));
}

static bool offers(const char *tool, const char *argument)
{
	auto_json struct json_object *tools = tools_describe(&fixture.server, STORE_SCOPE_ADMIN, TOOL_RESULTS_META);

	for (size_t i = 0; i < json_object_array_length(tools); i++) {
		struct json_object *one = json_object_array_get_idx(tools, i);

		if (streq(json_get_string(one, "name"), tool))
			return !argument || tool_property(one, argument);
	}
	return false;
}

/* What cannot be had here is not offered. */
static void offered(void **state)
{
	static const char *hosts[] = {"pypi.org:443"};
	static const char *many[1000];

	(void)state;
	assert_true(offers("run_code", "session"));
	assert_true(offers("reset_session", NULL));
	assert_false(offers("run_code", "network"));
	fixture.config.limits.sandboxes = 0;
	assert_false(offers("run_code", "session"));
	assert_false(offers("reset_session", NULL));
	assert_null(tool_find(&fixture.server, "reset_session"));
	fixture.config.limits.sandboxes = 16;
	fixture.config.network.allow = (struct bind_strings){hosts, 1};
	assert_true(offers("run_code", "network"));
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = "a-long-name.of-a-host.example:443";
	fixture.config.network.allow = (struct bind_strings){many, ARRAY_SIZE(many)};
	auto_json struct json_object *tools = tools_describe(&fixture.server, STORE_SCOPE_ADMIN, TOOL_RESULTS_META);
	const char *text =
		json_get_string(tool_property(json_object_array_get_idx(tools, 1), "network"), "description");

	assert_true(strlen(text) < 200 && strstr(text, "the hosts that the operator lists and nothing else."));
	fixture.config.network.allow = (struct bind_strings){0};
}

/* The caps of this server stand in the schema. */
static void caps_in_schema(void **state)
{
	auto_json struct json_object *tools =
		tools_describe(&fixture.server, STORE_SCOPE_ADMIN, TOOL_RESULTS_STRUCTURED);
	struct json_object *run = json_object_array_get_idx(tools, 1);
	struct json_object *timeout = tool_property(run, "timeout_seconds");

	(void)state;
	assert_string_equal(json_get_string(run, "name"), "run_code");
	assert_int_equal(json_object_get_int(json_get(timeout, "maximum", json_type_int)), 300);
	assert_string_equal(json_get_string(timeout, "description"), "Seconds that the program may take. Default: 30.");
}

/* -------- refusals ------------------------------------------------------------------------------------ */

static void refused(const char *tool_name, const char *arguments, const char *member)
{
	struct tool_call call = {
		.server = &fixture.server, .token = &fixture.alice, .revision = mcp_revisions, .hangup_fd = -1};
	auto_json struct json_object *document = NULL, *result = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(json_parse(arguments, strlen(arguments), &document, &err), 0);
	assert_int_equal(tool_run(tool_find(&fixture.server, tool_name), &call, document, &result, &err), 0);
	assert_true(json_object_get_boolean(json_get(result, "isError", json_type_boolean)));
	assert_null(json_get(result, "structuredContent", json_type_object));
	if (!strstr(text_of(result), member))
		fail_msg("%s: \"%s\" does not name %s", arguments, text_of(result), member);
}

#define RUN "\"conversationId\":\"c\",\"language\":\"python\",\"code\":\"1\""

static void bad_arguments(void **state)
{
	static const struct {
		const char *tool, *arguments, *member;
	} cases[] = {
		{"run_code", "{}", "conversationId"},
		{"run_code", "{\"conversationId\":\"c\"}", "language"},
		{"run_code", "{\"conversationId\":\"c\",\"language\":\"python\"}", "code"},
		{"run_code", "{\"conversationId\":[7],\"language\":\"python\",\"code\":\"1\"}", "conversationId"},
		{"run_code", "{\"conversationId\":\"\",\"language\":\"python\",\"code\":\"1\"}", "conversationId"},
		{"run_code", "{\"conversationId\":\"c\",\"language\":[],\"code\":\"1\"}", "language"},
		{"run_code", "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":[7]}", "code"},
		{"run_code", "{" RUN ",\"network\":\"yes\"}", "network"},
		{"run_code", "{" RUN ",\"environment\":[7]}", "environment[0]: must be an object with name and value"},
		{"run_code", "{" RUN ",\"environment\":[{\"name\":\"A\"}]}", "environment[0].value"},
		{"run_code", "{" RUN ",\"environment\":[{\"name\":\"A\",\"value\":null}]}", "environment[0].value"},
		{"run_code",
		 "{" RUN ",\"environment\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"A\",\"value\":\"2\"}]}",
		 "environment: has the name \"A\" twice"},
		{"run_code", "{\"conversationId\":\"c\",\"language\":\"python\",\"code\":null}", "code"},
		{"run_code", "{" RUN ",\"environment\":{\"A\":[]}}", "environment"},
		{"run_code", "{" RUN ",\"secrets\":{\"A\":null}}", "secrets"},
		{"run_code", "{" RUN ",\"stdin\":{}}", "stdin"},
		{"run_code", "{" RUN ",\"args\":\"x\"}", "args"},
		{"run_code", "{" RUN ",\"args\":[[]]}", "args"},
		{"run_code", "{" RUN ",\"timeout_seconds\":0}", "timeout_seconds"},
		{"run_code", "{" RUN ",\"timeout_seconds\":1.5}", "timeout_seconds"},
		{"run_code", "{" RUN ",\"memory_mb\":\"1.5\"}", "memory_mb"},
		{"run_code", "{" RUN ",\"memory\":1}", "memory: unknown member, did you mean \"memory_mb\"?"},
		{"run_code", "{" RUN ",\"files\":{}}", "files"},
		{"run_code", "{" RUN ",\"files\":[{\"content\":\"x\"}]}", "filename"},
		{"run_code", "{" RUN ",\"files\":[{\"filename\":\"a\"}]}", "files[0]"},
		{"run_code", "{" RUN ",\"files\":[{\"filename\":\"a\",\"content\":\"\",\"content_base64\":\"\"}]}",
		 "files[0]"},
		{"run_code",
		 "{" RUN
		 ",\"files\":[{\"filename\":\"a\",\"content\":\"\"},{\"filename\":\"b\",\"content_base64\":\"!\"}]}",
		 "files[1].content_base64"},
		{"upload_file", "{}", "conversationId"},
		{"upload_file", "{\"conversationId\":\"c\",\"filename\":\"a\"}", "content"},
		{"upload_file", "{\"conversationId\":\"c\",\"filename\":\"a\",\"content\":\"a\"}", "content"},
		{"upload_file", "{\"conversationId\":\"c\",\"filename\":\"a\",\"content\":\"Y\"}", "content"},
		{"upload_file", "{\"conversationId\":\"c\",\"filename\":\"a\\u0000b\",\"content\":\"YQ==\"}",
		 "filename"},
		{"list_runners", "{\"x\":1}", "x"},
		{"list_runners", "{\"language\":\"\"}", "language"},
		{"run_code", "{" RUN ",\"session\":1}", "session"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refused(cases[i].tool, cases[i].arguments, cases[i].member);
}

/* {…RUN…,"name":[item,item,…]} with one item more than may be; an object of distinct keys if `map`. */
static void too_many(const char *name, const char *item, int max, bool map)
{
	auto_buf struct buf text = {0};

	buf_init(&text, 1 << 20);
	buf_printf(&text, "{" RUN ",\"%s\":%c", name, map ? '{' : '[');
	for (int i = 0; i <= max; i++) {
		buf_puts(&text, i ? "," : "");
		if (map)
			buf_printf(&text, "\"K%d\":", i);
		buf_puts(&text, item);
	}
	buf_printf(&text, "%c}", map ? '}' : ']');
	refused("run_code", text.data, name);
}

static void limits(void **state)
{
	auto_free char *conversation_name = xasprintf(
		"{\"conversationId\":\"%0*d\",\"language\":\"python\",\"code\":\"1\"}", STORE_CONVERSATION_MAX + 1, 0);

	(void)state;
	too_many("args", "\"a\"", RUN_ARGS_MAX, false);
	too_many("environment", "\"a\"", RUN_VARIABLES_MAX, true);
	too_many("secrets", "\"a\"", RUN_VARIABLES_MAX, true);
	too_many("files", "{\"filename\":\"a\",\"content\":\"\"}", JOB_FILES_MAX, false);
	refused("run_code", "{" RUN ",\"timeout_seconds\":86401}",
		"timeout_seconds: must be between 1 and 300, not 86401");
	refused("run_code", "{" RUN ",\"timeout_seconds\":0}", "timeout_seconds: must be between 1 and 300, not 0");
	refused("run_code", "{" RUN ",\"memory_mb\":1048577}", "memory_mb: must be between 1 and 2048");
	refused("run_code", conversation_name, "conversationId");
}

/* No jailer: a refusal in words, not a protocol error. */
static void jailer_away(void **state)
{
	(void)state;
	refused("list_runners", "{}", "unavailable: try again in a few seconds");
	refused("run_code", "{" RUN "}", "jailer has not answered");
	/* the same as nothing: it comes as far */
	refused("run_code",
		"{" RUN ",\"network\":null,\"session\":null,\"environment\":null,\"secrets\":null,\"stdin\":null,"
		"\"args\":null,\"files\":null,\"timeout_seconds\":null,\"memory_mb\":null,\"idempotencyKey\":null}",
		"jailer has not answered");
	refused("run_code",
		"{" RUN
		",\"environment\":[],\"files\":[{\"filename\":\"a\",\"content\":\"\",\"content_base64\":null}]}",
		"jailer has not answered");
	refused("run_code", "{" RUN ",\"network\":true}", "network: there is no network on this server");
}

/* -------- downloads ----------------------------------------------------------------------------------- */

static void put_file(struct store_txn *txn, const char *name, size_t length, const char *content, const char *type)
{
	struct store_file file = {.name = name, .name_length = length, .mode = 0644, .size = (int64_t)strlen(content)};
	struct err err = ERR_INIT;

	snprintf(file.media_type, sizeof(file.media_type), "%s", type);
	assert_int_equal(store_blob_put(fixture.server.store, content, strlen(content), file.blob, &err), 0);
	if (store_txn_file_put(txn, conversation.row, &file, &err) < 0)
		fail_msg("%s", err.text);
}

static int put_files(struct store_txn *txn, void *arg, struct err *err)
{
	(void)arg;
	assert_int_equal(store_txn_conversation(txn, "alice", "talk", &conversation, err), 0);
	put_file(txn, "data.csv", strlen("data.csv"), "a,b\n", "text/csv");
	put_file(txn, "sub/page.html", strlen("sub/page.html"), "<script>", "text/html");
	put_file(txn, "chart.png", strlen("chart.png"), "\x89PNG", "image/png");
	put_file(txn, "na\xc3\xafve \"x\".txt", 14, "hi", "text/plain");
	put_file(txn, "\xff", 1, "bytes", "application/octet-stream");
	return 0;
}

static struct answer get(const char *method, const char *path)
{
	auto_free char *uri = xasprintf("/files/%s/%s", conversation.hash, path);

	return ask(&fixture, method, uri, NULL, "HTTP_AUTHORIZATION=", NULL);
}

static void downloads(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(store_commit(fixture.server.store, put_files, NULL, &err), 0);
	auto_answer struct answer csv = get("GET", "data.csv");
	auto_answer struct answer query = get("GET", "data.csv?download=1");
	auto_answer struct answer page = get("GET", "sub/page.html");
	auto_answer struct answer encoded = get("GET", "sub%2Fpage%2ehtml");
	auto_answer struct answer chart = get("GET", "chart.png");
	auto_answer struct answer text = get("GET", "na%C3%AFve%20%22x%22.txt");
	auto_answer struct answer bytes = get("GET", "%ff");
	auto_answer struct answer head = get("HEAD", "data.csv");

	assert_int_equal(csv.status, 200);
	assert_string_equal(header_of(&csv, "Content-Type"), "text/csv; charset=utf-8");
	assert_string_equal(header_of(&csv, "Content-Length"), "4");
	assert_string_equal(header_of(&csv, "X-Content-Type-Options"), "nosniff");
	assert_string_equal(header_of(&csv, "Content-Security-Policy"), "sandbox; default-src 'none'");
	assert_non_null(strstr(header_of(&csv, "Cache-Control"), "private"));
	assert_string_equal(header_of(&csv, "Content-Disposition"),
			    "attachment; filename=\"data.csv\"; filename*=UTF-8''data.csv");
	assert_int_equal(query.status, 200);
	assert_int_equal(page.status, 200);
	assert_true(str_starts(header_of(&page, "Content-Disposition"), "attachment; filename=\"page.html\""));
	assert_int_equal(encoded.status, 200);
	assert_string_equal(header_of(&chart, "Content-Type"), "image/png");
	assert_true(str_starts(header_of(&chart, "Content-Disposition"), "inline; "));
	assert_string_equal(header_of(&text, "Content-Disposition"),
			    "inline; filename=\"na__ve _x_.txt\"; filename*=UTF-8''na%C3%AFve%20%22x%22.txt");
	assert_int_equal(bytes.status, 200);
	assert_int_equal(head.status, 200);
	assert_string_equal(header_of(&head, "Content-Length"), "4");
}

static void downloads_refused(void **state)
{
	static const char *const paths[] = {
		"nothing.csv",         "data.csv/",   "/data.csv",     "./data.csv",  "sub/../data.csv",
		"..",       "sub%2f..%2fdata.csv", "data.csv%00", "data%2ecsv%2f", "data.csv%zz", "sub",
		"DATA.CSV", "data%252ecsv"};
	static const char *const uris[] = {"/files/", "/files/abc/data.csv", "/files/" HASH "/data.csv", "/files/" HASH,
					   "/files/" HASH "0/data.csv"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		auto_answer struct answer answer = get("GET", paths[i]);

		if (answer.status != 404)
			fail_msg("%s: %d", paths[i], answer.status);
	}
	for (size_t i = 0; i < ARRAY_SIZE(uris); i++) {
		auto_answer struct answer answer = ask(&fixture, "GET", uris[i], NULL, NULL);

		assert_int_equal(answer.status, 404);
	}
	auto_free char *upper = xstrdup(conversation.hash);

	for (char *p = upper; *p; p++)
		*p = *p >= 'a' ? (char)(*p - 32) : *p;
	auto_free char *uri = xasprintf("/files/%s/data.csv", upper);
	auto_answer struct answer wrong_case = ask(&fixture, "GET", uri, NULL, NULL);

	assert_int_equal(wrong_case.status, 404);
	auto_answer struct answer post = get("POST", "data.csv");

	assert_int_equal(post.status, 401); /* reading is for who has the address, changing takes a token */
}

static void accel_redirect(void **state)
{
	(void)state;
	fixture.config.gateway.accel_prefix = "/_blobs/";
	auto_answer struct answer answer = get("GET", "data.csv");

	fixture.config.gateway.accel_prefix = "";
	char hex[SHA256_HEX_SIZE], path[SHA256_HEX_SIZE + 1];

	sha256_hex("a,b\n", 4, hex);
	store_blob_path(hex, path);
	auto_free char *expected = xasprintf("/_blobs/%s", path);

	assert_int_equal(answer.status, 200);
	assert_string_equal(header_of(&answer, "X-Accel-Redirect"), expected);
	assert_null(header_of(&answer, "Content-Length"));
	assert_string_equal(answer.body, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptions),   cmocka_unit_test(caps_in_schema),
		cmocka_unit_test(offered),        cmocka_unit_test(bad_arguments),
		cmocka_unit_test(limits),         cmocka_unit_test(jailer_away),
		cmocka_unit_test(downloads),      cmocka_unit_test(downloads_refused),
		cmocka_unit_test(accel_redirect),
	};

	return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
