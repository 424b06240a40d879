/*
 * cmd_upstream.c - `sallyport upstream list|check|tools|accept|call`: the MCP servers of upstream.file, looked at and
 * tried out.
 *
 * It connects by itself, as the owner "local": it needs no gateway. A server with `share: run` is one of this command's
 * own. Calls are the operator's: no policy is asked and nothing is recorded.
 */
#include <string.h>

#include "cli.h"
#include "commands.h"
#include "lib/base/util.h"
#include "lib/upstream/upstream.h"
#include "lib/upstream/upstream_pin.h"

#define RUN          "cli"
#define LIST_SECONDS 60

struct upstream_options {
	struct cli_common common;
	int64_t timeout_us;
};

static const struct cli_option options_table[] = {
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
	if (options->common.json)
		cli_print_json(stdout, rows, true);
	else
		cli_print_rows(rows, fields, ARRAY_SIZE(fields), false);
}

static int list_servers(const struct upstream_options *options, struct upstream *upstream)
{
	auto_json struct json_object *rows = json_object_new_array();
	size_t count;
	const struct upstream_server *servers = upstream_servers(upstream, &count);

	for (size_t i = 0; i < count; i++) {
		struct json_object *row = json_object_new_object();
		const char *about = servers[i].description != NULL ? servers[i].description : "";
		const char *kind = servers[i].url != NULL ? "http" : servers[i].jail ? "jailed" : "outside of a jail";

		json_add_string(row, "server", servers[i].name);
		json_add_string(row, "kind", servers[i].problem != NULL ? "unavailable" : kind);
		json_add_string(row, "about", servers[i].problem != NULL ? servers[i].problem : about);
		json_object_array_add(rows, row);
	}
	print_rows(options, rows, (const char *const[]){"server", "kind", "about"});
	return CLI_OK;
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
		auto_free char *about = NULL;

		if (servers[i].disabled)
			about = xstrdup("disabled");
		else if (read_list(upstream, &servers[i], &list, &err) < 0)
			about = xstrdup(err.text);
		else
			about = xasprintf("%zu tools, %zu left out; %s, MCP %s", list->count, list->left_out.count,
					  list->version, list->protocol);
		json_add_string(row, "server", servers[i].name);
		json_add_string(row, "state", list != NULL ? "ok" : servers[i].disabled ? "disabled" : "unavailable");
		json_add_string(row, "about", about);
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

static const struct verb {
	const char *name, *takes;
	size_t least, most; /* arguments, the verb included */
	int (*all)(const struct upstream_options *options, struct upstream *upstream);
	int (*one)(const struct upstream_options *options, struct upstream *upstream,
		   const struct upstream_server *server, struct err *err);
} verbs[] = {
	{"list", "no argument", 1, 1, list_servers, NULL},
	{"check", "no argument", 1, 1, check_servers, NULL},
	{"tools", "SERVER", 2, 2, NULL, list_tools},
	{"accept", "SERVER [TOOL]", 2, 3, NULL, accept_tools},
	{"call", "SERVER TOOL [ARGUMENTS]", 3, 4, NULL, call_tool},
};

static int upstream_run(void *arg, struct err *err)
{
	const struct upstream_options *options = arg;
	const struct cli_common *common = &options->common;
	auto_config struct config config = {0};
	auto_upstream struct upstream *upstream = NULL;
	const struct upstream_server *server = NULL;
	const struct verb *verb = NULL;
	int result;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (streq(verbs[i].name, common->args[0]))
			verb = &verbs[i];
	if (verb == NULL)
		return err_set(err, ERR_INVALID, "unknown verb '%s': see sallyport upstream --help", common->args[0]);
	if (common->n_args < verb->least || common->n_args > verb->most)
		return err_set(err, ERR_INVALID, "upstream %s takes %s", verb->name, verb->takes);
	result = config_load(common->config, &config, err);
	if (result == 0 && config.upstream.file[0] == '\0')
		result = err_set(err, ERR_UNAVAILABLE,
				 "there are no upstream servers: name their file as upstream.file in the configuration");
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
	.summary = "List, check and call the MCP servers whose tools programs use",
	.arguments = "list | check | tools SERVER | accept SERVER [TOOL] | call SERVER TOOL [ARGUMENTS]",
	.help = "list shows the servers of upstream.file and the errors in their entries. "
		"check connects to each and reads its list of tools. "
		"tools shows the tools of one server and the rule that applies to each. "
		"accept takes changed definitions of tools as the known ones. "
		"call calls a tool, with a JSON object as arguments, and prints the server's result; nothing is recorded.",
	.examples = "sallyport upstream call files read_text_file '{\"path\": \"/data/notes.txt\"}'\n",
	.exits = "0 done\n"
		"1 check: a server is not available; call: the tool failed\n",
	.groups = groups,
	.size = sizeof(struct upstream_options),
	.min_args = 1,
	.max_args = 4,
	.run = upstream_run,
};
