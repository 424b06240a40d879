/*
 * priority.h - --priority of commands that do batch work.
 */
#pragma once

#include "cli.h"

struct jail_client;

struct cli_priority {
	const char *which; /* NULL: not given */
};
extern const struct cli_option cli_priority_options[];
/* Idle from now on where the option says so, or says nothing and a gateway serves data_dir. Before any other thread is
 * started. */
void cli_give_way(const struct config *config, const struct cli_priority *priority);
/* And so are the jails of this client (cli_open_jailer calls it). */
void cli_priority_of(struct jail_client *client);
