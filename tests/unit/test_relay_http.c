/* test_relay_http.c - what the relay's proxy takes for a request, what it hands on, and what it takes for none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jail/relay/egress.h"
#include "jail/relay/relay_http.h"
#include "lib/base/util.h"

static int parse(const char *head, struct relay_request *ret, char forward[RELAY_HEAD_MAX])
{
	auto_buf struct buf text = {0};

	buf_init(&text, RELAY_HEAD_MAX);
	int result = relay_http_parse(head, strlen(head), ret, &text);
	snprintf(forward, RELAY_HEAD_MAX, "%s", text.data);
	return result;
}

static void connects(void **state)
{
	struct relay_request request;
	char forward[RELAY_HEAD_MAX];

	(void)state;
	assert_int_equal(parse("CONNECT WWW.Example.com.:443 HTTP/1.1\r\nHost: evil.example:443\r\nX: 1\r\n\r\n",
			       &request, forward),
			 0);
	assert_true(request.connect && request.kind == HOST_NAME && request.port == 443);
	assert_string_equal(request.host, "www.example.com");
	assert_string_equal(forward, "");
	assert_int_equal(parse("CONNECT [::ffff:127.0.0.1]:443 HTTP/1.0\r\n\r\n", &request, forward), 0);
	assert_true(request.kind == HOST_ADDRESS && streq(request.host, "127.0.0.1"));
}

static void rewrites(void **state)
{
	static const struct {
		const char *head, *forward;
	} cases[] = {
		{"GET http://Example.com/a?b=http://x/ HTTP/1.1\r\nHost: other.example\r\nX: y\r\n\r\n",
		 "GET /a?b=http://x/ HTTP/1.1\r\nHost: Example.com\r\nX: y\r\nConnection: close\r\n\r\n"},
		{"GET http://example.com HTTP/1.1\r\n\r\n",
		 "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"},
		{"GET http://example.com?q HTTP/1.1\r\n\r\n",
		 "GET /?q HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"},
		{"POST HTTP://example.com:8080/ HTTP/1.0\r\nProxy-Connection: keep-alive\r\nproxy-authorization: "
		 "x\r\nConnection: "
		 "keep-alive\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n",
		 "POST / HTTP/1.1\r\nHost: example.com:8080\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"},
	};
	struct relay_request request;
	char forward[RELAY_HEAD_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse(cases[i].head, &request, forward), 0);
		assert_false(request.connect);
		assert_string_equal(request.host, "example.com");
		assert_string_equal(forward, cases[i].forward);
	}
}

static void refuses(void **state)
{
	static const char *const bad[] = {
		"\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET https://example.com/ HTTP/1.1\r\n\r\n",
		"GET ftp://example.com/ HTTP/1.1\r\n\r\n",
		"GET http:// HTTP/1.1\r\n\r\n",
		"GET http:///x HTTP/1.1\r\n\r\n",
		"GET http://good.example@evil.example/ HTTP/1.1\r\n\r\n",
		"GET http://user:pw@example.com/ HTTP/1.1\r\n\r\n",
		"GET http://example.com:80:90/ HTTP/1.1\r\n\r\n",
		"GET http://0x7f.1/ HTTP/1.1\r\n\r\n",
		"GET http://example.com\\@evil.example/ HTTP/1.1\r\n\r\n",
		"GET http://example.com/ HTTP/2.0\r\n\r\n",
		"GET http://example.com/\r\n\r\n",
		"GET  http://example.com/ HTTP/1.1\r\n\r\n",
		"GET http://example.com/ x HTTP/1.1\r\n\r\n",
		"G(T http://example.com/ HTTP/1.1\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\nX : y\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\n folded: y\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\nA: b\nHost: evil\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\nA: b\rc\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\nno colon\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\n: x\r\n\r\n",
		/* A body whose end two servers see in two places. */
		"POST http://example.com/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nContent-Length: 3, 3\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nContent-Length: 0x3\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nContent-Length:\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"CONNECT example.com HTTP/1.1\r\n\r\n",
		"CONNECT http://example.com:443 HTTP/1.1\r\n\r\n",
		"CONNECT user@example.com:443 HTTP/1.1\r\n\r\n",
		"CONNECT example.com:443/ HTTP/1.1\r\n\r\n",
		"CONNECT ::1:443 HTTP/1.1\r\n\r\n",
		"CONNECT example.com:443 HTTP/1.1\r\nbad\r\n\r\n",
	};
	struct relay_request request;
	char forward[RELAY_HEAD_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &request, forward) == 0)
			fail_msg("taken: %s", bad[i]);
}

/* How much goes on behind the head; and in a tunnel, which heads do. */
static void bodies(void **state)
{
	static const struct {
		const char *headers;
		enum relay_origin origin;
	} cases[] = {
		{"Content-Length: 3\r\n", RELAY_ORIGIN_LAST},
		{"Transfer-Encoding: chunked\r\n", RELAY_ORIGIN_LAST},
		{"", RELAY_ORIGIN_ALONE},
		{"Content-Length: 3\r\nContent-Length: 4\r\n", RELAY_ORIGIN_BAD},
		{"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", RELAY_ORIGIN_BAD},
		{"Transfer-Encoding: xchunked\r\n", RELAY_ORIGIN_BAD},
		{"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", RELAY_ORIGIN_BAD},
	};
	struct relay_request request;
	char forward[RELAY_HEAD_MAX];

	(void)state;
	assert_int_equal(parse("POST http://example.com/ HTTP/1.1\r\nContent-Length: 1234\r\n\r\n", &request, forward),
			 0);
	assert_int_equal(request.body, 1234);
	assert_int_equal(parse("GET http://example.com/ HTTP/1.1\r\n\r\n", &request, forward), 0);
	assert_int_equal(request.body, 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *head = xasprintf("POST / HTTP/1.1\r\nHost: example.com\r\n%s\r\n", cases[i].headers);
		auto_buf struct buf text;

		buf_init(&text, RELAY_HEAD_MAX);
		assert_int_equal(relay_http_origin(head, strlen(head), "example.com", &text), cases[i].origin);
	}
}

static void finds_the_head(void **state)
{
	(void)state;
	assert_int_equal(relay_http_head("a\r\n\r", 4), 0);
	assert_int_equal(relay_http_head("a\r\n\r\nbody", 9), 5);
	assert_int_equal(relay_http_head("a\n\nb", 4), 0);
	assert_int_equal(relay_http_status("HTTP/1.1 200 OK\r\n\r\n", 19), 200);
	assert_int_equal(relay_http_status("HTTP/1.0 407 X\r\n\r\n", 18), 407);
	assert_int_equal(relay_http_status("HTTP/1.1 20\r\n\r\n", 15), -1);
	assert_int_equal(relay_http_status("SSH-2.0-OpenSSH\r\n\r\n", 19), -1);
}

/* The list that a configuration makes: who matches what, and which addresses the names have in a jail. */
static void lists(void **state)
{
	const char *entries[] = {"db.example:5432",     "db.example:5433", "*.example:443", "x.example:443 private",
				 "10.0.0.5:80 private", "db.example:5432", "api.other:443"};
	struct config config = {.network = {.allow = {entries, ARRAY_SIZE(entries)}, .proxy = ""}};
	struct egress egress;
	auto_free char *hosts = NULL;

	(void)state;
	assert_int_equal(egress_init(&config, &egress, NULL), 0);
	hosts = egress_hosts(&egress);
	assert_non_null(strstr(hosts, "\n127.83.1.1 db.example\n127.83.1.4 x.example\n127.83.1.7 api.other\n"));
	assert_false(egress.rules[5].listens);
	assert_ptr_equal(egress_match(&egress, "db.example", HOST_NAME, 5433), &egress.rules[1]);
	assert_null(egress_match(&egress, "db.example", HOST_NAME, 80));
	assert_ptr_equal(egress_match(&egress, "a.b.example", HOST_NAME, 443), &egress.rules[2]);
	assert_ptr_equal(egress_match(&egress, "x.example", HOST_NAME, 443), &egress.rules[3]);
	assert_null(egress_match(&egress, "example", HOST_NAME, 443));
	assert_ptr_equal(egress_match(&egress, "10.0.0.5", HOST_ADDRESS, 80), &egress.rules[4]);
	assert_null(egress_match(&egress, "10.0.0.6", HOST_ADDRESS, 80));
	egress_clear(&egress);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects), cmocka_unit_test(rewrites),       cmocka_unit_test(refuses),
		cmocka_unit_test(bodies),   cmocka_unit_test(finds_the_head), cmocka_unit_test(lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
