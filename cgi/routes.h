/*
 * routes.h - what is served under which path.
 *
 * The order of the checks is that of MCP's transport chapter: path (404), Host and Origin (403), token (401), method
 * (405); the handlers go on with media type (415), size (413), then the body. A refusal never reads the body.
 */
#pragma once

#include "cgi/http/http.h"

/* Serves the request by its route and writes one log line. */
http_handler routes_handle;
/* Routes have figures of their own from now on. */
void routes_declare(void);
/* Is there a route for this path? */
bool routes_known(const char *path);
