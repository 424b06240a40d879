/* The pool of threads behind the FastCGI socket: real requests over a unix socket, clients that misbehave, the orderly
 * stop. */
#include <sched.h>
#include <signal.h>

#include "fcgi_try.h"

static void serves(void **state)
{
	(void)state;
	assert_true(fcgi_get("/healthz", "Status: 200 OK\r\n"));
	assert_true(fcgi_get("/nothing", "Status: 404 Not Found\r\n"));
	assert_true(fcgi_get("/mcp", "Status: 400 ")); /* a stream is asked for without a session */
}

static void posts(void **state)
{
	static const char body[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
				   "\"protocolVersion\":\"2025-06-18\"}}";
	auto_close int fd = fcgi_dial();
	auto_buf struct buf reply = {0};

	(void)state;
	buf_init(&reply, 1 << 20);
	fcgi_send_head(fd, "POST", "/mcp");
	fcgi_send_body(fd, body);
	fcgi_receive(fd, &reply);
	assert_true(str_starts(reply.data, "Status: 200 OK\r\n"));
	assert_non_null(strstr(reply.data, "\"protocolVersion\":\"2025-06-18\""));
}

/* No thread waits for the web server to hang up once it has answered a request that it has read. */
static void hangs_up_first(void **state)
{
	auto_close int fd = fcgi_dial();
	auto_buf struct buf reply = {0};
	struct pollfd end = {.fd = fd}; /* both directions closed: libfcgi's own end would leave one open */

	(void)state;
	buf_init(&reply, 1 << 20);
	fcgi_send_head(fd, "POST", "/mcp");
	fcgi_send_body(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	fcgi_receive(fd, &reply);
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
		auto_close int fd = fcgi_dial();
		auto_buf struct buf reply = {0};

		buf_init(&reply, 1 << 20);
		fcgi_send_head(fd, "PUT", "/mcp");
		fcgi_send_body(fd, body);
		fcgi_receive(fd, &reply);
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
		auto_close int fd = fcgi_dial();
		auto_free char *id = xcalloc(1, lengths[i] + 1), *body = NULL;
		auto_buf struct buf reply = {0};

		memset(id, 'x', lengths[i]);
		body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"ping\"}", id);
		buf_init(&reply, 1 << 20);
		fcgi_send_head(fd, "POST", "/mcp");
		fcgi_send_body(fd, body);
		fcgi_receive(fd, &reply);
		assert_non_null(strstr(reply.data, id));
		assert_int_equal(reply.data[reply.length - 1], '}');
	}
}

static void *client(void *arg)
{
	int *good = arg;

	for (int i = 0; i < 25; i++)
		*good += fcgi_get("/healthz", "Status: 200 ");
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
		stuck[i] = fcgi_dial();
		fcgi_send_head(stuck[i], "POST", "/mcp"); /* and no body */
		assert_true(fcgi_get("/healthz", "Status: 200 "));
	}
	for (size_t i = 0; i < ARRAY_SIZE(stuck); i++)
		close(stuck[i]);
	assert_true(fcgi_get("/healthz", "Status: 200 "));
}

/* At the cap nobody new is served until a thread is free again. */
static void thread_cap(void **state)
{
	int stuck[FCGI_THREADS_MAX];
	auto_buf struct buf reply = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stuck); i++) {
		stuck[i] = fcgi_dial();
		fcgi_send_head(stuck[i], "POST", "/mcp");
	}
	auto_close int late = fcgi_dial();
	struct pollfd wait = {.fd = late, .events = POLLIN};

	fcgi_send_head(late, "GET", "/healthz");
	fcgi_send_body(late, "");
	assert_int_equal(poll(&wait, 1, 200), 0);
	close(stuck[0]);
	buf_init(&reply, 1 << 16);
	fcgi_receive(late, &reply);
	assert_true(str_starts(reply.data, "Status: 200 "));
	for (size_t i = 1; i < ARRAY_SIZE(stuck); i++)
		close(stuck[i]);
	assert_true(fcgi_get("/healthz", "Status: 200 "));
}

static void broken_clients(void **state)
{
	static const char *const junk[] = {"", "GET / HTTP/1.0\r\n\r\n", "\1\1\0\1\377\377\0\0", "\1\11\0\0\0\0\0\0",
					   "\7\7\7\7\7\7\7\7\7\7\7\7"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(junk); i++) {
		int fd = fcgi_dial();

		send(fd, junk[i], i < 2 ? strlen(junk[i]) : 8, MSG_NOSIGNAL);
		close(fd);
		assert_true(fcgi_get("/healthz", "Status: 200 "));
	}
	for (int i = 0; i < 20; i++) { /* leaves before the answer */
		int fd = fcgi_dial();

		fcgi_send_head(fd, "POST", "/mcp");
		fcgi_send_body(fd, "{}");
		close(fd);
	}
	assert_true(fcgi_get("/healthz", "Status: 200 "));
}

/* Who asks for a connection that is kept gets an answer and the end, whether it fits one record, was read to its end or
 * not. */
static void kept_connections(void **state)
{
	static const char *const uris[] = {"/healthz", "/mcp", "/nothing"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(uris); i++) {
		auto_close int fd = fcgi_dial();
		auto_buf struct buf reply = {0};
		char more;

		buf_init(&reply, 1 << 20);
		fcgi_send_head_with(fd, i == 1 ? "POST" : "GET", uris[i], true);
		fcgi_send_body(fd, "{}");
		fcgi_receive(fd, &reply);
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
		silent[i] = fcgi_dial();
		if (i % 2)
			assert_int_equal(send(silent[i], "\1\1\0\1\0\10\0\0\0\1\0\0\0\0\0\0\1\4\0\1\0\5\0\0ab", 26, 0),
					 26);
	}
	assert_true(fcgi_get("/healthz", "Status: 200 "));
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		close(silent[i]);
	assert_true(fcgi_get("/healthz", "Status: 200 "));
}

/* Stopping with requests under way: nobody is accepted any more, those under way are answered. */
static void orderly_stop(void **state)
{
	auto_close int fd = fcgi_dial();
	auto_buf struct buf reply = {0};

	(void)state;
	buf_init(&reply, 1 << 20);
	fcgi_send_head(fd, "POST", "/mcp");
	assert_true(fcgi_get("/healthz", "Status: 200 ")); /* accepted after `fd`, so that one is being served */
	fcgi_pool_stop_accepting(pool);
	int left;

	while ((left = fcgi_pool_finish(pool, 0)) > 1) /* a thread that has sent its answer and is about to leave */
		sched_yield();
	assert_int_equal(left, 1);
	fcgi_send_body(fd, "{}");
	fcgi_receive(fd, &reply);
	assert_true(str_starts(reply.data, "Status: 400 "));
	assert_int_equal(fcgi_pool_finish(pool, PATIENCE_MS / 1000), 0);

	auto_close int late = fcgi_dial(); /* the socket is still there, but nobody answers */
	struct pollfd wait = {.fd = late, .events = POLLIN};

	fcgi_send_head(late, "GET", "/healthz");
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
		cmocka_unit_test(silent_clients),
		cmocka_unit_test(orderly_stop), cmocka_unit_test(listening),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, fcgi_start, fcgi_stop);
}
