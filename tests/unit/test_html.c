/* Pages as templates with typed holes: what a value may be, and where a hole may not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgi/http/html.h"

#define ATTACK "\"><script>alert('1')</script>&amp;\xe2\x80\xae\xff\x01"

static struct html html;
static struct buf out;

static void begin(void)
{
	buf_clear(&out);
	buf_init(&out, 4096);
	html_init(&html, &out);
}

static void escaping(void **state)
{
	(void)state;
	begin();
	html_put(&html, "<a title=\"{}\" href=\"/admin/{}\">{}</a>", html_text(ATTACK), html_part("a/b \"?&#"),
		 html_bytes("a\nb\0c", 5));
	assert_true(html_sound(&html));
	assert_string_equal(
		out.data,
		"<a "
		"title=\"&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;\\xe2\\x80\\xae\\xff\\x01\" "
		"href=\"/admin/a%2Fb%20%22%3F%26%23\">a\\x0ab\\x00c</a>");
	begin();
	html_put(&html, "<pre>{}</pre>", html_lines("a\r\n\tb\rc\n</pre>", 14));
	assert_string_equal(out.data, "<pre>a\n\tb\\x0dc\n&lt;/pre&gt;</pre>");
	begin();
	html_put(&html, "{}{}", html_text(NULL), html_bytes(NULL, 3));
	assert_string_equal(out.data, "");
	buf_clear(&out);
}

/* Each is refused: the page is not sent. */
static void templates(void **state)
{
	(void)state;
	begin();
	html_put(&html, "<p {}>", html_text("onclick"));
	assert_false(html_sound(&html));
	begin();
	html_put(&html, "<a href=\"{}\">", html_text("javascript:alert(1)"));
	assert_false(html_sound(&html));
	begin();
	html_put(&html, "<form action=\"{}\">", html_text("https://evil.example"));
	assert_false(html_sound(&html));
	begin();
	html_put(&html, "<a href=\"{}\">x</a>", html_address("https://a.example/?a=1&b=\"2"));
	assert_true(html_sound(&html));
	assert_string_equal(out.data, "<a href=\"https://a.example/?a=1&amp;b=&quot;2\">x</a>");
	begin();
	html_put(&html, "<p>{}", html_text("a"), html_text("b"));
	assert_false(html_sound(&html));
	begin();
	html_put(&html, "<p>{}{}", html_text("a"));
	assert_false(html_sound(&html));
	begin();
	html_put(&html, "<p class=\"{}", html_text("a"));
	assert_false(html_sound(&html));
	buf_clear(&out);
}

static void value_is(struct html_value value, const char *expected)
{
	begin();
	html_put(&html, "{}", value);
	assert_string_equal(out.data, expected);
	buf_clear(&out);
}

static void figures(void **state)
{
	(void)state;
	value_is(html_number(0), "0");
	value_is(html_number(-1234567), "-1,234,567");
	value_is(html_number(INT64_MIN), "-9,223,372,036,854,775,808");
	value_is(html_size(999), "999 B");
	value_is(html_size(1536), "1.5 KiB");
	value_is(html_size(INT64_MAX), "8192 PiB");
	value_is(html_duration(999), "999 µs");
	value_is(html_duration(31000), "31 ms");
	value_is(html_duration(1250000), "1.25 s");
	value_is(html_date(1795335069000000), "2026-11-22 08:11:09");
	value_is(html_iso(1795335069000000), "2026-11-22T08:11:09Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escaping),
		cmocka_unit_test(templates),
		cmocka_unit_test(figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
