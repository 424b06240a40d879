/*
 * Whatever a guest sends to the relay's proxy is refused, or names one host in one spelling and is rewritten into a
 * request that means the same host to every reader: one Host line, no userinfo, no control characters, parsed again to
 * the same.
 */
#include "fuzz.h"

#include <string.h>

#include "jail/relay/relay_http.h"
#include "lib/base/util.h"

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *p = text; (p = strcasestr(p, what)); p++)
		n++;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = xmalloc(size + 1);
	auto_buf struct buf forward = {0};
	struct relay_request request;
	char again[HOST_SIZE];

	memcpy(text, data, size);
	text[size] = '\0';
	buf_init(&forward, 4 * RELAY_HEAD_MAX);
	relay_http_status(text, size);
	size_t head = relay_http_head(text, MIN(size, (size_t)RELAY_HEAD_MAX));
	PROMISE(head <= size);
	if (!head || relay_http_parse(text, head, &request, &forward))
		return 0;
	PROMISE(request.port != 0);
	PROMISE(host_normalise(request.host, strlen(request.host), again) == request.kind);
	PROMISE(streq(request.host, again));
	PROMISE(!strpbrk(request.host, "@%/\\ ") && !memchr(text, '\0', head));
	PROMISE(request.connect == (forward.length == 0));
	if (request.connect)
		return 0;
	PROMISE(strlen(forward.data) == forward.length &&
		relay_http_head(forward.data, forward.length) == forward.length);
	PROMISE(count(forward.data, "\r\nHost:") == 1 && count(forward.data, "\r\nConnection:") == 1);
	return 0;
}
