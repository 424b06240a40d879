/*
 * crypto_verify.h - signatures of others, by libcrypto: RSA, ECDSA and Ed25519 with public keys as a JWK set has them.
 *
 * A key is made from plain numbers (big-endian, as RFC 7518 section 6 has them) and refused where libcrypto would take
 * more than is safe: RSA below 2048 bits or above 8192, an even modulus or exponent, an exponent of one or of more than
 * 64 bits. Points that are not on their curve are refused by libcrypto.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum verify_kind { VERIFY_RSA, VERIFY_P256, VERIFY_P384, VERIFY_ED25519 };
enum verify_scheme {
	VERIFY_PKCS1, /* RSASSA-PKCS1-v1_5 */
	VERIFY_PSS,   /* RSASSA-PSS with MGF1 of the same hash, salt as long as the hash */
	VERIFY_ECDSA, /* the signature is r and s, one after the other, each as long as the curve's field */
	VERIFY_EDDSA, /* has a hash of its own */
};

struct verify_key;
/* NULL: refused. */
struct verify_key *verify_key_rsa(const uint8_t *modulus, size_t n_modulus, const uint8_t *exponent, size_t n_exponent);
/* VERIFY_P256 or VERIFY_P384; x and y are as long as the curve's field. */
struct verify_key *verify_key_ec(enum verify_kind kind, const uint8_t *x, const uint8_t *y, size_t length);
struct verify_key *verify_key_ed25519(const uint8_t *key, size_t length);
/* The first public key of a text in PEM; *ret_length: how much of it was read, 0: there is no PEM in it. */
struct verify_key *verify_key_pem(const char *text, size_t length, size_t *ret_length);
void verify_key_free(struct verify_key *key); /* NULL is fine */
enum verify_kind verify_key_kind(const struct verify_key *key);

struct verify_how {
	enum verify_scheme scheme;
	int bits; /* of SHA-2: 256, 384, 512; Ed25519 needs none */
};
/* False: the signature is not by this key, or the scheme is not one of the key's kind. Thread-safe. */
bool verify_signature(const struct verify_key *key, struct verify_how how, const void *text, size_t length,
		      const uint8_t *signature, size_t n_signature);
