/*
 * mcp_endpoint.h - /mcp: the one endpoint of both eras, decided per request.
 */
#pragma once

#include "mcp.h"

/* The route's handler: POST, GET and DELETE. */
void mcp_handle(struct http_exchange *exchange, const char *method, const char *rest);
/* The body of a POST as JSON, the caller's; false: the reply says what is wrong with it. */
bool mcp_read_document(struct http_exchange *exchange, struct json_object **ret);
