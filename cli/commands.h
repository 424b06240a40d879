/* commands.h - the entries that the cmd_*.c files export, one each, in groups. */
#pragma once

#include "cli.h"

/* The groups of `sallyport help`. */
#define GROUP_RUN     "Run programs"
#define GROUP_LOOK    "Look at what ran"
#define GROUP_REPLAY  "Replay and grade"
#define GROUP_CARRY   "Carry the record elsewhere"
#define GROUP_OPERATE "Operate a server"

/* Every subcommand and its group, in the order of `sallyport help`, most used first: COMMAND(name, group), defined in
 * cmd_NAME.c. */
#define COMMANDS_EACH(COMMAND) \
	COMMAND(run, GROUP_RUN) \
	COMMAND(stdio, GROUP_RUN) \
	COMMAND(cancel, GROUP_RUN) \
	COMMAND(undo, GROUP_RUN) \
	COMMAND(log, GROUP_LOOK) \
	COMMAND(show, GROUP_LOOK) \
	COMMAND(ps, GROUP_LOOK) \
	COMMAND(audit, GROUP_LOOK) \
	COMMAND(stats, GROUP_LOOK) \
	COMMAND(diff, GROUP_LOOK) \
	COMMAND(files, GROUP_LOOK) \
	COMMAND(tag, GROUP_LOOK) \
	COMMAND(replay, GROUP_REPLAY) \
	COMMAND(grade, GROUP_REPLAY) \
	COMMAND(promote, GROUP_REPLAY) \
	COMMAND(normalisers, GROUP_REPLAY) \
	COMMAND(export, GROUP_CARRY) \
	COMMAND(import, GROUP_CARRY) \
	COMMAND(backup, GROUP_CARRY) \
	COMMAND(restore, GROUP_CARRY) \
	COMMAND(owners, GROUP_CARRY) \
	COMMAND(doctor, GROUP_OPERATE) \
	COMMAND(setup, GROUP_OPERATE) \
	COMMAND(token, GROUP_OPERATE) \
	COMMAND(login_code, GROUP_OPERATE) \
	COMMAND(client, GROUP_OPERATE) \
	COMMAND(upstream, GROUP_OPERATE) \
	COMMAND(snippet, GROUP_OPERATE) \
	COMMAND(selftest, GROUP_OPERATE) \
	COMMAND(worker, GROUP_OPERATE) \
	COMMAND(drain, GROUP_OPERATE) \
	COMMAND(gc, GROUP_OPERATE) \
	COMMAND(forget, GROUP_OPERATE) \
	COMMAND(verify, GROUP_OPERATE) \
	COMMAND(checkpoint, GROUP_OPERATE) \
	COMMAND(prove, GROUP_OPERATE) \
	COMMAND(help, GROUP_OPERATE) \
	COMMAND(version, GROUP_OPERATE)
#define COMMAND(name, group) extern const struct cli_command cmd_##name;
COMMANDS_EACH(COMMAND)
#undef COMMAND
