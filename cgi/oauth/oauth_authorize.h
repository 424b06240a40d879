/*
 * oauth_authorize.h - /authorize: a client sends its user's browser here, the user says who they are, sees what is
 * asked, ticks, and approves; the browser goes back with a code (OAuth 2.1, section 4.1; RFC 9207). Two steps without
 * scripts.
 */
#pragma once

#include "cgi/http/http.h"

void oauth_authorize_handle(struct http_exchange *exchange, const char *method, const char *rest);
