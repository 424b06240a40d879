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

/* What lists say of a row of token that is a grant. */
struct store_grant_shown {
	char issuer[256]; /* "": our own server (oauth.mode builtin) */
	char client[513]; /* its id there */
	char host[256];   /* where its answers went; "": not known here */
};
/* ERR_NOT_FOUND: the token is none. */
int store_grant_show(struct store *store, const char *token, struct store_grant_shown *ret, struct err *err);
