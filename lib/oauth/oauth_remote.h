/*
 * oauth_remote.h - what is asked of the operator's authorization server, each answer checked: metadata (RFC 8414,
 * OpenID Connect Discovery), keys, introspection (RFC 7662). Blocking; one thread at a time asks for keys.
 */
#pragma once

#include <stdatomic.h>

#include "lib/base/config.h"
#include "lib/base/json.h"
#include "oauth_keys.h"

struct oauth_remote {
	const struct config *config;
	char *secret;   /* of introspection; NULL: none */
	char *keys_url; /* that the metadata named; NULL: not asked yet */
	atomic_bool stop;
};
/* Reads oauth.introspection_secret_file. */
int oauth_remote_open(struct oauth_remote *remote, const struct config *config, struct err *err);
void oauth_remote_close(struct oauth_remote *remote);

/* ERR_UNAVAILABLE: there is no good answer. *ret_age_seconds: how long the keys may be kept; -1: the issuer does not
 * say. */
int oauth_remote_keys(struct oauth_remote *remote, struct oauth_keys **ret, int64_t *ret_age_seconds, struct err *err);
/* 0 and the claims, which are the caller's; ERR_DENIED: not active; ERR_UNAVAILABLE. */
int oauth_remote_introspect(struct oauth_remote *remote, const char *token, struct json_object **ret_claims,
			    struct err *err);
