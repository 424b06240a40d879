/*
 * mcp_modern.h - the modern era: every request carries its version.
 */
#pragma once

#include "mcp.h"

extern const struct mcp_method modern_methods[]; /* ended by {0} */
/* `version` is the MCP-Protocol-Version header, trimmed, or NULL. */
void modern_message(struct http_exchange *exchange, const struct mcp_request *request, const char *version);
/* Is params._meta a whole modern envelope? ERR_INVALID says what is missing. */
int modern_envelope(struct json_object *params, struct err *err);
