/*
 * landing.h - what a person sees who opens this server's address in a browser (oauth.mode is not off): that it is not a
 * site, and which address goes into a client.
 */
#pragma once

#include "http.h"

/* Is it a browser that asks for a page? Never without OAuth. */
bool landing_wanted(const struct http_exchange *exchange);
void landing_page(struct http_exchange *exchange, int status);
/* GET and HEAD of "/". */
void landing_root(struct http_exchange *exchange, const char *method, const char *rest);
