/*
 * store_oauth_token.h - access and refresh tokens of our own authorization server: spa_<owner>_<secret> and
 * spr_<owner>_<secret>, of which only SHA-256 is stored.
 *
 * A refresh token that is presented makes a successor and stays good until something made from it (an access or a
 * refresh token) is used for the first time, and STORE_OAUTH_GRACE_US beyond: answers get lost, and some clients ask
 * from two addresses at once. One that is presented later was stolen, or its client was, and the grant is revoked.
 * Several successors may exist; the first that is presented itself retires the others.
 *
 *     good ──presented──> replaced ──something made from it is used──> proved ──a minute──> theft
 */
#pragma once

#include "store_oauth_code.h"

#define STORE_OAUTH_GRACE_US   (60 * INT64_C(1000000))
#define STORE_OAUTH_SUCCESSORS 8 /* live ones of one refresh token: the oldest goes */

/* As store_token_check, for an access token; the row is the grant's, with the scopes of this token. */
int store_oauth_token_check(struct store *store, const char *text, struct store_token *ret, struct err *err);
/* `wanted`: scopes that the client asks for; 0: all. ERR_DENIED: the token is not good: the text says why;
 * ERR_INVALID: more scopes than were approved. *ret_stolen: it was presented too late, and the grant, which
 * *ret names, has been revoked. */
struct store_oauth_renewal {
	const char *refresh, *client;
	unsigned wanted;
};
int store_oauth_token_refresh(struct store *store, const struct store_oauth_renewal *renewal,
			      const struct store_oauth_terms *terms, struct store_oauth_issued *ret, bool *ret_stolen,
			      struct err *err);
/* A refresh token ends its grant, an access token itself alone. Nothing happens to one of another client, and to what
 * is no token at all. */
int store_oauth_token_revoke(struct store *store, const char *text, const char *client, struct err *err);
