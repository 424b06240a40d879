/*
 * store_grant.h - people and programs whose tokens another authorization server gave out: each has a row of token for
 * each client, made at the first request. Revoking that row keeps them out.
 */
#pragma once

#include "store_token.h"

#define STORE_GRANTS_MAX 10000 /* of one issuer */

struct store_grant {
	const char *issuer, *subject, *client; /* as the authorization server names them */
	const char *owner;
	unsigned scopes; /* of this request */
};
/* The row of the grant, with the scopes of this request. ERR_NOT_FOUND: it was revoked; ERR_LIMIT: the issuer has named
 * STORE_GRANTS_MAX already. */
int store_grant_enter(struct store *store, const struct store_grant *grant, struct store_token *ret, struct err *err);
