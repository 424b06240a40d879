/*
 * cmd_stdio.c - `sallyport stdio`: an MCP server over standard input and output, for desktop clients.
 *
 * It only becomes sallyport-gateway --stdio, which is in the same folder; one name is then enough in a client's
 * configuration.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"

struct stdio_options {
	struct cli_common common;
	const char *workspace;
	struct bind_strings allow;
};
static const struct cli_option stdio_options[] = {
	{.name = "workspace", .type = CLI_STRING, .offset = offsetof(struct stdio_options, workspace), .value = "DIR",
	 .input = true,
	 .help = "let programs see and change the files of this folder"},
	{.name = "workspace-allow", .type = CLI_STRINGS, .offset = offsetof(struct stdio_options, allow),
	 .value = "PATTERN",
	 .help = "let programs write names that are held otherwise (Makefile, .vscode/); repeatable"},
	{0},
};
static const struct cli_group stdio_groups[] = {{stdio_options, 0}, {0}};

static int stdio_run(void *arg, struct err *err)
{
	const struct stdio_options *options = arg;
	auto_free char *folder = config_program_dir(), *program = xasprintf("%s/sallyport-gateway", folder);
	auto_free const char **arguments = xcalloc(7 + 2 * options->allow.count, sizeof(*arguments));
	size_t count = 0;

	arguments[count++] = "sallyport-gateway";
	arguments[count++] = "--stdio";
	if (options->common.config) {
		arguments[count++] = "--config";
		arguments[count++] = options->common.config;
	}
	if (options->workspace) {
		arguments[count++] = "--workspace";
		arguments[count++] = options->workspace;
	}
	for (size_t i = 0; i < options->allow.count; i++) {
		arguments[count++] = "--workspace-allow";
		arguments[count++] = options->allow.items[i];
	}
	execv(program, (char *const *)(const void *)arguments);
	if (errno == ENOENT)
		return err_set(err, ERR_UNAVAILABLE, "%s is missing: it must be in sallyport's folder", program);
	return err_errno(err, "%s cannot be started", program);
}

const struct cli_command cmd_stdio = {
	.name = "stdio",
	.summary = "Serve MCP over standard input and output, for desktop clients",
	.help = "Reads and writes one JSON-RPC message a line. "
		"The account that starts it is the only owner, `local`, and needs no token. "
		"Without a configuration the record is in $XDG_DATA_HOME/sallyport (~/.local/share/sallyport), and the jailer is a private one.\n\n"
		"With --workspace the files of that folder are those of the only conversation: they are read before each call, and changes by programs are written back. "
		".git and the names in .sallyportignore are neither read nor written. "
		"A change is put next to the file, as NAME.sallyport, if others changed the file meanwhile, or if programs of this machine run or obey the file: .vscode/, .envrc, .github/workflows/, AGENTS.md, a new Makefile, and so on.",
	.examples = "{\"mcpServers\": {\"sallyport\": {\"command\": \"sallyport\", \"args\": [\"stdio\", \"--workspace\", \"/home/me/project\"]}}}\n",
	.exits = "0 standard input ended, or a signal came\n",
	.groups = stdio_groups,
	.size = sizeof(struct stdio_options),
	.run = stdio_run,
};
