/* prompt_snippet.c - see tool_table.h. */
#include "tool_table.h"

#include "lib/base/util.h"
#include "snippets.h"

static const struct prompt_argument arguments[] = {
	{.name = "snippet_name", .description = "Name of the snippet", .required = true},
	{0},
};

static bool enabled(const struct config *config)
{
	return config_has_set(config, "isolator");
}

static int get(struct mcp_call *call, struct json_object *given, struct json_object *messages)
{
	auto_snippet_row struct store_snippet snippet = {0};
	const char *name = json_get_string(given, "snippet_name");
	struct err err = ERR_INIT;

	if (!name)
		return mcp_fail(call, RPC_INVALID_PARAMS,
				"Invalid params: arguments.snippet_name: must not contain a NUL");
	if (store_snippet_find(call->exchange->server->store, call->exchange->token.owner, name, 0, &snippet, &err) < 0)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: arguments.snippet_name: %s", err.text);
	auto_free char *text = xasprintf(
		"Run the snippet %s with the tool execute_code, argument snippet_name, and tell me what it printed. "
		"If it fails, say why; do not rewrite it unless I ask for it.\n",
		snippet.name);

	prompt_add_text(messages, text);
	return 0;
}

static int complete(struct mcp_call *call, const struct mcp_completion *ask, struct json_object *values,
		    struct err *err)
{
	const struct http_exchange *exchange = call->exchange;

	if (!streq(ask->argument, "snippet_name"))
		return 0;
	return snippet_names(exchange->server->store, exchange->token.owner, ask->value, values, err);
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
