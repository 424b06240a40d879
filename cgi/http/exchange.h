/*
 * exchange.h - one HTTP request on its way to its reply, after the token was checked.
 */
#pragma once

#include "http.h"
#include "lib/store/record/store_token.h"
#include "server.h"

struct http_exchange {
	struct server *server;
	const struct request *request;
	struct reply *reply;
	int64_t began_us; /* monotonic: when the request was taken; 0: nobody measures it */
	struct store_token token; /* whose request it is; empty where a route needs none */
	int places;         /* access_enter without access_leave: it has one place among limits.in_flight, or none */
	int64_t body_bytes; /* body.h: in the budgets */
	bool body_place;    /* body.h: one of `places` */
};
