/* prompt_tools.h - how a model calls other servers' tools from programs: the prompt call_tools_from_code and the
 * resource sallyport://guide/tools have the same text, which is to stay below 400 tokens (tests/clients/guide.test.js).
 */
#pragma once

#include "cgi/mcp/prompts.h"
#include "cgi/mcp/resources.h"

extern const struct prompt prompt_tools[];
extern const struct resource_provider resource_guide;
