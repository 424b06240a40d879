/*
 * upstream_http.h - the transport over HTTP: Streamable HTTP of both eras, on libcurl's multi interface.
 */
#pragma once

#include "upstream_connection.h"

extern const struct transport http_transport;
/* The multi handle of the loop, once for all connections. */
int http_open(struct connection_loop *loop, struct err *err);
void http_close(struct connection_loop *loop);
/* After curl_multi_perform: hands over what came, begins again what is due. */
void http_turn(struct connection_loop *loop);
int64_t http_wake(const struct connection_loop *loop); /* INT64_MAX: nothing is due */
/* Goodbyes that are not said yet. */
bool http_leaving(const struct connection_loop *loop);
