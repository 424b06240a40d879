/*
 * tool_snippet.c - save_snippet, run_snippet and list_snippets: programs that a model keeps and runs by name. The set
 * "snippets".
 *
 * A snippet is a program with a description, the MCP servers that it calls, and a JSON Schema of its input, which it
 * reads from standard input as one JSON object. Input is checked against the schema before anything runs. A run is one
 * of run_code's, in the conversation that the call names.
 */
#include <string.h>

#include "jail/client/client_runners.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/bridge/bridge.h"
#include "lib/job/job.h"
#include "run_answer.h"
#include "run_result.h"
#include "snippets.h"

#define INPUT_MAX (1 << 20)
#define LIST_MAX  (24 * 1024) /* characters of list_snippets' text: what models read of one answer */

static bool enabled(const struct config *config)
{
	return config_has_set(config, "snippets");
}

static int check_name(const char *name, struct err *err)
{
	if (!store_snippet_name_valid(name))
		return err_member(err, "name", "must be 1 to %d letters, digits, _ or -", STORE_SNIPPET_NAME_MAX);
	return 0;
}

/* -------- save_snippet -------------------------------------------------------------------------------- */

struct save_arguments {
	const char *name, *description, *language, *schema;
	struct bind_text code;
	struct bind_strings servers;
};
#define SAVE(member_, json_, type_, flags_, max_, text_)                                                               \
	BIND_MEMBER(struct save_arguments, member_, json_, type_, .flags = flags_, .min = 1, .max = max_,              \
		    .description = text_)
static const struct bind save_table[] = {
	SAVE(name, "name", BIND_STRING, BIND_REQUIRED, STORE_SNIPPET_NAME_MAX,
	     "Letters, digits, _ and -. A name that exists gets a new version."),
	SAVE(description, "description", BIND_STRING, BIND_REQUIRED, STORE_SNIPPET_DESCRIPTION_MAX,
	     "What it does, for a reader who sees only this."),
	SAVE(language, "language", BIND_STRING, BIND_REQUIRED, 0, "Programming language."),
	SAVE(code, "code", BIND_TEXT, BIND_REQUIRED, STORE_SNIPPET_CODE_MAX,
	     "The whole program. It reads its input, one JSON object, from standard input."),
	SAVE(schema, "inputSchema", BIND_STRING, 0, STORE_SNIPPET_SCHEMA_MAX,
	     "JSON Schema of the input object, as JSON text. Default: any object."),
	BIND_MEMBER(struct save_arguments, servers, "servers", BIND_STRINGS, .max = RUN_SERVERS_MAX,
		    .description = "MCP servers whose tools it calls."),
	{0},
};

static int check_schema(const char *text, struct err *err)
{
	auto_json struct json_object *schema = NULL;
	struct err own = ERR_INIT;

	if (json_parse(text, strlen(text), &schema, &own) < 0)
		return err_member(err, "inputSchema", "is not JSON: %s", own.text);
	if (!json_object_is_type(schema, json_type_object))
		return err_member(err, "inputSchema", "must be a JSON object");
	return 0;
}

static char *names_json(const struct bind_strings *names)
{
	auto_json struct json_object *array = json_object_new_array();
	auto_buf struct buf text = {0};

	for (size_t i = 0; i < names->count; i++)
		json_object_array_add(array, json_object_new_string(names->items[i]));
	buf_init(&text, INPUT_MAX);
	json_print(&text, array);
	return xstrdup(text.data);
}

static int save(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct save_arguments *arguments = bound;
	const char *schema = arguments->schema ? arguments->schema : "{\"type\":\"object\"}";
	auto_free char *servers = names_json(&arguments->servers), *trimmed = NULL;
	struct store_snippet snippet = {.description = unconst(arguments->description),
					.code = unconst(arguments->code.data),
					.servers = servers};
	int64_t version = 0;
	int result = check_name(arguments->name, err);

	if (result == 0)
		result = check_schema(schema, err);
	if (result < 0)
		return result;
	if (strlen(arguments->code.data) != arguments->code.length)
		return err_member(err, "code", "holds a NUL");
	auto_json struct json_object *runners = tool_runners(call->server);
	struct json_object *runner = runners ? jail_runner_named(runners, arguments->language) : NULL;

	if (!runners)
		return err_set(err, ERR_UNAVAILABLE, JOB_JAILER_AWAY);
	if (!runner)
		return err_member(err, "language", "no language has this name; list_runners lists them");
	snprintf(snippet.language, sizeof(snippet.language), "%s", json_get_string(runner, "name"));
	trimmed = xstrdup(schema + strspn(schema, " \t\r\n"));
	snippet.schema = trimmed;
	snprintf(snippet.owner, sizeof(snippet.owner), "%s", call->token->owner);
	snprintf(snippet.name, sizeof(snippet.name), "%s", arguments->name);
	result = store_snippet_save(call->server->store, &snippet, &version, err);
	if (result < 0)
		return result;
	auto_free char *text = xasprintf("Saved %s, version %lld. run_snippet runs it.", snippet.name,
					 (long long)version);

	tool_answer(ret, text, json_object_new_object());
	json_add_string(ret->structured, "name", snippet.name);
	json_add_int(ret->structured, "version", version);
	return 0;
}

const struct tool tool_save_snippet = {
	.name = "save_snippet",
	.title = "Keep a program",
	.enabled = enabled,
	.scope = STORE_SCOPE_RUN,
	.description = "Keeps a program that worked under a name, for run_snippet in any later conversation. Saving "
		       "under a name that exists makes a new version; the newest 10 are kept.",
	.arguments = save_table,
	.arguments_size = sizeof(struct save_arguments),
	.output_schema = "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"name\",\"version\"],"
			 "\"properties\":{\"name\":{\"type\":\"string\"},\"version\":{\"type\":\"integer\"}}}",
	.call = save,
};

/* -------- run_snippet --------------------------------------------------------------------------------- */

struct run_arguments {
	const char *name, *conversation, *input, *key;
	int64_t version;
};
static const struct bind run_table[] = {
	BIND_MEMBER(struct run_arguments, name, "name", BIND_STRING, .flags = BIND_REQUIRED, .min = 1,
		    .max = STORE_SNIPPET_NAME_MAX, .description = "Name of a snippet: list_snippets lists them."),
	TOOL_CONVERSATION_MEMBER(struct run_arguments, conversation),
	BIND_MEMBER(struct run_arguments, input, "input", BIND_STRING, .min = 1, .max = INPUT_MAX,
		    .description = "Its input as JSON text, an object that fits its inputSchema. Default: {}."),
	BIND_MEMBER(struct run_arguments, version, "version", BIND_INT, .min = 1, .max = INT32_MAX,
		    .description = "Default: the newest."),
	TOOL_KEY_MEMBER(struct run_arguments, key),
	{0},
};

/* Before anything runs, as far as it is certain that the input is wrong. */
static int check_input(const struct store_snippet *snippet, const char *input, struct err *err)
{
	auto_json struct json_object *value = NULL, *definition = json_object_new_object();
	struct json_object *schema = NULL;
	struct err own = ERR_INIT;

	if (json_parse(input, strlen(input), &value, &own) < 0)
		return err_member(err, "input", "is not JSON: %s", own.text);
	if (!json_object_is_type(value, json_type_object))
		return err_member(err, "input", "must be a JSON object");
	int result = json_parse(snippet->schema, strlen(snippet->schema), &schema, err);

	if (result < 0)
		return result;
	json_add(definition, "inputSchema", schema);
	const struct upstream_tool tool = {.name = snippet->name, .object = definition};

	if (bridge_check(&tool, value, &own) < 0)
		return err_member(err, "input", "%s; the inputSchema is %.600s", own.text, snippet->schema);
	return 0;
}

static int run(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct run_arguments *arguments = bound;
	const char *input = arguments->input ? arguments->input : "{}";
	auto_snippet_row struct store_snippet snippet = {0};
	auto_job_tools struct job_tools *tools = NULL;
	auto_json struct json_object *runners = tool_runners(call->server);
	const char *language = NULL;
	char hash[SHA256_HEX_SIZE];

	tool_hash(call, bound, hash);
	int result = run_result_again(call, hash, run_result_make, ret, err);

	if (result != 0)
		return MIN(result, 0);
	if ((result = check_name(arguments->name, err)) == 0)
		result = store_snippet_find(call->server->store, call->token->owner, arguments->name,
					    arguments->version, &snippet, err);
	if (result == 0)
		result = check_input(&snippet, input, err);
	if (result < 0)
		return result;
	language = snippet_language(&snippet, runners);
	if ((result = snippet_tools(call, &snippet, language, &tools, err)) < 0)
		return result;
	const struct job_request request = {
		TOOL_CALLER(call),
		.conversation = arguments->conversation,
		.language = language,
		.code = {snippet.code, strlen(snippet.code)},
		.stdin_text = {input, strlen(input)},
		.tools = tools,
		.key = arguments->key,
		.key_hash = hash,
	};
	return run_result_of(call, &request, run_result_make, ret, err);
}

const struct tool tool_run_snippet = {
	.name = "run_snippet",
	.title = "Run a kept program",
	.enabled = enabled,
	.scope = STORE_SCOPE_RUN,
	.description = "Runs a program that save_snippet kept, or that the operator gave to all. The answer is "
		       "run_code's.",
	.arguments = run_table,
	.arguments_size = sizeof(struct run_arguments),
	.output = run_answer_table,
	.destructive = true,
	.call = run,
	.task = TOOL_TASK_OPTIONAL,
	.result = run_result_make,
};

/* -------- list_snippets ------------------------------------------------------------------------------- */

struct list_arguments {
	const char *name;
};
static const struct bind list_table[] = {
	BIND_MEMBER(struct list_arguments, name, "name", BIND_STRING, .min = 1, .max = STORE_SNIPPET_NAME_MAX,
		    .description = "This one alone, with its inputSchema and code."),
	{0},
};

struct listing {
	struct buf text;
	struct json_object *array;
	size_t hidden;
};

static void list_one(void *arg, const struct store_snippet *snippet)
{
	struct listing *listing = arg;
	auto_buf struct buf line = {0};

	buf_init(&line, 8192);
	buf_printf(&line, "%s (%s, version %lld%s%s%s): ", snippet->name, snippet->language,
		   (long long)snippet->version, streq(snippet->servers, "[]") ? "" : ", servers ",
		   streq(snippet->servers, "[]") ? "" : snippet->servers, *snippet->owner ? "" : ", everybody's");
	utf8_printable(&line, snippet->description, strlen(snippet->description));
	buf_putc(&line, '\n');
	if (listing->text.length + line.length > LIST_MAX) {
		listing->hidden++;
		return;
	}
	buf_add(&listing->text, line.data, line.length);
	struct json_object *object = json_object_new_object(), *servers = NULL;

	json_add_string(object, "name", snippet->name);
	json_add_int(object, "version", snippet->version);
	json_add_string(object, "language", snippet->language);
	json_add_string(object, "description", snippet->description);
	if (json_parse(snippet->servers, strlen(snippet->servers), &servers, NULL) == 0)
		json_add(object, "servers", servers);
	json_add_bool(object, "everybody", !*snippet->owner);
	json_object_array_add(listing->array, object);
}

static int list(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct list_arguments *arguments = bound;
	struct listing listing = {.array = json_object_new_array()};

	buf_init(&listing.text, LIST_MAX + STORE_SNIPPET_SCHEMA_MAX + SNIPPET_FILE_MAX + 256);
	struct store *store = call->server->store;
	const char *owner = call->token->owner;
	auto_snippet_row struct store_snippet snippet = {0};
	int result = arguments->name ? check_name(arguments->name, err)
				     : store_snippet_list(store, owner, list_one, &listing, err);

	if (result == 0 && arguments->name)
		result = store_snippet_find(store, owner, arguments->name, 0, &snippet, err);
	if (result == 0 && arguments->name) {
		list_one(&listing, &snippet);
		buf_printf(&listing.text, "inputSchema: %s\ncode:\n%s", snippet.schema, snippet.code);
	}
	if (result == 0) {
		if (listing.hidden > 0)
			buf_printf(&listing.text, "%zu more are not shown: name one\n", listing.hidden);
		if (listing.text.length == 0)
			buf_puts(&listing.text, "There are no snippets. save_snippet keeps one.\n");
		tool_answer(ret, listing.text.data, json_object_new_object());
		json_add(ret->structured, "snippets", json_object_get(listing.array));
	}
	buf_clear(&listing.text);
	json_object_put(listing.array);
	return result;
}

const struct tool tool_list_snippets = {
	.name = "list_snippets",
	.title = "Kept programs",
	.enabled = enabled,
	.scope = STORE_SCOPE_RUN,
	.description = "Lists the programs that run_snippet runs: name, language, version, servers, description.",
	.arguments = list_table,
	.arguments_size = sizeof(struct list_arguments),
	.output_schema =
		"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"snippets\"],\"properties\":{"
		"\"snippets\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,"
		"\"required\":[\"name\",\"version\",\"language\",\"description\",\"servers\",\"everybody\"],"
		"\"properties\":{\"name\":{\"type\":\"string\"},\"version\":{\"type\":\"integer\"},\"language\":"
		"{\"type\":\"string\"},\"description\":{\"type\":\"string\"},\"servers\":{\"type\":\"array\",\"items\":"
		"{\"type\":\"string\"}},\"everybody\":{\"type\":\"boolean\"}}}}}}",
	.read_only = true,
	.call = list,
};
