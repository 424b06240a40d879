/*
 * mcp_about.h - what the server says of itself, in both eras.
 */
#pragma once

#include "mcp.h"

extern const char mcp_instructions[];
struct json_object *mcp_server_info(void);
/* For clients that speak this revision. */
struct json_object *mcp_capabilities(const struct exchange *exchange, const struct mcp_revision *revision);
