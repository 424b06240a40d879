/* prompt_code.h - the prompt "solve_with_code": a task and how to use the tools well. */
#pragma once

#include "cgi/mcp/prompts.h"

extern const struct prompt prompt_code[]; /* ended by {0} */
