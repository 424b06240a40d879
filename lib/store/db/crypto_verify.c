/*
 * crypto_verify.c - see crypto_verify.h.
 *
 * A key is an EVP_PKEY and its kind, whether it came as numbers or in PEM; the bounds are the same.
 * A signature is checked only where the scheme is one of the key's kind.
 *
 * Facts: OpenSSL 3.0; RFC 7518, RFC 8032.
 */
#include "crypto_verify.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

#define RSA_BITS_MIN      2048
#define RSA_BITS_MAX      8192
#define EXPONENT_BITS_MAX 64
#define FIELD_MAX         48 /* bytes of a coordinate of P-384 */
#define ED25519_SIZE      32

struct verify_key {
	enum verify_kind kind;
	EVP_PKEY *key;
};

#define CLEANUP(name, type, give_back)                                                                                 \
	static void name##_clear(type **value)                                                                         \
	{                                                                                                              \
		give_back(*value);                                                                                     \
	}
CLEANUP(context, EVP_MD_CTX, EVP_MD_CTX_free)
CLEANUP(number, BIGNUM, BN_free)
CLEANUP(builder, OSSL_PARAM_BLD, OSSL_PARAM_BLD_free)
CLEANUP(params, OSSL_PARAM, OSSL_PARAM_free)
CLEANUP(pair, ECDSA_SIG, ECDSA_SIG_free)
#define auto_context __attribute__((cleanup(context_clear)))
#define auto_number  __attribute__((cleanup(number_clear)))
#define auto_builder __attribute__((cleanup(builder_clear)))
#define auto_params  __attribute__((cleanup(params_clear)))
#define auto_pair    __attribute__((cleanup(pair_clear)))

static struct verify_key *wrap(enum verify_kind kind, EVP_PKEY *key)
{
	struct verify_key *wrapped;

	if (key == NULL)
		return NULL;
	wrapped = xcalloc(1, sizeof(*wrapped));
	*wrapped = (struct verify_key){kind, key};
	return wrapped;
}

static struct verify_key *from_params(enum verify_kind kind, const char *name, OSSL_PARAM_BLD *builder)
{
	auto_params OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
	EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, name, NULL);
	EVP_PKEY *key = NULL;

	if (params != NULL && context != NULL && EVP_PKEY_fromdata_init(context) == 1)
		EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params);
	EVP_PKEY_CTX_free(context);
	return wrap(kind, key);
}

struct verify_key *verify_key_rsa(const uint8_t *modulus, size_t n_modulus, const uint8_t *exponent, size_t n_exponent)
{
	if (n_modulus == 0 || n_modulus > RSA_BITS_MAX / 8 || n_exponent == 0 || n_exponent > EXPONENT_BITS_MAX / 8)
		return NULL;
	auto_number BIGNUM *n = BN_bin2bn(modulus, (int)n_modulus, NULL);
	auto_number BIGNUM *e = BN_bin2bn(exponent, (int)n_exponent, NULL);
	auto_builder OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();

	if (n == NULL || e == NULL || builder == NULL || BN_num_bits(n) < RSA_BITS_MIN || !BN_is_odd(n) ||
	    !BN_is_odd(e) || BN_is_one(e))
		return NULL;
	if (OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) != 1 ||
	    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e) != 1)
		return NULL;
	return from_params(VERIFY_RSA, "RSA", builder);
}

static size_t field_of(enum verify_kind kind)
{
	return kind == VERIFY_P384 ? FIELD_MAX : 32;
}

struct verify_key *verify_key_ec(enum verify_kind kind, const uint8_t *x, const uint8_t *y, size_t length)
{
	uint8_t point[1 + 2 * FIELD_MAX] = {4}; /* uncompressed */
	auto_builder OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();

	if ((kind != VERIFY_P256 && kind != VERIFY_P384) || length != field_of(kind) || builder == NULL)
		return NULL;
	memcpy(point + 1, x, length);
	memcpy(point + 1 + length, y, length);
	if (OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME,
					    kind == VERIFY_P256 ? "P-256" : "P-384", 0) != 1 ||
	    OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, 1 + 2 * length) != 1)
		return NULL;
	return from_params(kind, "EC", builder);
}

struct verify_key *verify_key_ed25519(const uint8_t *key, size_t length)
{
	return length == ED25519_SIZE
		       ? wrap(VERIFY_ED25519, EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, length))
		       : NULL;
}

/* False: none of the kinds. */
static bool kind_of(EVP_PKEY *key, enum verify_kind *ret)
{
	const int bits = EVP_PKEY_get_bits(key);
	char curve[32] = "";

	if (EVP_PKEY_is_a(key, "RSA")) {
		*ret = VERIFY_RSA;
		return bits >= RSA_BITS_MIN && bits <= RSA_BITS_MAX;
	}
	if (EVP_PKEY_is_a(key, "ED25519")) {
		*ret = VERIFY_ED25519;
		return true;
	}
	if (!EVP_PKEY_is_a(key, "EC") || EVP_PKEY_get_group_name(key, curve, sizeof(curve), NULL) != 1)
		return false;
	*ret = streq(curve, "secp384r1") ? VERIFY_P384 : VERIFY_P256;
	return streq(curve, "secp384r1") || streq(curve, "prime256v1");
}

struct verify_key *verify_key_pem(const char *text, size_t length, size_t *ret_length)
{
	BIO *in = length <= INT_MAX ? BIO_new_mem_buf(text, (int)length) : NULL;
	EVP_PKEY *key = in ? PEM_read_bio_PUBKEY(in, NULL, NULL, NULL) : NULL;
	enum verify_kind kind = VERIFY_RSA;

	*ret_length = key ? length - BIO_pending(in) : 0;
	BIO_free(in);
	if (key && kind_of(key, &kind))
		return wrap(kind, key);
	EVP_PKEY_free(key);
	return NULL;
}

void verify_key_free(struct verify_key *key)
{
	if (key != NULL)
		EVP_PKEY_free(key->key);
	free(key);
}

enum verify_kind verify_key_kind(const struct verify_key *key)
{
	return key->kind;
}

static bool fits(enum verify_kind kind, enum verify_scheme scheme)
{
	switch (scheme) {
	case VERIFY_PKCS1:
	case VERIFY_PSS:
		return kind == VERIFY_RSA;
	case VERIFY_ECDSA:
		return kind == VERIFY_P256 || kind == VERIFY_P384;
	case VERIFY_EDDSA:
		return kind == VERIFY_ED25519;
	}
	return false;
}

/* r and s as libcrypto wants them, in DER; the caller's (OPENSSL_free). NULL: of another length. */
static uint8_t *to_der(enum verify_kind kind, const uint8_t *signature, size_t length, size_t *ret_length)
{
	const size_t field = field_of(kind);
	uint8_t *der = NULL;

	if (length != 2 * field)
		return NULL;
	auto_pair ECDSA_SIG *pair = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(signature, (int)field, NULL), *s = BN_bin2bn(signature + field, (int)field, NULL);

	if (pair == NULL || r == NULL || s == NULL || ECDSA_SIG_set0(pair, r, s) != 1) {
		BN_free(r);
		BN_free(s);
		return NULL;
	}
	const int size = i2d_ECDSA_SIG(pair, &der);

	if (size <= 0)
		return NULL;
	*ret_length = (size_t)size;
	return der;
}

static const EVP_MD *digest_of(int bits)
{
	return bits == 256 ? EVP_sha256() : bits == 384 ? EVP_sha384() : bits == 512 ? EVP_sha512() : NULL;
}

bool verify_signature(const struct verify_key *key, struct verify_how how, const void *text, size_t length,
		      const uint8_t *signature, size_t n_signature)
{
	const enum verify_scheme scheme = how.scheme;
	auto_context EVP_MD_CTX *context = EVP_MD_CTX_new();
	const EVP_MD *digest = scheme == VERIFY_EDDSA ? NULL : digest_of(how.bits);
	EVP_PKEY_CTX *padding = NULL;
	uint8_t *der = NULL;

	if (context == NULL || !fits(key->kind, scheme) || (scheme != VERIFY_EDDSA && digest == NULL) ||
	    n_signature == 0 || EVP_DigestVerifyInit(context, &padding, digest, NULL, key->key) != 1)
		return false;
	if (scheme == VERIFY_PSS && (EVP_PKEY_CTX_set_rsa_padding(padding, RSA_PKCS1_PSS_PADDING) != 1 ||
				     EVP_PKEY_CTX_set_rsa_pss_saltlen(padding, RSA_PSS_SALTLEN_DIGEST) != 1))
		return false;
	if (scheme == VERIFY_ECDSA) {
		signature = der = to_der(key->kind, signature, n_signature, &n_signature);
		if (der == NULL)
			return false;
	}
	const bool good = EVP_DigestVerify(context, signature, n_signature, text, length) == 1;

	OPENSSL_free(der);
	return good;
}
