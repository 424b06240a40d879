/* commands.c - all subcommands in their groups; help and version are commands like the others. */
#include "commands.h"

#include <string.h>

#include "lib/base/util.h"

#define COMMAND(name, group) &cmd_##name,
const struct cli_command *const cli_commands[] = {COMMANDS_EACH(COMMAND) NULL};
#undef COMMAND

#define COMMAND(name, group) group,
static const char *const groups[] = {COMMANDS_EACH(COMMAND)}; /* of cli_commands */
#undef COMMAND

const struct cli_command *cli_command_find(const char *name)
{
	for (size_t i = 0; cli_commands[i]; i++) {
		if (streq(cli_commands[i]->name, name))
			return cli_commands[i];
	}
	return NULL;
}

void cli_usage_all(FILE *out)
{
	fputs("Usage: sallyport COMMAND [OPTION]… [ARGUMENT]…\n\n"
	      "Run untrusted code in a jail; show, replay and grade recorded runs.\n\nCommands:\n",
	      out);
	for (size_t i = 0; cli_commands[i]; i++) {
		if (i == 0 || !streq(groups[i], groups[i - 1]))
			fprintf(out, "\n%s\n", groups[i]);
		fprintf(out, "  %-11s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
	}
	fputs("\n`sallyport COMMAND --help` lists a command's options; sallyport-COMMAND(1) is its manual.\n", out);
}

struct help {
	struct cli_common common;
};

static int help_run(void *options, struct err *err)
{
	const struct cli_common *common = options;
	const struct cli_command *command;

	if (!common->n_args) {
		cli_usage_all(stdout);
		return CLI_OK;
	}
	command = cli_command_find(common->args[0]);
	if (!command)
		return err_set(err, ERR_INVALID, "unknown command '%s': see sallyport help", common->args[0]);
	cli_usage(command, stdout);
	return CLI_OK;
}

const struct cli_command cmd_help = {
	.name = "help",
	.summary = "List the commands, or explain one",
	.arguments = "[COMMAND]",
	.examples = "sallyport help run\n",
	.exits = "0 done\n"
		"2 no such command\n",
	.size = sizeof(struct help),
	.max_args = 1,
	.run = help_run,
};

static int version_run(void *options, struct err *err)
{
	const struct cli_common *common = options;
	auto_json struct json_object *object = json_object_new_object();

	(void)err;
	json_add_string(object, "version", SALLYPORT_VERSION);
	if (common->json)
		cli_print_json(stdout, object, true);
	else
		puts("sallyport " SALLYPORT_VERSION);
	return CLI_OK;
}

const struct cli_command cmd_version = {
	.name = "version",
	.summary = "Print the version",
	.examples = "sallyport version --json\n",
	.size = sizeof(struct help),
	.run = version_run,
};
