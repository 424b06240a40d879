/* mcp_listen.h - the method subscriptions/listen of the modern era. */
#pragma once

#include "mcp.h"

int mcp_listen(struct mcp_call *call);
