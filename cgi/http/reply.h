/*
 * reply.h - what is answered to a request: made by a route, sent by fcgi.c, cgi.c or the server on standard input and
 * output.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/json.h"
#include "lib/store/store.h"
#include "request.h"

#define HTTP_REPLY_MAX  (256 * 1024 * 1024)
#define HTTP_HEADER_MAX (16 * 1024) /* all headers of a reply */

struct reply {
	int status;
	struct buf headers; /* "Name: value\r\n"…, without Status and Content-Length */
	struct buf body;
	int file_fd; /* >= 0: the body is `file_length` bytes of this file from `file_offset` on */
	int64_t file_offset, file_length;
	bool delegated; /* the web server sends a file (X-Accel-Redirect): no Content-Length from us */
	bool head;      /* answer to HEAD: the body is not sent */
	bool gone;      /* the client left: nothing is sent */
	bool parked;    /* the answer comes later (request_parked) */
	bool streamed;  /* everything was sent already (stream.h) */
	char session[ID_SIZE]; /* that it opens (and names in a header); "": none */
	char request_id[REQUEST_ID_SIZE]; /* "": standard input and output have none */
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
