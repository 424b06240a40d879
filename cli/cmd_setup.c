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
	 .help = "name or IP address that clients use; default: this machine's"},
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct setup, owner), .value = "NAME",
	 .help = "owner of the first token; default: admin"},
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
	.summary = "Prepares an installed server for its first call",
	.groups = setup_groups,
	.help = "Writes the address to /etc/sallyport/site.env, makes a self-signed certificate where there is none, "
		"adds the site to\n"
		"nginx, restarts the gateway, makes a token, and prints address, token and a first call. Files that "
		"exist are kept.\n\n"
		"Example:\n"
		"  sallyport setup --host sallyport.example.org --owner alice\n\n"
		"Exit codes: 0; 1 when a step failed, which is named; 2 usage; others see sallyport(1).\n",
	.size = sizeof(struct setup),
	.run = setup_run,
};
