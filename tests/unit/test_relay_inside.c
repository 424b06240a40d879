/*
 * test_relay_inside.c - whom a program means inside a connection: hellos of real clients (tests/fuzz/corpus/inside,
 * taken on loopback from OpenSSL 3.0, curl 7.88, Python 3.11, Node 22 and bun), hellos that are made wrong here,
 * requests, and what is neither.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jail/relay/relay_hello.h"
#include "jail/relay/relay_http.h"
#include "jail/relay/relay_inside.h"
#include "lib/base/util.h"

#define HOST        "a.wild.example"
#define RECORD_HEAD 5

/* -------- hellos -------------------------------------------------------------------------------------- */
static const struct {
	const char *file;
	enum relay_hello found;
} clients[] = {
	{"openssl", RELAY_HELLO_NAMED}, {"openssl_nameless", RELAY_HELLO_NAMELESS}, {"curl", RELAY_HELLO_NAMED},
	{"python", RELAY_HELLO_NAMED},  {"node", RELAY_HELLO_NAMED},                {"bun", RELAY_HELLO_NAMED},
};

static void read_client(const char *name, struct buf *ret)
{
	auto_free char *folder = xstrdup(__FILE__);
	*strrchr(folder, '/') = '\0';
	auto_free char *path = xasprintf("%s/../fuzz/corpus/inside/%s", folder, name);
	char data[4096];
	FILE *file = fopen(path, "re");

	assert_non_null(file);
	buf_init(ret, sizeof(data));
	buf_add(ret, data, fread(data, 1, sizeof(data), file));
	fclose(file);
	assert_true(ret->length > RECORD_HEAD);
}

/* `text` with a length of `width` bytes before it. */
static void put_vector(struct buf *to, size_t width, const void *data, size_t length)
{
	for (size_t i = width; i > 0; i--)
		buf_putc(to, (char)(length >> 8 * (i - 1)));
	buf_add(to, data, length);
}

/* The same message in records of `size` bytes. */
static void put_records(struct buf *to, const char *message, size_t length, size_t size)
{
	for (size_t at = 0; at < length; at += size) {
		buf_add(to, "\x16\x03\x01", 3);
		put_vector(to, 2, message + at, MIN(size, length - at));
	}
}

/* Each beginning is MORE, the whole is `found`, and so it is with something behind it. */
static void expect_hello(const struct buf *data, enum relay_hello found, const char *name)
{
	auto_buf struct buf longer = {0};
	char host[HOST_SIZE] = "";
	size_t end_at = 0;

	for (size_t n = 0; n < data->length; n++) {
		auto_free char *exact = xmalloc(n + 1); /* so that a sanitizer sees a read beyond it */
		char *end = exact + 1;

		memcpy(end, data->data, n);
		assert_int_equal(relay_hello_parse(end, n, host, &end_at), RELAY_HELLO_MORE);
	}
	assert_int_equal(relay_hello_parse(data->data, data->length, host, &end_at), found);
	assert_int_equal(end_at, data->length);
	assert_string_equal(host, name);
	buf_init(&longer, 65536);
	buf_add(&longer, data->data, data->length);
	buf_puts(&longer, "\x14\x03\x03");
	assert_int_equal(relay_hello_parse(longer.data, longer.length, host, &end_at), found);
	assert_int_equal(end_at, data->length);
}

static void real_clients(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		auto_buf struct buf data = {0};

		read_client(clients[i].file, &data);
		expect_hello(&data, clients[i].found, clients[i].found == RELAY_HELLO_NAMED ? HOST : "");
	}
}

static void in_many_records(void **state)
{
	static const size_t sizes[] = {1, 2, 3, 4, 5, 100, 516};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		auto_buf struct buf data = {0};
		auto_buf struct buf split = {0};

		read_client("python", &data);
		buf_init(&split, 65536);
		put_records(&split, data.data + RECORD_HEAD, data.length - RECORD_HEAD, sizes[i]);
		expect_hello(&split, RELAY_HELLO_NAMED, HOST);
	}
}

/* A message with these extensions; `more` stands behind them. */
static void make_message(struct buf *message, const char *extensions, size_t length, const char *more)
{
	auto_buf struct buf body = {0};
	char fixed[34] = "\x03\x03";

	buf_init(&body, 65536);
	buf_add(&body, fixed, sizeof(fixed));
	put_vector(&body, 1, "", 0);
	put_vector(&body, 2, "\x13\x01", 2);
	put_vector(&body, 1, "", 1);
	if (extensions)
		put_vector(&body, 2, extensions, length);
	buf_puts(&body, more);
	buf_init(message, 65536);
	buf_putc(message, 1);
	put_vector(message, 3, body.data, body.length);
}

static enum relay_hello parse_made(const char *extensions, size_t length, const char *more, char host[HOST_SIZE])
{
	auto_buf struct buf message = {0};
	auto_buf struct buf data = {0};
	size_t end;

	make_message(&message, extensions, length, more);
	buf_init(&data, 65536);
	put_records(&data, message.data, message.length, 16384);
	return relay_hello_parse(data.data, data.length, host, &end);
}

#define NAME_A   "\0\0\0\x06\0\x04\0\0\x01" "a" /* server_name: a list of one */
#define EXPECT_MADE(found, extensions) \
	assert_int_equal(parse_made(extensions, sizeof(extensions) - 1, "", host), RELAY_HELLO_##found)

static void odd_extensions(void **state)
{
	char host[HOST_SIZE];

	(void)state;
	EXPECT_MADE(NAMED, NAME_A);
	assert_string_equal(host, "a");
	EXPECT_MADE(NAMED, "\x0a\x0a\0\0" NAME_A "\0\x17\0\0");
	EXPECT_MADE(NAMELESS, "\x0a\x0a\0\0");
	EXPECT_MADE(NAMELESS, "");
	assert_int_equal(parse_made(NULL, 0, "", host), RELAY_HELLO_NAMELESS);
	EXPECT_MADE(UNREADABLE, NAME_A NAME_A);
	EXPECT_MADE(UNREADABLE, "\0\0\0\x0a\0\x08\0\0\x01" "a" "\0\0\x01" "b"); /* two names */
	EXPECT_MADE(UNREADABLE, "\0\0\0\x06\0\x04\x01\0\x01" "a");              /* of another kind */
	EXPECT_MADE(UNREADABLE, "\0\0\0\x05\0\x03\0\0\0");                      /* empty */
	EXPECT_MADE(UNREADABLE, "\0\0\0\x02\0\0");
	EXPECT_MADE(UNREADABLE, "\0\0\0\x00");
	EXPECT_MADE(UNREADABLE, "\0\0\0\x07\0\x04\0\0\x01" "ab"); /* something behind the list */
	EXPECT_MADE(UNREADABLE, "\0\0\0\x06\0\x04\0\0\x02" "a");  /* longer than the list */
	EXPECT_MADE(UNREADABLE, "\0\0\0\x07\0\x04\0\0\x01" "a");  /* longer than the message */
	EXPECT_MADE(UNREADABLE, NAME_A "\xfe\x0d\0\0");           /* ECH */
	EXPECT_MADE(UNREADABLE, NAME_A "\0");
	assert_int_equal(parse_made(NAME_A, sizeof(NAME_A) - 1, "x", host), RELAY_HELLO_UNREADABLE);
}

static void names(void **state)
{
	static const struct {
		const char *name;
		size_t length;
		const char *host;
	} cases[] = {
		{"A.Wild.Example", 14, HOST}, {"a.wild.example.", 15, HOST}, {"192.0.2.1", 9, "192.0.2.1"},
		{"a\0.example", 10, ""},      {"a b", 3, ""},                {"*", 1, ""},
	};
	char host[HOST_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_buf struct buf entry = {0};
		auto_buf struct buf list = {0};
		auto_buf struct buf extension = {0};

		buf_init(&entry, 512);
		buf_putc(&entry, 0);
		put_vector(&entry, 2, cases[i].name, cases[i].length);
		buf_init(&list, 512);
		put_vector(&list, 2, entry.data, entry.length);
		buf_init(&extension, 512);
		buf_add(&extension, "\0\0", 2);
		put_vector(&extension, 2, list.data, list.length);
		assert_int_equal(parse_made(extension.data, extension.length, "", host), RELAY_HELLO_NAMED);
		assert_string_equal(host, cases[i].host);
	}
}

#define EXPECT_HELLO(found, text)                                                                                      \
	assert_int_equal(relay_hello_parse(text, sizeof(text) - 1, host, &end), RELAY_HELLO_##found)

static void odd_records(void **state)
{
	auto_buf struct buf message = {0};
	auto_buf struct buf data = {0};
	char host[HOST_SIZE], long_extension[16384] = "\0\x15";
	size_t end;

	(void)state;
	EXPECT_HELLO(MORE, "");
	EXPECT_HELLO(MORE, "\x16");
	EXPECT_HELLO(MORE, "\x16\x02");
	EXPECT_HELLO(MORE, "\x16\x02\x01\0\x04");
	EXPECT_HELLO(UNREADABLE, "\x16\x02\x01\0\x04\x01"); /* Go takes it */
	EXPECT_HELLO(UNREADABLE, "\x16\x0f\x01\0\0");
	EXPECT_HELLO(NONE, "\x16\x10");
	EXPECT_HELLO(NONE, "\x16\0\0\0\x07\0\0\0");     /* a length of 22 bytes, as MongoDB writes it */
	EXPECT_HELLO(MORE, "\x14\x03\x01\0");
	EXPECT_HELLO(UNREADABLE, "\x14\x03\x01\0\0\x16\x03\x01"); /* OpenSSL takes it */
	EXPECT_HELLO(UNREADABLE, "\x15\0\x01\0\x02\x01\x5a"); /* a warning: Go takes it */
	EXPECT_HELLO(NONE, "\x15\0\0\0\x07\0\0\0");
	EXPECT_HELLO(NONE, "\x19\x03\x01\0\0");
	EXPECT_HELLO(NONE, "G");
	EXPECT_HELLO(UNREADABLE, "\x16\x03\x01\0\0");                    /* empty */
	EXPECT_HELLO(UNREADABLE, "\x16\x03\x01\x40\x01");                /* longer than a record can be */
	EXPECT_HELLO(UNREADABLE, "\x16\x03\x01\0\x04\x02");              /* not a ClientHello */
	EXPECT_HELLO(UNREADABLE, "\x16\x03\x01\0\x05\x01\0\0\0");        /* and another message */
	EXPECT_HELLO(UNREADABLE, "\x16\x03\x01\0\x02\x01\0\x17\x03\x03"); /* another kind of record within it */
	EXPECT_HELLO(UNREADABLE, "\x16\x03\x01\0\x04\x01\0\0\0");        /* without a body */
	EXPECT_HELLO(UNREADABLE, "\x16\x03\x01\0\x04\x01\0\x3f\xfd");    /* a byte too long */
	EXPECT_HELLO(MORE, "\x16\x03\x01\0\x04\x01\0\x3f\xfc");
	EXPECT_HELLO(NAMELESS, "\x80\x2e\x01\x03\x03"); /* in SSL 2's clothes */
	EXPECT_HELLO(MORE, "\x80\x2e\x01\x03");
	EXPECT_HELLO(NONE, "\x80\x2e\x02");
	EXPECT_HELLO(NONE, "\x80\x2e\x01\x04");
	/* More than RELAY_HELLO_MAX, which never is whole. */
	long_extension[2] = 0x3f, long_extension[3] = (char)0x9c;
	make_message(&message, long_extension, 4 + 0x3f9c, "");
	buf_init(&data, 65536);
	put_records(&data, message.data, message.length, 100);
	assert_true(message.length <= RELAY_HELLO_MAX && data.length > RELAY_HELLO_MAX);
	assert_int_equal(relay_hello_parse(data.data, data.length, host, &end), RELAY_HELLO_MORE);
}

/* -------- inside -------------------------------------------------------------------------------------- */
static enum relay_inside look(const char *data, size_t length, bool named, struct buf *forward)
{
	const struct relay_inside_rule rule = {.host = HOST, .named = named};
	size_t used = 0;

	buf_init(forward, 2 * RELAY_INSIDE_MAX);
	enum relay_inside found = relay_inside(&rule, data, length, forward, &used);
	assert_true(found >= RELAY_INSIDE_HELLO && found <= RELAY_INSIDE_WORD ? used > 0 && used <= length : used == 0);
	return found;
}

/* In whatever pieces it comes: the answer comes once, and what went on by then is the beginning of what goes on. */
static void expect(const char *data, size_t length, enum relay_inside found, const char *forward, size_t n_forward)
{
	auto_buf struct buf whole = {0};

	assert_int_equal(look(data, length, true, &whole), found);
	if (found <= RELAY_INSIDE_REQUEST) {
		assert_int_equal(whole.length, n_forward);
		assert_memory_equal(whole.data, forward, n_forward);
	}
	for (size_t n = 0; n < length; n++) {
		auto_buf struct buf part = {0};
		enum relay_inside answer = look(data, n, true, &part);

		assert_true(answer == found || answer == RELAY_INSIDE_MORE);
		if (found <= RELAY_INSIDE_REQUEST)
			assert_true(part.length <= n_forward && memcmp(part.data, forward, part.length) == 0);
	}
}

#define FINE(data)             expect(data, sizeof(data) - 1, RELAY_INSIDE_FINE, data, sizeof(data) - 1)
#define BECOMES(data, forward) expect(data, sizeof(data) - 1, RELAY_INSIDE_FINE, forward, sizeof(forward) - 1)
#define AGAIN(data, forward)   expect(data, sizeof(data) - 1, RELAY_INSIDE_REQUEST, forward, sizeof(forward) - 1)
#define MORE(data, forward)    expect(data, sizeof(data) - 1, RELAY_INSIDE_MORE, forward, sizeof(forward) - 1)
#define NOT(found, data)       expect(data, sizeof(data) - 1, RELAY_INSIDE_##found, NULL, 0)

static void http(void **state)
{
	(void)state;
	AGAIN("GET /x HTTP/1.1\r\nHost: A.wild.example.:8080 \r\nX: y\r\nConnection: host\r\nProxy-X: 1\r\n\r\n"
	      "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	      "GET /x HTTP/1.1\r\nHost: A.wild.example.:8080 \r\nX: y\r\nConnection: keep-alive\r\n\r\n");
	BECOMES("POST / HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\nbody",
		"POST / HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
	BECOMES("PUT / HTTP/1.1\r\nHost: " HOST "\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody",
		"PUT / HTTP/1.1\r\nHost: " HOST "\r\ntransfer-encoding: chunked\r\nConnection: close\r\n\r\n4\r\nbody");
	BECOMES("GET / HTTP/1.1\r\nHost: " HOST "\r\nConnection: te, Close\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " HOST "\r\nConnection: close\r\n\r\n");
	BECOMES("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / HTTP/1.0\r\nConnection: close\r\n\r\n");
	BECOMES("\r\n\r\nOPTIONS * HTTP/1.0\r\n\r\n", "\r\n\r\nOPTIONS * HTTP/1.0\r\nConnection: close\r\n\r\n");
	BECOMES("GET / HTTP/1.1\r\nhost:" HOST
		"\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: k\r\n\r\n",
		"GET / HTTP/1.1\r\nhost:" HOST
		"\r\nSec-WebSocket-Key: k\r\nUpgrade: websocket\r\nConnection: close, Upgrade\r\n\r\n");
	BECOMES("GET / HTTP/1.1\r\nHost: " HOST "\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: " HOST "\r\nConnection: close\r\n\r\n");
	NOT(ANOTHER, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	NOT(ANOTHER, "GET / HTTP/1.1\r\nX: y\r\nHOST:\tevil.example:80\r\n\r\n");
	NOT(ANOTHER, "GET / HTTP/1.1\r\nHost: " HOST "\r\nHost: evil.example\r\n\r\n");
	NOT(ANOTHER, "GET / HTTP/1.1\r\nHost: " HOST "@evil.example\r\n\r\n");
	NOT(ANOTHER, "GET / HTTP/1.1\r\nHost:\r\n\r\n");
	NOT(UNREADABLE, "GET / HTTP/1.1\r\nHost: " HOST "\r\nHost: " HOST "\r\n\r\n");
	NOT(UNREADABLE, "POST / HTTP/1.1\r\nHost: " HOST "\r\ntransfer-encoding: x\r\n\r\n");
	NOT(UNREADABLE, "GET / HTTP/1.1\r\nHost : evil.example\r\n\r\n");
	NOT(UNREADABLE, "GET / HTTP/1.1\r\nA: b\r\n Host: evil.example\r\n\r\n");
	NOT(UNREADABLE, "GET / HTTP/1.1\r\nA: b\nHost: evil.example\r\n\r\n");
	NOT(UNREADABLE, "GET / HTTP/1.1\nHost: evil.example\r\n\r\n");
	NOT(UNREADABLE, "GET /\0 HTTP/1.1\r\nA: b\r\n\r\n");
	NOT(UNREADABLE, "GET  /  http/1.1\r\nA: b\r\n\r\n");
	NOT(UNREADABLE, "GET\t/ HTTP/1.1\r\nA: b\r\n\r\n");
	NOT(UNREADABLE, "GET http://evil.example/ HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
	NOT(UNREADABLE, "CONNECT evil.example:443 HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
	NOT(UNREADABLE, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	/* Its first line goes on, nothing behind it does before all is known. */
	MORE("GET / HTTP/1.1\r\nHost: " HOST "\r\n", "GET / HTTP/1.1");
	MORE("GET / HTTP/1.1\rHost: evil.example\r\r", "GET / HTTP/1.1");
	MORE("GET / HTTP/1.1\nHost: " HOST "\n\n", "GET / HTTP/1.1");
	MORE("FOO /", "FOO /");
	/* nginx takes methods of any length, Node the names of two more protocols. */
	NOT(ANOTHER, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	NOT(UNREADABLE, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1\r\nHost: " HOST "\r\n\r\n");
	NOT(UNREADABLE, "GET / RTSP/1.0\r\nHost: evil.example\r\n\r\n");
	NOT(UNREADABLE, "SOURCE / ice/1.0\r\nHost: evil.example\r\n\r\n");
	/* What is for proxies to say. */
	NOT(UNREADABLE, "PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n");
	NOT(UNREADABLE, "\r\n\r\n\0\r\nQUIT\n");
}

/* Behind a request. */
static void requests(void **state)
{
	static const struct {
		const char *data;
		enum relay_inside found;
	} cases[] = {
		{"", RELAY_INSIDE_MORE},
		{"\r\n", RELAY_INSIDE_MORE},
		{"GET / HTTP/1.1\r\nHost: " HOST "\r\n\r\n", RELAY_INSIDE_REQUEST},
		{"GET / HTTP/1.1\r\nHost: " HOST "\r\nContent-Length: 0\r\n\r\n", RELAY_INSIDE_FINE},
		{"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", RELAY_INSIDE_ANOTHER},
		{"PING\r\n", RELAY_INSIDE_UNREADABLE},
		{"\x16\x03\x01", RELAY_INSIDE_UNREADABLE},
		{"PRI * HTTP/2.0\r\n\r\n", RELAY_INSIDE_UNREADABLE},
	};
	const struct relay_inside_rule rule = {.host = HOST, .place = RELAY_PLACE_AGAIN};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_buf struct buf forward = {0};
		size_t used = 0;

		buf_init(&forward, 2 * RELAY_INSIDE_MAX);
		assert_int_equal(relay_inside(&rule, cases[i].data, strlen(cases[i].data), &forward, &used),
				 cases[i].found);
		assert_int_equal(used, cases[i].found == RELAY_INSIDE_REQUEST ? strlen(cases[i].data) : 0);
	}
}

/* Behind a word that is longer than what is looked at. */
static void words(void **state)
{
	static const struct {
		const char *data;
		enum relay_inside found;
		size_t used;
	} cases[] = {
		{"", RELAY_INSIDE_MORE, 0},
		{"x", RELAY_INSIDE_WORD, 1},
		{" / HTTP/1.1\r\nHost: evil.example\r\n\r\n", RELAY_INSIDE_UNREADABLE, 0},
		{"xyz\t/", RELAY_INSIDE_UNREADABLE, 0},
		{"xyz\n", RELAY_INSIDE_FINE, 0},
		{"xyz(GET / HTTP/1.1\r\n", RELAY_INSIDE_FINE, 0},
	};
	const struct relay_inside_rule rule = {.host = HOST, .place = RELAY_PLACE_WORD};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_buf struct buf forward = {0};
		size_t used = 0;

		buf_init(&forward, 2 * RELAY_INSIDE_MAX);
		assert_int_equal(relay_inside(&rule, cases[i].data, strlen(cases[i].data), &forward, &used),
				 cases[i].found);
		assert_int_equal(used, cases[i].used);
		assert_int_equal(forward.length, cases[i].found == RELAY_INSIDE_UNREADABLE ? 0 : strlen(cases[i].data));
	}
}

static void neither(void **state)
{
	(void)state;
	FINE("SSH-2.0-OpenSSH_9.2\r\n");
	FINE("EHLO here\r\n");
	FINE("PING\r\n");
	FINE("*1\r\n$4\r\nPING\r\n");
	FINE("\x49\0\0\0\x01\0\0\0 HTTP/1.1\n"); /* a message of MongoDB's: no word */
	FINE("\0\0\0\x54\0\x03\0\0user\0alice\0\nGET / HTTP/1.1\r\n"); /* PostgreSQL, without TLS */
	MORE("\0\0\0\x08\x04\xd2\x16\x2f", "\0\0\0\x08\x04\xd2\x16\x2f");
	FINE("\0\0\0\x08\x04\xd2\x16\x2f" "\0\0\0\x54\0\x03\0\0user\0alice\0\0");
	MORE("", "");
}

static void tls(void **state)
{
	const struct relay_inside_rule another = {.host = "wild.example"};
	size_t used = 0;
	static const char requests[] = "\0\0\0\x08\x04\xd2\x16\x30\0\0\0\x08\x04\xd2\x16\x2f";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++) {
		auto_buf struct buf data = {0};
		auto_buf struct buf postgres = {0};
		auto_buf struct buf forward = {0};
		bool named = clients[i].found == RELAY_HELLO_NAMED;

		read_client(clients[i].file, &data);
		buf_init(&postgres, 8192);
		buf_add(&postgres, requests, sizeof(requests) - 1);
		buf_add(&postgres, data.data, data.length);
		expect(data.data, data.length, named ? RELAY_INSIDE_HELLO : RELAY_INSIDE_NAMELESS, data.data,
		       data.length);
		expect(postgres.data, postgres.length, named ? RELAY_INSIDE_HELLO : RELAY_INSIDE_NAMELESS,
		       postgres.data, postgres.length);
		assert_int_equal(look(data.data, data.length, false, &forward), RELAY_INSIDE_HELLO);
		assert_int_equal(relay_inside(&another, postgres.data, postgres.length, &forward, &used),
				 named ? RELAY_INSIDE_ANOTHER : RELAY_INSIDE_HELLO);
	}
	NOT(UNREADABLE, "\x16\x03\x01\0\0");
	MORE("\x16\x03\x01", "");
}

/* RELAY_INSIDE_MAX bytes without an answer: what began as neither goes on, what cannot be told does not. */
static void limit(void **state)
{
	static const struct {
		const char *start;
		char fill;
		enum relay_inside before, at;
	} cases[] = {
		{"(", 'x', RELAY_INSIDE_FINE, RELAY_INSIDE_FINE},
		{"x", 'x', RELAY_INSIDE_MORE, RELAY_INSIDE_WORD}, /* a long method, for all we know */
		{"GET /", 'x', RELAY_INSIDE_MORE, RELAY_INSIDE_UNREADABLE},
		{"\r\n", '\n', RELAY_INSIDE_MORE, RELAY_INSIDE_UNREADABLE},
		{"GET / HTTP/1.1\r\nHost: " HOST "\r\nX: ", 'x', RELAY_INSIDE_MORE, RELAY_INSIDE_UNREADABLE},
		{"\x16\x03\x01\x3f\xf0\x01", '\0', RELAY_INSIDE_UNREADABLE, RELAY_INSIDE_UNREADABLE},
	};
	static char data[RELAY_INSIDE_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(data, cases[i].fill, sizeof(data));
		memcpy(data, cases[i].start, strlen(cases[i].start));
		for (size_t n = RELAY_INSIDE_MAX - 1; n <= RELAY_INSIDE_MAX + 1; n++) {
			auto_buf struct buf forward = {0};

			assert_int_equal(look(data, n, true, &forward),
					 n < RELAY_INSIDE_MAX ? cases[i].before : cases[i].at);
			assert_false(forward.overflow);
		}
	}
	/* A hello that would go on behind it, in records of one byte. */
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = "\x16\x03\x01\0\x01"[i % 6 % 5];
	for (size_t i = 5; i < sizeof(data); i += 6)
		data[i] = i == 5 ? 1 : 0;
	data[17] = 0x30;
	auto_buf struct buf forward = {0};
	assert_int_equal(look(data, RELAY_INSIDE_MAX - 1, true, &forward), RELAY_INSIDE_MORE);
	assert_int_equal(forward.length, 0);
	buf_clear(&forward);
	assert_int_equal(look(data, RELAY_INSIDE_MAX, true, &forward), RELAY_INSIDE_UNREADABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_clients), cmocka_unit_test(in_many_records), cmocka_unit_test(odd_extensions),
		cmocka_unit_test(names),        cmocka_unit_test(odd_records),     cmocka_unit_test(http),
		cmocka_unit_test(requests),     cmocka_unit_test(words),           cmocka_unit_test(neither),
		cmocka_unit_test(tls),          cmocka_unit_test(limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
