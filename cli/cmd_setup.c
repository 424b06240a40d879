/*
 * cmd_setup.c - `sallyport setup`: from an installed package to the first call. The steps are a script
 * (nginx/setup.sh, installed as share/sallyport/setup), because they are what an operator would type.
 */
#include <errno.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"

struct setup {
	struct cli_common common;
	const char *host, *owner;
};

static const struct cli_option setup_options[] = {
	{.name = "host", .type = CLI_STRING, .offset = offsetof(struct setup, host), .value = "NAME",
	 .help = "set the name or IP address that clients use [this machine's]"},
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct setup, owner), .value = "NAME",
	 .help = "set the owner of the first token [admin]"},
	{0},
};
static const struct cli_group setup_groups[] = {{setup_options, 0}, {0}};

static int setup_run(void *arg, struct err *err)
{
	const struct setup *setup = arg;
	auto_free char *folder = config_program_dir(), *script = xasprintf("%s/../share/sallyport/setup", folder);
	auto_free char *host = xasprintf("--host=%s", setup->host ? setup->host : "");
	auto_free char *owner = xasprintf("--owner=%s", setup->owner ? setup->owner : "");
	char name[] = "setup";
	char *arguments[4] = {name};
	size_t n = 1;

	if (setup->host)
		arguments[n++] = host;
	if (setup->owner)
		arguments[n++] = owner;
	execv(script, arguments);
	if (errno == ENOENT)
		return err_set(err, ERR_UNAVAILABLE, "%s is missing: setup is for an installed package", script);
	return err_errno(err, "%s cannot be started", script);
}

const struct cli_command cmd_setup = {
	.name = "setup",
	.summary = "Prepare an installed server for its first call",
	.help = "Writes the address to /etc/sallyport/site.env, makes a self-signed certificate if there is none, adds the site to nginx, restarts the gateway, makes a token, and prints address, token and a first call. "
		"Existing files are kept, except for the address. "
		"Needs root, and an installation from the Debian packages.",
	.examples = "sallyport setup --host sallyport.example.org --owner alice\n",
	.exits = "0 done\n"
		"1 a step failed; the message names it\n",
	.groups = setup_groups,
	.size = sizeof(struct setup),
	.run = setup_run,
};
