/*
 * http.h - the rules of HTTP that belong to no route, over a request (request.h) and its reply (reply.h).
 *
 * fcgi.c and cgi.c make a struct request and send a struct reply; what happens between (cgi/routes.h) does not know
 * which of them it was.
 *
 * Pages of allowed Origins may read our answers; the browser asks first (preflight). Cookies play no part: a page needs
 * a bearer token like everybody else.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/config.h"
#include "lib/store/audit/store_audit.h"
#include "reply.h"
#include "request.h"
#include "server.h"

#define HTTP_PATH_MAX   (8 * 1024)  /* bytes of a request's path */

/* One HTTP request on its way to its reply, after the token was checked. */
struct http_exchange {
	struct server *server;
	const struct request *request;
	struct reply *reply;
	int64_t began_us; /* monotonic: when the request was taken; 0: nobody measures it */
	struct store_token token; /* whose request it is; empty where a route needs none */
	struct store_client client; /* who sent it (client.h) */
	int places;         /* access_enter without access_leave: it has one place among limits.in_flight, or none */
	int64_t body_bytes; /* body.h: in the budgets */
	bool body_place;    /* body.h: one of `places` */
	bool waits;         /* a door's: it waits for its turn and takes no place among limits.in_flight */
	const char *route;  /* of routes.c; NULL: none */
	bool trusts;        /* doors.trusted counts for it */
	bool fronts;        /* a front end's users come here (oauth_front.h) */
	char method[16];
	const char *path_token; /* in the path (/t/TOKEN/…), of this length; NULL: none */
	size_t path_token_length;
	/* At the end of the request, before its reply is sent: gives back what it holds, counts it, writes its line. */
	void (*end)(struct http_exchange *exchange);
};

/* Serves one request; never fails: what goes wrong is in the reply. */
typedef void http_handler(struct server *server, const struct request *request, struct reply *reply);

/* May a request that names this Host, or comes from a page of this Origin, be served? NULL: no such header, which no
 * browser does. */
bool http_host_allowed(const struct config *config, const char *host);
bool http_origin_allowed(const struct config *config, const char *origin);
/* Is it the Origin of a service whose servers call us for its users (claude.ai, chatgpt.com …)? Only with OAuth. */
bool http_origin_connector(const struct config *config, const char *origin);
/* Is it public_base_url's own? The documents of OAuth name that host, and are served for no other. */
bool http_host_base(const struct config *config, const char *host);
/* The path of the request, still encoded, without query; ERR_INVALID. The name of a CGI script in front of it is cut
 * off unless the path is `known` as it is. */
int http_path(const struct request *request, bool (*known)(const char *path), char ret[HTTP_PATH_MAX], struct err *err);
/* CORS: on every reply to a page. */
void http_cors_headers(struct reply *reply, const char *origin);
/* Answers an OPTIONS request that asks for permission; false: it is none. */
bool http_cors_preflight(struct http_exchange *exchange, const char *allow);
