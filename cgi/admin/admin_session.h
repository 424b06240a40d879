/*
 * admin_session.h - who is signed in to the admin page.
 *
 * A person signs in with a token of the scope `admin`. The browser gets a random secret in a cookie; this process keeps
 * the secret's SHA-256 with the token's id, in memory: a restart of the gateway signs everybody out. A session ends
 * after admin.hours, after admin.idle_minutes without a request, at sign-out, and with its token: each request looks
 * the token up again. Thread-safe.
 *
 * Acts are forms. Each form carries a key for its own address, made of a secret of the session; and a request that may
 * change something must come from a page of ours (Sec-Fetch-Site, Origin).
 */
#pragma once

#include "cgi/http/http.h"

#define ADMIN_SESSIONS_MAX    64 /* at once; the one that was not used for longest gives way */
#define ADMIN_FAILURES_MINUTE 5  /* of one address, then 429 */
#define ADMIN_KEY_SIZE        SHA256_HEX_SIZE

struct admin; /* of a process that stays */
struct admin *admin_session_table_new(void);
void admin_session_table_free(struct admin *admin); /* NULL is fine */

/* A signed-in person. */
struct admin_visitor {
	struct store_token token;
	uint8_t secret[SHA256_SIZE]; /* of this session: for the keys of its forms */
	uint8_t sum[SHA256_SIZE];    /* by which the session is found */
};
/* Whose cookie the request carries; ERR_DENIED: nobody's, or not any more. */
int admin_session_find(struct http_exchange *exchange, struct admin_visitor *ret, struct err *err);
/* Checks the token and opens a session: the reply gets the cookie. ERR_DENIED: not a token, or without the scope;
 * ERR_BUSY: too many attempts, *ret_retry seconds from now the next. */
int admin_session_open(struct http_exchange *exchange, const char *token, int64_t *ret_retry, struct err *err);
/* Ends it: the reply takes the cookie away. */
void admin_session_end(struct http_exchange *exchange, const struct admin_visitor *visitor);

/* Does the request come from a page of this site? */
bool admin_session_own_page(const struct http_exchange *exchange);
/* The key of the form that is sent to this address. */
void admin_session_key(const struct admin_visitor *visitor, const char *address, char ret[ADMIN_KEY_SIZE]);
bool admin_session_key_right(const struct admin_visitor *visitor, const char *address, const char *key);
/* The actor of this person's audit entries, and the entry itself about `type`:`id`. */
#define ADMIN_ACTOR_SIZE 48
void admin_session_actor(const struct admin_visitor *visitor, char ret[ADMIN_ACTOR_SIZE]);
