/*
 * codec.c - see codec.h. The only file that includes libcrypto's headers.
 *
 * Hex and base64 are our own, because what comes from clients must have exactly one spelling (libcrypto's decoder takes blanks,
 * missing padding and stray bits) and the error must say which character is wrong. Digests are libcrypto's; one that fails means
 * a broken library, and nothing could be recorded then, so it aborts. Ids are made under a lock from time, randomness and the last
 * id, so that they are in order and different over all threads.
 */
#include "codec.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <sys/random.h>

#include "util.h"

#define BASE64_BLOCK 1024 /* groups that are decoded before they go into the buffer */

static const char hex_digits[] = "0123456789abcdef";
static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void hex_encode(const uint8_t *data, size_t length, char *ret)
{
	for (size_t i = 0; i < length; i++) {
		ret[2 * i] = hex_digits[data[i] >> 4];
		ret[2 * i + 1] = hex_digits[data[i] & 15];
	}
	ret[2 * length] = '\0';
}

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	if (digit >= 'A' && digit <= 'F')
		return digit - 'A' + 10;
	return -1;
}

int hex_decode(const char *text, size_t length, uint8_t *ret)
{
	if (length % 2 != 0)
		return -1;
	for (size_t i = 0; i < length; i++)
		if (hex_value(text[i]) < 0)
			return -1;
	for (size_t i = 0; i < length / 2; i++)
		ret[i] = (uint8_t)(hex_value(text[2 * i]) << 4 | hex_value(text[2 * i + 1]));
	return 0;
}

void base64_encode(struct buf *out, const void *data, size_t length)
{
	const uint8_t *byte = data;

	for (size_t i = 0; i < length; i += 3) {
		size_t have = MIN(length - i, (size_t)3);
		uint32_t bits = (uint32_t)byte[i] << 16 | (have > 1 ? (uint32_t)byte[i + 1] << 8 : 0) | (have > 2 ? byte[i + 2] : 0);
		char group[4] = {base64_digits[bits >> 18], base64_digits[bits >> 12 & 63], '=', '='};

		if (have > 1)
			group[2] = base64_digits[bits >> 6 & 63];
		if (have > 2)
			group[3] = base64_digits[bits & 63];
		buf_add(out, group, sizeof(group));
	}
}

static int base64_value(char digit)
{
	if (digit >= 'A' && digit <= 'Z')
		return digit - 'A';
	if (digit >= 'a' && digit <= 'z')
		return digit - 'a' + 26;
	if (digit >= '0' && digit <= '9')
		return digit - '0' + 52;
	if (digit == '+')
		return 62;
	return digit == '/' ? 63 : -1;
}

/* One group of four at text; padding only in the last. Returns the bytes it holds, or the negative place (-1 … -4) of the bad character. */
static int base64_group(const char *text, bool last, uint8_t ret[3])
{
	int padding = last && text[3] == '=' ? (text[2] == '=' ? 2 : 1) : 0;
	uint32_t bits = 0;

	for (int i = 0; i < 4; i++) {
		int value = i < 4 - padding ? base64_value(text[i]) : 0;

		if (value < 0)
			return -1 - i;
		bits = bits << 6 | (uint32_t)value;
	}
	if ((padding == 2 && (bits & 0xffff) != 0) || (padding == 1 && (bits & 0xff) != 0))
		return -4 + padding; /* bits that no byte holds: two texts for the same bytes */
	ret[0] = (uint8_t)(bits >> 16);
	ret[1] = (uint8_t)(bits >> 8);
	ret[2] = (uint8_t)bits;
	return 3 - padding;
}

static void take_back(struct buf *out, size_t length)
{
	if (out->length == length)
		return;
	out->length = length;
	out->data[length] = '\0';
}

int base64_decode(const char *text, size_t length, struct buf *out, struct err *err)
{
	size_t before = out->length, whole = length - length % 4, filled = 0;
	uint8_t block[3 * BASE64_BLOCK];

	for (size_t at = 0; at < whole; at += 4) {
		int got = base64_group(text + at, at + 4 == length, block + filled);

		if (got < 0) {
			take_back(out, before);
			return err_set(err, ERR_INVALID, "not base64: character %zu is wrong", at + (size_t)-got);
		}
		filled += (size_t)got;
		if (filled == sizeof(block) || at + 4 == whole) {
			buf_add(out, block, filled);
			filled = 0;
		}
	}
	if (whole == length)
		return 0;
	take_back(out, before);
	return err_set(err, ERR_INVALID, "not base64: character %zu is missing (the length must be a multiple of four, padded with =)",
		       length + 1);
}

/* A failing digest is a broken libcrypto (no memory, no provider): nothing can be recorded then. */
static void must(bool worked)
{
	if (!worked)
		abort();
}

static const EVP_MD *fetched;

static void fetch(void)
{
	fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
	must(fetched != NULL);
}

/* Looked up once: EVP_sha256() makes OpenSSL search its providers in every call, which takes twice as long as hashing a token. */
static const EVP_MD *sha256(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fetch);
	return fetched;
}

static EVP_MD_CTX *digest_context(struct sha256 *digest)
{
	return (EVP_MD_CTX *)digest;
}

struct sha256 *sha256_new(void)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();

	must(context != NULL && EVP_DigestInit_ex(context, sha256(), NULL) == 1);
	return (struct sha256 *)context;
}

void sha256_add(struct sha256 *digest, const void *data, size_t length)
{
	must(EVP_DigestUpdate(digest_context(digest), data, length) == 1);
}

void sha256_finish(struct sha256 *digest, char ret_hex[SHA256_HEX_SIZE])
{
	uint8_t hash[SHA256_SIZE];

	if (ret_hex != NULL) {
		must(EVP_DigestFinal_ex(digest_context(digest), hash, NULL) == 1);
		hex_encode(hash, sizeof(hash), ret_hex);
	}
	EVP_MD_CTX_free(digest_context(digest));
}

void sha256_hex(const void *data, size_t length, char ret_hex[SHA256_HEX_SIZE])
{
	uint8_t hash[SHA256_SIZE];

	must(EVP_Digest(data, length, hash, NULL, sha256(), NULL) == 1);
	hex_encode(hash, sizeof(hash), ret_hex);
}

void hmac_sha256(const void *key, size_t key_length, const void *data, size_t length, uint8_t ret[SHA256_SIZE])
{
	must(HMAC(EVP_sha256(), key, (int)key_length, data, length, ret, NULL) != NULL);
}

#define SEAL_NONCE_SIZE 12
#define SEAL_TAG_SIZE 16
_Static_assert(SEAL_OVERHEAD == SEAL_NONCE_SIZE + SEAL_TAG_SIZE, "what seal adds");

static void cipher_free(EVP_CIPHER_CTX **cipher)
{
	EVP_CIPHER_CTX_free(*cipher);
}

/* A cipher that has key, nonce (12 bytes, GCM's default) and context; `encrypt` 1 or 0. */
static EVP_CIPHER_CTX *cipher_new(const uint8_t *key, const uint8_t *nonce, const char *context, int encrypt)
{
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	int ignored;

	must(cipher != NULL && EVP_CipherInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, nonce, encrypt) == 1);
	must(EVP_CipherUpdate(cipher, NULL, &ignored, (const uint8_t *)context, (int)strlen(context)) == 1);
	return cipher;
}

void seal(const uint8_t key[SEAL_KEY_SIZE], const char *context, const void *data, size_t length, struct buf *out)
{
	uint8_t nonce[SEAL_NONCE_SIZE], tag[SEAL_TAG_SIZE];
	auto_free uint8_t *text = xmalloc(length);
	int got, rest;

	random_bytes(nonce, sizeof(nonce));
	__attribute__((cleanup(cipher_free))) EVP_CIPHER_CTX *cipher = cipher_new(key, nonce, context, 1);

	must(length <= INT32_MAX && EVP_CipherUpdate(cipher, text, &got, data, (int)length) == 1);
	must(EVP_CipherFinal_ex(cipher, text + got, &rest) == 1 && (size_t)(got + rest) == length);
	must(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, SEAL_TAG_SIZE, tag) == 1);
	buf_add(out, nonce, sizeof(nonce));
	buf_add(out, text, length);
	buf_add(out, tag, sizeof(tag));
}

int unseal(const uint8_t key[SEAL_KEY_SIZE], const char *context, const void *data, size_t length, struct buf *out, struct err *err)
{
	uint8_t tag[SEAL_TAG_SIZE];
	const uint8_t *sealed = data;
	int got, rest;

	if (length < SEAL_OVERHEAD || length > INT32_MAX)
		return err_set(err, ERR_CORRUPT, "not a sealed text");
	size_t inside = length - SEAL_OVERHEAD;
	auto_free uint8_t *text = xmalloc(inside);
	__attribute__((cleanup(cipher_free))) EVP_CIPHER_CTX *cipher = cipher_new(key, sealed, context, 0);

	memcpy(tag, sealed + SEAL_NONCE_SIZE + inside, sizeof(tag));
	must(EVP_CipherUpdate(cipher, text, &got, sealed + SEAL_NONCE_SIZE, (int)inside) == 1);
	must(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, SEAL_TAG_SIZE, tag) == 1);
	if (EVP_CipherFinal_ex(cipher, text + got, &rest) != 1)
		return err_set(err, ERR_CORRUPT, "the sealed text does not open: another key, or it was altered");
	buf_add(out, text, inside);
	return 0;
}

void random_bytes(void *ret, size_t length)
{
	uint8_t *to = ret;

	while (length > 0) {
		ssize_t got = getrandom(to, length, 0);

		if (got < 0 && errno == EINTR)
			continue;
		must(got > 0);
		to += got;
		length -= (size_t)got;
	}
}

bool equal_constant_time(const void *a, const void *b, size_t length)
{
	return CRYPTO_memcmp(a, b, length) == 0;
}

/* The 74 random bits as a number: fresh in every new millisecond; within one it grows by up to 2^56, so that ids stay in order and
 * none tells its neighbour. When it would overflow, the next millisecond is used early. */
static __int128 id_random;
static int64_t id_ms;
static pthread_mutex_t id_lock = PTHREAD_MUTEX_INITIALIZER;

#define ID_RANDOM_BITS 74

static void id_next(int64_t *ret_ms, __int128 *ret_random)
{
	uint64_t fresh[2];
	int64_t now = clock_now_us() / 1000;

	random_bytes(fresh, sizeof(fresh));
	pthread_mutex_lock(&id_lock);
	__int128 grown = id_random + 1 + (__int128)(fresh[0] >> 8);

	if (now > id_ms || grown >> ID_RANDOM_BITS != 0) {
		id_ms = MAX(now, id_ms + 1);
		grown = (__int128)(fresh[1] >> (128 - ID_RANDOM_BITS)) << 64 | fresh[0];
	}
	id_random = grown;
	*ret_ms = id_ms;
	*ret_random = grown;
	pthread_mutex_unlock(&id_lock);
}

void id_new(char ret[ID_SIZE])
{
	static const uint8_t groups[] = {4, 2, 2, 2, 6};
	int64_t ms;
	__int128 number;
	uint8_t bytes[16], *from = bytes;

	id_next(&ms, &number);
	uint64_t low = (uint64_t)number & ((1ull << 62) - 1);
	uint64_t high = (uint64_t)(number >> 62); /* 12 bits */

	for (int i = 0; i < 6; i++)
		bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
	bytes[6] = (uint8_t)(0x70 | high >> 8);
	bytes[7] = (uint8_t)high;
	for (int i = 0; i < 8; i++)
		bytes[8 + i] = (uint8_t)(low >> (56 - 8 * i));
	bytes[8] |= 0x80;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		hex_encode(from, groups[i], ret);
		from += groups[i];
		ret += 2 * groups[i];
		if (i + 1 < ARRAY_SIZE(groups))
			*ret++ = '-';
	}
}

bool id_valid(const char *text)
{
	if (strlen(text) != ID_SIZE - 1)
		return false;
	for (size_t i = 0; i < ID_SIZE - 1; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : strchr(hex_digits, text[i]) == NULL)
			return false;
	}
	return text[14] == '7' && strchr("89ab", text[19]) != NULL;
}
