/*
 * server_card.h - GET /mcp/server-card: what this server is, where it is and how to sign in, before anybody connects.
 *
 * The shape is SEP-2127's, version 1 of its schema. Nothing in the card comes from the request, and nothing needs to be
 * kept secret: it lists no tools, no owners and no token. Everybody may read it, pages of any Origin included.
 */
#pragma once

#include "cgi/http/http.h"

void server_card(struct http_exchange *exchange, const char *method, const char *rest);
