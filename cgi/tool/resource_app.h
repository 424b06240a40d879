/*
 * resource_app.h - ui://sallyport/run: how clients that render apps (io.modelcontextprotocol/ui) show a run: charts,
 * tables among its files, what it changed.
 *
 * One page with its script in it, which loads nothing; it reads through the host. The text of an answer is complete
 * without it. Tools whose results it shows name it (struct tool, `app`); their details are then in the _meta of
 * answers to such clients, unless the token or the request says otherwise.
 */
#pragma once

#include "cgi/mcp/resources.h"

#define RESOURCE_APP_RUN "ui://sallyport/run"

extern const struct resource_provider resource_app;
