/* tool_list_files.c - list_files: the files of a conversation, in pages. */
#include <string.h>

#include "lib/base/util.h"
#include "lib/store/record/store_resource.h"
#include "run_text.h"
#include "tool_files.h"

#define FILES_LISTED 1000 /* of one answer */
#define LINE_MAX_    (16 * 1024)
#define FRAME_MAX    800 /* bytes of our lines before and behind the list */

struct list_arguments {
	const char *conversation, *path, *after;
};
static const struct bind table[] = {
	TOOL_CONVERSATION_MEMBER(struct list_arguments, conversation),
	TOOL_PATH_MEMBER("path", struct list_arguments, path, 0, "Only this folder."),
	TOOL_PATH_MEMBER("after", struct list_arguments, after, 0, "Only names behind it."),
	{0},
};

struct listed {
	struct json_object *files;
	int64_t count, bytes;
	const char *next;
};
#define ROW(field, kind) .name = #field, .type = kind, .offset = offsetof(struct listed, field)
static const struct bind output_table[] = {
	{ROW(files, BIND_OBJECTS), .flags = BIND_JSON, .table = tool_files_table},
	{ROW(count, BIND_INT), .description = "Of all files there"},
	{ROW(bytes, BIND_INT)},
	{ROW(next, BIND_STRING), .sparse = JAIL_ANSWER, .description = "The argument after of the next page"},
	{0},
};

struct listing {
	const struct tool_call *call;
	const struct store_conversation *conversation;
	bool signs;         /* each address has an end and a signature of its own */
	const char *folder; /* "": all */
	size_t folder_length;
	struct json_object *files;
	struct buf text;
	size_t room, shown; /* room: of the text's lines */
	bool full;
	int64_t count, bytes;
	char *last; /* the name of the last one that is shown */
};

static int add_file(void *arg, const struct store_file *file)
{
	struct listing *listing = arg;
	const size_t length = listing->folder_length;
	auto_buf struct buf line = {0};

	if (length > 0 && (file->name_length <= length || file->name[length] != '/' ||
			   memcmp(file->name, listing->folder, length) != 0))
		return 0;
	listing->count++;
	listing->bytes += file->size;
	if (listing->full)
		return 0;
	buf_init(&line, LINE_MAX_);
	tool_files_describe(listing->call, listing->conversation, file, listing->signs, &line);
	buf_putc(&line, '\n');
	listing->full = listing->shown == FILES_LISTED ||
			(listing->shown > 0 && listing->text.length + line.length > listing->room);
	if (listing->full)
		return 0;
	buf_add(&listing->text, line.data, line.length);
	json_object_array_add(listing->files, tool_files_object(listing->call, listing->conversation, file));
	free(listing->last);
	listing->last = xstrndup(file->name, file->name_length);
	listing->shown++;
	return 0;
}

static void answer(const struct listing *listing, struct tool_result *ret)
{
	const bool more = listing->count > (int64_t)listing->shown;
	struct listed listed = {json_object_get(listing->files), listing->count, listing->bytes,
				more ? listing->last : NULL};

	*ret = (struct tool_result){.content = json_object_new_array()};
	const char *base = listing->call->server->config->public_base_url, *hash = listing->conversation->hash;
	auto_free char *addresses = *base && !listing->signs ? xasprintf("; address: %s/files/%s/NAME", base, hash)
							     : xstrdup("");
	auto_free char *head =
		xasprintf("%lld file%s, %lld bytes%s\n", (long long)listing->count, listing->count == 1 ? "" : "s",
			  (long long)listing->bytes, listing->count > 0 ? addresses : "");

	tool_add_text(ret->content, head, strlen(head));
	if (listing->text.length > 0)
		tool_add_text(ret->content, listing->text.data, listing->text.length);
	if (more) {
		auto_buf struct buf note = {0};

		buf_init(&note, RUN_NOTES_MAX);
		buf_printf(&note, RUN_MARK " and %lld more: after=",
			   (long long)listing->count - (long long)listing->shown);
		run_text_name(&note, listing->last, strlen(listing->last));
		tool_add_text(ret->content, note.data, note.length);
	}
	ret->structured = bind_print_view(output_table, &listed, JAIL_ANSWER);
	bind_clear(output_table, &listed);
}

static int list(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct list_arguments *arguments = bound;
	const char *after = arguments->after ? tool_files_path(arguments->after) : "";
	auto_free char *folder = tool_files_folder(arguments->path ? arguments->path : "");
	struct store_conversation conversation;
	const struct store_page page = {.limit = -1, .name = after, .name_length = strlen(after)};
	int result = tool_files_conversation(call, arguments->conversation, &conversation, err);

	if (result < 0)
		return result;
	struct listing listing = {.call = call,
				  .conversation = &conversation,
				  .signs = call->server->config->files.url_seconds > 0,
				  .folder = folder,
				  .folder_length = strlen(folder),
				  .files = json_object_new_array(),
				  .room = run_text_room(call->server, call->token) - FRAME_MAX};
	buf_init(&listing.text, SIZE_MAX);
	result = store_conversation_files(call->server->store, conversation.row, &page, add_file, &listing, err);
	if (result == 0 && *folder && listing.count == 0 && !*after)
		result = err_member(err, "path", "names no folder that has files; leave it out to list all files");
	if (result == 0)
		answer(&listing, ret);
	json_object_put(listing.files);
	buf_clear(&listing.text);
	free(listing.last);
	return result;
}

const struct tool tool_list_files = {
	.name = "list_files",
	.title = "List files",
	.scope = STORE_SCOPE_FILES,
	.description = "Lists the files in /data of a conversation.",
	.arguments = table,
	.arguments_size = sizeof(struct list_arguments),
	.output = output_table,
	.read_only = true,
	.idempotent = true,
	.call = list,
};
