/* tool_diff.c - diff: what a call changed of its conversation's files. */
#include <string.h>

#include "lib/base/util.h"
#include "lib/job/job_diff.h"
#include "run_text.h"
#include "tool_files.h"

#define TEXT_MAX (64 * 1024)

struct diff_arguments {
	const char *conversation, *execution;
};
static const struct bind table[] = {
	TOOL_CONVERSATION_MEMBER(struct diff_arguments, conversation),
	TOOL_EXECUTION_MEMBER(struct diff_arguments, execution),
	{0},
};
struct shown {
	const char *execution, *before;
};
static const struct bind output_table[] = {
	BIND_MEMBER(struct shown, execution, "executionId", BIND_STRING),
	{.name = "before",
	 .type = BIND_STRING,
	 .sparse = JAIL_ANSWER,
	 .offset = offsetof(struct shown, before),
	 .description = "The call before it"},
	{0},
};

static int take_id(void *arg, const struct store_execution *execution)
{
	memcpy(arg, execution->id, ID_SIZE);
	return 0;
}

static int diff(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct diff_arguments *arguments = bound;
	struct store_execution execution = {0};
	auto_buf struct buf text = {0};
	char before[ID_SIZE] = "", time[CLOCK_TEXT_SIZE];
	int result = tool_files_execution(call, arguments->conversation, arguments->execution, &execution, err);

	buf_init(&text, TEXT_MAX);
	if (result == 0)
		result = job_diff(call->server->store, &execution, &text, err);
	const struct store_filter filter = {.owner = execution.owner,
					    .conversation = execution.conversation,
					    .until_us = execution.created_us,
					    .newest_first = true,
					    .limit = 1};

	if (result == 0) /* the call before it in the conversation; "": there is none */
		result = store_execution_list(call->server->store, &filter, take_id, before, err);
	if (result == 0) {
		const struct shown shown = {execution.id, *before ? before : NULL};

		clock_text(execution.created_us, time);
		auto_free char *head =
			xasprintf(RUN_MARK " %s of %s, %s: %s; %s%s%s\n", execution.id, time, execution.language,
				  execution.verdict, *before ? "the call before it: " : "it is the first call", before,
				  text.length == 0 ? "; it changed no files" : "");

		*ret = (struct tool_result){.content = json_object_new_array(),
					    .structured = bind_print_view(output_table, &shown, JAIL_ANSWER)};
		tool_add_text(ret->content, head, strlen(head));
		if (text.length > 0)
			tool_add_text(ret->content, text.data, text.length);
	}
	store_execution_clear(&execution);
	return result;
}

const struct tool tool_diff = {
	.name = "diff",
	.title = "What a call changed",
	.scope = STORE_SCOPE_FILES,
	.description = "Shows what a call of run_code changed of the files, as a unified diff.",
	.arguments = table,
	.arguments_size = sizeof(struct diff_arguments),
	.output = output_table,
	.read_only = true,
	.idempotent = true,
	.call = diff,
};
