/*
 * run_tools.h - the servers of `sallyport run --servers`: the pool of upstream servers and the bridge, in this process.
 *
 * Policy is that of the servers' entries; nobody is asked, so what needs a person's word is refused. Definitions of
 * tools are not compared with any record: a server with `pin` is refused.
 */
#pragma once

#include "cli.h"
#include "jail/client/jail.h"
#include "lib/job/job_tools.h"

struct bridge;
struct upstream;
struct run_tools {
	struct upstream *upstream;
	struct bridge *bridge;
	struct job_tools *job;
	bool open;
	struct job_tools_wait wait; /* its event is readable: run_tools_step */
	struct job_tools_given given; /* for the program; NULL and -1 without servers */
	struct store_tools calls;     /* behind run_tools_stop */
};
struct run_tools_spec {
	const struct config *config;
	const char *servers; /* NAME[,NAME]; NULL: none */
	const char *runner;
};
/* Connects to the servers and takes what they offer. In any case the caller clears *ret. */
int run_tools_begin(struct run_tools *ret, const struct run_tools_spec *spec, struct err *err);
/* The program waits for tools, or goes on: its wall clock stands still, or does so no more. */
void run_tools_step(struct run_tools *tools, struct jail *jail);
/* The program has ended: cancels what is under way, and ends the servers. The configuration may go. */
void run_tools_stop(struct run_tools *tools);
void run_tools_clear(struct run_tools *tools); /* all zero is fine */
