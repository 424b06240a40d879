/*
 * tool_table.h - the tools, prompts and skills that this server has, in the order in which clients see them.
 */
#pragma once

#include "cgi/mcp/prompts.h"
#include "cgi/mcp/skills.h"
#include "cgi/mcp/tools.h"

/* ended by NULL */
extern const struct tool *const tool_table[];
extern const struct prompt *const prompt_table[]; /* arrays, each ended by {0} */
extern const struct skill skill_table[];          /* ended by {0} */
extern const struct prompt prompt_code[];         /* "solve_with_code": a task and how to use the tools well */
/* By which a person picks a snippet; its names can be completed. With the set "isolator" only. */
extern const struct prompt prompt_snippet[];
