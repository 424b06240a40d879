/*
 * http.c - HTTP rules; see http.h.
 *
 * Who sends what: nginx (or another web server) has parsed the request; we get CGI variables. The path is taken from
 * REQUEST_URI, as the client sent it, because SCRIPT_NAME and PATH_INFO are decoded and normalised already: "%2f" and
 * ".." must be seen here. A plain CGI program may be mounted below a name (SCRIPT_NAME) that is then cut off.
 *
 * Host and Origin: a web page must not reach a server on somebody's loopback interface or in his network by DNS
 * rebinding, so the Host must be public_base_url's, loopback, or one of gateway.allowed_hosts; an Origin, if there is
 * one, likewise. Programs that are no browsers send no Origin.
 *
 * The routes are one table. /mcp needs a token; /files/ does not: the 64 hexadecimal digits in the path are the
 * capability.
 */
#include "http.h"

#include <ctype.h>
#include <strings.h>

#include "access.h"
#include "cgi/conformance.h"
#include "cgi/mcp/mcp.h"
#include "cors.h"
#include "files.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "sse.h"

#define HOST_MAX  256
#define TOKEN_MAX 512

struct route {
	const char *path;
	bool below;        /* everything below the path; the rest is handed on */
	bool token;        /* needs a bearer token */
	const char *allow; /* methods, for 405 */
	void (*handle)(struct exchange *exchange, const char *method, const char *rest);
};

static void health_get(struct exchange *exchange, const char *method, const char *rest);

static const struct route routes[] = {
	{"/mcp", false, true, "POST, GET, DELETE", mcp_handle},
	{"/sse", false, true, "GET", sse_stream},
	{"/messages", false, true, "POST", sse_message},
	{"/files/", true, false, "GET, HEAD", files_handle},
	{"/healthz", false, false, "GET, HEAD", health_get},
};

const char *request_param(const struct request *request, const char *name)
{
	for (const char *const *p = request->params; *p; p++) {
		const char *at = *p, *c = name;

		while (*c && *at == *c)
			at++, c++;
		if (!*c && *at == '=')
			return at + 1;
	}
	return NULL;
}

const char *request_header(const struct request *request, const char *name, char *buffer, size_t size)
{
	const char *value = request_param(request, name);

	if (!value)
		return NULL;
	value += strspn(value, " \t");
	size_t length = strlen(value);

	while (length > 0 && strchr(" \t", value[length - 1]))
		length--;
	if (length >= size)
		return NULL;
	memcpy(buffer, value, length);
	buffer[length] = '\0';
	return buffer;
}

/* Is "name:port" (or "[v6]:port") the loopback interface, whatever the port? */
static bool is_loopback(const char *host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t length = strlen(names[i]);

		if (strncasecmp(host, names[i], length) != 0)
			continue;
		if (host[length] == '\0')
			return true;
		if (host[length] == ':' && host[length + 1] &&
		    strspn(host + length + 1, "0123456789") == strlen(host + length + 1))
			return true;
	}
	return false;
}

/* "https://host:port/path" -> what stands before the path, and where the host begins in it. */
static size_t origin_length(const char *url, size_t *ret_host)
{
	const char *host = strstr(url, "://");

	if (!host)
		return 0;
	*ret_host = (size_t)(host + 3 - url);
	return *ret_host + strcspn(host + 3, "/?#");
}

bool http_host_allowed(const struct config *config, const char *host)
{
	size_t begin = 0, end = origin_length(config->public_base_url ? config->public_base_url : "", &begin);

	if (!host || is_loopback(host))
		return true;
	if (end > begin && strlen(host) == end - begin &&
	    strncasecmp(host, config->public_base_url + begin, end - begin) == 0)
		return true;
	for (size_t i = 0; i < config->gateway.allowed_hosts.count; i++) {
		if (strcasecmp(host, config->gateway.allowed_hosts.items[i]) == 0)
			return true;
	}
	return false;
}

bool http_origin_allowed(const struct config *config, const char *origin)
{
	size_t begin = 0, end = origin_length(config->public_base_url ? config->public_base_url : "", &begin);

	if (!origin)
		return true;
	if (end && strlen(origin) == end && strncasecmp(origin, config->public_base_url, end) == 0)
		return true;
	if (strncasecmp(origin, "http://", 7) == 0 && is_loopback(origin + 7))
		return true;
	if (strncasecmp(origin, "https://", 8) == 0 && is_loopback(origin + 8))
		return true;
	for (size_t i = 0; i < config->gateway.allowed_origins.count; i++) {
		if (strcasecmp(origin, config->gateway.allowed_origins.items[i]) == 0)
			return true;
	}
	return false;
}

static const struct route *find_route(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if (routes[i].below ? str_starts(path, routes[i].path) : streq(path, routes[i].path))
			return &routes[i];
	}
	return NULL;
}

int http_path(const struct request *request, char ret[HTTP_PATH_MAX], struct err *err)
{
	const char *uri = request_param(request, "REQUEST_URI");
	const char *script = request_param(request, "SCRIPT_NAME");
	const char *info = request_param(request, "PATH_INFO");

	if (!uri)
		return err_set(err, ERR_INVALID,
			       "the web server does not pass REQUEST_URI: add it to its FastCGI or CGI variables");
	if (uri[0] != '/') { /* absolute form: http://host/path */
		size_t host = 0;

		uri += origin_length(uri, &host);
	}
	size_t length = strcspn(uri, "?#"), cut = script ? strlen(script) : 0;

	if (length >= HTTP_PATH_MAX)
		return err_set(err, ERR_INVALID, "the path is longer than %d bytes", HTTP_PATH_MAX - 1);
	memcpy(ret, uri, length);
	ret[length] = '\0';
	/* Mounted below a script's name: with PATH_INFO set, SCRIPT_NAME is the script and not, as with nginx, the
	 * whole path. */
	if (!find_route(ret) && info && info[0] && cut > 0 && cut < length && str_starts(ret, script) &&
	    ret[cut] == '/')
		memmove(ret, ret + cut, length - cut + 1);
	return 0;
}

int http_decode(const char *text, struct buf *ret, struct err *err)
{
	for (const char *p = text; *p; p++) {
		uint8_t byte = (uint8_t)*p;

		if (*p == '%') {
			if (!p[1] || hex_decode(p + 1, 2, &byte) < 0 || byte == 0)
				return err_set(err, ERR_INVALID, "bad percent escape in the path");
			p += 2;
		}
		buf_putc(ret, (char)byte);
	}
	return 0;
}

/* What stands behind "Bearer", in `buffer`, which the caller wipes; NULL: there is no such header, or it says something
 * else. */
static const char *bearer_token(const struct request *request, char buffer[TOKEN_MAX])
{
	static const char scheme[] = "Bearer ";
	const size_t length = sizeof(scheme) - 1;
	const char *value = request_header(request, "HTTP_AUTHORIZATION", buffer, TOKEN_MAX);

	if (!value || strncasecmp(value, scheme, length) != 0 || strlen(value) == length)
		return NULL;
	return value + length + strspn(value + length, " ");
}

bool http_still_allowed(const struct exchange *exchange, int64_t *looked_us)
{
	const int64_t now_us = clock_monotonic_us();
	char buffer[TOKEN_MAX];
	struct store_token token;
	struct err err = ERR_INIT;

	if (!exchange->token.id[0] || now_us - *looked_us < HTTP_TOKEN_AGAIN_US)
		return true;
	*looked_us = now_us;
	const char *text = bearer_token(exchange->request, buffer);
	int result = text ? store_token_check(exchange->server->store, text, &token, &err) : 0;

	explicit_bzero(buffer, sizeof(buffer));
	return result == 0 || (err.code != ERR_DENIED && err.code != ERR_NOT_FOUND);
}

/* Answers 401 and returns negative if the token is missing or no good. */
static int check_token(struct exchange *exchange)
{
	static const char *const texts[] = {
		"Missing Authorization header: send \"Authorization: Bearer TOKEN\"",
		"Malformed Authorization header: it must be \"Bearer TOKEN\"",
		"Unknown or revoked token: `sallyport token add` makes a new one",
	};
	char buffer[TOKEN_MAX];
	const char *raw = request_param(exchange->request, "HTTP_AUTHORIZATION");
	const char *text = bearer_token(exchange->request, buffer);
	struct err err = ERR_INIT;
	int fault = 2;

	if (!raw || !*raw)
		fault = 0;
	else if (!text)
		fault = 1;
	else if (store_token_check(exchange->server->store, text, &exchange->token, &err) == 0) {
		snprintf(exchange->reply->owner, sizeof(exchange->reply->owner), "%s", exchange->token.owner);
		explicit_bzero(buffer, sizeof(buffer));
		return 0;
	} else if (err.code != ERR_DENIED && err.code != ERR_NOT_FOUND && err.code != ERR_INVALID) {
		log_event(LOG_ERROR, "token check failed", "error", err.text, NULL);
		reply_refuse(exchange->reply, 503, "the token cannot be checked at the moment: try again");
		return -ERR_SYSTEM;
	}
	explicit_bzero(buffer, sizeof(buffer));
	auto_json struct json_object *body = json_object_new_object();

	json_add_string(body, "error", "invalid_token");
	json_add_string(body, "error_description", texts[fault]);
	if (fault == 0)
		reply_header(exchange->reply, "WWW-Authenticate", "Bearer realm=\"sallyport\"");
	else
		reply_header(exchange->reply, "WWW-Authenticate",
			     "Bearer realm=\"sallyport\", error=\"invalid_token\", error_description=\"unknown, "
			     "revoked or malformed token\"");
	reply_json(exchange->reply, 401, body);
	return -ERR_DENIED;
}

static bool from_loopback(const struct request *request)
{
	const char *address = request_param(request, "REMOTE_ADDR");

	return !address || streq(address, "127.0.0.1") || streq(address, "::1");
}

/* Profile conformance: everybody on this machine is its one owner. */
static int check_open(struct exchange *exchange)
{
	if (!from_loopback(exchange->request)) {
		reply_refuse(exchange->reply, 403, "gateway.profile is conformance: only this machine is served");
		return -ERR_DENIED;
	}
	exchange->token = exchange->server->open_token;
	snprintf(exchange->reply->owner, sizeof(exchange->reply->owner), "%s", exchange->token.owner);
	return 0;
}

/* "POST" in "POST, DELETE"? */
static bool method_listed(const char *allow, const char *method)
{
	size_t length = strlen(method);

	for (const char *p = allow; length && (p = strstr(p, method)); p += length) {
		if ((p == allow || p[-1] == ' ') && (p[length] == ',' || p[length] == '\0'))
			return true;
	}
	return false;
}

static void dispatch(struct exchange *exchange, const char *method, const char *path)
{
	char host[HOST_MAX], origin[HOST_MAX];
	const struct route *route = find_route(path);
	struct reply *reply = exchange->reply;
	struct access_refusal refusal;

	if (!route) {
		reply_refuse(reply, 404, "nothing here: the endpoint is /mcp");
		return;
	}
	/* A header that does not fit the buffer must not pass for an absent one. */
	const char *host_raw = request_param(exchange->request, "HTTP_HOST"),
		   *origin_raw = request_param(exchange->request, "HTTP_ORIGIN");
	const char *host_value = request_header(exchange->request, "HTTP_HOST", host, sizeof(host));
	const char *origin_value = request_header(exchange->request, "HTTP_ORIGIN", origin, sizeof(origin));

	if ((host_raw && !host_value) || !http_host_allowed(exchange->server->config, host_value)) {
		reply_refuse(reply, 403,
			     "this Host is not served here: public_base_url or gateway.allowed_hosts must name it");
		return;
	}
	if ((origin_raw && !origin_value) || !http_origin_allowed(exchange->server->config, origin_value)) {
		reply_refuse(
			reply, 403,
			"requests from pages of this Origin are not allowed: gateway.allowed_origins must name it");
		return;
	}
	if (origin_value)
		cors_headers(reply, origin_value);
	if (streq(method, "OPTIONS") && cors_preflight(exchange, route->allow))
		return;
	if (route->token &&
	    (conformance_on(exchange->server->config) ? check_open(exchange) : check_token(exchange)) < 0)
		return;
	if (route->token && !access_rate(exchange, &refusal)) {
		mcp_refuse(reply, NULL, &refusal);
		return;
	}
	if (!method_listed(route->allow, method)) {
		reply_header(reply, "Allow", "%s", route->allow);
		reply_refuse(reply, 405, "this method is not allowed here");
		return;
	}
	route->handle(exchange, method, path + strlen(route->path));
}

/* For supervisors and load balancers on the same machine. */
static void health_get(struct exchange *exchange, const char *method, const char *rest)
{
	(void)method;
	(void)rest;
	if (!from_loopback(exchange->request)) {
		reply_refuse(exchange->reply, 404, "nothing here: the endpoint is /mcp");
		return;
	}
	exchange->reply->status = 200;
	reply_header(exchange->reply, "Content-Type", "text/plain");
	buf_puts(&exchange->reply->body, "ok\n");
}

static void write_log(const struct request *request, const struct reply *reply, const char *method, const char *route,
		      int64_t started_us)
{
	char status[16], duration[32], id[72];
	const char *request_id = request_header(request, "HTTP_X_REQUEST_ID", id, sizeof(id));

	snprintf(status, sizeof(status), "%d", reply->gone ? 499 : reply->status);
	snprintf(duration, sizeof(duration), "%lld", (long long)(clock_monotonic_us() - started_us));
	log_event(LOG_INFO, "request", "method", method, "route", route, "status", status, "us", duration, "owner",
		  reply->owner, "rpc", reply->method, "tool", reply->tool, "outcome", reply->outcome, "request_id",
		  request_id ? request_id : "", NULL);
}

void http_handle(struct server *server, const struct request *request, struct reply *reply)
{
	int64_t started = clock_monotonic_us();
	auto_free char *path = xmalloc(HTTP_PATH_MAX);
	const char *method = request_param(request, "REQUEST_METHOD");
	struct exchange exchange = {.server = server, .request = request, .reply = reply};
	struct err err = ERR_INIT;

	if (!method)
		method = "";
	reply->head = streq(method, "HEAD");
	path[0] = '\0';
	if (http_path(request, path, &err) < 0)
		reply_refuse(reply, 400, err.text);
	else
		dispatch(&exchange, method, path);
	if (reply->body.overflow || reply->headers.overflow) {
		log_event(LOG_ERROR, "reply too large", "rpc", reply->method, NULL);
		buf_reset(&reply->headers);
		reply_refuse(reply, 500, "the answer is larger than the server can send");
	}
	const struct route *route = find_route(path);

	write_log(request, reply, method, route ? route->path : "-", started);
}
