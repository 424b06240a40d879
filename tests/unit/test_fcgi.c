/* The pool of threads behind the FastCGI socket: real requests over a unix socket, clients that misbehave, the orderly
 * stop. */
#include "gateway.h"
#include "patience.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cgi/http/fcgi.h"
#include "cgi/serve.h"

#define SPARE   3
#define CLIENTS 40
#define STDIN_CHUNK 32768

static struct fcgi_pool *pool;
static char socket_path[64];
static int listen_fd;

/* -------- a FastCGI client in a few lines (specification 3.3: version, type, id, length, padding) ----- */

enum { BEGIN_REQUEST = 1, END_REQUEST = 3, PARAMS = 4, STDIN = 5, STDOUT = 6 };

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void record(struct buf *out, int type, const void *data, size_t length)
{
	const unsigned char head[8] = {1, (unsigned char)type,          0,
				       1, (unsigned char)(length >> 8), (unsigned char)length};

	buf_add(out, head, sizeof(head));
	buf_add(out, data, length);
}

static void pair(struct buf *out, const char *name, const char *value)
{
	const unsigned char lengths[5] = {(unsigned char)strlen(name), 0x80, 0, (unsigned char)(strlen(value) >> 8),
					  (unsigned char)strlen(value)};

	buf_add(out, lengths, sizeof(lengths));
	buf_puts(out, name);
	buf_puts(out, value);
}

/* Everything up to the end of the parameters. */
static void send_head_with(int fd, const char *method, const char *uri, bool keep)
{
	const unsigned char begin[8] = {0, 1, keep}; /* responder; shall the connection be kept? */
	auto_free char *token = xasprintf("Bearer %s", fixture.token);
	auto_buf struct buf params = {0}, out = {0};

	buf_init(&params, 60000);
	buf_init(&out, 70000);
	pair(&params, "REQUEST_METHOD", method);
	pair(&params, "REQUEST_URI", uri);
	pair(&params, "HTTP_HOST", "localhost");
	pair(&params, "CONTENT_TYPE", "application/json");
	pair(&params, "HTTP_AUTHORIZATION", token);
	record(&out, BEGIN_REQUEST, begin, sizeof(begin));
	record(&out, PARAMS, params.data, params.length);
	record(&out, PARAMS, NULL, 0);
	assert_int_equal(write_all(fd, out.data, out.length), 0);
}

static void send_head(int fd, const char *method, const char *uri)
{
	send_head_with(fd, method, uri, false);
}

static void send_body(int fd, const char *body)
{
	auto_buf struct buf out = {0};

	buf_init(&out, 1 << 20);
	for (size_t length = strlen(body), at = 0; at < length; at += STDIN_CHUNK)
		record(&out, STDIN, body + at, MIN(length - at, (size_t)STDIN_CHUNK));
	record(&out, STDIN, NULL, 0);
	assert_int_equal(write_all(fd, out.data, out.length), 0);
}

static void receive(int fd, struct buf *out)
{
	char head[8], data[65536 + 256];

	for (;;) {
		if (recv(fd, head, sizeof(head), MSG_WAITALL) != sizeof(head))
			return;
		size_t length = (size_t)((unsigned char)head[4] << 8 | (unsigned char)head[5]),
		       padding = (unsigned char)head[6];

		if (length + padding && recv(fd, data, length + padding, MSG_WAITALL) != (ssize_t)(length + padding))
			return;
		if (head[1] == STDOUT)
			buf_add(out, data, length);
		if (head[1] == END_REQUEST)
			return;
	}
}

/* One request; true if the reply begins with `status`. */
static bool get(const char *uri, const char *status)
{
	auto_close int fd = dial();
	auto_buf struct buf reply = {0};

	buf_init(&reply, 1 << 20);
	send_head(fd, "GET", uri);
	send_body(fd, "");
	receive(fd, &reply);
	return str_starts(reply.data, status);
}

/* -------- tests --------------------------------------------------------------------------------------- */

static int start(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	fixture_open(&fixture);
	snprintf(socket_path, sizeof(socket_path), "%s/s", fixture.folder);
	if (serve_listen(socket_path, &listen_fd, &err) < 0 ||
	    fcgi_pool_start(&fixture.server, routes_handle, listen_fd, SPARE, &pool, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	close(listen_fd);
	fixture_close(&fixture);
	return 0;
}

static void serves(void **state)
{
	(void)state;
	assert_true(get("/healthz", "Status: 200 OK\r\n"));
	assert_true(get("/nothing", "Status: 404 Not Found\r\n"));
	assert_true(get("/mcp", "Status: 400 ")); /* a stream is asked for without a session */
}

static void posts(void **state)
{
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
				   "\"protocolVersion\":\"2025-06-18\"}}";
	auto_close int fd = dial();
	auto_buf struct buf reply = {0};

	(void)state;
	buf_init(&reply, 1 << 20);
	send_head(fd, "POST", "/mcp");
	send_body(fd, body);
	receive(fd, &reply);
	assert_true(str_starts(reply.data, "Status: 200 OK\r\n"));
	assert_non_null(strstr(reply.data, "\"protocolVersion\":\"2025-06-18\""));
}

/* No thread waits for the web server to hang up once it has answered a request that it has read. */
static void hangs_up_first(void **state)
{
	auto_close int fd = dial();
	auto_buf struct buf reply = {0};
	struct pollfd end = {.fd = fd}; /* both directions closed: libfcgi's own end would leave one open */

	(void)state;
	buf_init(&reply, 1 << 20);
	send_head(fd, "POST", "/mcp");
	send_body(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	receive(fd, &reply);
	assert_true(str_starts(reply.data, "Status: 200 "));
	assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
	assert_true(end.revents & POLLHUP);
}

/* A body that nobody wants: the kernel must not take the answer back because bytes were left unread. */
static void refused_unread(void **state)
{
	auto_free char *body = xcalloc(1, 40000);

	(void)state;
	memset(body, ' ', 39999);
	for (int i = 0; i < 20; i++) {
		auto_close int fd = dial();
		auto_buf struct buf reply = {0};

		buf_init(&reply, 1 << 20);
		send_head(fd, "PUT", "/mcp");
		send_body(fd, body);
		receive(fd, &reply);
		assert_true(str_starts(reply.data, "Status: 405 "));
		assert_non_null(strstr(reply.data, "not allowed"));
	}
}

/* As long as one record can be, and longer: a name that the answer repeats. */
static void long_replies(void **state)
{
	static const size_t lengths[] = {100, 8192, 60000, 65000, 65300, 65400, 65535, 200000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		auto_close int fd = dial();
		auto_free char *id = xcalloc(1, lengths[i] + 1), *body = NULL;
		auto_buf struct buf reply = {0};

		memset(id, 'x', lengths[i]);
		body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"ping\"}", id);
		buf_init(&reply, 1 << 20);
		send_head(fd, "POST", "/mcp");
		send_body(fd, body);
		receive(fd, &reply);
		assert_non_null(strstr(reply.data, id));
		assert_int_equal(reply.data[reply.length - 1], '}');
	}
}

static void *client(void *arg)
{
	int *good = arg;

	for (int i = 0; i < 25; i++)
		*good += get("/healthz", "Status: 200 ");
	return NULL;
}

static void many_at_once(void **state)
{
	pthread_t threads[CLIENTS];
	int good[CLIENTS] = {0};

	(void)state;
	for (int i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, client, &good[i]), 0);
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(good[i], 25);
	}
}

/* Clients that stop in mid-request occupy threads, more of them than there are spare ones: others are served all the
 * same. */
static void stuck_clients_block_nobody(void **state)
{
	int stuck[3 * SPARE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stuck); i++) {
		stuck[i] = dial();
		send_head(stuck[i], "POST", "/mcp"); /* and no body */
		assert_true(get("/healthz", "Status: 200 "));
	}
	for (size_t i = 0; i < ARRAY_SIZE(stuck); i++)
		close(stuck[i]);
	assert_true(get("/healthz", "Status: 200 "));
}

/* At the cap nobody new is served until a thread is free again. */
static void thread_cap(void **state)
{
	int stuck[FCGI_THREADS_MAX];
	auto_buf struct buf reply = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stuck); i++) {
		stuck[i] = dial();
		send_head(stuck[i], "POST", "/mcp");
	}
	auto_close int late = dial();
	struct pollfd wait = {.fd = late, .events = POLLIN};

	send_head(late, "GET", "/healthz");
	send_body(late, "");
	assert_int_equal(poll(&wait, 1, 200), 0);
	close(stuck[0]);
	buf_init(&reply, 1 << 16);
	receive(late, &reply);
	assert_true(str_starts(reply.data, "Status: 200 "));
	for (size_t i = 1; i < ARRAY_SIZE(stuck); i++)
		close(stuck[i]);
	assert_true(get("/healthz", "Status: 200 "));
}

static void broken_clients(void **state)
{
	static const char *const junk[] = {"", "GET / HTTP/1.0\r\n\r\n", "\1\1\0\1\377\377\0\0", "\1\11\0\0\0\0\0\0",
					   "\7\7\7\7\7\7\7\7\7\7\7\7"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(junk); i++) {
		int fd = dial();

		send(fd, junk[i], i < 2 ? strlen(junk[i]) : 8, MSG_NOSIGNAL);
		close(fd);
		assert_true(get("/healthz", "Status: 200 "));
	}
	for (int i = 0; i < 20; i++) { /* leaves before the answer */
		int fd = dial();

		send_head(fd, "POST", "/mcp");
		send_body(fd, "{}");
		close(fd);
	}
	assert_true(get("/healthz", "Status: 200 "));
}

/* Who asks for a connection that is kept gets an answer and the end, whether it fits one record, was read to its end or
 * not. */
static void kept_connections(void **state)
{
	static const char *const uris[] = {"/healthz", "/mcp", "/nothing"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(uris); i++) {
		auto_close int fd = dial();
		auto_buf struct buf reply = {0};
		char more;

		buf_init(&reply, 1 << 20);
		send_head_with(fd, i == 1 ? "POST" : "GET", uris[i], true);
		send_body(fd, "{}");
		receive(fd, &reply);
		assert_true(str_starts(reply.data, "Status: "));
		shutdown(fd, SHUT_WR);
		assert_int_equal(recv(fd, &more, 1, 0), 0);
	}
}

/* Nothing, or half a head, on more connections than there are threads: others wait for seconds, not for ever. */
static void silent_clients(void **state)
{
	int silent[FCGI_THREADS_MAX + 40];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++) {
		silent[i] = dial();
		if (i % 2)
			assert_int_equal(send(silent[i], "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0\1\4\0\1\0\5\0\0ab", 26, 0),
					 26);
	}
	assert_true(get("/healthz", "Status: 200 "));
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		close(silent[i]);
	assert_true(get("/healthz", "Status: 200 "));
}

/* Parameters without end are not taken in: the connection is closed, with most of them unsent. */
static void endless_head(void **state)
{
	static const unsigned char begin[8] = {0, 1};
	auto_buf struct buf out = {0};
	auto_free char *value = xcalloc(1, 60001);
	size_t sent = 0;

	(void)state;
	memset(value, 'x', 60000);
	buf_init(&out, 1 << 20);
	record(&out, BEGIN_REQUEST, begin, sizeof(begin));
	auto_close int fd = dial();
	while (send(fd, out.data, out.length, MSG_NOSIGNAL) == (ssize_t)out.length) {
		sent += out.length;
		assert_true(sent < 64 << 20);
		out.length = 0;
		record(&out, PARAMS, value, 60000);
	}
	assert_true(sent < 8 << 20);
	assert_true(get("/healthz", "Status: 200 "));
}

/* Stopping with requests under way: nobody is accepted any more, those under way are answered. */
static void orderly_stop(void **state)
{
	auto_close int fd = dial();
	auto_buf struct buf reply = {0};

	(void)state;
	buf_init(&reply, 1 << 20);
	send_head(fd, "POST", "/mcp");
	assert_true(get("/healthz", "Status: 200 ")); /* accepted after `fd`, so that one is being served */
	fcgi_pool_stop_accepting(pool);
	int left;

	while ((left = fcgi_pool_finish(pool, 0)) > 1) /* a thread that has sent its answer and is about to leave */
		sched_yield();
	assert_int_equal(left, 1);
	send_body(fd, "{}");
	receive(fd, &reply);
	assert_true(str_starts(reply.data, "Status: 400 "));
	assert_int_equal(fcgi_pool_finish(pool, PATIENCE_MS / 1000), 0);

	auto_close int late = dial(); /* the socket is still there, but nobody answers */
	struct pollfd wait = {.fd = late, .events = POLLIN};

	send_head(late, "GET", "/healthz");
	assert_int_equal(poll(&wait, 1, 100), 0);
}

static void listening(void **state)
{
	char path[80], file[80], longest[200];
	struct err err = ERR_INIT;
	int fd = -1, second = -1;

	(void)state;
	snprintf(path, sizeof(path), "%s/t", fixture.folder);
	assert_int_equal(serve_listen(path, &fd, &err), 0);
	assert_int_equal(serve_listen(path, &second, &err), -ERR_CONFLICT);
	assert_non_null(strstr(err.text, "another program"));
	close(fd); /* the name stays: a stale socket */
	assert_int_equal(serve_listen(path, &fd, &err), 0);
	close(fd);
	snprintf(file, sizeof(file), "%s/f", fixture.folder);
	assert_non_null(fclose(fopen(file, "w")) == 0 ? file : NULL);
	assert_int_equal(serve_listen(file, &fd, &err), -ERR_CONFLICT);
	assert_int_equal(access(file, F_OK), 0);
	snprintf(path, sizeof(path), "%s/no/t", fixture.folder);
	assert_int_equal(serve_listen(path, &fd, &err), -ERR_SYSTEM);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(serve_listen(longest, &fd, &err), -ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(serves),       cmocka_unit_test(posts),
		cmocka_unit_test(hangs_up_first), cmocka_unit_test(refused_unread),
		cmocka_unit_test(long_replies),
		cmocka_unit_test(many_at_once), cmocka_unit_test(stuck_clients_block_nobody),
		cmocka_unit_test(thread_cap),   cmocka_unit_test(broken_clients), cmocka_unit_test(kept_connections),
		cmocka_unit_test(silent_clients), cmocka_unit_test(endless_head),
		cmocka_unit_test(orderly_stop), cmocka_unit_test(listening),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, start, stop);
}
