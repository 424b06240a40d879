/*
 * auth.h - whose request it is: the bearer token.
 */
#pragma once

#include "exchange.h"

#define AUTH_AGAIN_US (10 * 1000000LL)

/* Fills in exchange->token; negative: the reply is 401 (no token, or an unknown one) or 503. */
int auth_token(struct http_exchange *exchange);
/* Does the request carry this bearer token, which is none of the store's? */
bool auth_bearer_is(const struct request *request, const char *expected);
/* For streams: is the token, which was good when they began, still so? Looks every AUTH_AGAIN_US; *looked_us
 * (monotonic): when it was looked at last. A store that cannot be read does not end the stream. */
bool auth_still_good(const struct http_exchange *exchange, int64_t *looked_us);
/* Does the request come from this machine, as far as the web server says where it comes from? */
bool auth_from_loopback(const struct request *request);
