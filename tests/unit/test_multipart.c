/* Forms: what is a part and what is its content, and forms that are broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "cgi/http/multipart.h"
#include "lib/base/util.h"

#define TYPE "multipart/form-data; boundary=b"
#define BODY_MAX (1 << 20)

static int parse(const char *type, const char *text, size_t length, struct multipart *ret, struct err *err)
{
	static struct buf body;

	buf_clear(&body);
	buf_init(&body, BODY_MAX);
	buf_add(&body, text, length);
	return multipart_parse(type, &body, ret, err);
}

static void parts(void **state)
{
	static const char text[] = "preamble\r\n--b\r\nContent-Disposition: form-data; name=\"one\"\r\n\r\nvalue\r\n"
				   "--b  \r\nX: y\r\ncontent-disposition: form-data; "
				   "filename=\"a\\\"b%22c.txt\"; name=f\r\n"
				   "Content-Type: text/plain\r\n\r\nline\r\n--bb\r\n-b\0\r\n\r\n--b\r\n"
				   "Content-Disposition: form-data; name=\"empty\"; filename=\"\"\r\n\r\n\r\n"
				   "--b--\r\nepilogue";
	auto_multipart struct multipart form = {0};
	struct err err = ERR_INIT;

	(void)state;
	/* "--bb" begins with the boundary: what stands behind must be the end of the line */
	assert_int_equal(parse(TYPE, text, sizeof(text) - 1, &form, &err), -ERR_INVALID);
	static const char whole[] = "--b\r\nContent-Disposition: form-data; name=\"one\"\r\n\r\nvalue\r\n"
				    "--b  \r\nX: y\r\ncontent-disposition: form-data; "
				    "filename=\"a\\\"b%22c.txt\"; name=f\r\n\r\nline\r\n-b\0 --b\r\n\r\n--b\r\n"
				    "Content-Disposition: form-data; name=\"empty\"; filename=\"\"\r\n\r\n\r\n"
				    "--b--\r\nepilogue";
	static const char type[] = "Multipart/Form-Data;charset=x; Boundary=\"b\"";

	assert_int_equal(parse(type, whole, sizeof(whole) - 1, &form, &err), 0);
	assert_int_equal(form.count, 3);
	assert_string_equal(form.parts[0].name, "one");
	assert_null(form.parts[0].filename);
	auto_free char *value = multipart_field(&form, "one");
	assert_string_equal(value, "value");
	assert_null(multipart_field(&form, "f"));
	assert_string_equal(form.parts[1].name, "f");
	assert_string_equal(form.parts[1].filename, "a\"b\"c.txt");
	assert_int_equal(form.parts[1].length, strlen("line\r\n-b") + 1 + strlen(" --b\r\n"));
	assert_memory_equal(form.parts[1].data, "line\r\n-b\0 --b\r\n", form.parts[1].length);
	assert_string_equal(form.parts[2].filename, "");
	assert_int_equal(form.parts[2].length, 0);
}

/* Names as RFC 8187 and as whole paths. */
static void names_of_files(void **state)
{
	static const struct {
		const char *parameters, *filename;
	} tries[] = {
		{"filename*=UTF-8''%e2%82%ac%20rates.csv", "\xe2\x82\xac rates.csv"},
		{"filename*=utf-8'en'a.csv; filename=\"b.csv\"", "a.csv"},
		{"filename=\"fallback.csv\"; filename*=UTF-8''r%C3%A9sum%C3%A9.csv", "r\xc3\xa9sum\xc3\xa9.csv"},
		{"filename*=ISO-8859-1''%a3.csv", "\xc2\xa3.csv"},
		{"filename*=UTF-8''%e2; filename=b.csv", "b.csv"},
		{"filename*=UTF-8''a%00b; filename=b.csv", "b.csv"},
		{"filename*=KOI8-R''a; filename=b.csv", "b.csv"},
		{"filename*=UTF-8''100%; filename=b.csv", "b.csv"},
		{"filename=\"C:\\Users\\me\\win.txt\"", "win.txt"},
		{"filename=\"C:/Users/me/win.txt\"", "win.txt"},
		{"filename=\"C:\\fakepath\\a b.csv\"", "a b.csv"},
		{"filename=\"\\\\server\\share\\a.csv\"", "a.csv"},
		{"filename=\"..\\..\\a.csv\"", "a.csv"},
		{"filename=\"a\\b.txt\"", "a\\b.txt"},
		{"filename=\"dir/a.txt\"", "dir/a.txt"},
		{"filename=\"c:notes\"", "c:notes"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		auto_multipart struct multipart form = {0};
		struct err err = ERR_INIT;
		auto_free char *text =
			xasprintf("--b\r\nContent-Disposition: form-data; name=\"file\"; %s\r\n\r\nx\r\n--b--",
				  tries[i].parameters);

		if (parse(TYPE, text, strlen(text), &form, &err) < 0)
			fail_msg("%s: %s", tries[i].parameters, err.text);
		assert_int_equal(form.count, 1);
		assert_string_equal(form.parts[0].filename, tries[i].filename);
		assert_int_equal(form.parts[0].length, 1);
	}
}

#define PART "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx"

static void broken(void **state)
{
	static const char *const types[] = {NULL, "", "text/plain; boundary=b", "multipart/form-data",
					    "multipart/form-data; boundary=", "multipart/form-data; boundary=\"b",
					    "multipart/form-data; bound=b"};
	static const char *const texts[] = {"", "x", "--b", "--b\r\n", "--bx\r\n", PART, PART "\r\n", PART "\r\n--b",
					    PART "\r\n--c--\r\n", "--b\r\nX: y\r\n\r\nx\r\n--b--",
					    "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
					    "--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--b--",
					    "--b\r\nContent-Disposition: form-data; name=\"a\"\r\nx\r\n--b--"};
	static const char whole[] = PART "\r\n--b--";
	struct multipart form = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_int_equal(parse(types[i], whole, strlen(whole), &form, NULL), -ERR_INVALID);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (parse(TYPE, texts[i], strlen(texts[i]), &form, NULL) != -ERR_INVALID)
			fail_msg("form %zu was taken", i);
	assert_null(form.parts);
	auto_free char *longest = xasprintf("multipart/form-data; boundary=%071d", 0);
	assert_int_equal(parse(longest, PART, strlen(PART), &form, NULL), -ERR_INVALID);
}

static void bounds(void **state)
{
	auto_buf struct buf text = {0};
	auto_multipart struct multipart form = {0};
	struct err err = ERR_INIT;

	(void)state;
	buf_init(&text, BODY_MAX);
	for (int i = 0; i < MULTIPART_PARTS_MAX; i++)
		buf_puts(&text, PART "\r\n");
	size_t most = text.length;

	buf_puts(&text, "--b--");
	assert_int_equal(parse(TYPE, text.data, text.length, &form, &err), 0);
	assert_int_equal(form.count, MULTIPART_PARTS_MAX);
	multipart_clear(&form);
	text.length = most;
	buf_puts(&text, PART "\r\n--b--");
	assert_int_equal(parse(TYPE, text.data, text.length, &form, &err), -ERR_LIMIT);
	auto_free char *name = xasprintf("--b\r\nContent-Disposition: form-data; name=\"%0*d\"\r\n\r\nx\r\n--b--",
					 MULTIPART_NAME_MAX + 1, 0);
	assert_int_equal(parse(TYPE, name, strlen(name), &form, &err), -ERR_INVALID);
	auto_free char *header = xasprintf("--b\r\nX: %0*d\r\n\r\nx\r\n--b--", MULTIPART_HEADER_MAX, 0);
	assert_int_equal(parse(TYPE, header, strlen(header), &form, &err), -ERR_INVALID);
	assert_non_null(strstr(err.text, "have no end"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts),
		cmocka_unit_test(names_of_files),
		cmocka_unit_test(broken),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
