/* prompts.c - prompts/list, prompts/get, completion/complete; see prompts.h. */
#include "prompts.h"

#include "cgi/tool/prompt_code.h"
#include "cgi/tool/prompt_snippet.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "resources.h"

/* One line per file; each array is ended by {0}. */
static const struct prompt *const tables[] = {
	prompt_code,
	prompt_snippet,
};

/* The table with this number, with the fixtures behind ours; NULL: there are no more. */
static const struct prompt *table_at(const struct server *server, size_t index)
{
	if (index < ARRAY_SIZE(tables))
		return tables[index];
	return index == ARRAY_SIZE(tables) && server->fixtures ? server->fixtures->prompts : NULL;
}

static bool enabled(const struct prompt *prompt, const struct server *server)
{
	return !prompt->enabled || prompt->enabled(server->config);
}

static const struct prompt *find(const struct server *server, const char *name)
{
	const struct prompt *prompt;

	for (size_t i = 0; (prompt = table_at(server, i)); i++) {
		for (; prompt->name; prompt++) {
			if (enabled(prompt, server) && streq(prompt->name, name))
				return prompt;
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
	struct json_object *prompts = json_object_new_array(), *cursor;
	const struct prompt *prompt;

	call->result = json_object_new_object();
	json_add(call->result, "prompts", prompts);
	if (call->message->params && json_object_object_get_ex(call->message->params, "cursor", &cursor) && cursor)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: cursor: unknown (the list has one page)");
	for (size_t i = 0; (prompt = table_at(call->exchange->server, i)); i++) {
		for (; prompt->name; prompt++) {
			if (enabled(prompt, call->exchange->server))
				json_object_array_add(prompts, describe(prompt));
		}
	}
	return 0;
}

static int check_arguments(struct mcp_call *call, const struct prompt *prompt, struct json_object *arguments)
{
	json_object_object_foreach(arguments, name, value)
	{
		if (!json_object_is_type(value, json_type_string))
			return mcp_fail_name(call, RPC_INVALID_PARAMS, "Invalid params: arguments: must be strings",
					     name);
	}
	for (const struct prompt_argument *argument = prompt->arguments; argument && argument->name; argument++) {
		if (argument->required && !json_get(arguments, argument->name, json_type_string))
			return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: arguments.%s: is missing",
					argument->name);
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
	if (json_object_object_get_ex(call->message->params, "arguments", &arguments) &&
	    !json_object_is_type(arguments, json_type_object))
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: arguments: must be an object");
	const struct prompt *prompt = find(call->exchange->server, name);

	if (!prompt)
		return mcp_fail_name(call, RPC_INVALID_PARAMS, "Unknown prompt", name);
	if (check_arguments(call, prompt, arguments ? arguments : empty) < 0 ||
	    prompt->get(call, arguments ? arguments : empty, messages) < 0)
		return -1;
	if (call->result)
		return 0;
	call->result = json_object_new_object();
	json_add_string(call->result, "description", prompt->description);
	json_add(call->result, "messages", steal(&messages));
	return 0;
}

/* The values that whoever `ref` names suggests; negative: the call has failed. */
static int suggest(struct mcp_call *call, struct json_object *ref, const struct mcp_completion *ask,
		   struct json_object *values)
{
	const struct server *server = call->exchange->server;
	const char *type = json_get_string(ref, "type"), *name = json_get_string(ref, "name"),
		   *uri = json_get_string(ref, "uri");
	struct err err = ERR_INIT;
	int result = 0;

	if (type && streq(type, "ref/prompt") && name) {
		const struct prompt *prompt = find(server, name);

		/* Nothing for a prompt that is not there: snippets come and go while somebody types, and the official
		 * suite asks so. */
		result = prompt && prompt->complete ? prompt->complete(call, ask, values, &err) : 0;
	} else if (type && streq(type, "ref/resource") && uri) {
		const struct resource_provider *provider = resource_provider_find(server, uri);

		if (!provider)
			return mcp_fail_name(call, RPC_INVALID_PARAMS, "Unknown resource template", uri);
		result = provider->complete ? provider->complete(call, uri, ask, values, &err) : 0;
	} else {
		return mcp_fail(call, RPC_INVALID_PARAMS,
				"Invalid params: ref: must be {type: ref/prompt, name} or {type: ref/resource, uri}");
	}
	if (result == 0)
		return 0;
	log_event(LOG_ERROR, "completion failed", "error", err.text, NULL);
	return mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err.text);
}

int mcp_completion(struct mcp_call *call)
{
	struct json_object *params = call->message->params, *argument = json_get(params, "argument", json_type_object);
	auto_json struct json_object *values = json_object_new_array();
	const struct mcp_completion ask = {
		.argument = json_get_string(argument, "name"),
		.value = json_get_string(argument, "value"),
		.context = json_get(json_get(params, "context", json_type_object), "arguments", json_type_object),
	};

	if (!ask.argument || !ask.value)
		return mcp_fail(call, RPC_INVALID_PARAMS,
				"Invalid params: argument: must have the strings name and value");
	if (suggest(call, json_get(params, "ref", json_type_object), &ask, values) < 0)
		return -1;
	struct json_object *completion = json_object_new_object();
	size_t total = json_object_array_length(values);

	if (total > COMPLETION_VALUES_MAX)
		json_object_array_del_idx(values, COMPLETION_VALUES_MAX, total - COMPLETION_VALUES_MAX);
	json_add(completion, "values", steal(&values));
	json_add_int(completion, "total", (int64_t)total);
	json_add_bool(completion, "hasMore", total > COMPLETION_VALUES_MAX);
	call->result = json_object_new_object();
	json_add(call->result, "completion", completion);
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
