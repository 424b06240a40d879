/*
 * tls_hello.h - the first messages of TLS connections, as short as they can be (RFC 8446 4.1), as string literals:
 * sizeof() - 1 bytes.
 */
#pragma once

#define TLS_RANDOM "0123456789abcdef0123456789abcdef"
#define TLS_OFFER  "\0\0\x02\x13\x01\x01\0" /* no session, one cipher, no compression */

#define TLS_HELLO_NAMELESS "\x16\x03\x01\0\x2d\x01\0\0\x29\x03\x03" TLS_RANDOM TLS_OFFER
#define TLS_HELLO_NAME     "a.example"
#define TLS_HELLO                                                                                                      \
	"\x16\x03\x01\0\x41\x01\0\0\x3d\x03\x03" TLS_RANDOM TLS_OFFER "\0\x12\0\0\0\x0e\0\x0c\0\0\x09" TLS_HELLO_NAME
#define TLS_HELLO_EVIL                                                                                                 \
	"\x16\x03\x01\0\x3c\x01\0\0\x38\x03\x03" TLS_RANDOM TLS_OFFER "\0\x0d\0\0\0\x09\0\x07\0\0\x04"                 \
	"evil"

#define TLS_SERVER_HELLO_WITH(random) "\x16\x03\x03\0\x2c\x02\0\0\x28\x03\x03" random "\0\x13\x01\0\0\0"
#define TLS_SERVER_HELLO              TLS_SERVER_HELLO_WITH(TLS_RANDOM)
#define TLS_SERVER_TELLS              43 /* so many bytes of them */
/* HelloRetryRequest */
#define TLS_SERVER_RETRY                                                                                               \
	TLS_SERVER_HELLO_WITH("\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"                       \
			      "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c")

#define TLS_CHANGE_CIPHER "\x14\x03\x03\0\x01\x01"
#define TLS_WARNING       "\x15\x03\x03\0\x02\x01\x70" /* unrecognised name */
#define TLS_FAILURE       "\x15\x03\x03\0\x02\x02\x28"
#define TLS_EARLY         "\x17\x03\x03\0\x03xyz"
