/*
 * oauth_documents.h - gets the documents by which clients name themselves (oauth.client_metadata), for the page at
 * /authorize: from addresses that strangers choose, so on threads that serve no request, with bounds on how many there
 * are, how long one takes, and which hosts may be connected to (oauth_fetch.h).
 *
 * What was fetched is kept in the store (oauth_client) for an hour, or as long as its host says. While the host does
 * not answer a copy counts for a week; without one, a built-in copy of a well-known client's document does.
 */
#pragma once

#include "lib/base/config.h"
#include "lib/store/record/store_oauth_client.h"

#define OAUTH_DOCUMENTS_FLIGHTS 4  /* fetched at once */
#define OAUTH_DOCUMENTS_MINUTE  30 /* of all hosts */
#define OAUTH_DOCUMENTS_HOST    5  /* a minute, of one */
#define OAUTH_DOCUMENTS_SECONDS 6  /* that a request waits */

struct oauth_documents;
/* The configuration and the store must outlive it. */
struct oauth_documents *oauth_documents_new(const struct config *config, struct store *store);
/* Requests that wait get ERR_UNAVAILABLE. NULL is fine. */
void oauth_documents_stop(struct oauth_documents *documents);
void oauth_documents_free(struct oauth_documents *documents);

/* The client whose document stands at `id`: ERR_INVALID: the id or the document is not one; ERR_UNAVAILABLE: it cannot
 * be had now; ERR_BUSY: too many are asked for. The text says why, and nothing of what the host answered. Thread-safe.
 */
int oauth_documents_client(struct oauth_documents *documents, const char *id, struct store_oauth_client *ret,
			   struct err *err);
