/* tool_write_file.c - write_file: puts one file into a conversation, folders and all. */
#include <string.h>

#include "lib/base/util.h"
#include "run_text.h"
#include "tool_files.h"

struct write_arguments {
	const char *conversation, *path, *key;
	struct bind_text content, content_base64;
};
static const struct bind table[] = {
	TOOL_CONVERSATION_MEMBER(struct write_arguments, conversation),
	TOOL_PATH_MEMBER("path", struct write_arguments, path, BIND_REQUIRED, "Path below /data."),
	BIND_MEMBER(struct write_arguments, content, "content", BIND_TEXT, .description = "Text."),
	BIND_MEMBER(struct write_arguments, content_base64, "content_base64", BIND_TEXT,
		    .description = "Bytes in base64, instead of content."),
	TOOL_KEY_MEMBER(struct write_arguments, key),
	{0},
};
struct written {
	struct json_object *file;
};
static const struct bind output_table[] = {
	BIND_MEMBER(struct written, file, "file", BIND_OBJECT, .flags = BIND_JSON, .table = tool_files_table),
	{0},
};

static int take_content(const struct tool_call *call, const struct write_arguments *arguments, struct buf *decoded,
			struct job_file *ret, struct err *err)
{
	ret->name = tool_files_path(arguments->path);
	if (!arguments->content.data == !arguments->content_base64.data)
		return err_member(err, "content", "must be there, or content_base64, and not both");
	if (arguments->content.data) {
		ret->data = arguments->content.data;
		ret->length = arguments->content.length;
		return 0;
	}
	if (tool_base64(call, &arguments->content_base64, "content_base64", decoded, err) < 0)
		return -ERR_INVALID;
	ret->data = decoded->data;
	ret->length = decoded->length;
	return 0;
}

static int write_file(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct write_arguments *arguments = bound;
	char key_hash[SHA256_HEX_SIZE], hash[SHA256_HEX_SIZE];
	const struct job_request who = {TOOL_CALLER(call),
					.conversation = arguments->conversation,
					.key = arguments->key,
					.key_hash = key_hash};
	struct store_conversation conversation = {0};
	auto_buf struct buf decoded = {0}, text = {0};
	struct job_engine *engine;
	struct job_file file;
	struct store_file stored;

	tool_hash(call, bound, key_hash);
	buf_init(&decoded, arguments->content_base64.length);
	int result = take_content(call, arguments, &decoded, &file, err);

	if (result == 0)
		result = job_file_path_check(file.name, "path", err);
	if (result == 0)
		result = server_engine(call->server, &engine, err);
	if (result == 0)
		result = job_upload(engine, &who, &file, &stored, hash, err);
	if (result < 0)
		return result;
	stored.name = file.name;
	stored.name_length = strlen(file.name);
	memcpy(conversation.hash, hash, sizeof(hash));
	snprintf(conversation.name, sizeof(conversation.name), "%s", arguments->conversation);
	struct written written = {tool_files_object(call, &conversation, &stored)};

	buf_init(&text, RUN_NOTES_MAX);
	buf_puts(&text, "wrote ");
	tool_files_describe(call, &conversation, &stored, true, &text);
	tool_answer(ret, text.data, bind_print(output_table, &written));
	bind_clear(output_table, &written);
	return 0;
}

const struct tool tool_write_file = {
	.name = "write_file",
	.title = "Write a file",
	.scope = STORE_SCOPE_FILES,
	.description = "Puts a file into /data of a conversation, in place of one of that name.",
	.arguments = table,
	.arguments_size = sizeof(struct write_arguments),
	.output = output_table,
	.destructive = true, /* replaces a file of that name */
	.idempotent = true,
	.call = write_file,
};
