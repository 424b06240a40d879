/*
 * test_relay_connection.c - what goes on inside a tunnel, and how long a guest may leave open whom it means. No clock
 * is waited for: what is looked at is the deadline that the connection has, and what happens when the relay says that
 * it is over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "jail/relay/relay_internal.h"
#include "lib/base/util.h"
#include "tls_hello.h"

#define HOST TLS_HELLO_NAME

enum { OURS, THEIRS };

struct tunnel {
	struct config config;
	struct egress_rule rule;
	struct egress egress;
	struct relay_page page;
	struct relay relay;
	struct relay_jail jail;
	struct relay_connection *c;
	int guest, server; /* the other ends */
};

/* A tunnel whose way out stands already: a socket pair on both sides. */
static int setup(void **state)
{
	struct tunnel *t = xcalloc(1, sizeof(*t));
	int guest[2], server[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, guest), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, server), 0);
	t->guest = guest[THEIRS];
	t->server = server[THEIRS];
	memcpy(t->rule.host.host, HOST, sizeof(HOST));
	t->rule.host.port = 443;
	t->egress = (struct egress){.rules = &t->rule, .n_rules = 1, .config = &t->config};
	t->relay = (struct relay){.loop = loop_open(), .egress = &t->egress, .next_deadline_us = INT64_MAX};
	t->jail = (struct relay_jail){.relay = &t->relay, .liveness_fd = -1, .page = &t->page};
	t->c = relay_connection_new(&t->jail, guest[OURS], 0);
	t->c->remote.fd = server[OURS];
	relay_tunnel_open(t->c);
	assert_int_equal(t->c->state, RELAY_OPEN);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct tunnel *t = *state;

	relay_connection_free(t->c);
	close(t->relay.loop);
	close(t->guest);
	close(t->server);
	free(t);
	return 0;
}

static void say(struct tunnel *t, const char *data, size_t length)
{
	assert_int_equal(write(t->guest, data, length), length);
	assert_int_equal(loop_once(t->relay.loop, 0), 1);
}
#define SAY(t, text) say(t, text, sizeof(text) - 1)

static void expect_deadline(const struct tunnel *t, int64_t begun_us)
{
	assert_in_range(t->c->deadline_us, begun_us + RELAY_HEAD_US, clock_monotonic_us() + RELAY_HEAD_US);
	assert_true(t->relay.next_deadline_us <= t->c->deadline_us);
}

static void expect_server_got(const struct tunnel *t, const char *text)
{
	char data[1024];
	ssize_t n = read(t->server, data, sizeof(data));

	assert_int_equal(n, (ssize_t)strlen(text));
	assert_memory_equal(data, text, strlen(text));
}

/* It does not begin anew with each byte; then it is over. */
static void slow_hello(void **state)
{
	struct tunnel *t = *state;
	char byte;

	assert_int_equal(t->c->deadline_us, INT64_MAX); /* the server may speak first */
	int64_t begun_us = clock_monotonic_us();
	SAY(t, "\x16");
	expect_deadline(t, begun_us);
	int64_t deadline_us = t->c->deadline_us;
	SAY(t, "\x03\x01");
	SAY(t, "\x02");
	assert_int_equal(t->c->deadline_us, deadline_us);
	assert_int_equal(read(t->server, &byte, 1), -1); /* nothing of it went on */
	relay_connection_late(t->c);
	assert_int_equal(t->c->state, RELAY_CLOSED);
	assert_int_equal(t->c->deadline_us, INT64_MAX);
	assert_int_equal(atomic_load(&t->page.n_denied), 1);
	assert_int_equal(t->page.denied[0].reason, RELAY_UNREADABLE);
	assert_string_equal(t->page.denied[0].host, HOST);
	assert_int_equal(read(t->server, &byte, 1), 0);
}

/* What is neither TLS nor HTTP has no deadline. */
static void neither(void **state)
{
	struct tunnel *t = *state;

	SAY(t, "PING");
	assert_int_equal(t->c->deadline_us, INT64_MAX); /* it may become a request; but it went on */
	expect_server_got(t, "PING");
	SAY(t, "\r\n");
	assert_int_equal(t->c->deadline_us, INT64_MAX);
	expect_server_got(t, "\r\n");
	assert_int_equal(t->c->look, RELAY_LOOK_OFF);
}

/* Each of a connection's requests has its own, also when it comes right behind the one before. */
static void requests(void **state)
{
	struct tunnel *t = *state;
	int64_t begun_us = clock_monotonic_us();

	SAY(t, "GET /1 HTTP/1.1\r\nHost:");
	expect_deadline(t, begun_us);
	expect_server_got(t, "GET /1 HTTP/1.1");
	int64_t after_us = clock_monotonic_us();
	SAY(t, " " HOST "\r\n\r\nGET /2 HTTP/1.1\r\n");
	expect_deadline(t, after_us);
	expect_server_got(t, "\r\nHost: " HOST "\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.1");
	SAY(t, "\r\n");
	assert_int_equal(t->c->deadline_us, INT64_MAX); /* idle between two requests, as long as it likes */
}

/* Letters without end go on, until they turn out to be a method. */
static void long_word(void **state)
{
	struct tunnel *t = *state;
	static char letters[RELAY_INSIDE_MAX], data[RELAY_INSIDE_MAX + 1];

	memset(letters, 'x', sizeof(letters));
	for (int i = 0; i < 3; i++) {
		say(t, letters, sizeof(letters));
		assert_int_equal(read(t->server, data, sizeof(data)), sizeof(letters));
		assert_int_equal(t->c->deadline_us, INT64_MAX);
		assert_int_equal(t->c->look, RELAY_LOOK_WORD);
	}
	SAY(t, "x");
	expect_server_got(t, "x");
	SAY(t, " / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	assert_int_equal(t->c->state, RELAY_CLOSED);
	assert_int_equal(t->page.denied[0].reason, RELAY_UNREADABLE);
	assert_int_equal(read(t->server, data, sizeof(data)), 0);
}

static void expect_bytes(int fd, const char *bytes, size_t length)
{
	static char data[RELAY_INSIDE_MAX + 1];

	assert_int_equal(read(fd, data, sizeof(data)), (ssize_t)length);
	assert_memory_equal(data, bytes, length);
}
#define EXPECT_BYTES(fd, text) expect_bytes(fd, text, sizeof(text) - 1)

/* The server says something; the guest gets it. */
static void answer(struct tunnel *t, const char *data, size_t length)
{
	assert_int_equal(write(t->server, data, length), length);
	assert_int_equal(loop_once(t->relay.loop, 0), 1);
	expect_bytes(t->guest, data, length);
}
#define ANSWER_WITH(t, text) answer(t, text, sizeof(text) - 1)

static void expect_nothing(int fd)
{
	char byte;

	assert_int_equal(read(fd, &byte, 1), -1);
}

/* What comes behind a ClientHello waits for the server's, even if that comes in pieces. */
static void behind_a_hello(void **state)
{
	struct tunnel *t = *state;

	int64_t begun_us = clock_monotonic_us();
	SAY(t, TLS_HELLO TLS_EARLY);
	EXPECT_BYTES(t->server, TLS_HELLO);
	expect_deadline(t, begun_us);
	SAY(t, "more");
	expect_nothing(t->server);
	assert_int_equal(t->c->look, RELAY_LOOK_REPLY);
	answer(t, TLS_SERVER_HELLO, 20);
	expect_nothing(t->server);
	answer(t, &TLS_SERVER_HELLO[20], sizeof(TLS_SERVER_HELLO) - 1 - 20);
	EXPECT_BYTES(t->server, TLS_EARLY "more");
	assert_int_equal(t->c->look, RELAY_LOOK_OFF);
	assert_int_equal(t->c->deadline_us, INT64_MAX);
	SAY(t, TLS_HELLO_EVIL); /* the server's to refuse */
	EXPECT_BYTES(t->server, TLS_HELLO_EVIL);
	assert_int_equal(atomic_load(&t->page.n_denied), 0);
}

/* More than is kept is not read, and the connection has not ended. */
static void flood_behind_a_hello(void **state)
{
	struct tunnel *t = *state;
	static char data[RELAY_INSIDE_MAX];

	SAY(t, TLS_HELLO);
	EXPECT_BYTES(t->server, TLS_HELLO);
	assert_int_equal(t->c->deadline_us, INT64_MAX); /* the server's time */
	memset(data, 'x', sizeof(data));
	say(t, data, sizeof(data));
	assert_int_equal(write(t->guest, "y", 1), 1);
	assert_int_equal(loop_once(t->relay.loop, 0), 0);
	assert_int_equal(t->c->state, RELAY_OPEN);
	ANSWER_WITH(t, TLS_SERVER_HELLO);
	expect_bytes(t->server, data, sizeof(data));
	assert_int_equal(loop_once(t->relay.loop, 0), 1);
	EXPECT_BYTES(t->server, "y");
}

/* A server that never answers as TLS does: what waits for it has the same time as a hello. */
static void no_tls_behind_a_hello(void **state)
{
	struct tunnel *t = *state;

	SAY(t, TLS_HELLO);
	EXPECT_BYTES(t->server, TLS_HELLO);
	ANSWER_WITH(t, "HTTP/1.1 400 Bad Request\r\n\r\n");
	SAY(t, TLS_HELLO_EVIL);
	expect_nothing(t->server);
	relay_connection_late(t->c);
	assert_int_equal(t->c->state, RELAY_CLOSED);
	assert_int_equal(t->page.denied[0].reason, RELAY_UNREADABLE);
}

static void second_hello(void **state)
{
	struct tunnel *t = *state;

	SAY(t, TLS_HELLO);
	EXPECT_BYTES(t->server, TLS_HELLO);
	ANSWER_WITH(t, TLS_SERVER_RETRY);
	assert_int_equal(t->c->look, RELAY_LOOK_SECOND);
	assert_int_equal(t->c->deadline_us, INT64_MAX);
	SAY(t, TLS_CHANGE_CIPHER);
	EXPECT_BYTES(t->server, TLS_CHANGE_CIPHER);
	say(t, TLS_HELLO, 10);
	expect_nothing(t->server);
	say(t, &TLS_HELLO[10], sizeof(TLS_HELLO) - 1 - 10);
	EXPECT_BYTES(t->server, TLS_HELLO);
	assert_int_equal(t->c->look, RELAY_LOOK_OFF);
	SAY(t, TLS_EARLY);
	EXPECT_BYTES(t->server, TLS_EARLY);
	assert_int_equal(atomic_load(&t->page.n_denied), 0);
}

/* Sent after the server's question, or ahead of it. */
static void expect_another(struct tunnel *t)
{
	assert_int_equal(t->c->state, RELAY_CLOSED);
	assert_int_equal(atomic_load(&t->page.n_denied), 1);
	assert_int_equal(t->page.denied[0].reason, RELAY_ANOTHER);
	expect_bytes(t->server, "", 0);
}

static void another_second_hello(void **state)
{
	struct tunnel *t = *state;

	SAY(t, TLS_HELLO);
	EXPECT_BYTES(t->server, TLS_HELLO);
	ANSWER_WITH(t, TLS_SERVER_RETRY);
	SAY(t, TLS_CHANGE_CIPHER TLS_HELLO_EVIL);
	expect_another(t);
}

static void another_hello_ahead(void **state)
{
	struct tunnel *t = *state;

	SAY(t, TLS_HELLO TLS_HELLO_EVIL);
	EXPECT_BYTES(t->server, TLS_HELLO);
	assert_int_equal(write(t->server, TLS_SERVER_RETRY, sizeof(TLS_SERVER_RETRY) - 1),
			 sizeof(TLS_SERVER_RETRY) - 1);
	assert_int_equal(loop_once(t->relay.loop, 0), 1);
	expect_another(t);
}

/* What comes too late for a connection does not bring it back; a proxy request would be answered otherwise. */
static void closed_stays(void **state)
{
	struct tunnel *t = *state;

	relay_connection_close(t->c);
	t->c->kind = RELAY_FORWARD;
	relay_refuse(t->c, RELAY_UNREACHABLE);
	assert_int_equal(t->c->state, RELAY_CLOSED);
	relay_enter(t->c, RELAY_DIALLING);
	assert_int_equal(t->c->state, RELAY_CLOSED);
	assert_null(t->c->guest.pending);
}

/* Of a request for a URL the body goes on, and nothing behind it, whenever it comes: it would be a second request. */
static void one_request(void **state)
{
	struct tunnel *t = *state;

	t->c->kind = RELAY_FORWARD;
	t->c->look = RELAY_LOOK_OFF;
	t->c->body_left = 8;
	SAY(t, "half");
	expect_server_got(t, "half");
	SAY(t, "bodyGET /second HTTP/1.1\r\nHost: other.example\r\n\r\n");
	expect_server_got(t, "body");
	SAY(t, "GET /third HTTP/1.1\r\nHost: other.example\r\n\r\n");
	expect_nothing(t->server);
	assert_int_equal(t->c->state, RELAY_OPEN);
}

/* A name that its connection does not wait for any more stays in the share of the jail. */
static void lookup_of_nobody(void **state)
{
	struct tunnel *t = *state;
	struct relay_resolver *resolver = &t->relay.resolvers[1];

	*resolver = (struct relay_resolver){
		.relay = &t->relay, .fd = -1, .connection = t->c, .jail = &t->jail, .busy = true};
	t->jail.lookups = 1;
	t->c->resolver = 1;
	relay_connection_close(t->c);
	assert_null(resolver->connection);
	assert_int_equal(t->jail.lookups, 1);
	relay_resolvers_leave(&t->jail);
	assert_null(resolver->jail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(slow_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(neither, setup, teardown),
		cmocka_unit_test_setup_teardown(requests, setup, teardown),
		cmocka_unit_test_setup_teardown(long_word, setup, teardown),
		cmocka_unit_test_setup_teardown(behind_a_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(flood_behind_a_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(no_tls_behind_a_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(second_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(another_second_hello, setup, teardown),
		cmocka_unit_test_setup_teardown(another_hello_ahead, setup, teardown),
		cmocka_unit_test_setup_teardown(closed_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(one_request, setup, teardown),
		cmocka_unit_test_setup_teardown(lookup_of_nobody, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
