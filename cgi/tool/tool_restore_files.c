/* tool_restore_files.c - restore_files: a conversation's files as they were before or after a call. */
#include <string.h>

#include "lib/base/util.h"
#include "lib/job/job_edit.h"
#include "tool_files.h"

struct restore_arguments {
	const char *conversation, *execution, *state, *key;
};
static const char *const states[] = {"before", "after", NULL};
static const struct bind table[] = {
	TOOL_CONVERSATION_MEMBER(struct restore_arguments, conversation),
	TOOL_EXECUTION_MEMBER(struct restore_arguments, execution),
	BIND_MEMBER(struct restore_arguments, state, "state", BIND_STRING, .choices = states,
		    .description = "Default: before."),
	TOOL_KEY_MEMBER(struct restore_arguments, key),
	{0},
};
struct restored {
	const char *execution, *state;
	int64_t put, removed;
	bool repeated;
};
#define ROW(field, kind) .name = #field, .type = kind, .offset = offsetof(struct restored, field)
static const struct bind output_table[] = {
	BIND_MEMBER(struct restored, execution, "executionId", BIND_STRING),
	{ROW(state, BIND_STRING)},
	{ROW(put, BIND_INT), .description = "Files"},
	{ROW(removed, BIND_INT), .description = "Files"},
	{ROW(repeated, BIND_BOOL), .description = "It was done by an earlier call with this key"},
	{0},
};

static int restore(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct restore_arguments *arguments = bound;
	char key_hash[SHA256_HEX_SIZE];
	const struct job_request who = {TOOL_CALLER(call),
					.conversation = arguments->conversation,
					.key = arguments->key,
					.key_hash = key_hash};
	struct store_execution execution = {0};
	struct job_engine *engine;
	struct job_edited done;
	const char *word = arguments->state ? arguments->state : "before";

	tool_hash(call, bound, key_hash);
	int result = tool_files_execution(call, arguments->conversation, arguments->execution, &execution, err);
	const struct job_state state = {execution.id, streq(word, "after")};

	if (result == 0)
		result = server_engine(call->server, &engine, err);
	if (result == 0)
		result = job_edit_restore(engine, &who, &state, &done, err);
	char id[ID_SIZE];

	memcpy(id, execution.id, sizeof(id));
	store_execution_clear(&execution);
	if (result < 0)
		return result;
	const struct restored restored = {id, word, done.put, done.removed, done.again};
	auto_free char *text =
		done.again ? xstrdup("an earlier call with this key did it")
			   : xasprintf("the files are as %s call %s: %lld put back, %lld removed", word, id,
				       (long long)done.put, (long long)done.removed);

	tool_answer(ret, text, bind_print(output_table, &restored));
	return 0;
}

const struct tool tool_restore_files = {
	.name = "restore_files",
	.title = "Undo: restore files",
	.scope = STORE_SCOPE_FILES,
	.description = "Undo: makes the files what they were before or after a call of run_code.",
	.arguments = table,
	.arguments_size = sizeof(struct restore_arguments),
	.output = output_table,
	.destructive = true,
	.call = restore,
};
