/*
 * tool_table.h - the tools and prompts that this server has, in the order in which clients see them.
 */
#pragma once

#include "cgi/mcp/prompts.h"
#include "cgi/mcp/tools.h"

/* ended by NULL */
extern const struct tool *const tool_table[];
extern const struct prompt *const prompt_table[]; /* arrays, each ended by {0} */
