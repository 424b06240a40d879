/*
 * oauth_server.h - our own authorization server (oauth.mode builtin), as far as requests share it: the documents of
 * clients, and how often strangers may try what.
 *
 *     /authorize   the page: who are you, and may this client act for you? (oauth_authorize.c)
 *     /token       a code or a refresh token becomes an access token (oauth_token.c)
 *     /revoke      a client gives a token back
 *     /register    a client introduces itself (oauth_register.c)
 *
 * Everything else is in the store: a restart loses nothing but the counts.
 */
#pragma once

#include "cgi/http/attempts.h"
#include "cgi/http/http.h"
#include "lib/oauth/oauth_documents.h"

#define OAUTH_SERVER_GUESSES        10 /* wrong tokens and codes on the page, a minute and address */
#define OAUTH_SERVER_FAILURES       60 /* refused requests of /token and /revoke, a minute and address */
#define OAUTH_SERVER_REGISTERED     20 /* an hour and address */
#define OAUTH_SERVER_REGISTERED_ALL 60 /* an hour */
#define OAUTH_SERVER_SPENT          4096

struct oauth_server {
	struct oauth_documents *documents;
	struct attempts guesses, failures, registered, all_registered;
	pthread_mutex_t lock;
	uint64_t spent[OAUTH_SERVER_SPENT]; /* hashes of transactions that ended, each in the place that it chooses */
};
/* ERR_INVALID names the member of the configuration. */
int oauth_server_open(const struct config *config, struct store *store, struct oauth_server **ret, struct err *err);
void oauth_server_close(struct oauth_server *oauth); /* NULL is fine */
/* The page's transaction has ended: false: it had before. */
bool oauth_server_spend(struct oauth_server *oauth, const char *transaction);
bool oauth_server_spent(struct oauth_server *oauth, const char *transaction);
/* Who asks, as attempts are counted. */
void oauth_server_address(const struct http_exchange *exchange, char ret[STORE_ADDRESS_SIZE]);
