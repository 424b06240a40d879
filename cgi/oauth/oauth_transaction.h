/*
 * oauth_transaction.h - what a client asked of /authorize, on its way through the page: sealed into a hidden field, so
 * that the server keeps nothing and the browser can change nothing. It belongs to the browser that began it (a cookie),
 * and lives for OAUTH_TRANSACTION_SECONDS. Of each step has its own seal.
 *
 *     ask ──who are you?──> OAUTH_STEP_ASKED ──a token or code is good──> OAUTH_STEP_KNOWN ──approve, deny──> over
 */
#pragma once

#include "cgi/http/http.h"
#include "lib/oauth/oauth_redirect.h"
#include "lib/store/record/store_oauth_client.h"

#define OAUTH_TRANSACTION_SECONDS 600
#define OAUTH_STATE_MAX           2048
#define OAUTH_CHALLENGE_SIZE      44 /* 43 characters */

enum oauth_step { OAUTH_STEP_ASKED, OAUTH_STEP_KNOWN };

struct oauth_transaction {
	char client[STORE_OAUTH_ID_MAX + 1];
	char redirect[OAUTH_REDIRECT_MAX + 1]; /* "": the client named none, and its document is not known yet */
	char state[OAUTH_STATE_MAX + 1];       /* "": none */
	char challenge[OAUTH_CHALLENGE_SIZE];
	unsigned asked; /* scopes */
	bool offline;
	char browser[SHA256_HEX_SIZE]; /* of its cookie */
	int64_t expires_us;
	/* OAUTH_STEP_KNOWN: who approves, by the id of a token or the hash of a login code */
	char token[ID_SIZE], login[SHA256_HEX_SIZE];
};

/* The caller's. */
char *oauth_transaction_seal(struct store *store, enum oauth_step step, const struct oauth_transaction *transaction);
/* ERR_DENIED: none of ours for this step, of another browser, or too old. */
int oauth_transaction_open(const struct http_exchange *exchange, enum oauth_step step, const char *text,
			   struct oauth_transaction *ret, struct err *err);
/* The browser's cookie as the transaction keeps it; one that has none gets one. */
void oauth_transaction_browser(struct http_exchange *exchange, char ret[SHA256_HEX_SIZE]);
