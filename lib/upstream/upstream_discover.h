/*
 * upstream_discover.h - who gives out tokens for a server: its challenge (RFC 9110, RFC 6750), its protected resource
 * metadata (RFC 9728), and the metadata of the authorization server that they name (RFC 8414, OpenID Connect
 * Discovery).
 *
 * Everything here was written by other machines: it names addresses to connect to, and a person will type a password at
 * the end of it. So addresses must be https (or this machine), and public ones unless the entry says `private`; the
 * resource must be the server itself, by origin and path; the issuer must name itself as it was named, to the last
 * character; PKCE with S256 must be on offer. Servers of revision 2025-03-26 have no resource metadata: their origin is
 * the issuer, with /authorize, /token and /register where it has no metadata either.
 */
#pragma once

#include "lib/oauth/oauth_fetch.h"
#include "upstream_config.h"

#define UPSTREAM_METADATA_MAX (128 << 10)

/* Parameters of a WWW-Authenticate header's first challenge of scheme Bearer; the caller's; NULL: not there. */
struct upstream_challenge {
	char *resource_metadata, *scope, *error;
};
void upstream_challenge_parse(const char *header, struct upstream_challenge *ret);
void upstream_challenge_clear(struct upstream_challenge *challenge);
#define auto_challenge __attribute__((cleanup(upstream_challenge_clear)))

/* Ways in which a client shows itself at the token endpoint. */
enum upstream_auth { UPSTREAM_AUTH_NONE = 1, UPSTREAM_AUTH_BASIC = 2, UPSTREAM_AUTH_POST = 4 };
extern const char *const upstream_auth_names[]; /* [i] is that of bit i; ended by NULL */
struct upstream_issuer {
	char *issuer, *resource;
	char *authorization_endpoint, *token_endpoint, *registration_endpoint, *revocation_endpoint;
	char *scope;        /* that the server asks for; NULL: it does not say */
	unsigned auth;      /* bits of enum upstream_auth */
	bool takes_urls;    /* a client's id may be the address of its metadata document */
	bool sends_iss;     /* each answer must say whose it is (RFC 9207) */
	bool offline;       /* there is a scope offline_access */
};
void upstream_issuer_clear(struct upstream_issuer *issuer);
#define auto_issuer __attribute__((cleanup(upstream_issuer_clear)))
/* Asks the server as somebody who has no token. ERR_NOT_FOUND: it asks for none and names nobody who gives out tokens.
 * ERR_DENIED: what it says must not be followed. */
int upstream_discover(const struct upstream_server *server, struct upstream_issuer *ret, struct err *err);

/* What other machines name, fetched by the rules above; the answer's body must be a JSON object, whatever its status.
 * ERR_UNAVAILABLE where there is none; *ret is the caller's. */
int upstream_discover_ask(const struct upstream_server *server, const struct oauth_fetch *what, int *ret_status,
			  struct json_object **ret, struct err *err);
