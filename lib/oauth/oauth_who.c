/*
 * oauth_who.c - see oauth_who.h.
 *
 * Rules stand in the configuration as texts with an arrow, "LEFT -> RIGHT"; the last arrow counts, because what an
 * issuer calls a group may have one. They are read at each token that is new, which costs less than its signature; the
 * start refuses rules that could never fit. Whatever does not fit, a claim of another type, a value that is not a name,
 * gives no owner and no scope.
 */
#include "oauth_who.h"

#include <string.h>

#include "lib/base/util.h"
#include "oauth_claims.h"

#define ARROW     " -> "
#define SCOPE_MAX 64 /* words of a token that are looked at */

static const unsigned all_scopes[] = {STORE_SCOPE_RUN, STORE_SCOPE_FILES, STORE_SCOPE_NETWORK, STORE_SCOPE_ADMIN};

/* "LEFT -> RIGHT": the length of what is left, and *ret_right; 0: it is not such a text. */
static size_t split_rule(const char *text, const char **ret_right)
{
	const char *arrow = NULL;

	for (const char *at = text; (at = strstr(at, ARROW)) != NULL; at++)
		arrow = at;
	if (arrow == NULL || arrow == text || arrow[strlen(ARROW)] == '\0')
		return 0;
	*ret_right = arrow + strlen(ARROW);
	return (size_t)(arrow - text);
}

/* -------- scopes -------------------------------------------------------------------------------------- */

/* What a word of the token allows; 0: nothing here. */
static unsigned scope_of(const struct config *config, const char *word)
{
	const struct bind_strings *map = &config->oauth.scope_map;
	unsigned scopes = 0, found = 0;

	if (map->count == 0)
		return strchr(word, ',') == NULL && store_scopes_parse(word, &scopes, NULL) == 0 ? scopes : 0;
	for (size_t i = 0; i < map->count; i++) {
		const char *ours = "";
		const size_t length = split_rule(map->items[i], &ours);

		if (length == strlen(word) && memcmp(map->items[i], word, length) == 0 &&
		    store_scopes_parse(ours, &scopes, NULL) == 0)
			found |= scopes;
	}
	return found;
}

static unsigned scopes_of_text(const struct config *config, const char *text)
{
	unsigned scopes = 0;

	for (int i = 0; i < SCOPE_MAX && *(text += strspn(text, " ")) != '\0'; i++) {
		const size_t length = strcspn(text, " ");
		auto_free char *word = xstrndup(text, length);

		scopes |= scope_of(config, word);
		text += length;
	}
	return scopes;
}

static unsigned scopes_of(const struct config *config, struct json_object *claims)
{
	const char *name = config->oauth.scope_claim;
	struct json_object *value = oauth_claims_get(claims, *name != '\0' ? name : "scope");
	unsigned scopes = 0, most = 0;

	if (value == NULL && *name == '\0')
		value = oauth_claims_get(claims, "scp");
	if (json_object_is_type(value, json_type_string))
		scopes = scopes_of_text(config, json_object_get_string(value));
	for (size_t i = 0;
	     json_object_is_type(value, json_type_array) && i < json_object_array_length(value) && i < SCOPE_MAX; i++) {
		struct json_object *word = json_object_array_get_idx(value, i);

		if (json_object_is_type(word, json_type_string))
			scopes |= scope_of(config, json_object_get_string(word));
	}
	if (store_scopes_parse(config->oauth.scopes_max, &most, NULL) < 0)
		return 0;
	return scopes & most;
}

void oauth_who_scopes(const struct config *config, unsigned scopes, char ret[OAUTH_SCOPES_SIZE])
{
	const struct bind_strings *map = &config->oauth.scope_map;
	struct buf out;

	buf_init_room(&out, ret, OAUTH_SCOPES_SIZE);
	for (size_t i = 0; i < ARRAY_SIZE(all_scopes); i++) {
		char name[STORE_SCOPES_TEXT];
		const char *shown = name, *ours = "";
		size_t length;

		if (!(scopes & all_scopes[i]))
			continue;
		store_scopes_print(all_scopes[i], name);
		length = strlen(name);
		for (size_t k = 0; k < map->count; k++) {
			const size_t left = split_rule(map->items[k], &ours);

			if (left > 0 && streq(ours, name)) {
				shown = map->items[k];
				length = left;
				break;
			}
		}
		if (out.length > 0)
			buf_putc(&out, ' ');
		buf_add(&out, shown, length);
	}
}

unsigned oauth_who_asked(const char *text, bool *ret_offline)
{
	unsigned scopes = 0;

	*ret_offline = false;
	for (const char *at = text ? text : ""; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " ")) {
		const size_t length = strcspn(at, " ");

		for (size_t i = 0; i < ARRAY_SIZE(all_scopes); i++) {
			char name[STORE_SCOPES_TEXT];

			store_scopes_print(all_scopes[i], name);
			if (strlen(name) == length && strncmp(name, at, length) == 0)
				scopes |= all_scopes[i];
		}
		if (length == strlen(OAUTH_OFFLINE) && strncmp(at, OAUTH_OFFLINE, length) == 0)
			*ret_offline = true;
	}
	return scopes;
}

unsigned oauth_who_usual(const struct config *config)
{
	unsigned scopes = STORE_SCOPE_RUN | STORE_SCOPE_FILES;

	store_scopes_parse(config->oauth.default_scopes, &scopes, NULL);
	return scopes | (config->network.allow.count > 0 ? STORE_SCOPE_NETWORK : 0);
}

/* -------- the owner ----------------------------------------------------------------------------------- */

static bool is_true(struct json_object *claims, const char *name)
{
	struct json_object *value = oauth_claims_get(claims, name);

	return json_object_is_type(value, json_type_boolean) && json_object_get_boolean(value);
}

/* An address that nobody checked is what its writer likes it to be. */
static struct json_object *trusted_claim(struct json_object *claims, const char *name)
{
	if (streq(name, "email") && !is_true(claims, "email_verified"))
		return NULL;
	return oauth_claims_get(claims, name);
}

/* Does "CLAIM=VALUE", of that length, fit? */
static bool rule_fits(struct json_object *claims, const char *rule, size_t length)
{
	auto_free char *claim = xstrndup(rule, length);
	char *equals = strchr(claim, '=');

	if (equals == NULL)
		return false;
	*equals = '\0';
	struct json_object *value = trusted_claim(claims, claim);

	return value != NULL && oauth_claims_has(value, equals + 1);
}

static bool take_owner(const char *prefix, const char *name, char ret[STORE_OWNER_MAX + 1])
{
	auto_free char *owner = xasprintf("%s%s", prefix, name);

	if (!store_owner_valid(owner))
		return false;
	memcpy(ret, owner, strlen(owner) + 1);
	return true;
}

static bool owner_of(const struct config *config, struct json_object *claims, char ret[STORE_OWNER_MAX + 1])
{
	const struct bind_strings *owners = &config->oauth.owners;

	if (config->oauth.owner[0] != '\0')
		return take_owner("", config->oauth.owner, ret);
	if (config->oauth.owner_claim[0] != '\0') {
		struct json_object *value = trusted_claim(claims, config->oauth.owner_claim);

		return json_object_is_type(value, json_type_string) &&
		       strlen(json_object_get_string(value)) == (size_t)json_object_get_string_len(value) &&
		       json_object_get_string_len(value) > 0 &&
		       take_owner(config->oauth.owner_prefix, json_object_get_string(value), ret);
	}
	for (size_t i = 0; i < owners->count; i++) {
		const char *owner = "";
		const size_t length = split_rule(owners->items[i], &owner);

		if (length > 0 && rule_fits(claims, owners->items[i], length))
			return take_owner("", owner, ret);
	}
	return false;
}

int oauth_who_read(const struct config *config, struct json_object *claims, struct oauth_who *ret, struct err *err)
{
	const char *subject = json_get_string(claims, "sub"), *client = oauth_claims_client(claims);
	struct oauth_who who = {.end_us = oauth_claims_end_us(claims)};

	if (subject == NULL || subject[0] == '\0')
		subject = client; /* a program's own token has no subject with some issuers */
	if (subject[0] == '\0' || strlen(subject) >= sizeof(who.subject) || strlen(client) >= sizeof(who.client))
		return err_set(err, ERR_DENIED, "the token names nobody, or a name of more than %zu bytes",
			       sizeof(who.subject) - 1);
	memcpy(who.subject, subject, strlen(subject) + 1);
	memcpy(who.client, client, strlen(client) + 1);
	who.scopes = scopes_of(config, claims);
	if (!owner_of(config, claims, who.owner))
		return err_set(err, ERR_NOT_FOUND, "no rule of oauth gives this person an owner");
	*ret = who;
	return 0;
}

static int check_owners(const struct config *config, struct err *err)
{
	const struct bind_strings *owners = &config->oauth.owners;

	for (size_t i = 0; i < owners->count; i++) {
		const char *owner = "";
		const size_t length = split_rule(owners->items[i], &owner);
		const char *equals = strchr(owners->items[i], '=');

		if (length == 0 || equals == NULL || equals == owners->items[i] ||
		    equals >= owners->items[i] + length || !store_owner_valid(owner))
			return err_member(err, "oauth.owners",
					  "\"%.64s\" must be \"CLAIM=VALUE -> OWNER\", as \"sub=1234 -> ann\"",
					  owners->items[i]);
	}
	return 0;
}

int oauth_who_check(const struct config *config, struct err *err)
{
	const int rules = (config->oauth.owner[0] != '\0') + (config->oauth.owner_claim[0] != '\0') +
			  (config->oauth.owners.count > 0);
	unsigned scopes;

	if (rules != 1)
		return err_member(
			err, "oauth.owners",
			"exactly one of oauth.owner, oauth.owners and oauth.owner_claim must say who people are here");
	if (config->oauth.owner[0] != '\0' && !store_owner_valid(config->oauth.owner))
		return err_member(err, "oauth.owner", STORE_OWNER_WANTED);
	if (config->oauth.owner_prefix[0] != '\0' && !store_owner_valid(config->oauth.owner_prefix))
		return err_member(err, "oauth.owner_prefix", STORE_OWNER_WANTED);
	for (size_t i = 0; i < config->oauth.scope_map.count; i++) {
		const char *ours = "";

		if (split_rule(config->oauth.scope_map.items[i], &ours) == 0 || strpbrk(ours, ", ") != NULL ||
		    store_scopes_parse(ours, &scopes, NULL) < 0)
			return err_member(err, "oauth.scope_map",
					  "\"%.64s\" must be \"THEIRS -> OURS\", as \"sallyport.run -> run\"",
					  config->oauth.scope_map.items[i]);
	}
	if (store_scopes_parse(config->oauth.scopes_max, &scopes, err) < 0)
		return err_wrap(err, "oauth.scopes_max"), -ERR_INVALID;
	return check_owners(config, err);
}
