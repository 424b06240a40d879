/*
 * upstream_grant.h - the token endpoint (OAuth 2.1): what it gives for a code or a refresh token, and what it says when
 * it does not.
 */
#pragma once

#include "upstream_login.h"

/* Asks for tokens with `form` (grant_type and what goes with it), as the client of the login, and puts what it got into
 * the login. ERR_DENIED: the grant or the client is not good any more, a person must sign in (the login forgets a
 * registration that the issuer does not know); ERR_UNAVAILABLE: it may work later. */
int upstream_grant_ask(const struct upstream_server *server, const char *form, const atomic_bool *stop,
		       struct upstream_login *login, struct err *err);
/* New tokens for the login's refresh token. */
int upstream_grant_renew(const struct upstream_server *server, const atomic_bool *stop, struct upstream_login *login,
			 struct err *err);
/* Tells the issuer that nobody needs the tokens any more. ERR_NOT_FOUND: it has no place for that. */
int upstream_grant_revoke(const struct upstream_server *server, const struct upstream_login *login, struct err *err);

/* "name=value" of a form, behind "&" where there is something before it. */
void upstream_grant_put(struct buf *form, const char *name, const char *value);
