/*
 * cmd_client.c - `sallyport client add|list|block|remove`: the programs that may ask people for approval at /authorize
 * (oauth.mode builtin). Most introduce themselves; those that cannot, and those that want a secret, are entered here.
 */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_client.h"

struct client {
	struct cli_common common;
	const char *name;
	struct bind_strings redirects;
	bool secret;
};

static const struct cli_option client_options[] = {
	{.name = "name", .type = CLI_STRING, .offset = offsetof(struct client, name), .value = "NAME",
	 .help = "add: give the client the name that people see on the page"},
	{.name = "redirect-uri", .type = CLI_STRINGS, .offset = offsetof(struct client, redirects), .value = "ADDRESS",
	 .help = "add: allow codes to go to this address, exactly; repeatable"},
	{.name = "secret", .type = CLI_FLAG, .offset = offsetof(struct client, secret),
	 .help = "add: give the client a secret, which is shown once"},
	{0},
};
static const struct cli_group client_groups[] = {{client_options, 0}, {0}};

static void add_time(struct json_object *object, const char *name, int64_t us)
{
	char text[CLOCK_TEXT_SIZE];

	if (us)
		clock_text(us, text);
	json_add_string(object, name, us ? text : NULL);
}

static struct json_object *client_json(const struct store_oauth_client *client)
{
	struct json_object *object = json_object_new_object(), *redirects = NULL;

	json_parse(client->redirects, strlen(client->redirects), &redirects, NULL);
	json_add_string(object, "id", client->id);
	json_add_string(object, "kind", client->kind);
	json_add_string(object, "name", client->name);
	json_add(object, "redirect_uris", redirects);
	json_add_bool(object, "secret", client->secret_hash[0]);
	add_time(object, "created", client->created_us);
	add_time(object, "used", client->used_us);
	add_time(object, "blocked", client->blocked_us);
	return object;
}

/* The same rules as for one that registers itself. */
static int take_options(const struct client *options, const struct config *config, struct store_oauth_client *ret,
			struct err *err)
{
	auto_json struct json_object *body = json_object_new_object();
	struct json_object *redirects = json_object_new_array(), *grants = json_object_new_array();
	const char *error = NULL;

	json_add_string(body, "client_name", options->name);
	for (size_t i = 0; i < options->redirects.count; i++)
		json_object_array_add(redirects, json_object_new_string(options->redirects.items[i]));
	json_add(body, "redirect_uris", redirects);
	json_object_array_add(grants, json_object_new_string("authorization_code"));
	json_object_array_add(grants, json_object_new_string("refresh_token"));
	json_add(body, "grant_types", grants);
	return oauth_client_register(config, body, ret, &error, err);
}

static int client_add(const struct client *options, struct store *store, const struct config *config, struct err *err)
{
	auto_oauth_client struct store_oauth_client client = {.redirects = NULL};
	char secret[STORE_OAUTH_SECRET_SIZE];

	if (!options->name || !options->redirects.count)
		return err_set(err, ERR_INVALID, "client add wants --name NAME and --redirect-uri ADDRESS");
	int result = take_options(options, config, &client, err);

	if (result == 0)
		result = store_oauth_client_add(store, &client, options->secret, secret, err);
	if (result < 0)
		return result;
	if (options->common.json) {
		auto_json struct json_object *object = client_json(&client);

		json_add_string(object, "client_secret", options->secret ? secret : NULL);
		cli_print_json(stdout, object, true);
		return CLI_OK;
	}
	puts(client.id);
	if (options->secret)
		puts(secret);
	if (options->secret && isatty(STDERR_FILENO))
		fputs("sallyport: the secret is shown once: only its hash is stored\n", stderr);
	return CLI_OK;
}

static int list_each(void *arg, const struct store_oauth_client *client)
{
	struct json_object *row = client_json(client);

	json_object_array_add(arg, row);
	json_add_int(row, "created", client->created_us);
	json_add_int(row, "used", client->used_us);
	json_add_string(row, "state", client->blocked_us ? "blocked" : "good");
	return 0;
}

static int client_list(const struct client *options, struct store *store, const struct config *config, struct err *err)
{
	static const struct cli_field fields[] = {
		{"id", "ID", CLI_AS_TEXT, 0, 0},         {"kind", "KIND", CLI_AS_TEXT, 0, 0},
		{"created", "CREATED", CLI_AS_TIME, 0, 0}, {"used", "USED", CLI_AS_TIME, 0, 0},
		{"state", "STATE", CLI_AS_TEXT, 0, 0},   {"name", "NAME", CLI_AS_TEXT, 0, 0},
	};
	auto_json struct json_object *rows = json_object_new_array();
	int result = store_oauth_client_list(store, list_each, rows, err);

	(void)config;
	if (result == 0)
		cli_print_rows(rows, fields, ARRAY_SIZE(fields), options->common.json);
	return result;
}

static int client_end(const struct client *options, struct store *store, const struct config *config, struct err *err)
{
	const bool block = streq(options->common.args[0], "block");

	(void)config;
	int result = store_oauth_client_end(store, options->common.args[1], block, err);

	if (result == 0)
		printf("%s %s\n", block ? "blocked" : "removed", options->common.args[1]);
	return result;
}

static int client_run(void *arg, struct err *err)
{
	static const struct {
		const char *name;
		enum store_mode mode;
		size_t n_args;
		int (*run)(const struct client *options, struct store *store, const struct config *config,
			   struct err *err);
	} verbs[] = {{"add", STORE_WRITE, 1, client_add},
		     {"list", STORE_READ, 1, client_list},
		     {"block", STORE_WRITE, 2, client_end},
		     {"remove", STORE_WRITE, 2, client_end}};
	const struct client *options = arg;
	const char *verb = options->common.args[0];
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	size_t i = 0;

	while (i < ARRAY_SIZE(verbs) && !streq(verbs[i].name, verb))
		i++;
	if (i == ARRAY_SIZE(verbs))
		return err_set(err, ERR_INVALID, "client %s: there are add, list, block and remove", verb);
	if (options->common.n_args != verbs[i].n_args)
		return err_set(err, ERR_INVALID, "client %s wants %s", verb,
			       verbs[i].n_args == 2 ? "one ID: see sallyport client list" : "no other argument");
	if (!streq(verb, "add") && (options->name || options->redirects.count || options->secret))
		return err_set(err, ERR_INVALID, "--name, --redirect-uri and --secret belong to client add");
	int result = cli_open_store(&options->common, verbs[i].mode, &config, &store, err);

	return result < 0 ? result : verbs[i].run(options, store, &config, err);
}

const struct cli_command cmd_client = {
	.name = "client",
	.summary = "Add, list, block and remove clients that sign in by OAuth",
	.arguments = "add --name NAME --redirect-uri ADDRESS… [--secret] | list | block ID | remove ID",
	.help = "Clients of oauth.mode builtin introduce themselves, by the address of a document or at /register. "
		"add enters one that cannot, and prints its id and, with --secret, its secret once. "
		"block and remove end everything that people approved for a client; a blocked one cannot come back.",
	.examples = "sallyport client add --name portal --redirect-uri https://portal.example/callback --secret\n"
		"sallyport client list\n"
		"sallyport client block https://evil.example/client.json\n",
	.exits = "0 done\n"
		"2 the command line is wrong\n"
		"3 no such client\n",
	.groups = client_groups,
	.size = sizeof(struct client),
	.min_args = 1,
	.max_args = 2,
	.run = client_run,
};
