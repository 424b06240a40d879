/*
 * oauth_issuer.h - the operator's authorization server (oauth.mode external), as the checker of tokens sees it: its
 * keys and its introspection, asked over HTTPS by threads of this module, never by the thread of a request, and
 * remembered.
 *
 * A token that was checked is remembered for a minute, by its SHA-256. A request whose token, or whose token's key, is
 * remembered asks nobody. Keys are asked for again when they are an hour old (or as old as the issuer says), and for an
 * unknown key id once a minute, for all requests together; while the issuer does not answer, the old ones count for a
 * day.
 */
#pragma once

#include "lib/base/config.h"
#include "lib/base/err.h"
#include "oauth_who.h"

struct oauth_issuer;
/* Reads no network. ERR_INVALID names the member of the configuration, which must outlive the issuer. */
int oauth_issuer_open(const struct config *config, struct oauth_issuer **ret, struct err *err);
/* Requests that wait get ERR_UNAVAILABLE. NULL is fine. */
void oauth_issuer_stop(struct oauth_issuer *issuer);
void oauth_issuer_close(struct oauth_issuer *issuer);

/* Whose token is it? 0; ERR_DENIED: not a good token; ERR_NOT_FOUND: a good one of somebody who has no owner here;
 * ERR_UNAVAILABLE, ERR_BUSY: it cannot be known now. Texts of our own tokens (sp_, spa_, spr_) are denied unread.
 * Waits for the issuer at most OAUTH_ISSUER_SECONDS. Thread-safe. */
#define OAUTH_ISSUER_SECONDS 6
int oauth_issuer_check(struct oauth_issuer *issuer, const char *text, struct oauth_who *ret, struct err *err);
