/* mcp_tools.h - the methods tools/list and tools/call, the same in both eras. */
#pragma once

#include "mcp.h"

int mcp_tools_list(struct mcp_call *call);
int mcp_tools_call(struct mcp_call *call);
