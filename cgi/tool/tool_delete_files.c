/* tool_delete_files.c - delete_files: removes files and folders of a conversation, all that are named or none. */
#include <string.h>

#include "lib/base/util.h"
#include "lib/job/job_edit.h"
#include "tool_files.h"

struct delete_arguments {
	const char *conversation, *key;
	struct bind_strings paths;
};
static const struct bind table[] = {
	TOOL_CONVERSATION_MEMBER(struct delete_arguments, conversation),
	BIND_MEMBER(struct delete_arguments, paths, "paths", BIND_STRINGS, .flags = BIND_REQUIRED, .min = 1,
		    .max = JOB_REMOVE_MAX, .description = "Files, or folders with all that is in them."),
	TOOL_KEY_MEMBER(struct delete_arguments, key),
	{0},
};
static const struct bind output_table[] = {
	BIND_MEMBER(struct job_edited, removed, "removed", BIND_INT, .description = "Files"),
	BIND_MEMBER(struct job_edited, again, "repeated", BIND_BOOL,
		    .description = "It was done by an earlier call with this key"),
	{0},
};

/* "logs/" is the folder "logs". */
static struct bind_text name_of(const char *path)
{
	struct bind_text name = {.data = tool_files_path(path)};

	name.length = strlen(name.data);
	while (name.length > 1 && name.data[name.length - 1] == '/')
		name.length--;
	return name;
}

static int delete_files(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct delete_arguments *arguments = bound;
	auto_free struct bind_text *items = xcalloc(arguments->paths.count + 1, sizeof(*items));
	const struct job_names names = {.items = items, .count = arguments->paths.count, .member = "paths"};
	char key_hash[SHA256_HEX_SIZE];
	const struct job_request who = {TOOL_CALLER(call),
					.conversation = arguments->conversation,
					.key = arguments->key,
					.key_hash = key_hash};
	struct job_engine *engine;
	struct job_edited done;

	for (size_t i = 0; i < names.count; i++)
		items[i] = name_of(arguments->paths.items[i]);
	tool_hash(call, bound, key_hash);
	int result = server_engine(call->server, &engine, err);

	if (result == 0)
		result = job_edit_remove(engine, &who, &names, &done, err);
	if (result < 0)
		return result;
	auto_free char *text = done.again ? xstrdup("an earlier call with this key removed them")
					  : xasprintf("removed %lld file%s", (long long)done.removed,
						      done.removed == 1 ? "" : "s");

	tool_answer(ret, text, bind_print(output_table, &done));
	return 0;
}

const struct tool tool_delete_files = {
	.name = "delete_files",
	.title = "Delete files",
	.scope = STORE_SCOPE_FILES,
	.description = "Removes files from /data of a conversation, all of these or none.",
	.arguments = table,
	.arguments_size = sizeof(struct delete_arguments),
	.output = output_table,
	.destructive = true,
	.idempotent = true,
	.call = delete_files,
};
