/*
 * tool_direct.h - tools of upstream servers as tools of this server (tools.upstream: direct, both): SERVER__TOOL in
 * tools/list, called by the model itself.
 *
 * A call becomes a program of one line that makes it, so it goes through the same policy, questions, budgets and limits
 * as any program's, and its record can be shown and replayed.
 *
 * Names: the identifiers of server and tool (upstream_name.h) with "__" between them. Where that has more than
 * TOOL_DIRECT_MAX characters, belongs to two tools of the server, or could be read in two ways (the server's has "__"
 * in it or "_" at its end), it is cut and ends with eight digits of the SHA-256 of the exact names.
 */
#pragma once

#include "cgi/mcp/tools.h"
#include "lib/upstream/upstream.h"

#define TOOL_DIRECT_MAX 64 /* what services take as the name of a tool */

void tool_direct_name(const struct upstream_list *list, const struct upstream_tool *tool,
		      char ret[TOOL_DIRECT_MAX + 1]);
/* NULL: the configuration wants none. */
const struct tool_provider *tool_direct_provider(const struct config *config);
/* Clients hear when a server's tools change. */
void tool_direct_watch(struct server *server);
