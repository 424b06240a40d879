/*
 * oauth_who.h - whose token it is: from claims to owner and scopes, by the rules of the configuration (oauth.*).
 *
 * Exactly one rule names the owner: oauth.owner (everybody), oauth.owners (a list of "CLAIM=VALUE -> OWNER", the first
 * that fits), or oauth.owner_claim (the claim's value is the owner's name, behind oauth.owner_prefix). A value is never
 * changed into a name: what is not one as it is, is refused. The claim `email` counts only with `email_verified`.
 */
#pragma once

#include "lib/base/config.h"
#include "lib/base/json.h"
#include "lib/store/record/store_token.h"

#define OAUTH_SUBJECT_SIZE 256
#define OAUTH_CLIENT_SIZE  256

struct oauth_who {
	char owner[STORE_OWNER_MAX + 1];
	unsigned scopes; /* of enum store_scope; 0: none */
	char subject[OAUTH_SUBJECT_SIZE], client[OAUTH_CLIENT_SIZE];
	int64_t end_us; /* when the token expires; INT64_MAX: never */
};

/* ERR_DENIED: the claims name nobody, or nobody that can be kept; ERR_NOT_FOUND: no rule gives this person an owner. */
int oauth_who_read(const struct config *config, struct json_object *claims, struct oauth_who *ret, struct err *err);
/* Are oauth.owner, owners, owner_claim, scope_map and scopes_max as they must be? ERR_INVALID names the member. */
int oauth_who_check(const struct config *config, struct err *err);

/* The scopes by the names that the issuer of tokens has for them, with blanks between: what clients are to ask for. */
#define OAUTH_SCOPES_SIZE 512
void oauth_who_scopes(const struct config *config, unsigned scopes, char ret[OAUTH_SCOPES_SIZE]);
/* Scopes that a client of our own server asks for; words that are none of ours are passed over. *ret_offline: among
 * them is offline_access, by which clients ask for a refresh token. NULL: it asks for none. */
#define OAUTH_OFFLINE "offline_access"
unsigned oauth_who_asked(const char *text, bool *ret_offline);
/* Those that are usually wanted: oauth.default_scopes, and network where programs may have it. */
unsigned oauth_who_usual(const struct config *config);
