/*
 * oauth_fetch.h - gets one document from another machine over HTTPS: keys, metadata, answers to introspection, tokens.
 * Blocking, for threads of its callers that nobody waits for without a bound.
 *
 * No redirects, no proxy, no cookies, no credentials of this machine; connecting takes at most 3 s and all of it 5 s;
 * the body ends at `max` bytes. http is for loopback alone. Where the operator names the address, any may be connected
 * to; where a stranger does, only public ones, over https, at its usual port: looked at is the very address that is
 * connected to, so that a name which changes its mind has no gap.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct oauth_fetch {
	const char *url;
	const char *form;            /* POST of a form; NULL: GET, or */
	const char *json;            /* POST of a JSON text */
	const char *const *headers;  /* instead of Accept: application/json; ended by NULL */
	const char *user, *password; /* Basic, form-encoded here; NULL: none */
	const char *ca_file;         /* PEM, instead of the system's; NULL or "": the system's */
	size_t max;
	enum oauth_fetch_trust { /* who named the address; from STRANGER on it must be https */
		OAUTH_FETCH_OPERATOR,	   /* any address */
		OAUTH_FETCH_PUBLIC,	   /* public addresses, any port */
		OAUTH_FETCH_STRANGER,	   /* public addresses, port 443 */
		OAUTH_FETCH_STRANGER_HERE, /* and loopback: the server itself is on it, so that no other machine is */
	} trust;
	const atomic_bool *stop; /* becomes true: the fetch ends; NULL: it does not */
};
struct oauth_fetched {
	int status;
	int64_t max_age_seconds; /* of Cache-Control; -1: it says nothing */
	struct buf body;
	char *challenge; /* WWW-Authenticate, the first of scheme Bearer; NULL: none */
};
void oauth_fetched_clear(struct oauth_fetched *fetched);
#define auto_fetched __attribute__((cleanup(oauth_fetched_clear)))

/* Once, before threads fetch. */
void oauth_fetch_begin(void);
/* Any status is a success; ERR_UNAVAILABLE: there is no answer, or not a whole one; ERR_DENIED: the address is not one
 * to connect to. */
int oauth_fetch(const struct oauth_fetch *what, struct oauth_fetched *ret, struct err *err);
/* `text` as a value of a form, appended. */
void oauth_fetch_encode(struct buf *out, const char *text);
