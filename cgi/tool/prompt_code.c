/* prompt_code.c - the prompt that teaches a model to use the tools well. */
#include "tool_table.h"

#include "lib/base/util.h"
#include "lib/store/record/store_resource.h"
#include "tool_common.h"

#define PROMPT_MAX (64 * 1024)

static const struct prompt_argument arguments[] = {
	{.name = "task", .description = "What to find out or make", .required = true},
	{.name = "language", .description = "Programming language; default: the model chooses"},
	{.name = "conversationId",
	 .description = "Conversation whose files to use; default: a new one"},
	{.name = "file", .description = "File of that conversation to start from"},
	{0},
};

static const char how[] =
	"\nHow to work:\n"
	"1. Use one conversationId in all calls. Files of a conversation persist between calls; variables do not, "
	"unless session is true in each call.\n"
	"2. Look before you compute: first print the beginning, the columns or the size of each input file.\n"
	"3. Write whole programs that print what you need to see. Keep the output short: print summaries, not tables "
	"of thousands of rows. If an answer says that output was cut, read the named resource in parts.\n"
	"4. Write results and charts to files in the working directory (/data). Show them to the user with the URLs "
	"in the answer; never invent an address.\n"
	"5. When a run fails, read the verdict and stderr, change the program, run it again. Do not repeat a failing "
	"program unchanged. TO means too slow, ML too much memory: process less data or smaller pieces, or ask for "
	"more with timeout_seconds and memory_mb.\n"
	"6. There is no network unless you ask for it and the server allows it, and nothing can be installed: "
	"list_runners lists languages and libraries.\n"
	"7. Put passwords and keys into secrets, never into code or environment.\n"
	"8. Give calls that act an idempotencyKey; if an answer is lost, repeat the call with the same key instead of "
	"acting twice.\n"
	"9. Check the result: recompute one number another way before you report it. Say what you ran and what it "
	"printed; do not state "
	"results that no program gave.\n";

static int get(struct mcp_call *call, struct json_object *given, struct json_object *messages)
{
	const char *language = json_get_string(given, "language"),
		   *conversation = json_get_string(given, "conversationId");
	const char *file = json_get_string(given, "file"), *task = json_get_string(given, "task");
	auto_buf struct buf text = {0};

	if (!task)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: arguments.task: must not contain a NUL");
	buf_init(&text, PROMPT_MAX);
	buf_printf(&text, "Solve this task by running programs with the tool run_code, not by guessing:\n\n%s\n", task);
	if (language && *language)
		buf_printf(&text, "\nLanguage: %s\n", language);
	if (conversation && *conversation)
		buf_printf(&text, "\nconversationId: %s\n", conversation);
	if (file && *file)
		buf_printf(&text, "\nStart from the file %s in the working directory.\n", file);
	buf_puts(&text, how);
	if (text.overflow)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: arguments: too long, at most %d bytes",
				PROMPT_MAX);
	prompt_add_text(messages, text.data);
	return 0;
}

static int add_value(void *arg, const char *value)
{
	json_object_array_add(arg, json_object_new_string(value));
	return 0;
}

/* Names and aliases of what is installed. */
static void complete_language(struct server *server, const char *prefix, struct json_object *values)
{
	auto_json struct json_object *runners = tool_runners(server);

	for (size_t i = 0; runners && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);
		struct json_object *aliases = json_get(runner, "aliases", json_type_array);
		const char *name = json_get_string(runner, "name");

		if (!name || !json_object_get_boolean(json_get(runner, "available", json_type_boolean)))
			continue;
		if (str_starts(name, prefix))
			add_value(values, name);
		for (size_t j = 0; aliases && j < json_object_array_length(aliases); j++) {
			const char *alias = json_object_get_string(json_object_array_get_idx(aliases, j));

			if (*prefix && alias && str_starts(alias, prefix))
				add_value(values, alias);
		}
	}
}

static int complete(struct mcp_call *call, const struct mcp_completion *ask, struct json_object *values,
		    struct err *err)
{
	struct server *server = call->exchange->server;
	const char *conversation = json_get_string(ask->context, "conversationId");
	const struct store_page page = {.owner = call->exchange->token.owner,
					.prefix = ask->value,
					.conversation = conversation,
					.limit = COMPLETION_VALUES_MAX + 1}; /* one more shows that there are more */

	if (streq(ask->argument, "language"))
		complete_language(server, ask->value, values);
	else if (!access_allows(access_scopes(&call->exchange->token), STORE_SCOPE_FILES))
		return 0; /* the rest are names of what the owner has */
	else if (streq(ask->argument, "conversationId"))
		return store_complete_conversation(server->store, &page, add_value, values, err);
	else if (streq(ask->argument, "file") && conversation)
		return store_complete_file(server->store, &page, add_value, values, err);
	return 0;
}

const struct prompt prompt_code[] = {
	{
		.name = "solve_with_code",
		.title = "Solve a task with code",
		.description =
			"Asks to solve a task by running programs in the sandbox, and explains how to use the tools",
		.arguments = arguments,
		.get = get,
		.complete = complete,
	},
	{0},
};
