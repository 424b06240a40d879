/* prompts.c - prompts/list, prompts/get; see prompts.h. */
#include "prompts.h"

#include "lib/base/util.h"

static bool enabled(const struct prompt *prompt, const struct server *server)
{
	return !prompt->enabled || prompt->enabled(server->config);
}

const struct prompt *prompt_find(const struct server *server, const char *name)
{
	for (const struct server_tables *tables = &server->tables; tables; tables = tables->next) {
		for (const struct prompt *const *table = tables->prompts; *table; table++) {
			for (const struct prompt *prompt = *table; prompt->name; prompt++) {
				if (enabled(prompt, server) && streq(prompt->name, name))
					return prompt;
			}
		}
	}
	return NULL;
}

static struct json_object *describe(const struct prompt *prompt)
{
	struct json_object *object = json_object_new_object(), *arguments = json_object_new_array();

	json_add_string(object, "name", prompt->name);
	json_add_string(object, "title", prompt->title);
	json_add_string(object, "description", prompt->description);
	for (const struct prompt_argument *argument = prompt->arguments; argument && argument->name; argument++) {
		struct json_object *one = json_object_new_object();

		json_add_string(one, "name", argument->name);
		json_add_string(one, "description", argument->description);
		json_add_bool(one, "required", argument->required);
		json_object_array_add(arguments, one);
	}
	json_add(object, "arguments", arguments);
	return object;
}

int mcp_prompts_list(struct mcp_call *call)
{
	const struct server *server = call->exchange->server;
	struct json_object *prompts = json_object_new_array();

	call->result = json_object_new_object();
	json_add(call->result, "prompts", prompts);
	if (mcp_cursor(call))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: unknown (the list has one page)");
	for (const struct server_tables *tables = &server->tables; tables; tables = tables->next) {
		for (const struct prompt *const *table = tables->prompts; *table; table++) {
			for (const struct prompt *prompt = *table; prompt->name; prompt++) {
				if (enabled(prompt, server))
					json_object_array_add(prompts, describe(prompt));
			}
		}
	}
	return 0;
}

int mcp_prompts_get(struct mcp_call *call)
{
	auto_json struct json_object *messages = json_object_new_array(), *empty = json_object_new_object();
	struct json_object *arguments = NULL;
	const char *name = json_get_string(call->message->params, "name");

	if (!name)
		return mcp_fail(call, RPC_INVALID_PARAMS,
				"Invalid params: name: must be a string, the name of a prompt");
	if (mcp_arguments(call, &arguments) < 0)
		return -1;
	const struct prompt *prompt = prompt_find(call->exchange->server, name);

	if (!prompt)
		return mcp_fail_name(call, RPC_INVALID_PARAMS, "Unknown prompt", name);
	if (!arguments)
		arguments = empty;
	json_object_object_foreach(arguments, key, value)
	{
		if (!json_object_is_type(value, json_type_string))
			return mcp_fail_name(call, RPC_INVALID_PARAMS, "Invalid params: arguments: must be strings",
					     key);
	}
	for (const struct prompt_argument *argument = prompt->arguments; argument && argument->name; argument++) {
		if (argument->required && !json_get(arguments, argument->name, json_type_string))
			return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: arguments.%s: is missing",
					argument->name);
	}
	if (prompt->get(call, arguments, messages) < 0)
		return -1;
	if (call->result)
		return 0;
	call->result = json_object_new_object();
	json_add_string(call->result, "description", prompt->description);
	json_add(call->result, "messages", steal(&messages));
	return 0;
}

void prompt_add_text(struct json_object *messages, const char *text)
{
	struct json_object *message = json_object_new_object(), *content = json_object_new_object();

	json_add_string(content, "type", "text");
	json_add_string(content, "text", text);
	json_add_string(message, "role", "user");
	json_add(message, "content", content);
	json_object_array_add(messages, message);
}
