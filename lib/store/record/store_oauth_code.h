/*
 * store_oauth_code.h - how a person's approval becomes a grant: login codes of `sallyport login-code`, by which they
 * show who they are, and authorization codes, which /authorize sends to a client and /token takes.
 *
 * Only SHA-256 of a code is stored. Each is good once: the transaction that uses one up also writes what it is for.
 */
#pragma once

#include "store_token.h"

/* -------- login codes: "BCDF-GHJK-LMNP" ---------------------------------------------------------------- */

#define STORE_OAUTH_LOGIN_TEXT 15
struct store_oauth_login {
	char hash[SHA256_HEX_SIZE];
	char owner[STORE_OWNER_MAX + 1];
	unsigned scopes;
};
int store_oauth_login_add(struct store *store, const char *owner, unsigned scopes, int64_t seconds,
			  char ret_text[STORE_OAUTH_LOGIN_TEXT], struct err *err);
/* As a person types it: case, blanks and dashes do not count. It is not used up. ERR_DENIED: unknown, used, or too old.
 */
int store_oauth_login_check(struct store *store, const char *typed, struct store_oauth_login *ret, struct err *err);
/* The same by its hash. */
int store_oauth_login_find(struct store *store, const char *hash, struct store_oauth_login *ret, struct err *err);

/* -------- authorization codes -------------------------------------------------------------------------- */

#define STORE_OAUTH_CODE_SECONDS 60
#define STORE_OAUTH_CODES_MAX    10 /* of one owner at once: the oldest goes */
#define STORE_OAUTH_CODE_TEXT    48 /* "spc_" and 43 characters */
struct store_oauth_approval {
	const char *client, *redirect, *host, *challenge;
	const char *owner;
	const char *parent; /* the token that approves; NULL: a login code does */
	const char *login;  /* hash of that code, which is used up; NULL: a token does */
	unsigned scopes;
	bool offline; /* the client asked for offline_access */
};
/* ERR_DENIED: the login code was used or is too old. */
int store_oauth_code_add(struct store *store, const struct store_oauth_approval *approval,
			 char ret_text[STORE_OAUTH_CODE_TEXT], struct err *err);

/* How long things last, and what a client's request brings along. */
struct store_oauth_terms {
	int64_t access_us, refresh_us, grant_us; /* refresh_us 0: no refresh tokens */
};
struct store_oauth_issued {
	char access[STORE_TOKEN_TEXT], refresh[STORE_TOKEN_TEXT]; /* refresh "": none */
	char owner[STORE_OWNER_MAX + 1], grant[ID_SIZE];
	unsigned scopes;
	bool offline;
	int64_t access_us; /* how long the access token is good */
};
struct store_oauth_redemption {
	const char *code, *client, *client_name;
	const char *redirect;  /* NULL: the request names none */
	const char *challenge; /* of the verifier that the request brings */
	bool refreshes;
};
#define STORE_OAUTH_GRANTS_MAX 100 /* live ones of one owner: the one that was not used for longest is revoked */
/* ERR_DENIED: the code is not good for this client, or not any more: the text says why. A code that was used before,
 * with all else right, ends the grant that it became. */
int store_oauth_code_redeem(struct store *store, const struct store_oauth_redemption *redemption,
			    const struct store_oauth_terms *terms, struct store_oauth_issued *ret, struct err *err);
