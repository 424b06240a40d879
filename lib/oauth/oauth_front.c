/* oauth_front.c - see oauth_front.h. Facts: LibreChat 0ea75c5, packages/api/src/auth/codeapi.ts. */
#include "oauth_front.h"

#include <fcntl.h>
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/db/crypto.h"
#include "oauth_jwt.h"

#define DIGEST_DIGITS 20 /* of SHA-256, where a name is none of an owner */

struct oauth_front {
	const struct config *config;
	struct oauth_keys *keys;
	const char *audience;
	struct oauth_rules rules;
};

static int read_keys(const struct config *config, struct oauth_keys **ret, struct err *err)
{
	auto_free char *text = NULL;
	size_t length = 0;
	int result = read_file_at(AT_FDCWD, config->api.jwt_key, OAUTH_KEYS_BYTES, &text, &length, err);

	if (result == 0 && text[strspn(text, " \t\r\n")] == '{')
		result = oauth_keys_parse(text, length, ret, err);
	else if (result == 0)
		result = oauth_keys_parse_pem(text, length, ret, err);
	return result < 0 ? err_member(err, "api.jwt_key", "%s", err_reason(err)) : 0;
}

int oauth_front_open(const struct config *config, struct oauth_front **ret, struct err *err)
{
	*ret = NULL;
	if (!*config->api.jwt_key)
		return 0;
	if (!store_owner_valid(config->api.jwt_owner))
		return err_member(err, "api.jwt_owner", STORE_OWNER_WANTED);
	struct oauth_keys *keys = NULL;
	int result = read_keys(config, &keys, err);

	if (result < 0)
		return result;
	struct oauth_front *front = xcalloc(1, sizeof(*front));

	*front = (struct oauth_front){.config = config, .keys = keys, .audience = config->api.jwt_audience};
	front->rules = (struct oauth_rules){.issuer = config->api.jwt_issuer,
					    .audiences = {&front->audience, 1},
					    .algorithms = OAUTH_RS256 | OAUTH_EDDSA,
					    .any_type = true};
	*ret = front;
	return 0;
}

void oauth_front_close(struct oauth_front *front)
{
	if (front)
		oauth_keys_free(front->keys);
	free(front);
}

static int take_who(const struct oauth_front *front, struct json_object *claims, struct oauth_who *ret, struct err *err)
{
	const char *subject = json_get_string(claims, "sub"), *tenant = json_get_string(claims, "tenant_id");
	const bool alone = !json_member(claims, "tenant_id") || (tenant && streq(tenant, "legacy"));
	const char *prefix = front->config->api.jwt_owner;
	struct oauth_who who = {.scopes = STORE_SCOPE_RUN | STORE_SCOPE_FILES, .end_us = oauth_claims_end_us(claims)};
	char digest[SHA256_HEX_SIZE];

	if (!subject || !*subject || (!alone && !tenant))
		return err_set(err, ERR_DENIED, "the token names no user (sub, tenant_id)");
	auto_free char *whole = alone ? xstrdup(subject) : xasprintf("%s/%s", tenant, subject);

	if (strlen(whole) >= sizeof(who.subject))
		return err_set(err, ERR_DENIED, "the token's user has a name of more than %zu bytes",
			       sizeof(who.subject) - 1);
	memcpy(who.subject, whole, strlen(whole) + 1);
	auto_free char *owner = xasprintf("%s-%s", prefix, whole);

	if (store_owner_valid(owner)) {
		memcpy(who.owner, owner, strlen(owner) + 1);
	} else {
		sha256_hex(whole, strlen(whole), digest);
		snprintf(who.owner, sizeof(who.owner), "%.11s-%.*s", prefix, DIGEST_DIGITS, digest);
	}
	*ret = who;
	return 0;
}

int oauth_front_check(const struct oauth_front *front, const char *text, struct oauth_who *ret, struct err *err)
{
	auto_json struct json_object *claims = NULL;
	int result = oauth_jwt_check(text, front->keys, &front->rules, clock_now_us(), &claims, err);

	if (result == -ERR_NOT_FOUND)
		return err_set(err, ERR_DENIED, "the key that the token names is not in api.jwt_key");
	return result < 0 ? result : take_who(front, claims, ret, err);
}
