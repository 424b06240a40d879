/*
 * routes.c - see routes.h.
 *
 * The routes are one table; a path is added by adding a row. /mcp needs a token; reading /files/ does not: the 64
 * hexadecimal digits in the path are the capability.
 */
#include "routes.h"

#include "cgi/admin/admin.h"
#include "cgi/api/api.h"
#include "cgi/doors/doors.h"
#include "cgi/http/access.h"
#include "cgi/http/body.h"
#include "cgi/http/client.h"
#include "cgi/http/files.h"
#include "cgi/http/landing.h"
#include "cgi/http/monitor.h"
#include "cgi/http/request.h"
#include "cgi/mcp/mcp_endpoint.h"
#include "cgi/mcp/server_card.h"
#include "cgi/mcp/sse.h"
#include "cgi/oauth/oauth_authorize.h"
#include "cgi/oauth/oauth_metadata.h"
#include "cgi/oauth/oauth_register.h"
#include "cgi/oauth/oauth_reply.h"
#include "cgi/oauth/oauth_token.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/util.h"

#define HOST_MAX              256
#define CLOSING_RETRY_SECONDS 2
#define TOKEN_PATH            "/t/"
#define NOT_FOUND             "nothing here: the endpoint is /mcp"

enum route_auth {
	ROUTE_OPEN,
	ROUTE_PUBLIC,    /* everybody, every Origin */
	ROUTE_OAUTH,     /* everybody, every Origin, at public_base_url's host; not there while oauth.mode is off */
	ROUTE_BUILTIN,   /* the same with oauth.mode builtin alone */
	ROUTE_PAGE,      /* the same for pages of ours: the handler looks at the Origin; no page reads the replies */
	ROUTE_READ_OPEN, /* GET and HEAD: everybody; the handler looks closer. Else as ROUTE_TOKEN */
	ROUTE_TOKEN,     /* a bearer token, and its requests a minute */
	ROUTE_KNOWN,     /* a bearer token */
	ROUTE_LOOPBACK,  /* only from this machine; from elsewhere it is not there */
	ROUTE_MONITOR,   /* the same, but metrics.token opens it */
};
/* How else than by a header a route knows whose the request is. */
enum route_known {
	KNOWN_BY_PATH = 1,    /* TOKEN_PATH in front of it is understood */
	KNOWN_BY_NETWORK = 2, /* doors.trusted */
	KNOWN_BY_FRONT = 4,   /* a front end's users (lib/oauth/oauth_front.h) */
};
struct route {
	const char *path;
	bool below;          /* everything below the path; the rest is handed on */
	const char *methods; /* for 405, Allow, and the preflight of pages */
	enum route_auth auth;
	bool cors; /* pages of allowed Origins may read the replies */
	void (*handle)(struct http_exchange *exchange, const char *method, const char *rest);
	void (*headers)(struct reply *reply); /* of all its replies; or NULL */
	unsigned known; /* of enum route_known */
};

/* For supervisors and load balancers on the same machine. */
static void health_get(struct http_exchange *exchange, const char *method, const char *rest)
{
	(void)method;
	(void)rest;
	exchange->reply->status = 200;
	reply_header(exchange->reply, "Content-Type", "text/plain");
	buf_puts(&exchange->reply->body, "ok\n");
}

/* For the web server, before it takes in a large body: is the token good? */
static void token_get(struct http_exchange *exchange, const char *method, const char *rest)
{
	(void)method;
	(void)rest;
	exchange->reply->status = 204;
}

static const struct route routes[] = {
	{"/mcp", false, "POST, GET, DELETE", ROUTE_TOKEN, true, mcp_handle, NULL, 0},
	/* Some clients add the slash. */
	{"/mcp/", false, "POST, GET, DELETE", ROUTE_TOKEN, true, mcp_handle, NULL, 0},
	{"/mcp/server-card", false, "GET, HEAD", ROUTE_PUBLIC, true, server_card, NULL, 0},
	{"/sse", false, "GET", ROUTE_TOKEN, true, sse_stream, NULL, 0},
	{"/messages", false, "POST", ROUTE_TOKEN, true, sse_message, NULL, 0},
	{"/files/", true, "GET, HEAD, PUT, POST, DELETE", ROUTE_READ_OPEN, true, files_handle, NULL, 0},
	/* Signs in by itself. */
	{"/admin", false, "GET, HEAD, POST", ROUTE_OPEN, false, admin_handle, admin_headers, 0},
	{"/admin/", true, "GET, HEAD, POST", ROUTE_OPEN, false, admin_handle, admin_headers, 0},
	{"/v1/", true, "GET, POST, DELETE", ROUTE_TOKEN, false, api_handle, NULL,
	 KNOWN_BY_PATH | KNOWN_BY_FRONT},
	{"/fusion/", true, "GET, POST", ROUTE_TOKEN, false, doors_fusion, NULL,
	 KNOWN_BY_PATH | KNOWN_BY_NETWORK},
	{"/piston/", true, "GET, POST, DELETE", ROUTE_TOKEN, false, doors_piston, NULL,
	 KNOWN_BY_PATH | KNOWN_BY_NETWORK},
	{"/_token", false, "GET", ROUTE_KNOWN, false, token_get, NULL,
	 KNOWN_BY_PATH | KNOWN_BY_NETWORK | KNOWN_BY_FRONT},
	/* What clients and people look for before they have a token. */
	{"/", false, "GET, HEAD", ROUTE_OAUTH, true, landing_root, NULL, 0},
	{"/.well-known/oauth-protected-resource", false, "GET, HEAD", ROUTE_OAUTH, true,
	 oauth_metadata_resource, NULL, 0},
	{"/.well-known/oauth-protected-resource/mcp", false, "GET, HEAD", ROUTE_OAUTH, true,
	 oauth_metadata_resource, NULL, 0},
	{"/.well-known/oauth-protected-resource/sse", false, "GET, HEAD", ROUTE_OAUTH, true,
	 oauth_metadata_resource, NULL, 0},
	{"/.well-known/oauth-authorization-server", false, "GET, HEAD", ROUTE_BUILTIN, true, oauth_metadata_server,
	 NULL, 0},
	{"/authorize", false, "GET, HEAD, POST", ROUTE_PAGE, false, oauth_authorize_handle, NULL, 0},
	{"/token", false, "POST", ROUTE_BUILTIN, true, oauth_token_post, NULL, 0},
	{"/revoke", false, "POST", ROUTE_BUILTIN, true, oauth_token_revoke, NULL, 0},
	{"/register", false, "POST", ROUTE_BUILTIN, true, oauth_register_post, NULL, 0},
	{"/healthz", false, "GET, HEAD", ROUTE_LOOPBACK, true, health_get, NULL, 0},
	{"/readyz", false, "GET, HEAD", ROUTE_MONITOR, false, monitor_ready, NULL, 0},
	{"/metrics", false, "GET, HEAD", ROUTE_MONITOR, false, monitor_metrics, NULL, 0},
};

/* Behind "/t/TOKEN", where clients that have nothing but a URL put it. */
static const char *behind_token(const char *path)
{
	const char *slash = str_starts(path, TOKEN_PATH) ? strchr(path + strlen(TOKEN_PATH), '/') : NULL;

	return slash ? slash : path;
}

static const struct route *find_route(const char *path)
{
	const char *behind = behind_token(path);

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		if ((behind == path || (routes[i].known & KNOWN_BY_PATH)) &&
		    (routes[i].below ? str_starts(behind, routes[i].path) : streq(behind, routes[i].path)))
			return &routes[i];
	}
	return NULL;
}

bool routes_known(const char *path)
{
	return find_route(path);
}

/* "POST" in "POST, DELETE"? */
static bool method_listed(const char *methods, const char *method)
{
	size_t length = strlen(method);

	for (const char *p = methods; length && (p = strstr(p, method)); p += length) {
		if ((p == methods || p[-1] == ' ') && (p[length] == ',' || p[length] == '\0'))
			return true;
	}
	return false;
}

/* May this request use the route? false: the reply says why not. */
static bool admitted(struct http_exchange *exchange, const struct route *route, const char *method)
{
	const struct fixtures *fixtures = exchange->server->fixtures;
	struct access_refusal refusal = {
		.status = 503,
		.retry_seconds = CLOSING_RETRY_SECONDS,
		.text = "The gateway is being restarted: nothing was done, send the request again",
	};

	if (exchange->server->closing && route->auth == ROUTE_BUILTIN) {
		oauth_reply_busy(exchange, 503, CLOSING_RETRY_SECONDS, refusal.text);
		return false;
	}
	if (exchange->server->closing && route->auth != ROUTE_LOOPBACK && route->auth != ROUTE_MONITOR) {
		mcp_refuse(exchange, NULL, &refusal);
		return false;
	}
	switch (route->auth) {
	case ROUTE_OPEN:
	case ROUTE_PUBLIC:
	case ROUTE_OAUTH:
	case ROUTE_BUILTIN:
	case ROUTE_PAGE:
		return true;
	case ROUTE_READ_OPEN:
		if (streq(method, "GET") || streq(method, "HEAD"))
			return true;
		__attribute__((fallthrough));
	case ROUTE_KNOWN:
	case ROUTE_TOKEN:
		if ((fixtures ? fixtures->authenticate(exchange) : access_token(exchange)) < 0)
			return false;
		if (route->auth == ROUTE_KNOWN || access_rate(exchange, &refusal))
			return true;
		mcp_refuse(exchange, NULL, &refusal);
		return false;
	case ROUTE_MONITOR:
		if (monitor_token(exchange))
			return true;
		__attribute__((fallthrough));
	case ROUTE_LOOPBACK:
		if (access_from_loopback(exchange->request))
			return true;
		reply_refuse(exchange->reply, 404, NOT_FOUND);
	}
	return false;
}

/* The documents of OAuth name one host: to a client that came by another one they would be of no use. */
static bool is_there(const struct config *config, const struct route *route, const char *host)
{
	const enum config_oauth mode = config_oauth(config);

	switch (route->auth) {
	case ROUTE_OAUTH:
		return mode != CONFIG_OAUTH_OFF && http_host_base(config, host);
	case ROUTE_BUILTIN:
	case ROUTE_PAGE:
		return mode == CONFIG_OAUTH_BUILTIN && http_host_base(config, host);
	default:
		return true;
	}
}

/* May pages of every Origin read the replies? There is nothing of a browser's user in them. */
static bool any_origin(const struct route *route)
{
	return route->auth == ROUTE_PUBLIC || route->auth == ROUTE_OAUTH || route->auth == ROUTE_BUILTIN;
}

/* Of a page that may read nothing here, or of one of any host where everybody may. */
static bool origin_allowed(const struct config *config, const struct route *route, const char *origin)
{
	return any_origin(route) || route->auth == ROUTE_PAGE || http_origin_allowed(config, origin) ||
	       (route->cors && http_origin_connector(config, origin));
}

/* May the request come from where it comes? false: the reply says why not. *ret_origin: the page's; NULL: no page's. */
static bool comes_rightly(struct http_exchange *exchange, const struct route *route, const char **ret_origin,
			  char origin[HOST_MAX])
{
	const struct config *config = exchange->server->config;
	char host[HOST_MAX];
	/* A header that does not fit the buffer must not pass for an absent one. */
	const char *host_raw = request_param(exchange->request, "HTTP_HOST"),
		   *origin_raw = request_param(exchange->request, "HTTP_ORIGIN");
	const char *host_value = request_header(exchange->request, "HTTP_HOST", host, sizeof(host));
	const char *origin_value = request_header(exchange->request, "HTTP_ORIGIN", origin, HOST_MAX);

	if (!route || !is_there(config, route, host_value)) {
		reply_refuse(exchange->reply, 404, NOT_FOUND);
		return false;
	}
	if ((host_raw && !host_value) || !http_host_allowed(config, host_value)) {
		reply_refuse(exchange->reply, 403,
			     "this Host is not served here: public_base_url or gateway.allowed_hosts must name it");
		return false;
	}
	if ((origin_raw && !origin_value) || !origin_allowed(config, route, origin_value)) {
		reply_refuse(
			exchange->reply, 403,
			"requests from pages of this Origin are not allowed: gateway.allowed_origins must name it");
		return false;
	}
	*ret_origin = origin_value;
	return true;
}

/* route NULL: there is none. */
static void dispatch(struct http_exchange *exchange, const struct route *route, const char *method, const char *path)
{
	char origin[HOST_MAX];
	const char *origin_value = NULL;
	struct reply *reply = exchange->reply;

	if (!comes_rightly(exchange, route, &origin_value, origin))
		return;
	if (any_origin(route))
		http_cors_headers(reply, "*");
	else if (origin_value && route->cors)
		http_cors_headers(reply, origin_value);
	if (route->cors && streq(method, "OPTIONS") && http_cors_preflight(exchange, route->methods))
		return;
	if (any_origin(route) && streq(method, "OPTIONS")) { /* some clients ask like this */
		reply->status = 204;
		return;
	}
	if (!admitted(exchange, route, method))
		return;
	if (!method_listed(route->methods, method)) {
		reply_header(reply, "Allow", "%s", route->methods);
		reply_refuse(reply, 405, "this method is not allowed here");
		return;
	}
	route->handle(exchange, method, behind_token(path) + strlen(route->path));
}

void routes_declare(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		metrics_declare(METRICS_ROUTE, routes[i].path);
}

/* Every reply of a route begins with its headers, also one in the place of another. route NULL: there is none. */
static void begin_headers(struct reply *reply, const struct route *route)
{
	buf_reset(&reply->headers);
	if (route && route->headers)
		route->headers(reply);
}

static void end(struct http_exchange *exchange)
{
	struct reply *reply = exchange->reply;
	const char *route = exchange->route ? exchange->route : "-";
	char status[16], duration[32];

	body_leave(exchange);
	if (reply->body.overflow || reply->headers.overflow) {
		log_event(LOG_ERROR, "reply too large", "rpc", reply->method, NULL);
		begin_headers(reply, exchange->route ? find_route(exchange->route) : NULL);
		reply_refuse(reply, 500, "the answer is larger than the server can send");
	}
	snprintf(status, sizeof(status), "%d", reply->gone ? 499 : reply->status);
	snprintf(duration, sizeof(duration), "%lld", (long long)(clock_monotonic_us() - exchange->began_us));
	metrics_add(METRIC_HTTP, route, status, 1);
	log_event(LOG_INFO, "request", "method", exchange->method, "route", route, "status", status, "us", duration,
		  "owner", reply->owner, "rpc", reply->method, "tool", reply->tool, "outcome", reply->outcome,
		  "request_id", reply->request_id, NULL);
}

void routes_handle(struct server *server, const struct request *request, struct reply *reply)
{
	auto_free char *path = xmalloc(HTTP_PATH_MAX);
	const char *method = request_param(request, "REQUEST_METHOD");
	struct http_exchange exchange = {
		.server = server, .request = request, .reply = reply, .began_us = clock_monotonic_us(), .end = end};
	struct err err = ERR_INIT;

	if (!method)
		method = "";
	snprintf(exchange.method, sizeof(exchange.method), "%s", method);
	request_id(request, reply->request_id);
	memcpy(exchange.client.request_id, reply->request_id, sizeof(exchange.client.request_id));
	client_read(server->config, request, &exchange.client);
	reply->head = streq(method, "HEAD");
	path[0] = '\0';
	int result = http_path(request, routes_known, path, &err);
	const struct route *route = find_route(path);
	const char *behind = behind_token(path);

	exchange.route = route ? route->path : NULL;
	exchange.trusts = route && (route->known & KNOWN_BY_NETWORK);
	exchange.fronts = route && (route->known & KNOWN_BY_FRONT);
	if (behind != path) {
		exchange.path_token = path + strlen(TOKEN_PATH);
		exchange.path_token_length = (size_t)(behind - exchange.path_token);
	}
	begin_headers(reply, route);
	if (result < 0)
		reply_refuse(reply, 400, err.text);
	else
		dispatch(&exchange, route, method, path);
	if (!reply->parked)
		end(&exchange);
}
