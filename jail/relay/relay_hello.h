/*
 * relay_hello.h - the server name in the first message of a TLS connection (ClientHello), read out of the bytes as they
 * come, and whether the server's answer asks for another such message.
 *
 * Strict, as relay_http.h is: a message that two servers could read differently is unreadable, and what is unreadable
 * is not passed on. That includes an encrypted ClientHello (ECH): the name that can be read is not the one that is
 * meant. A hello in the format of SSL 2 has no place for a name. Pure functions. Facts: RFC 8446 4.1.2 and 5.1, RFC
 * 8446 4.1.3 and 4.1.4 (HelloRetryRequest), RFC 5246 E.2, RFC 6066 3, RFC 9849 (ECH).
 */
#pragma once

#include <stddef.h>

#include "lib/base/host.h"

/* Records and message. Clients' hellos have 200 to 2,000 bytes, with large session tickets some more. */
#define RELAY_HELLO_MAX 16384

enum relay_hello {
	RELAY_HELLO_NONE, /* this is not TLS */
	RELAY_HELLO_MORE, /* it may be, or is: not all of it has come */
	RELAY_HELLO_NAMED,
	RELAY_HELLO_NAMELESS,
	RELAY_HELLO_UNREADABLE,
};
/* `data`: the connection's first bytes. NAMED: ret_host is the name, normalised; "" where it is none that
 * host_normalise takes. NAMED, NAMELESS: ret_end is where its records end; 0: it is in the format of SSL 2, where
 * the end does not matter. An answer other than MORE is the same whatever comes behind. */
enum relay_hello relay_hello_parse(const void *data, size_t length, char ret_host[HOST_SIZE], size_t *ret_end);

#define RELAY_REPLY_MAX 1024 /* what a server says before its hello: a letter (PostgreSQL), warnings */
enum relay_reply {
	RELAY_REPLY_MORE,  /* there is no ServerHello yet */
	RELAY_REPLY_HELLO, /* one that accepts the client's hello: there will be no other */
	RELAY_REPLY_AGAIN, /* HelloRetryRequest */
};
/* `data`: what a server has said since it got the ClientHello. Without TLS on the server the answer is always MORE. */
enum relay_reply relay_hello_reply(const void *data, size_t length);
