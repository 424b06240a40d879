/* prompt_snippet.c - see prompt_snippet.h. */
#include "prompt_snippet.h"

#include "lib/base/util.h"
#include "snippets.h"

#define PROMPT_MAX (16 * 1024)

static const struct prompt_argument arguments[] = {
	{.name = "snippet_name", .description = "Name of the snippet", .required = true},
	{0},
};

static bool enabled(const struct config *config)
{
	return config_has_set(config, "isolator") && config->tools.snippets_dir && *config->tools.snippets_dir;
}

static int get(struct mcp_call *call, struct json_object *given, struct json_object *messages)
{
	auto_snippet struct snippet snippet = {0};
	auto_buf struct buf text = {0};
	const char *name = json_get_string(given, "snippet_name");
	struct err err = ERR_INIT;

	if (!name || snippet_read(call->exchange->server->config, name, &snippet, &err) < 0)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: arguments.%s",
				name ? err.text : "snippet_name: must not contain a NUL");
	buf_init(&text, PROMPT_MAX);
	buf_printf(&text,
		   "Run the snippet %s with the tool execute_code, argument snippet_name, and tell me what it printed. "
		   "If it fails, say "
		   "why; do "
		   "not rewrite it unless I ask for it.\n",
		   snippet.file);
	prompt_add_text(messages, text.data);
	return 0;
}

static int add_value(void *arg, const char *value)
{
	json_object_array_add(arg, json_object_new_string(value));
	return 0;
}

static int complete(struct mcp_call *call, const struct mcp_completion *ask, struct json_object *values,
		    struct err *err)
{
	if (!streq(ask->argument, "snippet_name"))
		return 0;
	return snippet_list(call->exchange->server->config, ask->value, add_value, values, err);
}

const struct prompt prompt_snippet[] = {
	{
		.name = "run_snippet",
		.title = "Run a snippet",
		.description = "Runs one of the server's snippets and reports its output",
		.arguments = arguments,
		.enabled = enabled,
		.get = get,
		.complete = complete,
	},
	{0},
};
