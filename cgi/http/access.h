/*
 * access.h - whose request it is: the bearer token; and what a token may do, and how often: scopes, requests a minute,
 * calls at once.
 *
 * A token without the scope gets 403 and a challenge that names it. One that asks too often, or has too many tool
 * calls under way, gets 429 and Retry-After; while its owner or the host is drained 503 and Retry-After. The caller
 * knows what a request needs and writes the reply. Without authentication everything is allowed.
 */
#pragma once

#include "http.h"
#include "lib/store/record/store_token.h"

#define ACCESS_BURST_US 60000000LL /* a token that was quiet may ask for a minute's requests at once */

/* What needs no scope says so: 0 is a scope that was forgotten, and nobody has it. */
#define ACCESS_FREE (1u << 31)

struct limiter;
struct limiter *access_limiter_new(void);
void access_limiter_free(struct limiter *limiter); /* NULL is fine */

/* Why a request is refused: what the reply says besides its body. */
struct access_refusal {
	int status;                    /* 403, 429, 503, or 400 where waiting does not help */
	int64_t retry_seconds;         /* of 429 and 503 */
	char scope[STORE_SCOPES_TEXT]; /* of 403: what the token lacks */
	char text[128];
};

/* Counts an HTTP request against limits.requests_per_minute, before its body is read; false: *ret says why not. */
bool access_rate(const struct http_exchange *exchange, struct access_refusal *ret);
/* Counts the messages of a batch, all or none, so that a batch of N costs as much as N requests. The first is the HTTP
 * request, which access_rate has counted. */
bool access_rate_batch(const struct http_exchange *exchange, size_t messages, struct access_refusal *ret);
/* The scopes that count for a token: everything where there is no authentication. */
unsigned access_scopes(const struct store_token *token);
/* Do they hold `scope`: one of enum store_scope, or ACCESS_FREE? Never for 0. */
bool access_allows(unsigned scopes, unsigned scope);
/* May the token do what needs `scope`? */
bool access_scope(const struct http_exchange *exchange, unsigned scope, struct access_refusal *ret);
/* May anything of the owner start here? Not while `sallyport drain` says no. */
bool access_open(const struct http_exchange *exchange, struct access_refusal *ret);
/* Takes a place among limits.in_flight for a call of a tool, unless the request has one; waits for it as
 * limits.wait_seconds says. Every true is followed by one access_leave; the last one gives the place back. */
#define ACCESS_WAITING       192 /* calls that wait, each on a thread of FCGI_THREADS_MAX */
#define ACCESS_WAITING_TOKEN 128
bool access_enter(struct http_exchange *exchange, struct access_refusal *ret);
void access_leave(struct http_exchange *exchange);
int access_waiting(struct limiter *limiter); /* how many calls wait */

/* Requests for files need no token, only an address that they know: their number is bounded by conversation, by the
 * client's address and in all, so that archives that are never read leave threads for everything else. */
#define ACCESS_READS_PLACE   8
#define ACCESS_READS_ADDRESS 32
#define ACCESS_READS         64
/* `place`: the conversation's hash. Every true is followed by one access_read_leave with the same arguments. */
bool access_read_enter(const struct http_exchange *exchange, const char *place, struct access_refusal *ret);
void access_read_leave(const struct http_exchange *exchange, const char *place);

/* A limit (of METRIC_REJECTED) refused this request: counted, and written to the audit log. */
void access_refused(const struct http_exchange *exchange, const char *limit);

/* -------- access_challenge.c: what a client is to do about 401 and 403 ---------------------------------- */

/* WWW-Authenticate. With OAuth it names the metadata (RFC 9728) and the scopes that are usually wanted. */
void access_challenge(const struct http_exchange *exchange, const char *error, const char *description);
/* The same for a refusal with 403: the scope that the token lacks; where its client can ask for more scopes, those
 * that it has as well. */
void access_challenge_scope(const struct http_exchange *exchange, const struct access_refusal *refusal);

/* -------- access_token.c: whose request it is ---------------------------------------------------------- */

#define ACCESS_AGAIN_US (10 * 1000000LL)

/* Fills in exchange->token; negative: the reply is 401 (no token, or an unknown one), 403 (a good token of somebody
 * who has no owner here) or 503 (it cannot be checked now). */
int access_token(struct http_exchange *exchange);
/* Are the owners in doors.trusted such? ERR_INVALID. */
int access_trusted_check(const struct config *config, struct err *err);
/* Does the request carry this bearer token, which is none of the store's? */
bool access_bearer_is(const struct http_exchange *exchange, const char *expected);
/* For streams: is the token, which was good when they began, still so? Looks every ACCESS_AGAIN_US; *looked_us
 * (monotonic): when it was looked at last. A store that cannot be read does not end the stream. */
bool access_still_good(const struct http_exchange *exchange, int64_t *looked_us);
/* Does the request come from this machine, as far as the web server says where it comes from? */
bool access_from_loopback(const struct request *request);
