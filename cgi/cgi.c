/* cgi.c - see cgi.h. */
#include "cgi.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "routes.h"

#define CHUNK      (16 * 1024)
#define FILE_CHUNK (64 * 1024)

extern char **environ;

bool cgi_started(void)
{
	int listening = 0;
	socklen_t size = sizeof(listening);

	if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening)
		return false;
	return getenv("GATEWAY_INTERFACE") || getenv("REQUEST_METHOD");
}

/* Exactly CONTENT_LENGTH bytes: behind them the web server need not close the pipe. */
static int read_body(void *arg, struct buf *body, struct err *err)
{
	const char *text = getenv("CONTENT_LENGTH");
	uint64_t left = 0;
	char chunk[CHUNK];

	(void)arg;
	if (text && *text && parse_u64(text, 0, INT64_MAX, &left) < 0)
		return err_set(err, ERR_INVALID, "Bad Request: bad Content-Length");
	while (left > 0 && !body->overflow) {
		ssize_t n = read(STDIN_FILENO, chunk, MIN(sizeof(chunk), left));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, ERR_INVALID, "Bad Request: the body did not arrive whole");
		buf_add(body, chunk, (size_t)n);
		left -= (uint64_t)n;
	}
	return 0;
}

static int write_file(const struct reply *reply)
{
	auto_free char *chunk = xmalloc(FILE_CHUNK);
	const int64_t end = reply->file_offset + reply->file_length;
	int64_t offset = reply->file_offset;

	while (offset < end) {
		ssize_t n = pread(reply->file_fd, chunk, (size_t)MIN((int64_t)FILE_CHUNK, end - offset), offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0 || write_all(STDOUT_FILENO, chunk, (size_t)n) < 0)
			return -1;
		offset += n;
	}
	return 0;
}

static int write_reply(struct reply *reply, struct err *err)
{
	auto_buf struct buf head = {0};
	int result;

	buf_init(&head, 2 * HTTP_HEADER_MAX);
	reply_print_head(reply, &head);
	result = write_all(STDOUT_FILENO, head.data, head.length);
	if (result == 0 && !reply->head)
		result = reply->file_fd >= 0 ? write_file(reply)
					     : write_all(STDOUT_FILENO, reply->body.data, reply->body.length);
	return result < 0 ? err_errno(err, "writing the reply") : 0;
}

int cgi_serve(struct server *server, struct err *err)
{
	const struct request request = {
		.params = (const char *const *)environ, .read_body = read_body, .hangup_fd = -1};
	auto_reply struct reply reply;

	reply_init(&reply);
	routes_handle(server, &request, &reply);
	return write_reply(&reply, err);
}

void cgi_unavailable(void)
{
	auto_reply struct reply reply;

	reply_init(&reply);
	reply_refuse(&reply, 503, "the server is not set up: its log says why");
	write_reply(&reply, NULL);
}
