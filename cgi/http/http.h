/*
 * http.h - a request as the web server's variables (CGI/1.1, FastCGI) give it, a reply, and the rules of HTTP that
 * belong to no route.
 *
 * fcgi.c and cgi.c make a struct request and send a struct reply; what happens between (cgi/routes.h) does not know
 * which of them it was.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/config.h"
#include "lib/base/json.h"
#include "lib/store/store.h"

#define HTTP_REPLY_MAX  (256 * 1024 * 1024)
#define HTTP_HEADER_MAX (16 * 1024) /* all headers of a reply */
#define HTTP_PATH_MAX   (8 * 1024)  /* bytes of a request's path */

struct request {
	const char *const *params; /* "NAME=value" as CGI names them, ended by NULL */
	/* Appends the body, at most the buffer's max; 0 or negative. */
	int (*read_body)(void *arg, struct buf *body, struct err *err);
	/* Sends bytes of the reply at once, the head first (streams); 0, or negative: the client is gone. NULL: this
	 * server cannot. */
	int (*send)(void *arg, const void *data, size_t length);
	/* Where messages are no part of a stream of bytes (stdio): sends one, JSON text, at once; then `send` is NULL.
	 */
	int (*message)(void *arg, const char *text);
	/* Ends a reply that was sent so, while the request goes on. May be NULL. */
	void (*end)(void *arg);
	void *arg;
	int hangup_fd; /* reports POLLRDHUP when the client is gone; -1: cannot be told */
};

struct reply {
	int status;
	struct buf headers; /* "Name: value\r\n"…, without Status and Content-Length */
	struct buf body;
	int file_fd; /* >= 0: the body is `file_length` bytes of this file */
	int64_t file_length;
	bool delegated; /* the web server sends a file (X-Accel-Redirect): no Content-Length from us */
	bool head;      /* answer to HEAD: the body is not sent */
	bool gone;      /* the client left: nothing is sent */
	bool streamed;  /* everything was sent already (stream.h) */
	char session[ID_SIZE]; /* that it opens (and names in a header); "": none */
	/* for the log line */
	char owner[STORE_OWNER_MAX + 1];
	char method[64], tool[64], outcome[32];
};

void reply_init(struct reply *reply);
void reply_clear(struct reply *reply);
#define auto_reply __attribute__((cleanup(reply_clear)))
void reply_header(struct reply *reply, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Status and body {"error":"…"}. */
void reply_refuse(struct reply *reply, int status, const char *text);
/* Status and a JSON body. */
void reply_json(struct reply *reply, int status, struct json_object *body);
/* The head as a CGI program writes it: "Status: 200 OK\r\n…\r\n\r\n". */
void reply_print_head(const struct reply *reply, struct buf *out);

/* Serves one request; never fails: what goes wrong is in the reply. */
struct server;
typedef void http_handler(struct server *server, const struct request *request, struct reply *reply);

/* A variable of the request, NULL if absent. */
const char *request_param(const struct request *request, const char *name);
/* The same without blanks and tabs around it, in the caller's buffer; NULL if absent or longer than the buffer. */
const char *request_header(const struct request *request, const char *name, char *buffer, size_t size);

/* May a request that names this Host, or comes from a page of this Origin, be served? NULL: no such header, which no
 * browser does. */
bool http_host_allowed(const struct config *config, const char *host);
bool http_origin_allowed(const struct config *config, const char *origin);
/* The path of the request, still encoded, without query; ERR_INVALID. The name of a CGI script in front of it is cut
 * off unless the path is `known` as it is. */
int http_path(const struct request *request, bool (*known)(const char *path), char ret[HTTP_PATH_MAX], struct err *err);
