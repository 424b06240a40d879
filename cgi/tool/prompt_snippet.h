/* prompt_snippet.h - the prompt by which a person picks a snippet; its names can be completed. With the set "isolator"
 * only. */
#pragma once

#include "cgi/mcp/prompts.h"

extern const struct prompt prompt_snippet[];
