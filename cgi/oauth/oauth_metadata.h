/*
 * oauth_metadata.h - documents by which clients find out how to sign in (RFC 9728). Everything in them comes from the
 * configuration, nothing from the request; any page may read them.
 */
#pragma once

#include "cgi/http/http.h"

/* /.well-known/oauth-authorization-server: of our own one (oauth.mode builtin; RFC 8414) */
void oauth_metadata_server(struct http_exchange *exchange, const char *method, const char *rest);
/* /.well-known/oauth-protected-resource, …/mcp and …/sse */
void oauth_metadata_resource(struct http_exchange *exchange, const char *method, const char *rest);
