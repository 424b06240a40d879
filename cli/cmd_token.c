/*
 * cmd_token.c - `sallyport token add|list|revoke`: who may call the gateway.
 *
 * Only hashes are stored, so a token is shown once, when it is made. Everything works while a gateway runs: a new
 * token is valid and a revoked one refused from the next request on. The first token is usually made before the first
 * start of the gateway: then `add` makes the database too, but not for somebody else, since files that belong to root
 * would keep the gateway out.
 */
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/record/store_grant.h"
#include "lib/upstream/upstream_policy.h"

struct token {
	struct cli_common common;
	const char *owner, *name, *scope, *expires, *results, *servers;
	int64_t text_kb; /* 0: not said */
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
	 .help = "add: put details of results here: content, structured, both or none [none]"},
	{.name = "text-kb", .type = CLI_INT, .offset = offsetof(struct token, text_kb), .min = STORE_ANSWER_LEAST,
	 .max = STORE_ANSWER_MOST, .value = "N",
	 .help = "add: let an answer have so much text, in units of 1,000 bytes; for clients that take long answers, or short ones only [limits.answer_kb]"},
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
	json_add(object, "text_kb", token->text_kb ? json_object_new_int64(token->text_kb) : NULL);
	return object;
}

static int take_results(const char *results, struct store_token *token, struct err *err)
{
	if (!config_results_valid(results))
		return err_set(err, ERR_INVALID, "--results '%s': use content, structured, both or none", results);
	snprintf(token->results, sizeof(token->results), "%s", streq(results, "none") ? "" : results);
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
	ret->text_kb = options->text_kb;
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
		result = cli_make_database(&options->common, err);
	if (result == 0)
		result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);
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

struct list {
	struct store *store;
	struct json_object *rows;
};

/* Of a grant: which client it is for, and where that client's answers went. */
static void add_grant(struct store *store, struct json_object *row, const char *id)
{
	struct store_grant_shown grant;
	const bool is = store_grant_show(store, id, &grant, NULL) == 0;

	json_add_string(row, "kind", !is ? "static" : grant.issuer[0] ? "external" : "oauth");
	json_add_string(row, "client", is ? grant.client : NULL);
	json_add_string(row, "host", is && grant.host[0] ? grant.host : NULL);
}

static int list_each(void *arg, const struct store_token *token)
{
	const struct list *list = arg;
	struct json_object *row = token_json(token);
	const bool over = token->expires_us && token->expires_us <= clock_now_us();

	json_object_array_add(list->rows, row);
	add_grant(list->store, row, token->id);
	json_add_int(row, "created", token->created_us);
	json_add_int(row, "used", token->used_us);
	json_add_int(row, "expires", token->expires_us);
	json_add_string(row, "state", token->revoked_us ? "revoked" : over ? "expired" : "valid");
	return 0;
}

static int token_list(const struct token *options, struct err *err)
{
	static const struct cli_field fields[] = {
		{"id", "ID", CLI_AS_TEXT, 0, 0},          {"owner", "OWNER", CLI_AS_TEXT, 0, 0},
		{"scopes", "SCOPES", CLI_AS_TEXT, 0, 0},  {"created", "CREATED", CLI_AS_TIME, 0, 0},
		{"used", "USED", CLI_AS_TIME, 0, 0},      {"expires", "EXPIRES", CLI_AS_TIME, 0, 0},
		{"state", "STATE", CLI_AS_TEXT, 0, 0},    {"kind", "KIND", CLI_AS_TEXT, 0, 0},
		{"host", "HOST", CLI_AS_TEXT, 0, 0},      {"name", "NAME", CLI_AS_TEXT, 0, 0},
	};
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	auto_json struct json_object *rows = json_object_new_array();
	int result;

	if (options->common.n_args > 1)
		return err_set(err, ERR_INVALID, "'%s' is one argument too many: see sallyport token --help",
			       options->common.args[1]);
	result = cli_open_store(&options->common, STORE_READ, &config, &store, err);
	if (result == 0)
		result = store_token_list(store, list_each, &(struct list){store, rows}, err);
	if (result == 0)
		cli_print_rows(rows, fields, ARRAY_SIZE(fields), options->common.json);
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

	if (!streq(options->common.args[0], "add") &&
	    (options->owner || options->name || options->scope || options->expires || options->results ||
	     options->text_kb || options->servers))
		return err_set(err, ERR_INVALID,
			       "--owner, --name, --scope, --expires, --results, --text-kb and --servers belong to "
			       "token add");
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
		"list shows tokens without their text, and what people approved by OAuth, with the client's name and the host "
		"that it answers to. "
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
