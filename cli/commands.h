/* commands.h - the entries that the cmd_*.c files export, one each. */
#pragma once

#include "cli.h"

/* Every subcommand, in the order of `sallyport help`: COMMAND(name), defined in cmd_NAME.c. */
#define COMMANDS_EACH(COMMAND) \
	COMMAND(run) \
	COMMAND(log) \
	COMMAND(stats) \
	COMMAND(show) \
	COMMAND(ps) \
	COMMAND(cancel) \
	COMMAND(files) \
	COMMAND(diff) \
	COMMAND(undo) \
	COMMAND(tag) \
	COMMAND(replay) \
	COMMAND(grade) \
	COMMAND(promote) \
	COMMAND(normalisers) \
	COMMAND(export) \
	COMMAND(import) \
	COMMAND(token) \
	COMMAND(upstream) \
	COMMAND(snippet) \
	COMMAND(checkpoint) \
	COMMAND(verify) \
	COMMAND(prove) \
	COMMAND(backup) \
	COMMAND(restore) \
	COMMAND(forget) \
	COMMAND(gc) \
	COMMAND(drain) \
	COMMAND(owners) \
	COMMAND(doctor) \
	COMMAND(selftest) \
	COMMAND(setup) \
	COMMAND(stdio) \
	COMMAND(help) \
	COMMAND(version)
#define COMMAND(name) extern const struct cli_command cmd_##name;
COMMANDS_EACH(COMMAND)
#undef COMMAND
