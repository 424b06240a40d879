/* mcp_completion.c - completion/complete: prompts and resources suggest values for their arguments. */
#include "mcp.h"

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "prompts.h"
#include "resources.h"

/* The values that what `ref` names suggests; negative: the call has failed. */
static int suggest(struct mcp_call *call, struct json_object *ref, const struct mcp_completion *ask,
		   struct json_object *values)
{
	const struct server *server = call->exchange->server;
	const char *type = json_get_string(ref, "type"), *name = json_get_string(ref, "name"),
		   *uri = json_get_string(ref, "uri");
	struct err err = ERR_INIT;
	int result = 0;

	if (type && streq(type, "ref/prompt") && name) {
		const struct prompt *prompt = prompt_find(server, name);

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
