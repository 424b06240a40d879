/*
 * stdio_serve.h - the gateway over standard input and output: one JSON-RPC message a line, for desktop clients that
 * start their server.
 *
 * The account that started us is the one owner (STORE_OWNER_LOCAL); there are no tokens. At most STDIO_REQUESTS_MAX
 * requests are answered at the same time. The end of standard input ends us when everything that was asked is answered,
 * SIGTERM at once: what still runs is cancelled.
 */
#pragma once

#include "lib/base/config.h"

#define STDIO_REQUESTS_MAX  32
#define STDIO_LISTENING_MAX 32 /* subscriptions/listen, besides */

/* Fills in what a configuration for desktop use may leave out: data_dir is $XDG_DATA_HOME/sallyport, made if need be.
 * `workspace`: the folder of --workspace (workspace.h); NULL: none. `allow`: the patterns of
 * --workspace-allow, which stay the caller's. */
int stdio_prepare(struct config *config, const char *workspace, const struct bind_strings *allow, struct err *err);
int stdio_serve(const struct config *config, struct err *err);
