/*
 * cmd_login_code.c - `sallyport login-code`: a code by which a person signs in on the page of /authorize (oauth.mode
 * builtin), instead of pasting a token there.
 *
 * Who may open the database for writing may make one: the same trust as for `token add`. The code is good once, for
 * some minutes, on that page alone; only its hash is stored.
 */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/store/record/store_oauth_code.h"

#define MINUTE_SECONDS 60

struct login_code {
	struct cli_common common;
	const char *owner, *scope;
	int64_t minutes;
};

static const struct cli_option login_code_options[] = {
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct login_code, owner), .value = "OWNER",
	 .help = "let the client that is approved act as this owner"},
	{.name = "scope", .type = CLI_STRING, .offset = offsetof(struct login_code, scope), .value = "SCOPES",
	 .help = "allow at most these, with commas between: run, files, network, admin [run,files,network]"},
	{.name = "minutes", .type = CLI_INT, .offset = offsetof(struct login_code, minutes), .min = 1, .max = 60,
	 .value = "N", .help = "let the code end after N minutes [10]"},
	{0},
};
static const struct cli_group login_code_groups[] = {{login_code_options, 0}, {0}};

static int login_code_run(void *arg, struct err *err)
{
	const struct login_code *options = arg;
	const int64_t minutes = options->minutes ? options->minutes : 10;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	unsigned scopes = STORE_SCOPE_RUN | STORE_SCOPE_FILES | STORE_SCOPE_NETWORK;
	char text[STORE_OAUTH_LOGIN_TEXT];

	if (!options->owner)
		return err_set(err, ERR_INVALID, "login-code wants --owner OWNER");
	int result = options->scope ? store_scopes_parse(options->scope, &scopes, err) : 0;

	if (result == 0)
		result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);
	if (result == 0)
		result = store_oauth_login_add(store, options->owner, scopes, minutes * MINUTE_SECONDS, text, err);
	if (result < 0)
		return result;
	if (options->common.json) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_string(object, "code", text);
		json_add_string(object, "owner", options->owner);
		json_add_int(object, "seconds", minutes * MINUTE_SECONDS);
		cli_print_json(stdout, object, true);
		return CLI_OK;
	}
	puts(text);
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "sallyport: good once, for %lld minutes, on the page that your client opens\n",
			(long long)minutes);
	return CLI_OK;
}

const struct cli_command cmd_login_code = {
	.name = "login-code",
	.summary = "Print a code to sign in a client by OAuth",
	.arguments = "--owner OWNER",
	.help = "Clients such as claude.ai and ChatGPT send their user to a page of this server (oauth.mode builtin), which asks "
		"for a token or for this code. The code is good once, and used up when the client is approved. "
		"Only its hash is stored.",
	.examples = "sallyport login-code --owner alice\n"
		"sallyport login-code --owner alice --scope run --minutes 3\n",
	.exits = "0 done\n"
		"2 the command line or the owner's name is wrong\n",
	.groups = login_code_groups,
	.size = sizeof(struct login_code),
	.run = login_code_run,
};
