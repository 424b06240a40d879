/*
 * cors.h - pages of allowed Origins (http_origin_allowed) may read our answers; the browser asks first (preflight).
 *
 * Cookies play no part: a page needs a bearer token like everybody else.
 */
#pragma once

#include "exchange.h"

/* On every reply to a page. */
void cors_headers(struct reply *reply, const char *origin);
/* Answers an OPTIONS request that asks for permission; false: it is none. */
bool cors_preflight(struct http_exchange *exchange, const char *allow);
