/*
 * oauth_claims.h - what is said of a token, in a JWT or by introspection (RFC 7519, RFC 9068, RFC 7662): is it meant
 * for us, is it still good, and what does a claim hold?
 *
 * A claim is named by its member, or by members with dots between ("realm_access.roles"); a name that has dots itself
 * ("https://example.org/groups") is looked for first. Times have a leeway of a minute.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/bind.h"
#include "lib/base/err.h"
#include "lib/base/json.h"

#define OAUTH_LEEWAY_SECONDS 60

struct oauth_rules {
	const char *issuer;            /* `iss`, byte for byte */
	struct bind_strings audiences; /* one of them is in `aud` */
	struct bind_strings clients;   /* `azp`, `client_id`, `appid` or `cid`; none: any client */
	unsigned algorithms;           /* of a JWT: enum oauth_algorithm (oauth_keys.h) */
	bool any_type;                 /* of a JWT: `typ` may be JWT or absent (Keycloak, Entra), not only at+jwt */
};

/* 0, or ERR_DENIED: the reason. `introspected`: the issuer itself answered, so `iss` may be absent. */
int oauth_claims_check(struct json_object *claims, const struct oauth_rules *rules, bool introspected, int64_t now_us,
		       struct err *err);
/* The claim's value; NULL: it is not there. Borrowed. */
struct json_object *oauth_claims_get(struct json_object *claims, const char *name);
/* Is the value the text, or a list that has it? */
bool oauth_claims_has(struct json_object *value, const char *text);
/* `azp`, else `client_id`, `appid`, `cid`; "": none. Borrowed. */
const char *oauth_claims_client(struct json_object *claims);
/* When `exp` is; INT64_MAX: never. */
int64_t oauth_claims_end_us(struct json_object *claims);
