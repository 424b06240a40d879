/* landing.c - see landing.h. The address has no characters of HTML: config_check saw to it. */
#include "landing.h"

#include <string.h>

#include "lib/base/util.h"

bool landing_wanted(const struct http_exchange *exchange)
{
	const char *accept = request_param(exchange->request, "HTTP_ACCEPT");

	return config_oauth(exchange->server->config) != CONFIG_OAUTH_OFF && accept && strstr(accept, "text/html") &&
	       (streq(exchange->method, "GET") || streq(exchange->method, "HEAD"));
}

void landing_page(struct http_exchange *exchange, int status)
{
	struct reply *reply = exchange->reply;

	reply->status = status;
	reply_header(reply, "Content-Type", "text/html; charset=utf-8");
	reply_header(reply, "Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'");
	reply_header(reply, "X-Content-Type-Options", "nosniff");
	reply_header(reply, "Cache-Control", "no-store");
	buf_reset(&reply->body);
	buf_printf(&reply->body,
		   "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
		   "content=\"width=device-width\"><title>Sallyport</title></head>\n<body><h1>Sallyport</h1>\n<p>This "
		   "server runs programs for language models. It has no pages: programs talk to it.</p>\n<p>To use it, "
		   "add "
		   "this address as a connector (an MCP server) in your client:</p>\n<p><code>%s/mcp</code></p>\n"
		   "<p>The client then asks you to sign in.</p></body></html>\n",
		   exchange->server->config->public_base_url);
}

void landing_root(struct http_exchange *exchange, const char *method, const char *rest)
{
	(void)method;
	(void)rest;
	if (landing_wanted(exchange)) {
		landing_page(exchange, 200);
		return;
	}
	auto_json struct json_object *body = json_object_new_object();
	auto_free char *endpoint = xasprintf("%s/mcp", exchange->server->config->public_base_url);

	json_add_string(body, "name", "Sallyport");
	json_add_string(body, "endpoint", endpoint);
	reply_json(exchange->reply, 200, body);
}
