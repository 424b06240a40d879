/* oauth_forge.h - an issuer of tokens for tests: keys of each kind, their JWK set, and JWTs that say what a test wants.
 */
#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

struct forge {
	EVP_PKEY *rsa, *p256, *p384, *ed25519;
};

static inline void forge_open(struct forge *forge)
{
	forge->rsa = EVP_RSA_gen(2048);
	forge->p256 = EVP_EC_gen("P-256");
	forge->p384 = EVP_EC_gen("P-384");
	forge->ed25519 = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
}

static inline void forge_close(struct forge *forge)
{
	EVP_PKEY_free(forge->rsa);
	EVP_PKEY_free(forge->p256);
	EVP_PKEY_free(forge->p384);
	EVP_PKEY_free(forge->ed25519);
}

/* A number of the key in base64url, `size` bytes (0: as many as it needs). The caller's. */
static inline char *forge_number(EVP_PKEY *key, const char *name, int size)
{
	BIGNUM *number = NULL;
	unsigned char bytes[2048];
	struct buf out;

	if (EVP_PKEY_get_bn_param(key, name, &number) != 1)
		abort();
	const int length = size ? BN_bn2binpad(number, bytes, size) : BN_bn2bin(number, bytes);

	BN_free(number);
	buf_init(&out, SIZE_MAX / 2);
	base64url_encode(&out, bytes, (size_t)length);
	return buf_steal(&out, NULL);
}

/* One key as a member of a set, with more members behind (",\"kid\":\"a\""). */
static inline void forge_jwk(struct buf *out, EVP_PKEY *key, const char *more)
{
	if (EVP_PKEY_is_a(key, "RSA")) {
		auto_free char *n = forge_number(key, OSSL_PKEY_PARAM_RSA_N, 0),
			       *e = forge_number(key, OSSL_PKEY_PARAM_RSA_E, 0);

		buf_printf(out, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s}", n, e, more);
	} else if (EVP_PKEY_is_a(key, "EC")) {
		const int size = EVP_PKEY_get_bits(key) / 8;
		auto_free char *x = forge_number(key, OSSL_PKEY_PARAM_EC_PUB_X, size),
			       *y = forge_number(key, OSSL_PKEY_PARAM_EC_PUB_Y, size);

		buf_printf(out, "{\"kty\":\"EC\",\"crv\":\"P-%d\",\"x\":\"%s\",\"y\":\"%s\"%s}", size * 8, x, y, more);
	} else {
		unsigned char bytes[32];
		size_t length = sizeof(bytes);

		EVP_PKEY_get_raw_public_key(key, bytes, &length);
		buf_puts(out, "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"");
		base64url_encode(out, bytes, length);
		buf_printf(out, "\"%s}", more);
	}
}

/* The four keys with the ids rsa, p256, p384 and ed. */
static inline void forge_set(struct buf *out, const struct forge *forge)
{
	buf_init(out, SIZE_MAX / 2);
	buf_puts(out, "{\"keys\":[");
	forge_jwk(out, forge->rsa, ",\"kid\":\"rsa\"");
	buf_puts(out, ",");
	forge_jwk(out, forge->p256, ",\"kid\":\"p256\",\"use\":\"sig\"");
	buf_puts(out, ",");
	forge_jwk(out, forge->p384, ",\"kid\":\"p384\",\"alg\":\"ES384\"");
	buf_puts(out, ",");
	forge_jwk(out, forge->ed25519, ",\"kid\":\"ed\",\"key_ops\":[\"verify\"]");
	buf_puts(out, "]}");
}

/* A signature as `alg` has it; *ret has room for 1024 bytes. `der`: ECDSA as libcrypto makes it. */
static inline size_t forge_sign(EVP_PKEY *key, const char *alg, const char *text, unsigned char *ret, bool der)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	EVP_PKEY_CTX *how = NULL;
	const bool eddsa = alg[0] == 'E' && alg[1] == 'd';
	const EVP_MD *digest = eddsa                ? NULL
			       : strstr(alg, "384") ? EVP_sha384()
			       : strstr(alg, "512") ? EVP_sha512()
						    : EVP_sha256();
	size_t length = 1024;

	if (EVP_DigestSignInit(context, &how, digest, NULL, key) != 1)
		abort();
	if (alg[0] == 'P') {
		EVP_PKEY_CTX_set_rsa_padding(how, RSA_PKCS1_PSS_PADDING);
		EVP_PKEY_CTX_set_rsa_pss_saltlen(how, RSA_PSS_SALTLEN_DIGEST);
	}
	if (EVP_DigestSign(context, ret, &length, (const unsigned char *)text, strlen(text)) != 1)
		abort();
	EVP_MD_CTX_free(context);
	if (!EVP_PKEY_is_a(key, "EC") || der)
		return length;
	const unsigned char *at = ret;
	ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &at, (long)length);
	const int size = EVP_PKEY_get_bits(key) / 8;
	unsigned char raw[128];

	BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, size);
	BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + size, size);
	ECDSA_SIG_free(pair);
	memcpy(ret, raw, (size_t)(2 * size));
	return (size_t)(2 * size);
}

/* header.claims, both base64url. The caller's. */
static inline char *forge_unsigned(const char *header, const char *claims)
{
	struct buf out;

	buf_init(&out, SIZE_MAX / 2);
	base64url_encode(&out, header, strlen(header));
	buf_putc(&out, '.');
	base64url_encode(&out, claims, strlen(claims));
	return buf_steal(&out, NULL);
}

/* A whole token. The caller's. */
static inline char *forge_token(EVP_PKEY *key, const char *alg, const char *header, const char *claims)
{
	auto_free char *text = forge_unsigned(header, claims);
	unsigned char signature[1024];
	const size_t length = forge_sign(key, alg, text, signature, false);
	struct buf out;

	buf_init(&out, SIZE_MAX / 2);
	buf_puts(&out, text);
	buf_putc(&out, '.');
	base64url_encode(&out, signature, length);
	return buf_steal(&out, NULL);
}
