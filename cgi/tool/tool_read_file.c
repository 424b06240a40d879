/*
 * tool_read_file.c - read_file: lines of a text, or an image as the model sees it; of everything else, what it is.
 *
 * A text is read up to the last line that is wanted and no further, so of a long one the number of its lines is not
 * known. Lines are counted in pieces: only what is shown is in memory.
 */
#include <string.h>
#include <unistd.h>

#include "cgi/http/files.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob.h"
#include "run_pictures.h"
#include "run_result.h"
#include "run_text.h"
#include "tool_files.h"

#define NOTE_MAX  300 /* bytes of our line */
#define CHUNK     (64 * 1024)
#define LINE_LAST INT64_C(1000000000)

struct read_arguments {
	const char *conversation, *path;
	int64_t start, end;
};
static const struct read_arguments defaults = {.start = 1, .end = LINE_LAST};
static const struct bind table[] = {
	TOOL_CONVERSATION_MEMBER(struct read_arguments, conversation),
	TOOL_PATH_MEMBER("path", struct read_arguments, path, BIND_REQUIRED, "Path below /data."),
	BIND_MEMBER(struct read_arguments, start, "start_line", BIND_INT, .min = 1, .max = LINE_LAST,
		    .description = "Default: 1."),
	BIND_MEMBER(struct read_arguments, end, "end_line", BIND_INT, .min = 1, .max = LINE_LAST,
		    .description = "Default: the last."),
	{0},
};

struct details {
	struct json_object *file;
	int64_t start, end;
	bool whole;
};
static const struct bind output_table[] = {
	BIND_MEMBER(struct details, file, "file", BIND_OBJECT, .flags = BIND_JSON, .table = tool_files_table),
	BIND_MEMBER(struct details, start, "start_line", BIND_INT, .sparse = JAIL_ANSWER,
		    .description = "Of what is shown"),
	BIND_MEMBER(struct details, end, "end_line", BIND_INT, .sparse = JAIL_ANSWER),
	BIND_MEMBER(struct details, whole, "whole", BIND_BOOL, .description = "Nothing of it is left out"),
	{0},
};

/* What is taken out of a text. */
struct lines {
	int64_t start, end; /* wanted */
	int64_t line;       /* the number of the line that the next byte is in, from 1 on */
	bool begun;         /* … which has bytes already */
	bool full, more;    /* full: one line takes all the room; more: something follows what was taken */
	bool binary;
	struct buf text;
	size_t room; /* bytes of text in one answer */
};

/* A line that does not fit whole begins the next answer, unless it is the first of this one. */
static bool add_part(struct lines *lines, const char *data, size_t length)
{
	const size_t room = lines->room - lines->text.length;

	if (length <= room) {
		buf_add(&lines->text, data, length);
		return true;
	}
	const char *newline = memrchr(lines->text.data, '\n', lines->text.length);

	lines->more = true;
	if (newline) {
		lines->text.length = (size_t)(newline - lines->text.data) + 1;
		lines->begun = false;
	} else {
		buf_add(&lines->text, data, room);
		lines->full = true;
	}
	return false;
}

/* Takes the wanted lines of a piece; false: nothing more is needed. */
static bool take(struct lines *lines, const char *data, size_t length)
{
	for (size_t at = 0; at < length;) {
		const char *newline = memchr(data + at, '\n', length - at);
		size_t part = newline ? (size_t)(newline - data) + 1 - at : length - at;

		if (lines->line > lines->end) {
			lines->more = true;
			return false;
		}
		if (lines->line >= lines->start && !add_part(lines, data + at, part))
			return false;
		lines->begun = !newline;
		lines->line += newline != NULL;
		at += part;
	}
	return true;
}

/* The last line of which something is shown. */
static int64_t last_line(const struct lines *lines)
{
	return lines->line - (lines->begun || lines->full ? 0 : 1);
}

/* Our line, which stands first: what is left out; of a file that could pass for a line of ours, that it is all. */
static void add_note(const struct lines *lines, struct json_object *content)
{
	auto_free char *note = NULL;

	if (lines->more && lines->full)
		note = xasprintf(RUN_MARK " line %lld is longer than %zu bytes and cut; a program can read all of it\n",
				 (long long)lines->line, lines->room);
	else if (lines->more)
		note = xasprintf(RUN_MARK " the file goes on; start_line=%lld reads on\n", (long long)lines->line);
	else if (lines->text.length == 0)
		note = xstrdup(RUN_MARK " the file is empty\n");
	else if (run_text_has_mark(lines->text.data, lines->text.length))
		note = xstrdup(RUN_MARK " the file ends below\n");
	if (note)
		tool_add_text(content, note, strlen(note));
}

static int add_lines(const struct read_arguments *arguments, int fd, struct lines *lines, struct json_object *content,
		     struct err *err)
{
	auto_free char *chunk = xmalloc(CHUNK);
	ssize_t got = 0;

	lines->line = 1;
	for (bool first = true; (got = read(fd, chunk, CHUNK)) > 0; first = false) {
		lines->binary = first && memchr(chunk, '\0', (size_t)got);
		if (lines->binary || !take(lines, chunk, (size_t)got))
			break;
	}
	if (got < 0)
		return err_errno(err, "reading the file");
	if (lines->binary)
		return 0;
	if (lines->text.length == 0 && arguments->start > 1)
		return err_member(err, "start_line", "is beyond the end: the file has %lld lines",
				  (long long)last_line(lines));
	if (lines->full)
		lines->text.length = utf8_cut(lines->text.data, lines->text.length, lines->room);
	add_note(lines, content);
	if (lines->text.length > 0)
		tool_add_text(content, lines->text.data, lines->text.length);
	return 0;
}

static int show(struct tool_call *call, const struct read_arguments *arguments,
		const struct store_conversation *conversation, const struct store_file *file, struct tool_result *ret,
		struct err *err)
{
	struct lines lines = {.start = arguments->start, .end = arguments->end};
	auto_json struct json_object *content = json_object_new_array();
	auto_buf struct buf text = {0};
	auto_close int fd = -1;
	bool shown = false;
	const bool image = run_pictures_has(file) && file->size <= JOB_PICTURE_FILE;
	int result = store_blob_open(call->server->store, file->blob, &fd, NULL, err);

	lines.room = run_text_room(call->server, call->token) - NOTE_MAX - 2 * BIND_IGNORED_MAX;
	buf_init(&lines.text, lines.room + 1);
	buf_init(&text, RUN_NOTES_MAX);
	if (result == 0 && !image)
		result = add_lines(arguments, fd, &lines, content, err);
	if (result == 0 && (image || lines.binary)) {
		auto_json struct json_object *pictures = json_object_new_array();

		tool_files_describe(call, conversation, file, true, &text);
		run_text_end_line(&text);
		shown = image && run_pictures_add(call, &file, 1, pictures, &text) == 1;
		tool_add_text(content, text.data, text.length);
		if (shown)
			json_object_array_add(content, json_object_get(json_object_array_get_idx(pictures, 0)));
	}
	struct details details = {.file = tool_files_object(call, conversation, file),
				  .whole = shown || (!lines.binary && !lines.more && arguments->start == 1)};

	if (!image && !lines.binary) {
		details.start = arguments->start;
		details.end = last_line(&lines);
	}
	if (result == 0)
		*ret = (struct tool_result){.content = steal(&content),
					    .structured = bind_print_view(output_table, &details, JAIL_ANSWER)};
	bind_clear(output_table, &details);
	buf_clear(&lines.text);
	return result;
}

static int read_file(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct read_arguments *arguments = bound;
	const char *path = tool_files_path(arguments->path);
	struct store_conversation conversation;
	struct store_file file;
	int result = tool_files_conversation(call, arguments->conversation, &conversation, err);

	if (result < 0)
		return result;
	if (arguments->end < arguments->start)
		return err_member(err, "end_line", "is before start_line");
	result = store_file_find(call->server->store, conversation.row, path, strlen(path), &file, err);
	if (result == -ERR_NOT_FOUND)
		return err_member(err, "path", "there is no such file: list_files names those that there are");
	return result < 0 ? result : show(call, arguments, &conversation, &file, ret, err);
}

const struct tool tool_read_file = {
	.name = "read_file",
	.title = "Read a file",
	.scope = STORE_SCOPE_FILES,
	.description = "Reads a file of a conversation: lines of a text, or an image.",
	.arguments = table,
	.arguments_size = sizeof(struct read_arguments),
	.defaults = &defaults,
	.output = output_table,
	.read_only = true,
	.idempotent = true,
	.call = read_file,
};
