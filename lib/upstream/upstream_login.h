/*
 * upstream_login.h - what a sign-in at a server's authorization server left with us: data_dir/logins/ALIAS.json, a JSON
 * object of the members below, readable by the gateway's account alone. Backups do not hold it.
 *
 * A login belongs to the server's name and address: one of another address is none, so an entry that was changed never
 * sends a token elsewhere. Who changes a login holds its lock, also across processes (the gateway renews tokens, and so
 * does `sallyport upstream`): a refresh token that two use at once looks like theft to its issuer. A new one is a part
 * file, synced and renamed.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "upstream_config.h"

/* Texts, NULL where there is none: address of the server · who issued the tokens · what they are for (RFC 8707) ·
 * endpoints · the client: its id, its secret, how it shows itself (none, client_secret_basic, client_secret_post),
 * whether it registered itself ("yes"), where answers come back to · the tokens and the scopes that were given. */
#define UPSTREAM_LOGIN_TEXTS(TEXT)                                                                                     \
	TEXT(url)                                                                                                      \
	TEXT(issuer)                                                                                                   \
	TEXT(resource)                                                                                                 \
	TEXT(token_endpoint)                                                                                           \
	TEXT(revocation_endpoint)                                                                                      \
	TEXT(client_id)                                                                                                \
	TEXT(client_secret)                                                                                            \
	TEXT(client_auth)                                                                                              \
	TEXT(registered)                                                                                               \
	TEXT(redirect_uri)                                                                                             \
	TEXT(access_token)                                                                                             \
	TEXT(refresh_token)                                                                                            \
	TEXT(scope)

struct upstream_login {
#define TEXT(name) char *name;
	UPSTREAM_LOGIN_TEXTS(TEXT)
#undef TEXT
	int64_t got_us, expires_us; /* of the access token, clock_now_us; expires_us 0: the issuer did not say */
};
void upstream_login_clear(struct upstream_login *login); /* a zeroed one is fine */
#define auto_login __attribute__((cleanup(upstream_login_clear)))
void upstream_login_set(char **text, const char *value); /* a copy; NULL: none */

/* Is it a server that requests reach with the token of a login: one with a url, and no Authorization among the headers
 * of its entry? */
bool upstream_login_possible(const struct upstream_server *server);
/* ERR_NOT_FOUND: nobody signed in; ERR_CORRUPT: the file is not one of ours. */
int upstream_login_read(const char *data_dir, const struct upstream_server *server, struct upstream_login *ret,
			struct err *err);
int upstream_login_write(const char *data_dir, const struct upstream_server *server, const struct upstream_login *login,
			 struct err *err);
int upstream_login_remove(const char *data_dir, const struct upstream_server *server, struct err *err);
/* Waits for the lock, which closing the descriptor gives back; negative: an error, ERR_CANCELLED once *stop is true. */
int upstream_login_lock(const char *data_dir, const struct upstream_server *server, const atomic_bool *stop,
			struct err *err);
/* A number that is another one after the file was written anew; 0: there is none. */
uint64_t upstream_login_version(const char *data_dir, const struct upstream_server *server);

/* Is it time for a new access token? Some seconds before it expires. */
bool upstream_login_due(const struct upstream_login *login, int64_t now_us);
