/*
 * mcp_about.h - what the server says of itself, in both eras.
 */
#pragma once

#include "mcp.h"

/* "instructions": what a model should know before it calls anything. */
void mcp_add_instructions(struct server *server, struct json_object *result);
struct json_object *mcp_server_info(void);
/* For clients that speak this revision. */
struct json_object *mcp_capabilities(const struct http_exchange *exchange, const struct mcp_revision *revision);
