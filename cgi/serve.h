/*
 * serve.h - the gateway as a service: listening socket, threads, orderly stop.
 */
#pragma once

#include "lib/base/config.h"

/* Serves until SIGTERM or SIGINT. Listens on descriptor 0 if that is a listening socket, else on config.gateway.socket.
 */
int serve_fcgi(const struct config *config, struct err *err);
/* Makes the listening unix socket: replaces a stale one, but not one that somebody listens on (ERR_CONFLICT). */
int serve_listen(const char *path, int *ret_fd, struct err *err);
