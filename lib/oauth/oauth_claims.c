/* oauth_claims.c - see oauth_claims.h. */
#include "oauth_claims.h"

#include <string.h>

#include "lib/base/util.h"

#define EXACT      9007199254740992.0 /* 2^53: beyond it a number of seconds is not exact */
#define MICROS     1000000
#define LIST_MAX   1000 /* of audiences, groups, roles */
#define NAME_PARTS 8

struct json_object *oauth_claims_get(struct json_object *claims, const char *name)
{
	struct json_object *value = claims;

	if (json_object_object_get_ex(claims, name, &value))
		return value;
	value = claims;
	for (int parts = 0; parts < NAME_PARTS; parts++) {
		const size_t length = strcspn(name, ".");
		auto_free char *part = xstrndup(name, length);

		if (!json_object_is_type(value, json_type_object) || !json_object_object_get_ex(value, part, &value))
			return NULL;
		if (name[length] == '\0')
			return value;
		name += length + 1;
	}
	return NULL;
}

static bool is_text(struct json_object *value, const char *text)
{
	return json_object_is_type(value, json_type_string) &&
	       (size_t)json_object_get_string_len(value) == strlen(text) && streq(json_object_get_string(value), text);
}

bool oauth_claims_has(struct json_object *value, const char *text)
{
	if (!json_object_is_type(value, json_type_array))
		return is_text(value, text);
	for (size_t i = 0; i < MIN(json_object_array_length(value), (size_t)LIST_MAX); i++)
		if (is_text(json_object_array_get_idx(value, i), text))
			return true;
	return false;
}

const char *oauth_claims_client(struct json_object *claims)
{
	static const char *const names[] = {"azp", "client_id", "appid", "cid"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *client = json_get_string(claims, names[i]);

		if (client != NULL && *client != '\0')
			return client;
	}
	return "";
}

/* A NumericDate; false: there, and not one. *ret_there: it is there. */
static bool take_time(struct json_object *claims, const char *name, double *ret, bool *ret_there)
{
	struct json_object *value = NULL;

	*ret_there = json_object_object_get_ex(claims, name, &value);
	if (!*ret_there)
		return true;
	if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double))
		return false;
	*ret = json_object_get_double(value);
	return *ret >= 0 && *ret <= EXACT;
}

int64_t oauth_claims_end_us(struct json_object *claims)
{
	double end = 0;
	bool there;

	if (!take_time(claims, "exp", &end, &there) || !there || end > (double)(INT64_MAX / MICROS / 2))
		return INT64_MAX;
	return (int64_t)(end * MICROS);
}

static int check_times(struct json_object *claims, bool introspected, int64_t now_us, struct err *err)
{
	const double now = (double)(now_us / MICROS);
	double end = 0, from = 0, issued = 0;
	bool has_end, has_from, has_issued;

	if (!take_time(claims, "exp", &end, &has_end) || !take_time(claims, "nbf", &from, &has_from) ||
	    !take_time(claims, "iat", &issued, &has_issued))
		return err_set(err, ERR_DENIED, "exp, nbf or iat is not a time");
	if (!has_end && !introspected)
		return err_set(err, ERR_DENIED, "exp is missing");
	if (has_end && end <= now - OAUTH_LEEWAY_SECONDS)
		return err_set(err, ERR_DENIED, "the token expired");
	if ((has_from && from > now + OAUTH_LEEWAY_SECONDS) || (has_issued && issued > now + OAUTH_LEEWAY_SECONDS))
		return err_set(err, ERR_DENIED, "the token is not valid yet");
	return 0;
}

static bool audience_fits(struct json_object *claims, const struct bind_strings *audiences)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(claims, "aud", &value);
	for (size_t i = 0; i < audiences->count; i++)
		if (oauth_claims_has(value, audiences->items[i]))
			return true;
	return false;
}

int oauth_claims_check(struct json_object *claims, const struct oauth_rules *rules, bool introspected, int64_t now_us,
		       struct err *err)
{
	struct json_object *issuer = NULL;
	const bool has_issuer = json_object_object_get_ex(claims, "iss", &issuer);

	if ((has_issuer || !introspected) && !is_text(issuer, rules->issuer))
		return err_set(err, ERR_DENIED, "the token is of another issuer");
	if (!audience_fits(claims, &rules->audiences))
		return err_set(err, ERR_DENIED, "the token is for another audience");
	if (rules->clients.count > 0 && !bind_strings_has(&rules->clients, oauth_claims_client(claims)))
		return err_set(err, ERR_DENIED, "the token is of a client that is not allowed here");
	/* Bound to a key of the client (DPoP, mTLS), it must not pass as a bearer token. */
	if (json_object_object_get_ex(claims, "cnf", NULL))
		return err_set(err, ERR_DENIED, "the token is bound to a key of its client");
	return check_times(claims, introspected, now_us, err);
}
