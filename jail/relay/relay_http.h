/*
 * relay_http.h - what the egress relay understands of HTTP: the head of a proxy request, and the first line of a
 * proxy's answer.
 *
 * Strict, because two parsers that disagree are how a filter is passed: lines end with CR LF and hold no other control
 * character, the request line has two single blanks, a header line has a name, no line is folded. A CONNECT becomes a
 * tunnel; an absolute-form request (plain http) is rewritten for the origin: its Host is that of the URL, the proxy's
 * own headers are left out, and the connection is said to close after it; its body has a length or there is none, so
 * that the relay can end it there and no second request with another Host follows. A head that says its length twice or
 * in two ways is refused, in a tunnel, too. So is closed one with a body that comes through a tunnel and names the
 * tunnel's host; a WebSocket may still be made of it. Pure functions. Facts: RFC 9112 3.2 and 6, RFC 9110 7.8, RFC
 * 6455 4.1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/host.h"

#define RELAY_HEAD_MAX 16384 /* request line and headers */

struct relay_request {
	char host[HOST_SIZE]; /* normalised */
	uint16_t port;
	int kind; /* of enum host_kind */
	bool connect;
	int64_t body; /* bytes behind the head; absolute-form */
};

/* A token of RFC 9110: methods and names of headers. */
bool relay_http_token(const char *text, size_t length);
/* How many bytes the head has, its empty line included; 0: its end has not come yet. */
size_t relay_http_head(const char *data, size_t length);
/* `head`: what relay_http_head measured. For absolute-form, the rewritten head goes into `forward`. 0, or -1: not a
 * request that we serve. */
int relay_http_parse(const char *head, size_t length, struct relay_request *ret, struct buf *forward);
enum relay_origin {
	RELAY_ORIGIN_ALONE,   /* without a body: what comes behind it is another request */
	RELAY_ORIGIN_LAST,    /* it says that the connection closes after it */
	RELAY_ORIGIN_ANOTHER, /* its Host is another than `host`; none is not another */
	RELAY_ORIGIN_BAD,     /* none that we serve */
};
/* A request to the origin itself, of `length` bytes from the request line to the empty line; `forward` gets what is
 * passed on. */
enum relay_origin relay_http_origin(const char *head, size_t length, const char *host, struct buf *forward);
/* The status of an answer's head, or -1. */
int relay_http_status(const char *head, size_t length);
