/*
 * oauth_redirect.h - addresses that clients name: where codes may go, which document describes a client, which resource
 * a token is for.
 *
 * They are compared as they are written, never normalised (RFC 9700, section 4.1), with one exception: an http address
 * of this machine (127.0.0.1, [::1], localhost) that a client registered fits any port (RFC 8252, section 7.3).
 */
#pragma once

#include "lib/base/config.h"
#include "lib/base/err.h"

#define OAUTH_REDIRECT_MAX 2000 /* bytes */

/* May a client register it? https, http on loopback, or one of oauth.private_schemes; no fragment, no user. */
bool oauth_redirect_allowed(const struct config *config, const char *uri);
/* Is it http on this machine's loopback interface? */
bool oauth_redirect_loopback(const char *uri);
bool oauth_redirect_matches(const char *registered, const char *asked);
/* The host as a person should read it, with a port that is not usual; of a private scheme that scheme. */
#define OAUTH_REDIRECT_HOST 256
void oauth_redirect_host(const char *uri, char ret[OAUTH_REDIRECT_HOST]);
/* The same host, normalised, or a loopback one, or one of oauth.redirect_hosts: what the document at `id` may name. */
bool oauth_redirect_of_document(const struct config *config, const char *id, const char *uri);
/* Is the id the address of a document that may be fetched? ERR_INVALID: the reason. */
int oauth_redirect_document(const struct config *config, const char *id, struct err *err);
/* Does public_base_url name this machine alone? */
bool oauth_redirect_local(const struct config *config);
/* Is it this server, by any of the names that clients have for it? */
bool oauth_redirect_resource(const struct config *config, const char *resource);
