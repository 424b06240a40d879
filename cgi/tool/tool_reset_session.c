/* tool_reset_session.c - reset_session: ends the live interpreters that run_code with session true keeps. */
#include "lib/base/util.h"
#include "tool_files.h"

struct reset_arguments {
	const char *conversation, *language;
};

static const struct bind table[] = {
	TOOL_CONVERSATION_MEMBER(struct reset_arguments, conversation),
	BIND_MEMBER(struct reset_arguments, language, "language", BIND_STRING, .min = 1,
		    .description = "Only this one's. Default: all."),
	{0},
};

static int reset(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct reset_arguments *arguments = bound;
	const struct job_request who = {
		TOOL_CALLER(call),
		.conversation = arguments->conversation,
		.language = arguments->language,
	};
	struct job_engine *engine;
	size_t ended = 0;
	int result = server_engine(call->server, &engine, err);

	if (result == 0)
		result = job_reset(engine, &who, &ended, err);
	if (result < 0)
		return result;
	auto_free char *text =
		ended ? xasprintf("Ended: %zu. The next call with session true begins a fresh one; files are kept.",
				  ended)
		      : xstrdup("There was no session to end.");

	tool_answer(ret, text, json_object_new_object());
	json_add_int(ret->structured, "ended", (int64_t)ended);
	return 0;
}

static bool enabled(const struct config *config)
{
	return config->limits.sandboxes > 0;
}

const struct tool tool_reset_session = {
	.name = "reset_session",
	.title = "End a session",
	.enabled = enabled,
	.scope = STORE_SCOPE_RUN,
	.description = "Ends the sessions of run_code in a conversation, with their variables and processes. Files "
		       "persist.",
	.arguments = table,
	.arguments_size = sizeof(struct reset_arguments),
	.output_schema = "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"ended\"],\"properties\":{"
			 "\"ended\":{\"type\":\"integer\",\"description\":\"Number of sessions that were ended\"}}}",
	.destructive = true,
	.idempotent = true,
	.call = reset,
};
