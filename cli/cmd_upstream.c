/*
 * cmd_upstream.c - `sallyport upstream add|list|check|tools|accept|call|login|logout`: the MCP servers of
 * upstream.file, added, looked at, tried out and signed in to.
 *
 * It connects by itself, as the owner "local": it needs no gateway. Started by root, it becomes the account of the
 * gateway, whose record data_dir is, because what root may read the gateway may not. A server with `share: run` is one
 * of this command's own. Calls are the operator's: no policy is asked and nothing is recorded. To add servers is the
 * work of a script (upstream_add.py): it installs packages and edits text.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "commands.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream.h"
#include "lib/upstream/upstream_login.h"
#include "lib/upstream/upstream_pin.h"
#include "signin.h"

#define RUN          "cli"
#define LIST_SECONDS 60
#define NAMES_SHOWN  12 /* tools of one decision, in a line of check */
#define PYTHON       "/usr/bin/python3"

static const char add_script[] =
#include "upstream_add.inc"
	;

struct upstream_options {
	struct cli_common common;
	int64_t timeout_us;
	const char *paste, *into, *scope;
	bool yes;
	const struct config *config;
};

static const struct cli_option options_table[] = {
	{.name = "paste", .type = CLI_STRING, .offset = offsetof(struct upstream_options, paste), .value = "FILE",
	 .input = true,
	 .help = "add: take the servers of a client's mcpServers file; - is standard input"},
	{.name = "into", .type = CLI_STRING, .offset = offsetof(struct upstream_options, into), .value = "FOLDER",
	 .help = "add: install packages below this folder [servers, next to the configuration]"},
	{.name = "yes", .letter = 'y', .type = CLI_FLAG, .offset = offsetof(struct upstream_options, yes),
	 .help = "add: do not ask whether a server may read the folders that its arguments name"},
	{.name = "scope", .type = CLI_STRING, .offset = offsetof(struct upstream_options, scope), .value = "SCOPES",
	 .help = "login: ask for these scopes [as in the server's entry, else as the server says]"},
	{.name = "timeout", .letter = 't', .type = CLI_SECONDS, .offset = offsetof(struct upstream_options, timeout_us),
	 .min = 1000, .max = 300000000, .value = "SECONDS",
	 .help = "call: wait so long for the result [as in the server's entry]"},
	{0},
};
static const struct cli_group groups[] = {{options_table, 0}, {0}};

static void close_upstream(struct upstream **upstream)
{
	upstream_close(*upstream);
}
#define auto_upstream __attribute__((cleanup(close_upstream)))

static struct upstream_key key_of(const struct upstream_server *server)
{
	return (struct upstream_key){server, STORE_OWNER_LOCAL, RUN};
}

static int read_list(struct upstream *upstream, const struct upstream_server *server, struct upstream_list **ret,
		     struct err *err)
{
	struct upstream_key key = key_of(server);

	return upstream_list(upstream, &key, clock_monotonic_us() + LIST_SECONDS * INT64_C(1000000), ret, err);
}

static void print_rows(const struct upstream_options *options, struct json_object *rows, const char *const *columns)
{
	const struct cli_field fields[] = {{columns[0], columns[0], CLI_AS_TEXT, CLI_BOLD, 40},
					   {columns[1], columns[1], CLI_AS_TEXT, 0, 24},
					   {columns[2], columns[2], CLI_AS_TEXT, 0, 0}};
	cli_print_rows(rows, fields, ARRAY_SIZE(fields), options->common.json);
}

static const char *kind_of(const struct upstream_options *options, const struct upstream_server *server)
{
	auto_login struct upstream_login login = {0};

	if (server->problem != NULL)
		return "unavailable";
	if (server->url == NULL)
		return server->jail ? "jailed" : "outside of a jail";
	return upstream_login_possible(server) &&
			       upstream_login_read(options->config->data_dir, server, &login, NULL) == 0
		       ? "http, signed in"
		       : "http";
}

static int list_servers(const struct upstream_options *options, struct upstream *upstream)
{
	auto_json struct json_object *rows = json_object_new_array();
	size_t count;
	const struct upstream_server *servers = upstream_servers(upstream, &count);

	for (size_t i = 0; i < count; i++) {
		struct json_object *row = json_object_new_object();
		const char *about = servers[i].description != NULL ? servers[i].description : "";

		json_add_string(row, "server", servers[i].name);
		json_add_string(row, "kind", kind_of(options, &servers[i]));
		json_add_string(row, "about", servers[i].problem != NULL ? servers[i].problem : about);
		json_object_array_add(rows, row);
	}
	print_rows(options, rows, (const char *const[]){"server", "kind", "about"});
	return CLI_OK;
}

/* What happens to the calls of a token that names the server: "allow 2: a, b; ask 1: c". */
static void add_decisions(const struct upstream_server *server, const struct upstream_list *list,
			  struct json_object *row, struct buf *about)
{
	static const enum upstream_decision decisions[] = {UPSTREAM_ALLOW, UPSTREAM_ASK, UPSTREAM_DENY};
	struct json_object *tools = json_object_new_array();
	char rule[UPSTREAM_RULE_SIZE];

	for (size_t d = 0; d < ARRAY_SIZE(decisions); d++) {
		const char *decision = upstream_decision_name(decisions[d]);
		auto_buf struct buf names = {0};
		size_t count = 0;

		buf_init(&names, SIZE_MAX);
		for (size_t i = 0; i < list->count; i++) {
			const struct upstream_tool *tool = &list->tools[i];
			const struct upstream_question question = {"*", server, tool->name, tool, UPSTREAM_PIN_KNOWN};

			if (upstream_decide(&question, rule) != decisions[d])
				continue;
			struct json_object *one = json_object_new_object();

			json_add_string(one, "tool", tool->name);
			json_add_string(one, "decision", decision);
			json_object_array_add(tools, one);
			if (++count <= NAMES_SHOWN)
				buf_printf(&names, "%s %s", count > 1 ? "," : "", tool->name);
		}
		if (count > 0)
			buf_printf(about, "; %s %zu:%.*s%s", decision, count, (int)names.length, names.data,
				   count > NAMES_SHOWN ? ", …" : "");
	}
	json_add(row, "tools", tools);
}

/* Connects to each one and reads its list. */
static int check_servers(const struct upstream_options *options, struct upstream *upstream)
{
	auto_json struct json_object *rows = json_object_new_array();
	int code = CLI_OK;
	size_t count;
	const struct upstream_server *servers = upstream_servers(upstream, &count);

	for (size_t i = 0; i < count; i++) {
		auto_upstream_list struct upstream_list *list = NULL;
		struct json_object *row = json_object_new_object();
		struct err err = ERR_INIT;
		auto_buf struct buf about = {0};

		buf_init(&about, SIZE_MAX);
		if (servers[i].disabled)
			buf_puts(&about, "disabled");
		else if (read_list(upstream, &servers[i], &list, &err) < 0)
			buf_puts(&about, err.text);
		else
			buf_printf(&about, "%zu tools, %zu left out; %s%sMCP %s", list->count, list->left_out.count,
				   list->version, *list->version ? ", " : "", list->protocol);
		json_add_string(row, "server", servers[i].name);
		json_add_string(row, "state", list != NULL ? "ok" : servers[i].disabled ? "disabled" : "unavailable");
		if (list != NULL)
			add_decisions(&servers[i], list, row, &about);
		json_add_bytes(row, "about", about.data, about.length);
		json_object_array_add(rows, row);
		if (list == NULL && !servers[i].disabled)
			code = CLI_DIFFERENT;
	}
	print_rows(options, rows, (const char *const[]){"server", "state", "about"});
	return code;
}

static int list_tools(const struct upstream_options *options, struct upstream *upstream,
		      const struct upstream_server *server, struct err *err)
{
	auto_upstream_list struct upstream_list *list = NULL;
	auto_json struct json_object *rows = json_object_new_array();
	int result = read_list(upstream, server, &list, err);

	if (result < 0)
		return result;
	for (size_t i = 0; i < list->count; i++) {
		const struct upstream_tool *tool = &list->tools[i];
		const struct upstream_question question = {"*", server, tool->name, tool, UPSTREAM_PIN_KNOWN};
		struct json_object *row = json_object_new_object();
		char rule[UPSTREAM_RULE_SIZE];

		json_add_string(row, "tool", tool->name);
		json_add_string(row, "decision", upstream_decision_name(upstream_decide(&question, rule)));
		json_add_string(row, "description", json_get_string(tool->object, "description"));
		json_add_string(row, "rule", rule);
		json_add_string(row, "hash", tool->hash);
		json_object_array_add(rows, row);
	}
	print_rows(options, rows, (const char *const[]){"tool", "decision", "description"});
	for (size_t i = 0; i < list->left_out.count; i++) {
		fputs("left out: ", stderr);
		cli_print_safe(stderr, list->left_out.items[i], strlen(list->left_out.items[i]));
		fputc('\n', stderr);
	}
	return CLI_OK;
}

/* The definitions that it has now are the known ones. */
static int accept_tools(const struct upstream_options *options, struct upstream *upstream,
			const struct upstream_server *server, struct err *err)
{
	const char *tool = options->common.n_args > 2 ? options->common.args[2] : NULL;
	auto_upstream_list struct upstream_list *list = NULL;
	auto_config struct config config = {0};
	auto_store struct store *store = NULL;
	const struct upstream_tool *found;
	int result = read_list(upstream, server, &list, err);

	if (result == 0 && tool != NULL)
		result = upstream_list_find(list, tool, &found, err);
	if (result == 0)
		result = cli_open_store(&options->common, STORE_WRITE, &config, &store, err);
	if (result == 0)
		result = upstream_pin_accept(store, list, tool, err);
	return result;
}

static void show_progress(void *arg, double progress, double total, const char *text)
{
	(void)arg;
	(void)total;
	fprintf(stderr, "progress %g: ", progress);
	cli_print_safe(stderr, text, strlen(text));
	fputc('\n', stderr);
}

static int call_tool(const struct upstream_options *options, struct upstream *upstream,
		     const struct upstream_server *server, struct err *err)
{
	const struct cli_common *common = &options->common;
	auto_upstream_list struct upstream_list *list = NULL;
	auto_json struct json_object *arguments = NULL;
	struct upstream_answer answer;
	struct upstream_call call = {
		.key = key_of(server),
		.tool = common->args[2],
		.arguments = common->n_args > 3 ? common->args[3] : "{}",
		.timeout_us = options->timeout_us,
		.progress = show_progress,
	};
	int result = json_parse(call.arguments, strlen(call.arguments), &arguments, err);

	if (result == 0 && !json_object_is_type(arguments, json_type_object))
		result = err_set(err, ERR_INVALID, "the arguments must be a JSON object");
	if (result == 0)
		result = read_list(upstream, server, &list, err);
	if (result == 0)
		result = upstream_list_find(list, call.tool, &call.definition, err);
	if (result < 0)
		return result;
	call.list = list;
	call.length = strlen(call.arguments);
	upstream_call_wait(upstream, &call, &answer);
	if (answer.kind == UPSTREAM_RESULT) {
		fwrite(answer.result, 1, answer.length, stdout);
		fputc('\n', stdout);
		result = answer.is_error ? CLI_DIFFERENT : CLI_OK;
	} else {
		result = err_set(err, ERR_UNAVAILABLE, "%s: %s", upstream_kind_name(answer.kind), answer.text);
	}
	upstream_answer_clear(&answer);
	return result;
}

static int login(const struct upstream_options *options, struct upstream *upstream,
		 const struct upstream_server *server, struct err *err)
{
	(void)upstream;
	return signin_login(options->config, server, options->scope, options->common.json, err);
}

static int logout(const struct upstream_options *options, struct upstream *upstream,
		  const struct upstream_server *server, struct err *err)
{
	(void)upstream;
	return signin_logout(options->config, server, err);
}

/* -------- the verbs ---------------------------------------------------------------------------------- */

/* Root's right to read everything would say "ok" where the gateway fails. */
static int become_gateway(const struct config *config, struct err *err)
{
	struct stat status;

	if (geteuid() != 0 || stat(config->data_dir, &status) < 0 || status.st_uid == 0)
		return 0;
	const struct passwd *account = getpwuid(status.st_uid);
	const gid_t group = account ? account->pw_gid : status.st_gid;

	if ((account ? initgroups(account->pw_name, group) : setgroups(0, NULL)) < 0 ||
	    setresgid(group, group, group) < 0 || setresuid(status.st_uid, status.st_uid, status.st_uid) < 0)
		return err_errno(err, "becoming the account of the gateway");
	return 0;
}

/* Returns only when it fails. */
static int add_servers(const struct upstream_options *options, struct err *err)
{
	const struct cli_common *common = &options->common;
	const char *named = common->config ? common->config : getenv("SALLYPORT_CONFIG");
	auto_free char *found = named && *named ? xstrdup(named) : config_find();
	auto_free char *folder = config_program_dir(), *program = xasprintf("%s/sallyport", folder);
	auto_json struct json_object *more = json_object_new_object();
	struct json_object *words = json_object_new_array();

	if (!found)
		return err_set(err, ERR_INVALID, "upstream add changes a configuration: name its file with --config");
	if ((options->paste != NULL) == (common->n_args == 2 && common->n_rest > 0))
		return err_set(err, ERR_INVALID, "upstream add takes --paste FILE, or NAME -- COMMAND [ARGUMENT…]");
	if (common->n_args == 2)
		json_object_array_add(words, json_object_new_string(common->args[1]));
	for (size_t i = 0; i < common->n_rest; i++)
		json_object_array_add(words, json_object_new_string(common->rest[i]));
	json_add(more, "words", words);
	json_add_string(more, "paste", options->paste);
	json_add_string(more, "into", options->into);
	json_add_bool(more, "yes", options->yes);
	char *const arguments[] = {(char[]){PYTHON},    (char[]){"-I"},  (char[]){"-c"},
				   unconst(add_script), program,         found,
				   unconst(json_object_to_json_string(more)), NULL};

	execv(PYTHON, arguments);
	return err_errno(err, PYTHON " cannot be started");
}

static const struct verb {
	const char *name, *takes;
	size_t least, most; /* arguments, the verb included */
	int (*all)(const struct upstream_options *options, struct upstream *upstream);
	int (*one)(const struct upstream_options *options, struct upstream *upstream,
		   const struct upstream_server *server, struct err *err);
} verbs[] = {
	{"add", "--paste FILE, or NAME -- COMMAND [ARGUMENT…]", 1, 2, NULL, NULL},
	{"list", "no argument", 1, 1, list_servers, NULL},
	{"check", "no argument", 1, 1, check_servers, NULL},
	{"tools", "SERVER", 2, 2, NULL, list_tools},
	{"accept", "SERVER [TOOL]", 2, 3, NULL, accept_tools},
	{"call", "SERVER TOOL [ARGUMENTS]", 3, 4, NULL, call_tool},
	{"login", "SERVER", 2, 2, NULL, login},
	{"logout", "SERVER", 2, 2, NULL, logout},
};

static const struct verb *verb_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (streq(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

static int upstream_run(void *arg, struct err *err)
{
	struct upstream_options *options = arg;
	const struct cli_common *common = &options->common;
	auto_config struct config config = {0};
	auto_upstream struct upstream *upstream = NULL;
	const struct upstream_server *server = NULL;
	const struct verb *verb = verb_of(common->args[0]);
	int result;

	if (verb == NULL)
		return err_set(err, ERR_INVALID, "unknown verb '%s': see sallyport upstream --help", common->args[0]);
	if (common->n_args < verb->least || common->n_args > verb->most)
		return err_set(err, ERR_INVALID, "upstream %s takes %s", verb->name, verb->takes);
	if (verb->all == NULL && verb->one == NULL)
		return add_servers(options, err);
	result = config_load(common->config, &config, err);
	if (result == 0)
		result = become_gateway(&config, err);
	if (result == 0 && config.upstream.file[0] == '\0')
		result = err_set(err, ERR_UNAVAILABLE,
				 "there are no upstream servers: name their file as upstream.file in the configuration");
	options->config = &config;
	if (result == 0)
		result = upstream_open(&config, &upstream, err);
	if (result == 0 && verb->one != NULL)
		result = upstream_find(upstream, common->args[1], &server, err);
	if (result < 0)
		return result;
	return verb->one != NULL ? verb->one(options, upstream, server, err) : verb->all(options, upstream);
}

const struct cli_command cmd_upstream = {
	.name = "upstream",
	.summary = "Add, list, check, call and sign in to the MCP servers whose tools programs use",
	.arguments = "add --paste FILE | add NAME -- COMMAND [ARGUMENT…] | list | check | tools SERVER | accept SERVER [TOOL] | "
		     "call SERVER TOOL [ARGUMENTS] | login SERVER | logout SERVER",
	.help = "add takes entries of a client's mcpServers file, or a command, as that client has it. It installs what npx and uvx would download, shows the folders that the arguments name and asks whether the server may read them, writes upstream.file and upstream.binds, starts jailer and gateway anew where they run by this configuration, and checks the servers. "
		"list shows the servers of upstream.file, the errors in their entries, and which are signed in to. "
		"check connects to each, as the account of the gateway, reads its list of tools, and shows what happens to their calls. "
		"tools shows the tools of one server and the rule that applies to each. "
		"accept takes changed definitions of tools as the known ones. "
		"call calls a tool, with a JSON object as arguments, and prints the server's result; nothing is recorded. "
		"login signs in to a server that asks for it (OAuth): it prints an address for your browser, and keeps the tokens, which the gateway uses and renews for all owners. "
		"logout gives the tokens back and forgets them.",
	.examples = "sallyport upstream add --paste claude_desktop_config.json\n"
		    "sallyport upstream add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs\n"
		    "sallyport upstream call files read_text_file '{\"path\": \"/data/notes.txt\"}'\n",
	.exits = "0 done\n"
		"1 check: a server is not available; call: the tool failed\n",
	.groups = groups,
	.size = sizeof(struct upstream_options),
	.min_args = 1,
	.max_args = 4,
	.takes_rest = true,
	.run = upstream_run,
};
