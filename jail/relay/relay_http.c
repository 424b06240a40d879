/*
 * relay_http.c - see relay_http.h.
 *
 * A head is taken apart line by line, by next_line and parse_line, and made anew: the request line for the origin, a
 * Host line, then what copy_headers lets through, then our Connection. relay_http_parse does it for a request to the
 * proxy, and says whom it is for; relay_http_origin for one that comes through a tunnel, where that is known, and the
 * request line stays as it is, because it has gone on already. Both read with the same functions, so that what one of
 * them refuses the other does not take. Lines that do not end with CR LF, control characters, folded lines and odd
 * versions are refused and not mended: the server behind might read them otherwise.
 */
#include "relay_http.h"

#include <string.h>
#include <strings.h>

#include "lib/base/util.h"

#define METHOD_MAX    32
#define LENGTH_DIGITS 15
#define HTTP_PORT     80

static const char scheme[] = "http://";

size_t relay_http_head(const char *data, size_t length)
{
	const char *end = memmem(data, length, "\r\n\r\n", 4);

	return end ? (size_t)(end - data) + 4 : 0;
}

bool relay_http_token(const char *text, size_t length)
{
	static const char also[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < length; i++) {
		char c = text[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr(also, c))))
			return false;
	}
	return length > 0;
}

/* The next line without its CR LF; -1: a control character where none belongs. */
static int next_line(const char **p, const char *end, const char **ret_line, size_t *ret_length)
{
	const char *line = *p, *stop = memmem(line, (size_t)(end - line), "\r\n", 2);

	if (!stop)
		return -1;
	for (const char *c = line; c < stop; c++)
		if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
			return -1;
	*ret_line = line;
	*ret_length = (size_t)(stop - line);
	*p = stop + 2;
	return 0;
}

struct request_line {
	const char *method, *target, *version;
	size_t n_method, n_target;
};

static int parse_line(const char *line, size_t length, struct request_line *ret)
{
	const char *end = line + length, *first = memchr(line, ' ', length);
	const char *last = memrchr(line, ' ', length);

	if (!first || first == last || memchr(first + 1, ' ', (size_t)(last - first - 1)) || memchr(line, '\t', length))
		return -1;
	if (end - last != 9 || memcmp(last + 1, "HTTP/1.", 7) != 0 || (end[-1] != '0' && end[-1] != '1'))
		return -1;
	*ret = (struct request_line){line, first + 1, last + 1, (size_t)(first - line), (size_t)(last - first - 1)};
	return ret->n_method <= METHOD_MAX && relay_http_token(ret->method, ret->n_method) ? 0 : -1;
}

static bool name_is(const char *name, size_t length, const char *other)
{
	return strlen(other) == length && strncasecmp(name, other, length) == 0;
}

/* Of this hop, or ours to say. */
static bool left_out(const char *name, size_t length)
{
	static const char *const names[] = {"host", "connection", "keep-alive", "upgrade", "te"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (name_is(name, length, names[i]))
			return true;
	return length > 6 && strncasecmp(name, "proxy-", 6) == 0;
}

/* What a head says about its body. */
struct framing {
	size_t n_lengths, n_codings;
	int64_t length;
	bool bad;
};

/* Servers do not agree on anything but one Content-Length of digits, or one Transfer-Encoding that is "chunked". */
static void see_framing(struct framing *framing, const char *line, size_t name, size_t length)
{
	const char *value = line + name + 1, *end = line + length;

	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (value < end && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (name_is(line, name, "Transfer-Encoding")) {
		framing->n_codings++;
		framing->bad |= !name_is(value, (size_t)(end - value), "chunked");
	}
	if (name_is(line, name, "Content-Length")) {
		framing->n_lengths++;
		framing->bad |= value == end || end - value > LENGTH_DIGITS;
		for (; value < end && !framing->bad; value++) {
			framing->bad = *value < '0' || *value > '9';
			framing->length = framing->length * 10 + (*value - '0');
		}
	}
	framing->bad |= framing->n_lengths + framing->n_codings > 1;
}

/* Checks the header lines and copies those that are passed on. */
static int copy_headers(const char *p, const char *end, struct framing *framing, struct buf *forward)
{
	const char *line;
	size_t length;

	while (!next_line(&p, end, &line, &length)) {
		if (length == 0)
			return p == end && !framing->bad ? 0 : -1;
		const char *colon = memchr(line, ':', length);
		size_t name = colon ? (size_t)(colon - line) : 0;

		if (!relay_http_token(line, name))
			return -1;
		see_framing(framing, line, name, length);
		if (forward && !left_out(line, name)) {
			buf_add(forward, line, length);
			buf_puts(forward, "\r\n");
		}
	}
	return -1;
}

int relay_http_parse(const char *head, size_t length, struct relay_request *ret, struct buf *forward)
{
	struct relay_request request = {.kind = -1};
	struct framing framing = {.n_lengths = 0};
	struct request_line line;
	const char *p = head, *text;
	size_t n;

	if (next_line(&p, head + length, &text, &n) || parse_line(text, n, &line))
		return -1;
	request.connect = name_is(line.method, line.n_method, "CONNECT");
	if (request.connect) {
		request.kind = host_split(line.target, line.n_target, 0, request.host, &request.port);
		if (request.kind < 0 || copy_headers(p, head + length, &framing, NULL))
			return -1;
		*ret = request;
		return 0;
	}
	if (line.n_target <= strlen(scheme) || strncasecmp(line.target, scheme, strlen(scheme)) != 0)
		return -1;
	const char *authority = line.target + strlen(scheme), *end = line.target + line.n_target;
	size_t n_authority = 0;
	while (authority + n_authority < end && !strchr("/?#", authority[n_authority]))
		n_authority++;
	request.kind = host_split(authority, n_authority, HTTP_PORT, request.host, &request.port);
	if (request.kind < 0)
		return -1;
	const char *path = authority + n_authority;
	buf_add(forward, line.method, line.n_method);
	buf_puts(forward, path < end && *path == '/' ? " " : " /");
	buf_add(forward, path, (size_t)(end - path));
	buf_printf(forward, " HTTP/1.1\r\nHost: %.*s\r\n", (int)n_authority, authority);
	/* The relay does not know where chunks end. */
	if (copy_headers(p, head + length, &framing, forward) || framing.n_codings > 0)
		return -1;
	request.body = framing.length;
	buf_puts(forward, "Connection: close\r\n\r\n");
	*ret = request;
	return 0;
}

/* -------- in a tunnel --------------------------------------------------------------------------------- */
struct origin {
	const char *host; /* that it must name */
	const char *host_line;
	size_t n_host_line, n_hosts;
	bool another, websocket, last;
};

static bool says_close(const char *value, const char *end)
{
	for (; end - value >= 5; value++)
		if (strncasecmp(value, "close", 5) == 0)
			return true;
	return false;
}

static void see_header(struct origin *origin, const char *line, size_t length)
{
	const char *value = memchr(line, ':', length), *end = line + length;
	char host[HOST_SIZE];
	uint16_t port;

	if (!value)
		return;
	size_t name = (size_t)(value++ - line);
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (value < end && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	/* A body, or the guest says so itself. */
	origin->last |= name_is(line, name, "Content-Length") || name_is(line, name, "Transfer-Encoding") ||
			name_is(line, name, "Upgrade");
	origin->last |= name_is(line, name, "Connection") && says_close(value, end);
	/* An upgrade to anything else (HTTP/2) would be followed by requests. */
	if (name_is(line, name, "Upgrade"))
		origin->websocket = name_is(value, (size_t)(end - value), "websocket");
	if (!name_is(line, name, "Host"))
		return;
	origin->n_hosts++;
	origin->host_line = line;
	origin->n_host_line = length;
	/* The port is not compared: servers choose by the name. */
	origin->another |=
		host_split(value, (size_t)(end - value), HTTP_PORT, host, &port) < 0 || !streq(host, origin->host);
}

enum relay_origin relay_http_origin(const char *head, size_t length, const char *host, struct buf *forward)
{
	struct origin origin = {.host = host};
	struct framing framing = {.n_lengths = 0};
	struct request_line line;
	const char *p = head, *end = head + length, *text;
	size_t n;

	if (next_line(&p, end, &text, &n) || parse_line(text, n, &line) || !strchr("/*", line.target[0]))
		return RELAY_ORIGIN_BAD;
	const char *headers = p;
	origin.last = line.version[7] == '0';
	while (!next_line(&p, end, &text, &n) && n > 0)
		see_header(&origin, text, n);
	if (origin.another)
		return RELAY_ORIGIN_ANOTHER;
	buf_add(forward, head, (size_t)(headers - head));
	if (origin.n_hosts > 0) {
		buf_add(forward, origin.host_line, origin.n_host_line);
		buf_puts(forward, "\r\n");
	}
	if (origin.n_hosts > 1 || copy_headers(headers, end, &framing, forward))
		return RELAY_ORIGIN_BAD;
	if (origin.websocket)
		buf_puts(forward, "Upgrade: websocket\r\n");
	buf_printf(forward, "Connection: %s\r\n\r\n",
		   origin.websocket ? "close, Upgrade"
		   : origin.last    ? "close"
				    : "keep-alive");
	return origin.last ? RELAY_ORIGIN_LAST : RELAY_ORIGIN_ALONE;
}

int relay_http_status(const char *head, size_t length)
{
	if (length < 12 || memcmp(head, "HTTP/1.", 7) != 0 || head[8] != ' ')
		return -1;
	int status = 0;
	for (size_t i = 9; i < 12; i++) {
		if (head[i] < '0' || head[i] > '9')
			return -1;
		status = status * 10 + (head[i] - '0');
	}
	return status;
}
