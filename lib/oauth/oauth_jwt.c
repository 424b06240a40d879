/*
 * oauth_jwt.c - see oauth_jwt.h.
 *
 * The claims are looked at before the signature: a token of another issuer or audience, or an old one, costs no
 * cryptography, and does not make anybody ask the issuer for new keys. Until the signature was checked, nothing that a
 * token says has an effect but to be refused.
 */
#include "oauth_jwt.h"

#include <string.h>
#include <strings.h>

#include "lib/base/text.h"
#include "lib/base/util.h"

#define VALUES_MAX 4096 /* JSON values in one part */

struct part {
	const char *at;
	size_t length;
};

static bool split(const char *text, struct part ret[3])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	for (int i = 0; i < 3; i++) {
		ret[i] = (struct part){text, strspn(text, digits)};
		if (ret[i].length == 0 || text[ret[i].length] != (i < 2 ? '.' : '\0'))
			return false;
		text += ret[i].length + 1;
	}
	return true;
}

bool oauth_jwt_shaped(const char *text)
{
	struct part parts[3];

	return split(text, parts);
}

/* A part as a JSON object; the caller's. */
static struct json_object *parse_part(struct part part)
{
	auto_buf struct buf plain = {0};
	auto_json struct json_object *object = NULL;
	int values = VALUES_MAX;

	buf_init(&plain, OAUTH_TOKEN_MAX);
	if (base64url_decode(part.at, part.length, &plain, NULL) < 0 ||
	    json_parse_budget(plain.data, plain.length, &values, &object, NULL) < 0 ||
	    !json_object_is_type(object, json_type_object))
		return NULL;
	return steal(&object);
}

/* `typ` of the header, and what an ID token, a logout token or a refresh token has and an access token has not. */
static int check_type(struct json_object *header, struct json_object *claims, bool any, struct err *err)
{
	static const char *const foreign[] = {"nonce", "at_hash", "c_hash", "events"};
	struct json_object *type = NULL, *inner = NULL;
	const char *text = json_get_string(header, "typ");

	if (json_object_object_get_ex(header, "typ", &type) && text == NULL)
		return err_set(err, ERR_DENIED, "typ is not a text");
	if (text != NULL && (strcasecmp(text, "at+jwt") == 0 || strcasecmp(text, "application/at+jwt") == 0))
		return 0;
	if (!any || (text != NULL && strcasecmp(text, "JWT") != 0))
		return err_set(err, ERR_DENIED, "the token is not an access token (typ)");
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		if (json_object_object_get_ex(claims, foreign[i], NULL))
			return err_set(err, ERR_DENIED, "the token is not an access token (%s)", foreign[i]);
	if (json_object_object_get_ex(claims, "typ", &inner) && !oauth_claims_has(inner, "Bearer"))
		return err_set(err, ERR_DENIED, "the token is not an access token (typ of its claims)");
	return 0;
}

/* What the header says of the signature. */
static int read_header(struct json_object *header, const struct oauth_rules *rules, struct oauth_signed *ret,
		       struct err *err)
{
	const char *algorithm = json_get_string(header, "alg");
	struct json_object *id = NULL;

	ret->algorithm = algorithm != NULL ? oauth_keys_algorithm(algorithm) & rules->algorithms : 0;
	if (ret->algorithm == 0)
		return err_set(err, ERR_DENIED, "the algorithm is not allowed");
	if (json_object_object_get_ex(header, "crit", NULL))
		return err_set(err, ERR_DENIED, "the token has extensions that are not known here (crit)");
	ret->key_id = json_get_string(header, "kid");
	if (json_object_object_get_ex(header, "kid", &id) && ret->key_id == NULL)
		return err_set(err, ERR_DENIED, "kid is not a text");
	return 0;
}

int oauth_jwt_check(const char *text, const struct oauth_keys *keys, const struct oauth_rules *rules, int64_t now_us,
		    struct json_object **ret_claims, struct err *err)
{
	struct part parts[3];
	struct oauth_signed what = {.text = text};
	auto_buf struct buf signature = {0};

	if (strlen(text) > OAUTH_TOKEN_MAX || !split(text, parts))
		return err_set(err, ERR_DENIED, "not a JWT");
	auto_json struct json_object *header = parse_part(parts[0]), *claims = parse_part(parts[1]);

	buf_init(&signature, OAUTH_TOKEN_MAX);
	if (header == NULL || claims == NULL || base64url_decode(parts[2].at, parts[2].length, &signature, NULL) < 0)
		return err_set(err, ERR_DENIED, "not a JWT");
	int result = read_header(header, rules, &what, err);

	if (result == 0)
		result = check_type(header, claims, rules->any_type, err);
	if (result == 0)
		result = oauth_claims_check(claims, rules, false, now_us, err);
	if (result < 0)
		return result;
	what.length = (size_t)(parts[1].at + parts[1].length - text);
	what.signature = (const uint8_t *)signature.data;
	what.n_signature = signature.length;
	result = oauth_keys_check(keys, &what, err);
	if (result == 0)
		*ret_claims = steal(&claims);
	return result;
}
