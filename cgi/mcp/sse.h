/*
 * sse.h - the transport of revision 2024-11-05, for clients that know no other: GET /sse is the session, POST /messages
 * speaks to it.
 *
 * Only where gateway.http_sse is true; elsewhere both are 404. The session lives as long as its stream, and answers
 * arrive on it.
 */
#pragma once

#include "cgi/http/http.h"

void sse_stream(struct http_exchange *exchange, const char *method, const char *rest);
void sse_message(struct http_exchange *exchange, const char *method, const char *rest);
