/*
 * bridge_tools.h - the servers of one run of the job engine, answered by the pool of upstream servers.
 *
 * Made on the thread of the request, because a server may have to be started before it says what it offers; handed to
 * the engine as job_request.tools.
 */
#pragma once

#include "bridge.h"
#include "lib/job/job.h"

/* The conversation of an owner's programs of run_python: these have the modules, whether they name servers or not. */
#define BRIDGE_PYTHON_CONVERSATION "run_python"

struct bridge_tools_spec {
	struct bridge *bridge;
	struct upstream *upstream; /* NULL: none, and no servers */
	const struct config *config;
	struct store *store; /* that knows the tools' definitions; NULL: none, and no server with `pin` */
	/* The run's row is in it, as running: its calls leave a trace (store_calls.h), and new tools are noted. */
	bool traced;
	const char *owner, *grant; /* the token's list (upstream_policy.h); NULL: none */
	struct bind_strings servers;
	const char *runner;
	const char *refusal; /* why nobody can be asked to allow a call (bridge_question.h); NULL: somebody can */
	bool progress;       /* the client wants to hear how far calls are (bridge_progress.h) */
};
/* ERR_NOT_FOUND names the nearest server, ERR_DENIED, ERR_UNAVAILABLE (the server says why). */
int bridge_tools_new(const struct bridge_tools_spec *spec, struct job_tools **ret, struct err *err);
struct bridge_questions;
/* What its programs' calls need a person for; lives as long as `job`. */
struct bridge_questions *bridge_tools_questions(struct job_tools *job);
struct bridge_progress;
/* How far they are; likewise. NULL: nobody wants to hear of it. */
struct bridge_progress *bridge_tools_progress(struct job_tools *job);
