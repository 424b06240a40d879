/*
 * Whatever a program sends first through a connection, or a server answers to it: in whatever pieces it comes, the
 * answer is the same, and what went on before it is the beginning of what goes on. A request that goes on names the
 * host once, says what becomes of the connection, and what is behind it is looked at, or nothing comes there.
 */
#include "fuzz.h"

#include <string.h>

#include "jail/relay/relay_hello.h"
#include "jail/relay/relay_http.h"
#include "jail/relay/relay_inside.h"
#include "lib/base/util.h"

#define HOST   "a.wild.example"
#define PIECES 64 /* ends that are tried */

static void check_request(const struct buf *forward)
{
	const char *line = forward->data + strspn(forward->data, "\r\n \t"), *p = line;
	size_t head = relay_http_head(line, forward->length - (size_t)(line - forward->data)), hosts = 0, closes = 0;

	/* "HTTP/" in the first line: it was taken for a request. */
	const char *end = memchr(line, '\n', strlen(line));
	auto_free char *first = end ? xstrndup(line, (size_t)(end - line)) : xstrdup("");
	if (!head || !strcasestr(first, "HTTP/") || !relay_http_token(first, strcspn(first, " \t\v\f\r")))
		return;
	for (; (p = memmem(p, (size_t)(line + head - 4 - p), "\r\n", 2)); p += 2) {
		hosts += strncasecmp(p + 2, "Host:", 5) == 0;
		closes += strncmp(p + 2, "Connection: ", 12) == 0;
	}
	PROMISE(hosts <= 1 && closes == 1 && !memchr(line, '\0', head));
}

static bool ends_with(const struct buf *buf, const char *end)
{
	size_t n = strlen(end);

	return buf->length >= n && memcmp(buf->data + buf->length - n, end, n) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf whole = {0};
	char host[HOST_SIZE] = "", again[HOST_SIZE];
	const char *text = (const char *)data;
	const enum relay_inside_place place = size % 7 == 0 ? RELAY_PLACE_WORD
					      : size % 2    ? RELAY_PLACE_AGAIN
					      : size % 3    ? RELAY_PLACE_FIRST
							    : RELAY_PLACE_SECOND;
	const struct relay_inside_rule rule = {.host = HOST, .named = true, .place = place};
	size_t used = 0;

	if (relay_hello_parse(data, size, host, &used) == RELAY_HELLO_NAMED)
		PROMISE(used > 0 && used <= size &&
			(!host[0] || (host_normalise(host, strlen(host), again) >= 0 && streq(host, again))));
	used = 0;
	buf_init(&whole, 2 * RELAY_INSIDE_MAX);
	size_t length = MIN(size, (size_t)RELAY_INSIDE_MAX);
	enum relay_inside found = relay_inside(&rule, text, length, &whole, &used);
	PROMISE(!whole.overflow && used <= length &&
		(used > 0) == (found >= RELAY_INSIDE_HELLO && found <= RELAY_INSIDE_WORD));
	PROMISE(found != RELAY_INSIDE_REQUEST || ends_with(&whole, "\r\nConnection: keep-alive\r\n\r\n"));
	if (place != RELAY_PLACE_WORD && (found == RELAY_INSIDE_FINE || found == RELAY_INSIDE_REQUEST) && length > 0 &&
	    data[0] != 0)
		check_request(&whole);
	enum relay_reply reply = relay_hello_reply(data, size);
	for (size_t n = 0; n < length; n += 1 + length / PIECES) {
		auto_buf struct buf part = {0};
		auto_free char *exact = xmalloc(n + 1);

		memcpy(exact, data, n);
		enum relay_reply so_far = relay_hello_reply(exact, n);
		PROMISE(so_far == reply || so_far == RELAY_REPLY_MORE);
		buf_init(&part, 2 * RELAY_INSIDE_MAX);
		enum relay_inside answer = relay_inside(&rule, exact, n, &part, &used);
		PROMISE(answer == RELAY_INSIDE_MORE || answer == RELAY_INSIDE_WORD || answer == found);
		if (found <= RELAY_INSIDE_WORD)
			PROMISE(part.length <= whole.length && memcmp(part.data, whole.data, part.length) == 0);
	}
	return 0;
}
