/*
 * relay_hello.h - the server name in the first message of a TLS connection (ClientHello), read out of the bytes as they come.
 *
 * Strict, as relay_http.h is: a message that two servers could read differently is unreadable, and what is unreadable does not go on.
 * That includes an encrypted ClientHello (ECH): the name that can be read is not the one that is meant. A hello in the format of SSL 2
 * has no place for a name. Pure functions. Facts: RFC 8446 4.1.2 and 5.1, RFC 5246 E.2, RFC 6066 3, RFC 9849 (ECH).
 */
#pragma once

#include <stddef.h>

#include "../lib/host.h"

#define RELAY_HELLO_MAX 16384 /* records and message; clients' hellos have 200 to 2,000 bytes, with large session tickets some more */

enum relay_hello {
	RELAY_HELLO_NONE, /* this is not TLS */
	RELAY_HELLO_MORE, /* it may be, or is: not all of it has come */
	RELAY_HELLO_NAMED,
	RELAY_HELLO_NAMELESS,
	RELAY_HELLO_UNREADABLE,
};
/* `data`: the connection's first bytes. NAMED: ret_host is the name, normalised; "" where it is none that host_normalise takes.
 * An answer other than MORE is the same whatever comes behind. */
enum relay_hello relay_hello_parse(const void *data, size_t length, char ret_host[HOST_SIZE]);
