/*
 * crypto.c - see crypto.h. With crypto_sign.c the only file that includes libcrypto's headers.
 *
 * A digest that fails means a broken library, and nothing could be recorded then, so it aborts. Ids are made under a
 * lock from time, randomness and the last id, so that they are in order and different over all threads.
 */
#include "crypto.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

#define FILE_CHUNK 65536

/* A failing digest is a broken libcrypto (no memory, no provider): nothing can be recorded then. */
static void must(bool worked)
{
	if (!worked)
		abort();
}

static const EVP_MD *fetched;
static EVP_MAC_CTX *mac; /* HMAC with SHA-256, without a key; copied for each thread */

/* Each thread keeps its contexts: making one takes longer than hashing a token. */
struct contexts {
	EVP_MD_CTX *digest;
	EVP_MAC_CTX *mac;
};
static pthread_key_t contexts_key;

static void free_contexts(void *arg)
{
	struct contexts *contexts = arg;

	EVP_MD_CTX_free(contexts->digest);
	EVP_MAC_CTX_free(contexts->mac);
	free(contexts);
}

/* The first thread's end with the process, which calls no destructor. */
static void free_last(void)
{
	struct contexts *contexts = pthread_getspecific(contexts_key);

	if (contexts != NULL)
		free_contexts(contexts);
	pthread_setspecific(contexts_key, NULL);
}

static void fetch(void)
{
	static char digest[] = "SHA256";
	const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
				     OSSL_PARAM_construct_end()};
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);

	fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
	mac = EVP_MAC_CTX_new(hmac);
	must(fetched != NULL && mac != NULL && EVP_MAC_CTX_set_params(mac, params) == 1);
	EVP_MAC_free(hmac); /* the context has one of its own */
	must(pthread_key_create(&contexts_key, free_contexts) == 0);
	atexit(free_last);
}

/* Looked up once: EVP_sha256() makes OpenSSL search its providers in every call, which takes twice as long as hashing a
 * token. */
static const EVP_MD *sha256(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fetch);
	return fetched;
}

static struct contexts *contexts(void)
{
	sha256();
	struct contexts *own = pthread_getspecific(contexts_key);

	if (own != NULL)
		return own;
	own = xcalloc(1, sizeof(*own));
	own->digest = EVP_MD_CTX_new();
	own->mac = EVP_MAC_CTX_dup(mac);
	must(own->digest != NULL && own->mac != NULL && pthread_setspecific(contexts_key, own) == 0);
	return own;
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

int sha256_fd(int fd, char ret_hex[SHA256_HEX_SIZE], int64_t *ret_size)
{
	auto_free char *chunk = xmalloc(FILE_CHUNK);
	struct sha256 *digest = sha256_new();
	int64_t size = 0;
	ssize_t got;

	while ((got = pread(fd, chunk, FILE_CHUNK, size)) != 0 && (got > 0 || errno == EINTR)) {
		if (got < 0)
			continue;
		sha256_add(digest, chunk, (size_t)got);
		size += got;
	}
	sha256_finish(digest, got == 0 ? ret_hex : NULL);
	if (got == 0 && ret_size)
		*ret_size = size;
	return got == 0 ? 0 : -1;
}

void sha256_bytes(const void *data, size_t length, uint8_t ret[SHA256_SIZE])
{
	EVP_MD_CTX *context = contexts()->digest;

	must(EVP_DigestInit_ex(context, fetched, NULL) == 1 && EVP_DigestUpdate(context, data, length) == 1 &&
	     EVP_DigestFinal_ex(context, ret, NULL) == 1);
}

void sha256_hex(const void *data, size_t length, char ret_hex[SHA256_HEX_SIZE])
{
	uint8_t hash[SHA256_SIZE];

	sha256_bytes(data, length, hash);
	hex_encode(hash, sizeof(hash), ret_hex);
}

void hmac_sha256_parts(const void *key, size_t key_length, const struct crypto_part *parts, size_t count,
		       uint8_t ret[SHA256_SIZE])
{
	EVP_MAC_CTX *context = contexts()->mac;
	size_t got = 0;

	must(EVP_MAC_init(context, key, key_length, NULL) == 1);
	for (size_t i = 0; i < count; i++)
		must(EVP_MAC_update(context, parts[i].data, parts[i].length) == 1);
	must(EVP_MAC_final(context, ret, &got, SHA256_SIZE) == 1 && got == SHA256_SIZE);
}

void hmac_sha256(const void *key, size_t key_length, const void *data, size_t length, uint8_t ret[SHA256_SIZE])
{
	hmac_sha256_parts(key, key_length, &(struct crypto_part){data, length}, 1, ret);
}

#define SEAL_NONCE_SIZE 12
#define SEAL_TAG_SIZE   16
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

int unseal(const uint8_t key[SEAL_KEY_SIZE], const char *context, const void *data, size_t length, struct buf *out,
	   struct err *err)
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

/* The 74 random bits as a number: fresh in every new millisecond; within one it grows by up to 2^56, so that ids stay
 * in order and none reveals its neighbour. When it would overflow, the next millisecond is used early. */
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

		if (dash ? text[i] != '-' : strchr("0123456789abcdef", text[i]) == NULL)
			return false;
	}
	return text[14] == '7' && strchr("89ab", text[19]) != NULL;
}
