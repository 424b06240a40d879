/*
 * crypto.h - SHA-256 and HMAC-SHA-256 (libcrypto), sealed texts, random bytes, constant-time comparison, ids.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define SHA256_SIZE 32
#define SHA256_HEX_SIZE 65 /* 64 digits and the NUL */

struct sha256; /* a running digest */
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *digest, const void *data, size_t length);
void sha256_finish(struct sha256 *digest, char ret_hex[SHA256_HEX_SIZE]); /* frees it; ret_hex NULL: just frees */
void sha256_hex(const void *data, size_t length, char ret_hex[SHA256_HEX_SIZE]);
/* Of all that is in a file, with its size (NULL: not wanted); -1 and errno. */
int sha256_fd(int fd, char ret_hex[SHA256_HEX_SIZE], int64_t *ret_size);
void sha256_bytes(const void *data, size_t length, uint8_t ret[SHA256_SIZE]);
void hmac_sha256(const void *key, size_t key_length, const void *data, size_t length, uint8_t ret[SHA256_SIZE]);
struct crypto_part {
	const void *data;
	size_t length;
};
/* Of the parts one after the other. */
void hmac_sha256_parts(const void *key, size_t key_length, const struct crypto_part *parts, size_t count,
		       uint8_t ret[SHA256_SIZE]);

/* AES-256-GCM with a random nonce: appends nonce, ciphertext and tag. `context` (say, the row's id) is authenticated
 * with it, so that a sealed text opens nowhere but where it was put. unseal: ERR_CORRUPT, nothing appended, when key,
 * context or text are not the ones. */
#define SEAL_KEY_SIZE 32
#define SEAL_OVERHEAD 28 /* a sealed text is longer by this */
void seal(const uint8_t key[SEAL_KEY_SIZE], const char *context, const void *data, size_t length, struct buf *out);
int unseal(const uint8_t key[SEAL_KEY_SIZE], const char *context, const void *data, size_t length, struct buf *out,
	   struct err *err);

void random_bytes(void *ret, size_t length); /* getrandom; aborts if the kernel has none */
bool equal_constant_time(const void *a, const void *b, size_t length);

/* A UUID version 7 (RFC 9562): time-ordered, 74 random bits, lower-case text of 36 characters. Ids made in one process
 * are strictly increasing. Thread-safe. */
#define ID_SIZE 37
void id_new(char ret[ID_SIZE]);
bool id_valid(const char *text);
