/*
 * test_relay_second.c - what comes behind a ClientHello: which answers of servers ask for another one, and what is made
 * of that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jail/relay/relay_hello.h"
#include "jail/relay/relay_inside.h"
#include "lib/base/util.h"
#include "tls_hello.h"

/* However the answer comes: MORE up to the byte that tells, then always the same. */
static void expect_reply(const char *data, size_t length, size_t more, enum relay_reply reply)
{
	for (size_t n = 0; n <= length; n++) {
		auto_free char *exact = xmalloc(n + 1);

		memcpy(exact + 1, data, n);
		assert_int_equal(relay_hello_reply(exact + 1, n), n < more ? RELAY_REPLY_MORE : reply);
	}
}
#define EXPECT_REPLY(reply, before, text)                                                                              \
	expect_reply(before text "more", sizeof(before text "more") - 1, sizeof(before) - 1 + TLS_SERVER_TELLS,        \
		     RELAY_REPLY_##reply)

static void replies(void **state)
{
	static char late[RELAY_REPLY_MAX + sizeof(TLS_SERVER_RETRY)];

	(void)state;
	EXPECT_REPLY(HELLO, "", TLS_SERVER_HELLO);
	EXPECT_REPLY(AGAIN, "", TLS_SERVER_RETRY);
	EXPECT_REPLY(AGAIN, "SN", TLS_SERVER_RETRY); /* PostgreSQL's letters */
	EXPECT_REPLY(AGAIN, TLS_WARNING, TLS_SERVER_RETRY);
	EXPECT_REPLY(HELLO, "\x16\x03", TLS_SERVER_HELLO);
	EXPECT_REPLY(MORE, "HTTP/1.1 400 Bad Request\r\n\r\n", TLS_CHANGE_CIPHER);
	EXPECT_REPLY(MORE, TLS_FAILURE, TLS_HELLO);
	/* Behind what is looked at. */
	memcpy(late + RELAY_REPLY_MAX - TLS_SERVER_TELLS + 1, TLS_SERVER_RETRY, sizeof(TLS_SERVER_RETRY) - 1);
	assert_int_equal(relay_hello_reply(late, sizeof(late)), RELAY_REPLY_MORE);
	memcpy(late + RELAY_REPLY_MAX - TLS_SERVER_TELLS, TLS_SERVER_RETRY, sizeof(TLS_SERVER_RETRY) - 1);
	assert_int_equal(relay_hello_reply(late, sizeof(late)), RELAY_REPLY_AGAIN);
}

/* `before` goes on as it comes, `text` all at once or not at all. */
static void expect_second(bool named, const char *before, size_t n_before, const char *text, size_t length,
			  enum relay_inside found)
{
	const struct relay_inside_rule rule = {.host = TLS_HELLO_NAME, .named = named, .place = RELAY_PLACE_SECOND};
	auto_buf struct buf data = {0};
	size_t used = 0;

	buf_init(&data, 8192);
	buf_add(&data, before, n_before);
	buf_add(&data, text, length);
	for (size_t n = 0; n <= data.length; n++) {
		auto_buf struct buf forward = {0};

		buf_init(&forward, 2 * RELAY_INSIDE_MAX);
		enum relay_inside answer = relay_inside(&rule, data.data, n, &forward, &used);

		assert_true(answer == found || (answer == RELAY_INSIDE_MORE && n < data.length));
		assert_int_equal(used, 0);
		size_t goes_on = answer == RELAY_INSIDE_FINE ? n : MIN(n, n_before);
		if (answer <= RELAY_INSIDE_FINE)
			assert_true(forward.length == goes_on && memcmp(forward.data, data.data, goes_on) == 0);
	}
}
#define EXPECT_SECOND(named, before, text, found)                                                                      \
	expect_second(named, before, sizeof(before) - 1, text, sizeof(text) - 1, RELAY_INSIDE_##found)

static void second(void **state)
{
	(void)state;
	EXPECT_SECOND(true, "", TLS_HELLO, FINE);
	EXPECT_SECOND(true, TLS_CHANGE_CIPHER, TLS_HELLO, FINE);
	EXPECT_SECOND(true, "", TLS_HELLO_EVIL, ANOTHER);
	EXPECT_SECOND(false, TLS_CHANGE_CIPHER, TLS_HELLO_EVIL, ANOTHER);
	EXPECT_SECOND(true, TLS_CHANGE_CIPHER TLS_WARNING, TLS_HELLO_EVIL, ANOTHER);
	EXPECT_SECOND(true, "", TLS_HELLO_NAMELESS, NAMELESS);
	EXPECT_SECOND(false, "", TLS_HELLO_NAMELESS, FINE);
	/* An alert instead of it goes on; nothing else does. */
	EXPECT_SECOND(true, TLS_FAILURE, "", MORE);
	EXPECT_SECOND(true, "", TLS_EARLY, UNREADABLE);
	EXPECT_SECOND(false, "", "\x80\x2e\x01\x03\x03", UNREADABLE); /* in SSL 2's clothes */
	EXPECT_SECOND(false, "", "GET / HTTP/1.1\r\nHost: " TLS_HELLO_NAME "\r\n\r\n", UNREADABLE);
	EXPECT_SECOND(false, "\x15\x03\x03\0", "\x03\x02\x28", UNREADABLE); /* no alert is as long as that */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies),
		cmocka_unit_test(second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
