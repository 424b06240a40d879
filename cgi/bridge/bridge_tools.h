/*
 * bridge_tools.h - the servers of one run of the job engine, answered by the pool of upstream servers.
 *
 * Made on the thread of the request, because a server may have to be started before it says what it offers; handed to
 * the engine as job_request.tools.
 */
#pragma once

#include "bridge.h"
#include "lib/job/job.h"

struct bridge_tools_spec {
	struct bridge *bridge;
	struct upstream *upstream;
	const struct config *config;
	struct store *store; /* that knows the tools' definitions */
	const char *owner, *grant; /* the token's list (upstream_policy.h); NULL: none */
	struct bind_strings servers;
	const char *runner;
};
/* ERR_NOT_FOUND names the nearest server, ERR_DENIED, ERR_UNAVAILABLE (the server says why). */
int bridge_tools_new(const struct bridge_tools_spec *spec, struct job_tools **ret, struct err *err);
