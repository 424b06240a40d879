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
};

static int stdio_run(void *arg, struct err *err)
{
	const struct stdio_options *options = arg;
	auto_free char *folder = config_program_dir(), *program = xasprintf("%s/sallyport-gateway", folder);
	char name[] = "sallyport-gateway", stdio[] = "--stdio", config[] = "--config";
	auto_free char *path = options->common.config ? xstrdup(options->common.config) : NULL;
	char *const arguments[] = {name, stdio, path ? config : NULL, path, NULL};

	execv(program, arguments);
	if (errno == ENOENT)
		return err_set(err, ERR_UNAVAILABLE, "%s is missing: it must be in sallyport's folder", program);
	return err_errno(err, "%s cannot be started", program);
}

const struct cli_command cmd_stdio = {
	.name = "stdio",
	.summary = "Serves MCP over standard input and output, for desktop clients",
	.help = "One JSON-RPC message a line. The account that starts it is its one owner, \"local\"; no token is "
		"needed. Without a\n"
		"configuration the record is in $XDG_DATA_HOME/sallyport (~/.local/share/sallyport), and the jailer is "
		"a private one.\n\n"
		"Example, in a client's configuration:\n"
		"  {\"mcpServers\": {\"sallyport\": {\"command\": \"sallyport\", \"args\": [\"stdio\"]}}}\n\n"
		"Exit codes: 0 when standard input ended or a signal came; others see sallyport(1).\n",
	.size = sizeof(struct stdio_options),
	.run = stdio_run,
};
