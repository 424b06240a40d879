/*
 * request.h - a request as the web server's variables (CGI/1.1, FastCGI) or a line of standard input give it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct reply;
/* A request that has left its thread: its answer is owed, once. */
struct request_parked {
	int fd;     /* reports POLLRDHUP when the client is gone */
	unsigned id;
	void (*answer)(const struct request_parked *parked, const struct reply *reply); /* from any thread */
};

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
	/* Takes the request away from its thread, when its body was read: no reply is sent for what the handler
	 * returns. False: it stays. NULL: this server cannot. */
	bool (*park)(void *arg, struct request_parked *ret);
	void *arg;
	int hangup_fd; /* reports POLLRDHUP when the client is gone; -1: cannot be told */
};

/* A variable of the request, NULL if absent. */
const char *request_param(const struct request *request, const char *name);
/* The same without blanks and tabs around it, in the caller's buffer; NULL if absent or longer than the buffer. */
const char *request_header(const struct request *request, const char *name, char *buffer, size_t size);
/* A member of the address's query, "name=…" or "name"; NULL: it is not there. The caller's. */
char *request_query(const struct request *request, const char *name);

/* By what a request is found again: 32 lower-case hexadecimal digits, nginx's $request_id, which is in nginx's log, in
 * ours, in the execution's row, in the jailer's lines and in the reply (X-Request-Id). Where the web server gives none,
 * a new one. */
#define REQUEST_ID_SIZE 33
void request_id(const struct request *request, char ret[REQUEST_ID_SIZE]);
/* The beginning of a `traceparent` (W3C trace context) that every version has; false: it is missing or not valid. It
 * comes from strangers: it is checked, recorded and shown, and decides nothing. */
#define REQUEST_TRACE_SIZE 56 /* "00-" 32 "-" 16 "-" 2, and the NUL */
bool request_trace(const char *text, char ret[REQUEST_TRACE_SIZE]);
