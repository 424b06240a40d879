/* Arguments as clients and models send them: what is read as it is meant, what is ignored, what stays an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/bind_meant.h"
#include "lib/base/util.h"

struct file {
	const char *filename;
	struct bind_text content;
};
struct call {
	const char *conversation, *language;
	struct bind_text code;
	bool session;
	int64_t timeout;
	struct bind_strings args;
	struct bind_map environment;
	struct bind_objects files;
	struct file one;
	struct json_object *any;
};
static const struct bind file_table[] = {
	BIND_MEMBER(struct file, filename, "filename", BIND_STRING, .flags = BIND_REQUIRED, .min = 1),
	BIND_MEMBER(struct file, content, "content", BIND_TEXT),
	{0},
};
static const struct bind table[] = {
	BIND_MEMBER(struct call, conversation, "conversationId", BIND_STRING),
	BIND_MEMBER(struct call, language, "language", BIND_STRING),
	BIND_MEMBER(struct call, code, "code", BIND_TEXT),
	BIND_MEMBER(struct call, session, "session", BIND_BOOL),
	BIND_MEMBER(struct call, timeout, "timeout_seconds", BIND_INT, .min = 1, .max = 300),
	BIND_MEMBER(struct call, args, "args", BIND_STRINGS),
	BIND_MEMBER(struct call, environment, "environment", BIND_STRING_MAP),
	BIND_MEMBER(struct call, files, "files", BIND_OBJECTS, .table = file_table, .size = sizeof(struct file)),
	BIND_MEMBER(struct call, one, "parcel", BIND_OBJECT, .table = file_table),
	BIND_MEMBER(struct call, any, "any", BIND_ANY),
	{0},
};

/* Reads and binds it, prints what the struct then holds; the error's text where it fails. The caller's. */
static char *read_as_meant(const char *text, struct bind_ignored *ret_ignored)
{
	auto_json struct json_object *object = NULL, *meant = NULL, *back = NULL;
	auto_buf struct buf out = {0};
	struct call call = {0};
	struct err err = ERR_INIT;

	*ret_ignored = (struct bind_ignored){0};
	assert_int_equal(json_parse(text, strlen(text), &object, NULL), 0);
	if (bind_as_meant(table, object, &meant, ret_ignored, &err) < 0 ||
	    bind_parse_asked(table, meant, &call, &err) < 0)
		return xstrdup(err.text);
	back = bind_print(table, &call);
	json_object_object_del(back, "session");
	json_object_object_del(back, "timeout_seconds");
	json_object_object_del(back, "parcel");
	buf_init(&out, 4096);
	buf_printf(&out, "%s%lld ", call.session ? "session " : "", (long long)call.timeout);
	if (call.one.filename)
		buf_printf(&out, "%s ", call.one.filename);
	json_print(&out, back);
	bind_clear(table, &call);
	return buf_steal(&out, NULL);
}

static void test_values(void **state)
{
	static const struct {
		const char *text, *read;
	} tries[] = {
		{"{\"timeout_seconds\":\"20\"}", "20 {}"},
		{"{\"timeout_seconds\":\" 20.0\\n\"}", "20 {}"},
		{"{\"timeout_seconds\":20}", "20 {}"},
		{"{\"session\":\"true\"}", "session 0 {}"},
		{"{\"session\":\"False\"}", "0 {}"},
		{"{\"args\":\"[\\\"a\\\", 2]\"}", "0 {\"args\":[\"a\",\"2\"]}"},
		{"{\"args\":[1,2.5,true,\"x\"]}", "0 {\"args\":[\"1\",\"2.5\",\"true\",\"x\"]}"},
		{"{\"environment\":\"{\\\"A\\\":\\\"1\\\",\\\"B\\\":2}\"}",
		 "0 {\"environment\":{\"A\":\"1\",\"B\":\"2\"}}"},
		{"{\"environment\":\"[{\\\"name\\\":\\\"A\\\",\\\"value\\\":\\\"1\\\"}]\"}",
		 "0 {\"environment\":{\"A\":\"1\"}}"},
		{"{\"environment\":[{\"name\":\"A\",\"value\":7}]}", "0 {\"environment\":{\"A\":\"7\"}}"},
		{"{\"files\":\"[{\\\"filename\\\":\\\"a\\\",\\\"content\\\":\\\"x\\\"}]\"}",
		 "0 {\"files\":[{\"filename\":\"a\",\"content\":\"x\"}]}"},
		{"{\"files\":[\"{\\\"filename\\\":\\\"a\\\"}\"]}", "0 {\"files\":[{\"filename\":\"a\"}]}"},
		{"{\"parcel\":\"{\\\"filename\\\":\\\"n\\\"}\"}", "0 n {}"},
		{"{\"conversationId\":42}", "0 {\"conversationId\":\"42\"}"},
		{"{\"any\":\"[1]\"}", "0 {\"any\":\"[1]\"}"},
		/* a text stays one, whatever it looks like */
		{"{\"code\":\"[1, 2]\",\"conversationId\":\"7\"}", "0 {\"conversationId\":\"7\",\"code\":\"[1, 2]\"}"},
		{"{\"args\":null,\"files\":null}", "0 {}"},
		/* and what is no such value is refused as ever */
		{"{\"timeout_seconds\":\"20s\"}", "timeout_seconds: must be an integer, not a string"},
		{"{\"timeout_seconds\":\"2.5\"}", "timeout_seconds: must be an integer, not a fraction"},
		{"{\"timeout_seconds\":\"\"}", "timeout_seconds: must be an integer, not a string"},
		{"{\"timeout_seconds\":\"301\"}", "timeout_seconds: must be between 1 and 300, not 301"},
		{"{\"session\":\"yes\"}", "session: must be a boolean, not a string"},
		{"{\"session\":1}", "session: must be a boolean, not an integer"},
		{"{\"args\":\"a\"}", "args: must be an array of strings, not a string"},
		{"{\"args\":[null]}", "args[0]: must be a string, not null"},
		{"{\"args\":\"{}\"}", "args: must be an array of strings, not a string"},
		{"{\"environment\":\"{\\\"A\\\":\\\"1\\\",\\\"A\\\":\\\"2\\\"}\"}",
		 "environment: must be an object whose members are strings, not a string"},
		{"{\"files\":\"nothing\"}", "files: must be an array of objects, not a string"},
		{"{\"code\":{}}", "code: must be a string, not an object"},
	};
	struct bind_ignored ignored;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		auto_free char *read = read_as_meant(tries[i].text, &ignored);

		if (!streq(read, tries[i].read))
			fail_msg("%s: %s, not %s", tries[i].text, read, tries[i].read);
		assert_string_equal(ignored.names, "");
	}
}

static void test_unknown(void **state)
{
	static const struct {
		const char *text, *ignored;
	} tries[] = {
		{"{\"task_progress\":\"- [x] a\"}", "task_progress"},
		{"{\"sessionId\":\"1\",\"toolCallId\":\"2\",\"action\":\"sendMessage\",\"chatInput\":\"hi\"}",
		 "sessionId, toolCallId, action, chatInput"},
		{"{\"session\":true,\"session_id\":\"1\",\"requestID\":\"2\"}", "session_id, requestID"},
		{"{\"code\":\"1\",\"mode\":\"run\",\"model\":\"x\",\"explanation\":\"e\",\"security_risk\":\"LOW\"}",
		 "mode, model, explanation, security_risk"},
		{"{\"files\":[{\"filename\":\"a\",\"content\":\"b\",\"content_type\":\"c\",\"size\":1}]}",
		 "files[0].content_type, files[0].size"},
		{"{\"parcel\":{\"filename\":\"a\",\"x\":1}}", "parcel.x"},
		{"{\"environment\":[{\"name\":\"A\",\"value\":\"1\",\"secret\":true}]}", "environment[0].secret"},
		{"{\"a\\nb\":1}", "a\\x0ab"},
	};
	static const struct {
		const char *text, *refused;
	} near[] = {
		{"{\"timeout\":20}", "timeout: unknown member, did you mean \"timeout_seconds\"?"},
		{"{\"timeout_ms\":20}", "timeout_ms: unknown member, did you mean \"timeout_seconds\"?"},
		{"{\"timeout_seconds\":5,\"timeout\":20}",
		 "timeout: unknown member, did you mean \"timeout_seconds\"?"},
		{"{\"timeoutSeconds\":20}", "timeoutSeconds: unknown member, did you mean \"timeout_seconds\"?"},
		{"{\"lang\":\"python\"}", "lang: unknown member, did you mean \"language\"?"},
		{"{\"language\":\"python\",\"lang\":\"js\"}", "lang: unknown member, did you mean \"language\"?"},
		{"{\"conversation_id\":\"c\"}", "conversation_id: unknown member, did you mean \"conversationId\"?"},
		{"{\"conversation\":\"c\"}", "conversation: unknown member, did you mean \"conversationId\"?"},
		{"{\"arguments\":[]}", "arguments: unknown member, did you mean \"args\"?"},
		{"{\"env\":{}}", "env: unknown member, did you mean \"environment\"?"},
		{"{\"env_vars\":{}}", "env_vars: unknown member, did you mean \"environment\"?"},
		{"{\"file\":{}}", "file: unknown member, did you mean \"files\"?"},
		{"{\"Code\":\"1\"}", "Code: unknown member, did you mean \"code\"?"},
		{"{\"files\":[{\"file_name\":\"a\"}]}",
		 "files[0].file_name: unknown member, did you mean \"filename\"?"},
	};
	struct bind_ignored ignored;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		auto_free char *read = read_as_meant(tries[i].text, &ignored);

		assert_non_null(strchr(read, '{'));
		assert_string_equal(ignored.names, tries[i].ignored);
		assert_int_equal(ignored.more, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(near); i++) {
		auto_free char *read = read_as_meant(near[i].text, &ignored);

		assert_string_equal(read, near[i].refused);
	}
}

/* Names are listed as far as there is room, and each is cut. */
static void test_bounds(void **state)
{
	auto_buf struct buf text = {0}, list = {0};
	struct bind_ignored ignored;

	(void)state;
	buf_init(&text, 1 << 20);
	buf_puts(&text, "{");
	for (int i = 0; i < 100; i++)
		buf_printf(&text, "%s\"%d%0100d\":1", i ? "," : "", i, 0);
	buf_puts(&text, "}");
	auto_free char *read = read_as_meant(text.data, &ignored);

	assert_string_equal(read, "0 {}");
	assert_true(strlen(ignored.names) < BIND_IGNORED_MAX);
	size_t listed = 1;

	for (const char *p = ignored.names; (p = strchr(p, ',')); p++)
		listed++;
	assert_int_equal(listed, (BIND_IGNORED_MAX - 1) / (BIND_IGNORED_NAME + 2));
	assert_int_equal(ignored.more, 100 - listed);

	/* Texts have one budget of values: the second does not fit. */
	buf_init(&list, 4 << 20);
	buf_puts(&list, "{\"args\":\"[0");
	for (int i = 0; i < BIND_TEXT_VALUES * 2 / 3; i++)
		buf_puts(&list, ",0");
	buf_puts(&list, "]\",\"environment\":\"[0");
	for (int i = 0; i < BIND_TEXT_VALUES * 2 / 3; i++)
		buf_puts(&list, ",0");
	buf_puts(&list, "]\"}");
	auto_free char *refused = read_as_meant(list.data, &ignored);

	assert_string_equal(refused, "environment: must be an object whose members are strings, not a string");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
