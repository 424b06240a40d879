/*
 * mcp_legacy_get.h - GET of the legacy era: what the server sends without being asked, and streams that are taken up
 * again.
 */
#pragma once

#include "cgi/http/hub.h"
#include "mcp.h"

void legacy_get(struct http_exchange *exchange, const char *version);
/* hub_listen for the session's own stream (listener->session), with what the session subscribed to. */
int legacy_listen(struct http_exchange *exchange, struct hub_listener *listener, struct err *err);
/* Sends the session's client what its listener hears, until it leaves or the server stops; ends with hub_leave. */
void legacy_follow(struct http_exchange *exchange, const struct session *session, struct hub_listener *listener,
		   struct stream *stream);
