/*
 * oauth_keys.c - see oauth_keys.h.
 *
 * One table says of each algorithm which kind of key, scheme and hash it has. What an entry of the set allows is worked
 * out once, when the set is read; a check then compares bits. An entry that is not a key for tokens is passed over, so
 * that new kinds of keys, which issuers add to their sets, do no harm; a set without a usable key is an error.
 *
 * Facts: RFC 7517 (sets), RFC 7518 sections 3 and 6 (algorithms, RSA, EC), RFC 8037 (Ed25519).
 */
#include "oauth_keys.h"

#include <string.h>

#include "lib/base/json.h"
#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto_verify.h"

#define TRIES      4    /* keys for a token that names none */
#define KEY_ID_MAX 512  /* bytes */
#define NUMBER_MAX 1024 /* bytes of a modulus */

static const struct algorithm {
	const char *name;
	enum oauth_algorithm flag;
	enum verify_scheme scheme;
	int bits;
	enum verify_kind kind;
} algorithms[] = {
	{"RS256", OAUTH_RS256, VERIFY_PKCS1, 256, VERIFY_RSA},   {"RS384", OAUTH_RS384, VERIFY_PKCS1, 384, VERIFY_RSA},
	{"RS512", OAUTH_RS512, VERIFY_PKCS1, 512, VERIFY_RSA},   {"PS256", OAUTH_PS256, VERIFY_PSS, 256, VERIFY_RSA},
	{"PS384", OAUTH_PS384, VERIFY_PSS, 384, VERIFY_RSA},     {"PS512", OAUTH_PS512, VERIFY_PSS, 512, VERIFY_RSA},
	{"ES256", OAUTH_ES256, VERIFY_ECDSA, 256, VERIFY_P256},  {"ES384", OAUTH_ES384, VERIFY_ECDSA, 384, VERIFY_P384},
	{"EdDSA", OAUTH_EDDSA, VERIFY_EDDSA, 0, VERIFY_ED25519},
};

struct oauth_keys {
	bool any_id; /* each of them is for tokens of every id */
	size_t count;
	struct {
		struct verify_key *key;
		char *id;         /* NULL: none */
		unsigned allowed; /* of enum oauth_algorithm */
	} items[OAUTH_KEYS_MAX];
};

static const struct algorithm *algorithm_of(unsigned flag)
{
	for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++)
		if (algorithms[i].flag == flag)
			return &algorithms[i];
	return NULL;
}

unsigned oauth_keys_algorithm(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++)
		if (streq(algorithms[i].name, name))
			return algorithms[i].flag;
	return 0;
}

/* A member in base64url; false: absent, or not written so. */
static bool take_number(struct json_object *entry, const char *member, struct buf *out)
{
	const char *text = json_get_string(entry, member);

	buf_init(out, NUMBER_MAX);
	return text != NULL && *text != '\0' && base64url_decode(text, strlen(text), out, NULL) == 0 && !out->overflow;
}

static const uint8_t *bytes(const struct buf *number)
{
	return (const uint8_t *)number->data;
}

static struct verify_key *parse_ec(struct json_object *entry, const char *curve)
{
	auto_buf struct buf x = {0}, y = {0};

	if ((!streq(curve, "P-256") && !streq(curve, "P-384")) || !take_number(entry, "x", &x) ||
	    !take_number(entry, "y", &y) || x.length != y.length)
		return NULL;
	return verify_key_ec(streq(curve, "P-256") ? VERIFY_P256 : VERIFY_P384, bytes(&x), bytes(&y), x.length);
}

static struct verify_key *parse_key(struct json_object *entry)
{
	const char *type = json_get_string(entry, "kty"), *curve = json_get_string(entry, "crv");
	auto_buf struct buf first = {0}, second = {0};

	if (type == NULL)
		return NULL;
	if (streq(type, "RSA") && take_number(entry, "n", &first) && take_number(entry, "e", &second))
		return verify_key_rsa(bytes(&first), first.length, bytes(&second), second.length);
	if (streq(type, "OKP") && curve != NULL && streq(curve, "Ed25519") && take_number(entry, "x", &first))
		return verify_key_ed25519(bytes(&first), first.length);
	return streq(type, "EC") && curve != NULL ? parse_ec(entry, curve) : NULL;
}

/* Absent, or an array that has the text. */
static bool lists(struct json_object *entry, const char *member, const char *text)
{
	struct json_object *array = NULL;

	if (!json_object_object_get_ex(entry, member, &array))
		return true;
	if (!json_object_is_type(array, json_type_array))
		return false;
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *item = json_object_array_get_idx(array, i);

		if (json_object_is_type(item, json_type_string) && streq(json_object_get_string(item), text))
			return true;
	}
	return false;
}

/* What the entry says that its key may be used for; 0: not for tokens. */
static unsigned allowed_of(struct json_object *entry, enum verify_kind kind)
{
	struct json_object *alg = NULL, *use = NULL;
	unsigned allowed = 0;

	json_object_object_get_ex(entry, "alg", &alg);
	if (json_object_object_get_ex(entry, "use", &use) &&
	    (!json_object_is_type(use, json_type_string) || !streq(json_object_get_string(use), "sig")))
		return 0;
	if (!lists(entry, "key_ops", "verify"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++)
		if (algorithms[i].kind == kind &&
		    (alg == NULL || streq(json_object_get_string(alg), algorithms[i].name)))
			allowed |= algorithms[i].flag;
	return allowed;
}

/* What a key may be used for where nothing says it. */
static unsigned all_of(enum verify_kind kind)
{
	unsigned allowed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(algorithms); i++)
		allowed |= algorithms[i].kind == kind ? algorithms[i].flag : 0;
	return allowed;
}

static void take_entry(struct oauth_keys *keys, struct json_object *entry)
{
	const char *id = json_get_string(entry, "kid");
	struct verify_key *key = json_object_is_type(entry, json_type_object) ? parse_key(entry) : NULL;
	const unsigned allowed = key != NULL ? allowed_of(entry, verify_key_kind(key)) : 0;

	if (allowed == 0 || (id != NULL && strlen(id) > KEY_ID_MAX)) {
		verify_key_free(key);
		return;
	}
	keys->items[keys->count].key = key;
	keys->items[keys->count].id = id != NULL ? xstrdup(id) : NULL;
	keys->items[keys->count++].allowed = allowed;
}

int oauth_keys_parse(const char *text, size_t length, struct oauth_keys **ret, struct err *err)
{
	auto_json struct json_object *set = NULL;
	int result = json_parse(text, length, &set, err);

	if (result < 0)
		return err_wrap(err, "the key set"), result;
	struct json_object *array = json_get(set, "keys", json_type_array);

	if (array == NULL)
		return err_set(err, ERR_INVALID, "the key set has no array \"keys\"");
	if (json_object_array_length(array) > OAUTH_KEYS_MAX)
		return err_set(err, ERR_INVALID, "the key set has more than %d keys", OAUTH_KEYS_MAX);
	struct oauth_keys *keys = xcalloc(1, sizeof(*keys));

	for (size_t i = 0; i < json_object_array_length(array); i++)
		take_entry(keys, json_object_array_get_idx(array, i));
	if (keys->count == 0) {
		oauth_keys_free(keys);
		return err_set(err, ERR_INVALID, "the key set has no key that can check a token");
	}
	*ret = keys;
	return 0;
}

int oauth_keys_parse_pem(const char *text, size_t length, struct oauth_keys **ret, struct err *err)
{
	struct oauth_keys *keys = xcalloc(1, sizeof(*keys));
	size_t read = 1;

	keys->any_id = true;
	for (size_t at = 0; read > 0 && at < length && keys->count < OAUTH_KEYS_MAX; at += read) {
		struct verify_key *key = verify_key_pem(text + at, length - at, &read);

		if (key != NULL) {
			keys->items[keys->count].key = key;
			keys->items[keys->count++].allowed = all_of(verify_key_kind(key));
		}
	}
	if (keys->count == 0) {
		oauth_keys_free(keys);
		return err_set(err, ERR_INVALID, "there is no public key in PEM that can check a token");
	}
	*ret = keys;
	return 0;
}

void oauth_keys_free(struct oauth_keys *keys)
{
	for (size_t i = 0; keys != NULL && i < keys->count; i++) {
		verify_key_free(keys->items[i].key);
		free(keys->items[i].id);
	}
	free(keys);
}

size_t oauth_keys_count(const struct oauth_keys *keys)
{
	return keys->count;
}

int oauth_keys_check(const struct oauth_keys *keys, const struct oauth_signed *what, struct err *err)
{
	const struct algorithm *algorithm = algorithm_of(what->algorithm);
	bool known = what->key_id == NULL;
	int tries = 0;

	for (size_t i = 0; algorithm != NULL && i < keys->count && tries < TRIES; i++) {
		const char *id = keys->items[i].id;

		if (what->key_id != NULL && !keys->any_id && (id == NULL || !streq(id, what->key_id)))
			continue;
		known = true;
		if (!(keys->items[i].allowed & what->algorithm))
			continue;
		tries++;
		if (verify_signature(keys->items[i].key, (struct verify_how){algorithm->scheme, algorithm->bits},
				     what->text, what->length, what->signature, what->n_signature))
			return 0;
	}
	if (!known)
		return err_set(err, ERR_NOT_FOUND, "the issuer has no key of this id");
	return err_set(err, ERR_DENIED,
		       tries == 0 ? "no key of the issuer is for this algorithm"
				  : "the signature is not by a key of the issuer");
}
