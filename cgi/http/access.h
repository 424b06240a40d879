/*
 * access.h - what a token may do, and how often: scopes, requests a minute, calls at once.
 *
 * A token without the scope gets 403 and a challenge that names it; one that asks too often, or has too many tool calls
 * under way, gets 429 and Retry-After. All of it is decided before an era looks at the message. Without authentication
 * everything is allowed.
 */
#pragma once

#include "cgi/mcp/rpc.h"
#include "exchange.h"
#include "lib/store/store_token.h"

#define ACCESS_BURST_US 60000000LL /* a token that was quiet may ask for a minute's requests at once */

struct limiter;
struct limiter *limiter_new(void);
void limiter_free(struct limiter *limiter); /* NULL is fine */

/* Counts a request against limits.requests_per_minute; false: the reply is 429. */
bool access_rate(struct exchange *exchange);
/* The scopes that count for a token: everything where there is no authentication. */
unsigned access_scopes(const struct store_token *token);
/* Do they hold `scope` (0: nothing is needed)? */
bool access_allows(unsigned scopes, unsigned scope);
/* May the token do this? false: the reply is 403. `message` may be a notification or response: those are free. */
bool access_scope(struct exchange *exchange, const struct rpc_message *message);
/* Takes a place among limits.in_flight for a call of a tool; false: the reply is 429. Every true is followed by one
 * access_leave. */
bool access_enter(struct exchange *exchange, const struct rpc_message *message);
void access_leave(struct exchange *exchange, const struct rpc_message *message);
