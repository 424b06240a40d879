/*
 * oauth_page.h - what a person sees at /authorize: pages without scripts, without pictures, from no other host, that no
 * other page can frame. Names that clients give themselves are text, cut to a length, with everything invisible in them
 * shown; where a client's answer goes is what stands out.
 */
#pragma once

#include "lib/store/record/store_oauth_client.h"
#include "oauth_transaction.h"

/* Where the client's answer goes, with these parameters behind it; `error` NULL: the code. The caller's. */
struct oauth_page_answer {
	const char *code;
	const char *error, *description;
};
char *oauth_page_address(const struct http_exchange *exchange, const struct oauth_transaction *transaction,
			 const struct oauth_page_answer *answer);

/* What is wrong. `back` NULL: there is no way to go on; else an address of the client's, behind a link. */
void oauth_page_error(struct http_exchange *exchange, int status, const char *text, const char *back);
/* Step 1. `client` NULL: only its id is known. `problem` NULL: none. */
void oauth_page_ask(struct http_exchange *exchange, int status, const struct oauth_transaction *transaction,
		    const struct store_oauth_client *client, const char *problem);
/* Step 2: as whom, and which of the scopes `may`. */
struct oauth_page_approval {
	const struct oauth_transaction *transaction;
	const struct store_oauth_client *client;
	const char *owner;
	unsigned may;
	const char *problem; /* NULL: none */
};
void oauth_page_approve(struct http_exchange *exchange, const struct oauth_page_approval *approval);
/* The end: the browser goes to the address by itself, and by a link. */
void oauth_page_done(struct http_exchange *exchange, const char *address, bool approved);
