/* cors.c - see cors.h. */
#include "cors.h"

#include <strings.h>

#include "lib/base/util.h"

#define MAX_AGE_SECONDS 7200
#define NAME_MAX_BYTES  64

/* What the protocol's clients send. Mcp-Param-* names depend on the tools: those that are asked for are added. */
static const char headers[] = "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, "
			      "MCP-Protocol-Version, Mcp-Session-Id";
static const char param_prefix[] = "mcp-param-";
static const char token_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";

void cors_headers(struct reply *reply, const char *origin)
{
	reply_header(reply, "Access-Control-Allow-Origin", "%s", origin);
	reply_header(reply, "Access-Control-Expose-Headers",
		     "Mcp-Session-Id, WWW-Authenticate, Retry-After, X-Request-Id");
	reply_header(reply, "Vary", "Origin");
}

bool cors_preflight(struct http_exchange *exchange, const char *allow)
{
	struct reply *reply = exchange->reply;
	const char *asked = request_param(exchange->request, "HTTP_ACCESS_CONTROL_REQUEST_HEADERS");
	auto_buf struct buf list = {0};

	if (!request_param(exchange->request, "HTTP_ORIGIN") ||
	    !request_param(exchange->request, "HTTP_ACCESS_CONTROL_REQUEST_METHOD"))
		return false;
	buf_init(&list, HTTP_HEADER_MAX / 2);
	buf_puts(&list, headers);
	for (const char *p = asked ? asked : ""; *(p += strspn(p, ", \t")); p += strcspn(p, ", \t")) {
		size_t length = strspn(p, token_characters);

		if (length <= NAME_MAX_BYTES && strncasecmp(p, param_prefix, sizeof(param_prefix) - 1) == 0 &&
		    strchr(", \t", p[length]))
			buf_printf(&list, ", %.*s", (int)length, p);
	}
	reply->status = 204;
	reply_header(reply, "Access-Control-Allow-Methods", "%s", allow);
	reply_header(reply, "Access-Control-Allow-Headers", "%s", list.overflow ? headers : list.data);
	reply_header(reply, "Access-Control-Max-Age", "%d", MAX_AGE_SECONDS);
	return true;
}
