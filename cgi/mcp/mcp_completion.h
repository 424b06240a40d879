/* mcp_completion.h - the method completion/complete: prompts and resources suggest values for their arguments. */
#pragma once

#include "mcp.h"

int mcp_completion(struct mcp_call *call);
