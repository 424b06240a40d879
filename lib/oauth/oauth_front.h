/*
 * oauth_front.h - users of a chat front end, which signs for each of its requests who asks (LibreChat's code API): a
 * JWT by the front end's own key, which the operator gave us (api.jwt_key). Nobody is asked for keys, and nothing is
 * remembered: the front end uses a token for some seconds, for several requests.
 *
 * Each user is an owner: api.jwt_owner, "-", and the claim `sub` where that is the name of an owner. Else, and for
 * users of a tenant (claim `tenant_id`, other than "legacy"), the beginning of SHA-256 of both stands for `sub`.
 */
#pragma once

#include "lib/base/config.h"
#include "oauth_who.h"

struct oauth_front;
/* *ret NULL: there is none (api.jwt_key is empty). ERR_INVALID names the member of the configuration, which must
 * outlive it. */
int oauth_front_open(const struct config *config, struct oauth_front **ret, struct err *err);
void oauth_front_close(struct oauth_front *front); /* NULL is fine */
/* Whose request is it? ERR_DENIED: not a good token. Thread-safe. */
int oauth_front_check(const struct oauth_front *front, const char *text, struct oauth_who *ret, struct err *err);
