/*
 * cmd_token.c - `sallyport token add|list|revoke`: who may call the gateway.
 *
 * Only hashes are stored, so a token is shown once, when it is made. Everything works while a gateway runs: a new
 * token is valid and a revoked one refused from the next request on. The first token is usually made before the first
 * start of the gateway: then `add` makes the database too, but not for somebody else, since files that belong to root
 * would keep the gateway out.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/record/store_token.h"
#include "lib/upstream/upstream_policy.h"

struct token {
	struct cli_common common;
	const char *owner, *name, *scope, *expires, *results, *servers;
};

static const struct cli_option token_options[] = {
	{.name = "owner", .type = CLI_STRING, .offset = offsetof(struct token, owner), .value = "OWNER",
	 .help = "add: set the owner (letters a-z, digits and -); the tokens of one owner share conversations and files"},
	{.name = "name", .type = CLI_STRING, .offset = offsetof(struct token, name), .value = "NAME",
	 .help = "add: give the token a name, at most 63 bytes"},
	{.name = "scope", .type = CLI_STRING, .offset = offsetof(struct token, scope), .value = "SCOPES",
	 .help = "add: allow these, with commas between: run (run programs), files (upload files, read resources), network (programs with network), admin (everything) [run,files]"},
	{.name = "expires", .type = CLI_STRING, .offset = offsetof(struct token, expires), .value = "TIME",
	 .help = "add: let the token expire: 12h, 90d or 4w from now, or a time such as 2027-03-01 [never]"},
	{.name = "results", .type = CLI_STRING, .offset = offsetof(struct token, results), .value = "FORM",
	 .help = "add: put details of results here: content, structured or both [content]"},
	{.name = "servers", .type = CLI_STRING, .offset = offsetof(struct token, servers), .value = "LIST",
	 .help = "add: let its programs use these upstream servers, with commas between: 'github', 'files.read_*', 'ask:mail.send', 'deny:files.write_*', or '*' [none]"},
	{0},
};
static const struct cli_group token_groups[] = {{token_options, 0}, {0}};

static struct json_object *token_json(const struct store_token *token)
{
	struct json_object *object = json_object_new_object();
	char scopes[STORE_SCOPES_TEXT];
	const struct {
		const char *key;
		int64_t us;
	} times[] = {{"created", token->created_us},
		     {"used", token->used_us},
		     {"expires", token->expires_us},
		     {"revoked", token->revoked_us}};

	json_add_string(object, "id", token->id);
	json_add_string(object, "owner", token->owner);
	json_add_string(object, "name", token->name);
	store_scopes_print(token->scopes, scopes);
	json_add_string(object, "scopes", scopes);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		char text[CLOCK_TEXT_SIZE];

		if (times[i].us)
			clock_text(times[i].us, text);
		json_add_string(object, times[i].key, times[i].us ? text : NULL);
	}
	json_add_string(object, "results", token->results[0] ? token->results : NULL);
	json_add_string(object, "servers", token->servers[0] ? token->servers : NULL);
	return object;
}

static int take_results(const char *results, struct store_token *token, struct err *err)
{
	if (!config_results_valid(results) || streq(results, "none")) /* that one: /mcp?results=none */
		return err_set(err, ERR_INVALID, "--results '%s': use content, structured or both", results);
	snprintf(token->results, sizeof(token->results), "%s", results);
	return 0;
}

/* 1 to 63 bytes of UTF-8 that a list can show: no control characters. */
static int name_check(const char *name, struct err *err)
{
	size_t length = strlen(name);
	auto_buf struct buf printable;

	buf_init(&printable, 8 * sizeof(((struct store_token *)NULL)->name));
	utf8_printable(&printable, name, length);
	if (length >= sizeof(((struct store_token *)NULL)->name))
		return err_set(err, ERR_INVALID, "--name: at most %zu bytes",
			       sizeof(((struct store_token *)NULL)->name) - 1);
	if (printable.length != length || memcmp(printable.data, name, length) != 0)
		return err_set(err, ERR_INVALID, "--name '%s': must be UTF-8 without control characters",
			       printable.data);
	return 0;
}

static int take_servers(const char *servers, struct store_token *token, struct err *err)
{
	if (upstream_policy_check(servers, err) < 0)
		return err_wrap(err, "--servers");
	if (strlen(servers) >= sizeof(token->servers))
		return err_set(err, ERR_INVALID, "--servers: at most %zu bytes", sizeof(token->servers) - 1);
	snprintf(token->servers, sizeof(token->servers), "%s", servers);
	return 0;
}

/* The store, made if this is the first command that ever touched it. Root must not make it for another user. */
static int open_or_make(const struct cli_common *common, struct config *config, struct store **ret, struct err *err)
{
	struct stat status;
	int result = cli_open_store(common, STORE_WRITE, config, ret, err);

	if (result != -ERR_NOT_FOUND)
		return result;
	result = config_load(common->config, config, err);
	if (result < 0)
		return result;
	if (!stat(config->data_dir, &status) && status.st_uid != geteuid())
		return err_set(err, ERR_DENIED,
			       "%s belongs to user %u: make its first token as that user (sudo -u '#%u' …)",
			       config->data_dir, status.st_uid, status.st_uid);
	return store_open(config->data_dir, STORE_SERVE, ret, err);
}

static int take_options(const struct token *options, struct store_token *ret, struct err *err)
{
	int result = 0;

	if (!options->owner)
		return err_set(err, ERR_INVALID, "token add wants --owner OWNER");
	if (options->common.n_args > 1)
		return err_set(err, ERR_INVALID, "'%s' is one argument too many: see sallyport token --help",
			       options->common.args[1]);
	if (options->name)
		result = name_check(options->name, err);
	if (result == 0 && options->scope)
		result = store_scopes_parse(options->scope, &ret->scopes, err);
	if (result == 0 && options->expires)
		result = cli_parse_expiry(options->expires, clock_now_us(), &ret->expires_us, err);
	if (result == 0 && options->results)
		result = take_results(options->results, ret, err);
	if (result == 0 && options->servers)
		result = take_servers(options->servers, ret, err);
	/* An owner that is too long stays so: it is refused, not cut. */
	snprintf(ret->owner, sizeof(ret->owner), "%s", strlen(options->owner) <= STORE_OWNER_MAX ? options->owner : "");
	snprintf(ret->name, sizeof(ret->name), "%s", options->name ? options->name : "");
	return result;
}

static int token_add(const struct token *options, struct err *err)
{
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	struct store_token token = {0};
	char text[STORE_TOKEN_TEXT];
	int result = take_options(options, &token, err);

	if (result == 0)
		result = open_or_make(&options->common, &config, &store, err);
	if (result == 0)
		result = store_token_add_scoped(store, &token, text, err);
	if (result < 0)
		return result;
	if (options->common.json) {
		auto_json struct json_object *object = token_json(&token);

		json_add_string(object, "token", text);
		cli_print_json(stdout, object, true);
		return CLI_OK;
	}
	puts(text);
	if (isatty(STDERR_FILENO))
		fputs("sallyport: this is shown once: only its hash is stored\n", stderr);
	return CLI_OK;
}

struct listing {
	struct cli_table *table; /* NULL: JSON lines */
};

static void time_cell(struct cli_table *table, int64_t us)
{
	char text[CLI_TEXT_SIZE] = "never";

	if (us)
		cli_text_time(us, text);
	cli_table_cell(table, text, us ? CLI_PLAIN : CLI_DIM);
}

static const char *state_text(const struct store_token *token)
{
	if (token->revoked_us)
		return "revoked";
	return token->expires_us && token->expires_us <= clock_now_us() ? "expired" : "valid";
}

static int list_each(void *arg, const struct store_token *token)
{
	struct cli_table *table = ((struct listing *)arg)->table;
	auto_json struct json_object *object = NULL;
	char scopes[STORE_SCOPES_TEXT];

	if (!table) {
		object = token_json(token);
		cli_print_json(stdout, object, false);
		return 0;
	}
	cli_table_cell(table, token->id, token->revoked_us ? CLI_DIM : CLI_PLAIN);
	cli_table_cell(table, token->owner, CLI_PLAIN);
	store_scopes_print(token->scopes, scopes);
	cli_table_cell(table, scopes, CLI_PLAIN);
	time_cell(table, token->created_us);
	time_cell(table, token->used_us);
	time_cell(table, token->expires_us);
	cli_table_cell(table, state_text(token), streq(state_text(token), "valid") ? CLI_GREEN : CLI_RED);
	cli_table_cell(table, token->name, CLI_PLAIN);
	return 0;
}

static int token_list(const struct token *options, struct err *err)
{
	static const struct cli_column columns[] = {
		{"ID", false, 36, 0},   {"OWNER", false, 5, 0},   {"SCOPES", false, 9, 0}, {"CREATED", false, 19, 0},
		{"USED", false, 19, 0}, {"EXPIRES", false, 7, 0}, {"STATE", false, 7, 0},  {"NAME", false, 4, 0}};
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_table struct cli_table *table = options->common.json ? NULL : cli_table_new(columns, ARRAY_SIZE(columns));
	struct listing listing = {table};
	int result;

	if (options->common.n_args > 1)
		return err_set(err, ERR_INVALID, "'%s' is one argument too many: see sallyport token --help",
			       options->common.args[1]);
	result = cli_open_store(&options->common, STORE_READ, &config, &store, err);
	if (result == 0)
		result = store_token_list(store, list_each, &listing, err);
	if (result == 0 && table)
		cli_table_print(table, stdout);
	return result;
}

static int token_revoke(const struct token *options, struct err *err)
{
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_json struct json_object *object = NULL;
	struct store_token token;
	int result;

	if (options->common.n_args != 2)
		return err_set(err, ERR_INVALID, "token revoke wants one ID: see sallyport token list");
	result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);
	if (result == 0)
		result = store_token_revoke(store, options->common.args[1], &token, err);
	if (result < 0)
		return result;
	object = token_json(&token);
	if (options->common.json)
		cli_print_json(stdout, object, true);
	else
		printf("revoked %s of %s\n", token.id, token.owner);
	return CLI_OK;
}

static int token_run(void *arg, struct err *err)
{
	static const struct {
		const char *name;
		int (*run)(const struct token *options, struct err *err);
	} verbs[] = {{"add", token_add}, {"list", token_list}, {"revoke", token_revoke}};
	const struct token *options = arg;

	if (!streq(options->common.args[0], "add") && (options->owner || options->name || options->scope ||
						       options->expires || options->results || options->servers))
		return err_set(err, ERR_INVALID,
			       "--owner, --name, --scope, --expires, --results and --servers belong to token add");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (streq(verbs[i].name, options->common.args[0]))
			return verbs[i].run(options, err);
	}
	return err_set(err, ERR_INVALID, "token %s: there are add, list and revoke", options->common.args[0]);
}

const struct cli_command cmd_token = {
	.name = "token",
	.summary = "Add, list and revoke the clients' tokens",
	.arguments = "add --owner OWNER | list | revoke ID",
	.help = "add prints the token once; only its hash is stored. "
		"list shows tokens without their text. "
		"revoke takes a token's id, or the beginning of it if no other id begins so; the token is refused from then on.",
	.examples = "sallyport token add --owner alice --name laptop\n"
		"sallyport token add --owner alice --name uploads --scope files\n"
		"sallyport token add --owner bob --expires 90d\n"
		"sallyport token list\n"
		"sallyport token revoke 0193\n",
	.exits = "0 done\n"
		"2 the command line or the owner's name is wrong\n"
		"3 no such token\n",
	.groups = token_groups,
	.size = sizeof(struct token),
	.min_args = 1,
	.max_args = 2,
	.run = token_run,
};
