/*
 * relay_inside.h - whom a program speaks to inside a connection that was made for one host.
 *
 * A server may answer for many names, and which one is meant is said inside: by the server name of TLS, or by Host of
 * HTTP. So what the program sends first is looked at, and passed on only when it names the connection's host:
 *
 *     TLS     the whole ClientHello is awaited, and passed on as it is; also behind PostgreSQL's request for TLS. What
 *             comes behind it waits for the server's answer: when that asks for another ClientHello, that one is looked
 *             at, too
 *     HTTP/1  has "HTTP/" in its first line, or another name that servers take for it. That line is passed on as it
 *             comes, so that other protocols do not wait; then the whole head is awaited, and rewritten by
 *             relay_http_origin. Behind a request without a body comes another one, which is looked at in the same way;
 *             a request with a body is the connection's last, because servers do not always agree where it ends
 *     other   names no host: passed on as it is
 *
 * Pure functions: the same bytes get the same answer, however they are cut into pieces.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"

#define RELAY_INSIDE_MAX 16384 /* bytes that are looked at; what names no host by then is unreadable */

enum relay_inside {
	RELAY_INSIDE_MORE,    /* not all of it has come */
	RELAY_INSIDE_FINE,    /* names the host, or none and need not: all that comes is passed on */
	RELAY_INSIDE_HELLO,   /* TLS that names the host, or none and need not: what comes behind it depends on
				 relay_hello_reply */
	RELAY_INSIDE_REQUEST, /* names the host; what comes behind it is looked at again */
	RELAY_INSIDE_WORD,    /* one word, RELAY_INSIDE_MAX long: what follows it shows whether it was a method */
	RELAY_INSIDE_ANOTHER,  /* names another */
	RELAY_INSIDE_NAMELESS, /* TLS without a name, where one must be */
	RELAY_INSIDE_UNREADABLE,
};
/* Where in the connection the bytes are. */
enum relay_inside_place {
	RELAY_PLACE_FIRST,  /* its beginning */
	RELAY_PLACE_AGAIN,  /* behind a REQUEST: another one, or nothing */
	RELAY_PLACE_WORD,   /* behind a WORD */
	RELAY_PLACE_SECOND, /* behind a HELLO whose answer was RELAY_REPLY_AGAIN: another one, or a word why not */
};
struct relay_inside_rule {
	const char *host; /* normalised */
	bool named;       /* TLS must have a server name */
	enum relay_inside_place place;
};
/* `data`: all that has come, at most RELAY_INSIDE_MAX. Up to WORD: what may be passed on of it goes into `forward`
 * (less than twice RELAY_INSIDE_MAX); with fewer bytes it was a beginning of that. HELLO, REQUEST, WORD: *ret_used
 * bytes of data are that. */
enum relay_inside relay_inside(const struct relay_inside_rule *rule, const char *data, size_t length,
			       struct buf *forward, size_t *ret_used);
