/*
 * trace.h - by what a request is found again: its id, and W3C trace context.
 *
 * The id is 32 lower-case hexadecimal digits, nginx's $request_id, which is in nginx's log, in ours, in the
 * execution's row, in the jailer's lines and in the reply (X-Request-Id). Trace context comes from strangers: it is
 * checked, recorded and shown, and decides nothing.
 */
#pragma once

#include "http.h"

#define TRACE_SIZE 56 /* "00-" 32 "-" 16 "-" 2, and the NUL */

/* The web server's id where it gives one; else a new one. */
void trace_request_id(const struct request *request, char ret[REQUEST_ID_SIZE]);
/* The beginning of a `traceparent` that every version has; false: there is none, or it is not valid. */
bool trace_parent(const char *text, char ret[TRACE_SIZE]);
