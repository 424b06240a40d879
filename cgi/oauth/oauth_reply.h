/*
 * oauth_reply.h - what the endpoints that programs call (/token, /revoke, /register) share: their requests and
 * refusals.
 *
 * Clients read the error's code and act by it: `invalid_client` makes them register anew, `invalid_grant` sign in
 * again. So overload and faults of ours are `temporarily_unavailable`, which makes them wait.
 */
#pragma once

#include "cgi/http/http.h"
#include "lib/oauth/oauth_form.h"

#define OAUTH_REPLY_BODY_MAX (16 * 1024) /* bytes of a request */
#define OAUTH_BUSY           "temporarily_unavailable"

/* {"error", "error_description"}, never kept by caches. `description`: without quotes and backslashes. */
void oauth_reply_error(struct http_exchange *exchange, int status, const char *error, const char *description);
/* The same with OAUTH_BUSY and Retry-After. */
void oauth_reply_busy(struct http_exchange *exchange, int status, int64_t seconds, const char *description);
/* The store, or something of ours, fails: 503, and a line in the log. */
void oauth_reply_fault(struct http_exchange *exchange, const struct err *err);
/* The body, at most OAUTH_REPLY_BODY_MAX bytes, appended; negative: the reply says why not. */
int oauth_reply_body(struct http_exchange *exchange, struct buf *body);
/* The same as a form, which has the type that forms have. */
int oauth_reply_form(struct http_exchange *exchange, struct oauth_form *ret);
/* Does the request's Content-Type begin with it, in any case? */
bool oauth_reply_typed(const struct http_exchange *exchange, const char *type);
