/* fcgi_try.h - for tests: the pool of threads behind a FastCGI socket, and a client of it. */
#pragma once

#include "gateway.h"
#include "patience.h"

#include <errno.h>
#include <fcntl.h>
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

static inline int fcgi_dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static inline void fcgi_record(struct buf *out, int type, const void *data, size_t length)
{
	const unsigned char head[8] = {1, (unsigned char)type,          0,
				       1, (unsigned char)(length >> 8), (unsigned char)length};

	buf_add(out, head, sizeof(head));
	buf_add(out, data, length);
}

static inline void fcgi_pair(struct buf *out, const char *name, const char *value)
{
	const unsigned char lengths[5] = {(unsigned char)strlen(name), 0x80, 0, (unsigned char)(strlen(value) >> 8),
					  (unsigned char)strlen(value)};

	buf_add(out, lengths, sizeof(lengths));
	buf_puts(out, name);
	buf_puts(out, value);
}

/* Everything up to the end of the parameters. */
static inline void fcgi_send_head_with(int fd, const char *method, const char *uri, bool keep)
{
	const unsigned char begin[8] = {0, 1, keep}; /* responder; shall the connection be kept? */
	auto_free char *token = xasprintf("Bearer %s", fixture.token);
	auto_buf struct buf params = {0}, out = {0};

	buf_init(&params, 60000);
	buf_init(&out, 70000);
	fcgi_pair(&params, "REQUEST_METHOD", method);
	fcgi_pair(&params, "REQUEST_URI", uri);
	fcgi_pair(&params, "HTTP_HOST", "localhost");
	fcgi_pair(&params, "CONTENT_TYPE", "application/json");
	fcgi_pair(&params, "HTTP_AUTHORIZATION", token);
	fcgi_record(&out, BEGIN_REQUEST, begin, sizeof(begin));
	fcgi_record(&out, PARAMS, params.data, params.length);
	fcgi_record(&out, PARAMS, NULL, 0);
	assert_int_equal(write_all(fd, out.data, out.length), 0);
}

static inline void fcgi_send_head(int fd, const char *method, const char *uri)
{
	fcgi_send_head_with(fd, method, uri, false);
}

static inline void fcgi_send_body(int fd, const char *body)
{
	auto_buf struct buf out = {0};

	buf_init(&out, 64 << 20);
	for (size_t length = strlen(body), at = 0; at < length; at += STDIN_CHUNK)
		fcgi_record(&out, STDIN, body + at, MIN(length - at, (size_t)STDIN_CHUNK));
	fcgi_record(&out, STDIN, NULL, 0);
	assert_int_equal(write_all(fd, out.data, out.length), 0);
}

static inline void fcgi_receive(int fd, struct buf *out)
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
static inline bool fcgi_get(const char *uri, const char *status)
{
	auto_close int fd = fcgi_dial();
	auto_buf struct buf reply = {0};

	buf_init(&reply, 1 << 20);
	fcgi_send_head(fd, "GET", uri);
	fcgi_send_body(fd, "");
	fcgi_receive(fd, &reply);
	return str_starts(reply.data, status);
}

static inline int fcgi_start(void **state)
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

static inline int fcgi_stop(void **state)
{
	(void)state;
	close(listen_fd);
	fixture_close(&fixture);
	return 0;
}
