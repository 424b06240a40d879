/*
 * signin.h - `sallyport upstream login|logout`: a person signs in to a server in a browser, which brings the
 * answer back to an address of this computer, or whose last address is pasted.
 */
#pragma once

#include "lib/upstream/upstream_config.h"

/* Both print what they did; `scope` NULL: as the entry or the server says. An exit code or an error. */
int signin_login(const struct config *config, const struct upstream_server *server, const char *scope, bool json,
		 struct err *err);
int signin_logout(const struct config *config, const struct upstream_server *server, struct err *err);
