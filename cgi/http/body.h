/*
 * body.h - the bytes of request bodies that are under way: a budget, taken before a body is read.
 *
 * A body is read, parsed and copied, which takes two to four times its bytes. So a large one (above BODY_SMALL) is
 * admitted from the head of its request alone: the token has a scope that a large body can be for, it takes a place
 * among limits.in_flight, and there is room for its bytes in the budgets of its token, of the client's address and of
 * all. It waits up to BODY_WAIT_SECONDS for room, in no order. What is not admitted is never read. A body of unknown
 * length counts as the largest that there may be.
 */
#pragma once

#include "access.h"

#define BODY_SMALL        (64 * 1024)
#define BODY_WAIT_SECONDS 60
/* Budgets, in largest bodies (limits.body_mb). */
#define BODY_TOKEN   1
#define BODY_ADDRESS 2
#define BODY_ALL     4

struct body_budget;
struct body_budget *body_budget_new(void);
void body_budget_free(struct body_budget *bodies); /* NULL is fine */

/* Admits the body of a request; false: *ret says why not. Every request is followed by body_leave, admitted or not. */
bool body_enter(struct http_exchange *exchange, struct access_refusal *ret);
/* At the end of the request, when nothing of its body is left. */
void body_leave(struct http_exchange *exchange);
