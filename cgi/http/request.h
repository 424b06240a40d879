/*
 * request.h - a request as the web server's variables (CGI/1.1, FastCGI) or a line of standard input give it.
 */
#pragma once

#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

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

/* A variable of the request, NULL if absent. */
const char *request_param(const struct request *request, const char *name);
/* The same without blanks and tabs around it, in the caller's buffer; NULL if absent or longer than the buffer. */
const char *request_header(const struct request *request, const char *name, char *buffer, size_t size);
