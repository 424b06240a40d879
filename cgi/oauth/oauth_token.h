/*
 * oauth_token.h - POST /token: a code, or a refresh token, becomes an access token (OAuth 2.1, section 3.2); POST
 * /revoke: a client gives one back (RFC 7009). A client that was entered by hand may have a secret; all others are
 * public, and PKCE proves that the code is theirs.
 */
#pragma once

#include "cgi/http/http.h"

void oauth_token_post(struct http_exchange *exchange, const char *method, const char *rest);
void oauth_token_revoke(struct http_exchange *exchange, const char *method, const char *rest);
