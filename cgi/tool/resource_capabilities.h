/*
 * resource_capabilities.h - the resource of the set "bridge" that tells a model what programs of run_python can do, at
 * the address that mcp-server-code-execution-mode gives it.
 */
#pragma once

#include "cgi/mcp/resources.h"

#define RESOURCE_CAPABILITIES_URI "resource://mcp-server-code-execution-mode/capabilities"

extern const struct resource_provider resource_capabilities;
