/* crypto_sign.c - see crypto_sign.h. What fails but for a wrong signature is a broken library, and ends the program. */
#include "crypto_sign.h"

#include <openssl/evp.h>
#include <stdlib.h>

static void key_free(EVP_PKEY **key)
{
	EVP_PKEY_free(*key);
}
#define auto_key __attribute__((cleanup(key_free)))

static void context_free(EVP_MD_CTX **context)
{
	EVP_MD_CTX_free(*context);
}
#define auto_context __attribute__((cleanup(context_free)))

static void must(int worked)
{
	if (worked != 1)
		abort();
}

void sign_public(const uint8_t seed[SIGN_SEED_SIZE], uint8_t ret[SIGN_KEY_SIZE])
{
	auto_key EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, SIGN_SEED_SIZE);
	size_t length = SIGN_KEY_SIZE;

	must(key != NULL && EVP_PKEY_get_raw_public_key(key, ret, &length) == 1);
}

void sign_text(const uint8_t seed[SIGN_SEED_SIZE], const void *text, size_t length, uint8_t ret[SIGN_SIZE])
{
	auto_key EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, SIGN_SEED_SIZE);
	auto_context EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t size = SIGN_SIZE;

	must(key != NULL && context != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1);
	must(EVP_DigestSign(context, ret, &size, text, length));
}

int sign_check(const uint8_t key_bytes[SIGN_KEY_SIZE], const void *text, size_t length,
	       const uint8_t signature[SIGN_SIZE])
{
	auto_key EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key_bytes, SIGN_KEY_SIZE);
	auto_context EVP_MD_CTX *context = EVP_MD_CTX_new();

	if (key == NULL)
		return -1; /* not a point of the curve */
	must(context != NULL && EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1);
	return EVP_DigestVerify(context, signature, SIGN_SIZE, text, length) == 1 ? 0 : -1;
}
