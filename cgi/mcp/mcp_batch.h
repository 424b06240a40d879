/*
 * mcp_batch.h - batches, which one revision of the legacy era has.
 */
#pragma once

#include "mcp.h"

#define MCP_BATCH_MAX 100 /* messages */

void mcp_batch(struct http_exchange *exchange, struct json_object *batch, const char *version);
