/*
 * oauth_keys.h - the public keys of an issuer of tokens (a JWK set, RFC 7517), and which algorithm may use which key.
 *
 * HMAC and "none" have no name here, so no token can choose them. The key's type, curve, "use", "key_ops" and "alg"
 * must fit the token's algorithm; an entry that does not is not a key for it, whatever its id.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"

enum oauth_algorithm {
	OAUTH_RS256 = 1 << 0,
	OAUTH_RS384 = 1 << 1,
	OAUTH_RS512 = 1 << 2,
	OAUTH_PS256 = 1 << 3,
	OAUTH_PS384 = 1 << 4,
	OAUTH_PS512 = 1 << 5,
	OAUTH_ES256 = 1 << 6,
	OAUTH_ES384 = 1 << 7,
	OAUTH_EDDSA = 1 << 8,
};
/* "RS256" -> OAUTH_RS256; 0: none of them. */
unsigned oauth_keys_algorithm(const char *name);

#define OAUTH_KEYS_MAX   100
#define OAUTH_KEYS_BYTES (256 * 1024) /* of a set */

struct oauth_keys;
/* Entries of other types and malformed keys are passed over; ERR_INVALID where no usable key is left. */
int oauth_keys_parse(const char *text, size_t length, struct oauth_keys **ret, struct err *err);
/* Public keys in PEM, one after the other. They have no ids: a token may name any. */
int oauth_keys_parse_pem(const char *text, size_t length, struct oauth_keys **ret, struct err *err);
void oauth_keys_free(struct oauth_keys *keys); /* NULL is fine */
size_t oauth_keys_count(const struct oauth_keys *keys);

struct oauth_signed {
	unsigned algorithm; /* one of enum oauth_algorithm */
	const char *key_id; /* NULL: the token names none */
	const char *text;
	size_t length;
	const uint8_t *signature;
	size_t n_signature;
};
/* 0; ERR_NOT_FOUND: the set has no key of this id; ERR_DENIED: not signed by a key that may. Without an id, the keys
 * that fit are tried, at most four. Thread-safe. */
int oauth_keys_check(const struct oauth_keys *keys, const struct oauth_signed *what, struct err *err);
