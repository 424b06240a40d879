/* tool_files.c - see tool_files.h. */
#include "tool_files.h"

#include <string.h>

#include "cgi/http/files.h"
#include "lib/base/util.h"
#include "lib/job/job_edit.h"
#include "run_text.h"

#define URL_MAX (16 * 1024)

/* What models call the conversation's folder. */
#define FOLDER(name) "/" name,
static const char *const folders[] = {"/data", JAIL_DATA_NAMES(FOLDER)};

const char *tool_files_path(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		const size_t length = strlen(folders[i]);

		if (!str_starts(path, folders[i]) || path[length] != '/')
			continue;
		path += length + 1;
		break;
	}
	while (str_starts(path, "./"))
		path += strlen("./");
	return path;
}

char *tool_files_folder(const char *path)
{
	auto_free char *folder = xstrdup(tool_files_path(path));

	for (size_t length = strlen(folder); length > 0 && folder[length - 1] == '/'; length--)
		folder[length - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (streq(folder, folders[i]))
			*folder = '\0';
	if (streq(folder, "."))
		*folder = '\0';
	return steal(&folder);
}

int tool_files_conversation(const struct tool_call *call, const char *name, struct store_conversation *ret,
			    struct err *err)
{
	const char *workspace = call->server->config->workspace_folder.conversation;
	const struct job_request who = {TOOL_CALLER(call), .conversation = name};
	struct job_engine *engine;
	int result = 0;

	if (workspace && streq(name, workspace))
		result = server_engine(call->server, &engine, err);
	if (result == 0 && workspace && streq(name, workspace))
		result = job_edit_look(engine, &who, err);
	if (result == 0)
		result = store_conversation_find(call->server->store, call->token->owner, name, ret, err);
	return result == -ERR_NOT_FOUND ? err_member(err, "conversationId", "has no files and no calls yet") : result;
}

int tool_files_execution(const struct tool_call *call, const char *conversation, const char *id,
			 struct store_execution *ret, struct err *err)
{
	struct store *store = call->server->store;
	struct store_execution found = {0};
	char last[ID_SIZE];

	if (!id) {
		int result = job_edit_last(store, call->token->owner, conversation, last, err);

		if (result < 0)
			return result == -ERR_NOT_FOUND ? err_member(err, "conversationId", "has no calls yet")
							: result;
		id = last;
	}
	if (!id_valid(id) || store_execution_find(store, id, &found, NULL) < 0 ||
	    !streq(found.owner, call->token->owner) || !streq(found.conversation, conversation)) {
		store_execution_clear(&found);
		return err_member(err, "executionId", "is not the id of a call of this conversation");
	}
	*ret = found;
	return 0;
}

struct shown_file {
	struct json_object *name;
	const char *url, *media_type, *modified;
	int64_t size;
};
#define ROW(field, kind) .name = #field, .type = kind, .offset = offsetof(struct shown_file, field)
const struct bind tool_files_table[] = {
	{ROW(name, BIND_STRING), .flags = BIND_JSON},
	{ROW(url, BIND_STRING)},
	{ROW(size, BIND_INT)},
	{ROW(media_type, BIND_STRING)},
	{ROW(modified, BIND_STRING)},
	{0},
};

static void address(const struct tool_call *call, const struct store_conversation *conversation,
		    const struct store_file *file, struct buf *url)
{
	files_place_download(call->server, conversation->name, conversation->hash, file, url);
}

struct json_object *tool_files_object(const struct tool_call *call, const struct store_conversation *conversation,
				      const struct store_file *file)
{
	auto_json struct json_object *name = json_new_safe(file->name, file->name_length);
	auto_buf struct buf url = {0};
	char modified[CLOCK_TEXT_SIZE];

	buf_init(&url, URL_MAX);
	address(call, conversation, file, &url);
	clock_text(file->mtime_us, modified);
	const struct shown_file shown = {name, url.data, file->media_type, modified, file->size};
	return bind_print(tool_files_table, &shown);
}

void tool_files_describe(const struct tool_call *call, const struct store_conversation *conversation,
			 const struct store_file *file, bool with_address, struct buf *text)
{
	run_text_name(text, file->name, file->name_length);
	buf_printf(text, " (%s, %lld bytes)", file->media_type, (long long)file->size);
	if (with_address) {
		buf_putc(text, ' ');
		address(call, conversation, file, text);
	}
}
