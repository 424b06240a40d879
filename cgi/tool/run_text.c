/*
 * run_text.c - see run_text.h.
 *
 * Our own lines are written first, one by one; a line that no longer fits counts as "more". What they leave is the
 * streams' (run_streams.h).
 */
#include "run_text.h"

#include "cgi/http/files.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "run_missing.h"
#include "run_shape.h"

#define LIMIT_KB   1000 /* bytes: no kibibytes, clients count in thousands */
#define LINE_MAX_  (16 * 1024)
#define NAME_SHOWN 200 /* bytes of a file's name */
#define MORE_MAX   96  /* bytes of the lines about files that are not named */
/* What may be around the streams: verdict, sentence and packages, four lines about what is left out, titles. */
#define FRAME_MAX 1600

/* -------- how much ------------------------------------------------------------------------------------ */

size_t run_text_room(const struct server *server, const struct store_token *token)
{
	const int64_t own = token ? token->text_kb : 0;

	return (size_t)(own ? own : server->config->limits.answer_kb) * LIMIT_KB;
}

/* Of eight bytes of output one line may get a ninth (add_output). */
size_t run_text_streams_room(size_t room, size_t ours)
{
	return (room - MIN(ours + FRAME_MAX, room)) / 9 * 8;
}

/* -------- the streams --------------------------------------------------------------------------------- */

void run_text_end_line(struct buf *text)
{
	if (text->length > 0 && text->data[text->length - 1] != '\n')
		buf_putc(text, '\n');
}

/* What our own lines of a text begin with that has a program's output in it, too. */
static const char *const marks[] = {"[cut here:", "[stderr]", "[network]",      "[verdict ",
				    "[session]",  "[files]",  "--- stdout ---", "--- stderr ---"};

static bool begins_with_mark(const char *data, size_t length, size_t n_marks)
{
	for (size_t i = 0; i < n_marks; i++)
		if (length >= strlen(marks[i]) && memcmp(data, marks[i], strlen(marks[i])) == 0)
			return true;
	return false;
}

/* A line of the program's that begins like one of ours gets a backslash. */
static void add_output(struct buf *text, const char *data, size_t length, size_t n_marks)
{
	for (const char *end = data + length; data < end;) {
		size_t line = 0;

		while (data + line < end && data[line] != '\n' && data[line] != '\r')
			line++;
		line += data + line < end; /* its end */
		if (begins_with_mark(data, line, n_marks))
			buf_putc(text, '\\');
		buf_add(text, data, line);
		data += line;
	}
}

void run_text_stream(struct buf *text, const struct run_shown *shown, enum run_text_place place)
{
	const size_t n_marks = place == RUN_TEXT_ALONE ? 1 : ARRAY_SIZE(marks);

	add_output(text, shown->head.data, shown->head.length, n_marks);
	if (shown->hidden == 0)
		return;
	run_text_end_line(text);
	buf_printf(text, "[cut here: %lld bytes are left out]\n", (long long)shown->hidden);
	add_output(text, shown->tail.data, shown->tail.length, n_marks);
}

static void add_stream(const struct run_shown *shown, const char *name, struct json_object *content)
{
	auto_free char *gap = xasprintf("[%lld bytes of %s are left out here]\n", (long long)shown->hidden, name);

	if (shown->head.length > 0)
		tool_add_text(content, shown->head.data, shown->head.length);
	if (shown->hidden > 0)
		tool_add_text(content, gap, strlen(gap));
	if (shown->tail.length > 0)
		tool_add_text(content, shown->tail.data, shown->tail.length);
}

/* -------- our own lines ------------------------------------------------------------------------------- */

void run_text_name(struct buf *text, const char *name, size_t length)
{
	const size_t shown = utf8_cut(name, length, NAME_SHOWN);
	auto_buf struct buf printable = {0};

	buf_init(&printable, LINE_MAX_);
	utf8_printable(&printable, name, shown);
	if (shown == length && printable.length == length && !strpbrk(printable.data, " \"[]()<>`'\\")) {
		buf_add(text, name, length);
		return;
	}
	buf_putc(text, '"');
	for (size_t i = 0; i < printable.length; i++) {
		if (printable.data[i] == '[') /* nor RUN_MARK */
			buf_puts(text, "\\x5b");
		else
			buf_printf(text, "%s%c", printable.data[i] == '"' ? "\\" : "", printable.data[i]);
	}
	buf_puts(text, shown < length ? "…\"" : "\"");
}

static void describe_change(struct server *server, const struct job_result *result, const struct job_change *change,
			    struct buf *line)
{
	const struct store_file *file = &change->file;
	const size_t folder = jail_folder(file->name);

	if (folder > 0) {
		buf_puts(line, "new ");
		run_text_name(line, file->name, folder + 1);
		buf_puts(line, " (empty folder)\n");
		return;
	}
	buf_printf(line, "%s ",
		   change->kind == JAIL_FILE_CREATED   ? "new"
		   : change->kind == JAIL_FILE_CHANGED ? "changed"
		   : change->kind == JAIL_FILE_DELETED ? "deleted"
						       : "not kept:");
	run_text_name(line, file->name, file->name_length);
	if (change->kind == JAIL_FILE_NOT_KEPT) {
		buf_printf(line, " (%s)", change->reason);
	} else if (change->kind != JAIL_FILE_DELETED) {
		buf_printf(line, " (%s, %lld bytes) ", file->media_type, (long long)file->size);
		files_place_download(server, result->conversation, result->conversation_hash, file, line);
	}
	buf_putc(line, '\n');
}

/* New and changed ones first: these are what a model or its user wants to see. */
void run_text_files(struct server *server, const struct job_result *result, size_t room, struct buf *text)
{
	const size_t before = text->length;
	size_t shown = 0, more = 0, packages = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < result->n_changes; i++) {
			const struct job_change *change = &result->changes[i];
			auto_buf struct buf line = {0};

			if ((change->kind == JAIL_FILE_CREATED || change->kind == JAIL_FILE_CHANGED) != (pass == 0))
				continue;
			if (jail_folder(change->file.name) && change->kind == JAIL_FILE_DELETED)
				continue; /* there is a file in it now; or it went with one that is named */
			if (str_starts(change->file.name, JAIL_PACKAGES "/")) {
				packages++;
				continue;
			}
			if (shown == RUN_FILES_SHOWN) {
				more++;
				continue;
			}
			buf_init(&line, LINE_MAX_);
			describe_change(server, result, change, &line);
			if (line.overflow || text->length - before + line.length + MORE_MAX > room) {
				more++;
				continue;
			}
			buf_add(text, line.data, line.length);
			shown++;
		}
	}
	if (packages > 0)
		buf_printf(text, "installed packages: %zu files in " JAIL_PACKAGES "\n", packages);
	if (more > 0)
		buf_printf(text, "and %zu more files%s\n", more, tool_find(server, "list_files") ? ": list_files" : "");
}

void run_text_network(struct buf *text, const struct jail_result *jail)
{
	struct json_object *denied = json_get(jail->network, "denied", json_type_array);

	for (size_t i = 0; denied && i < json_object_array_length(denied); i++) {
		struct json_object *one = json_object_array_get_idx(denied, i);
		const char *host = json_get_string(one, "host"), *reason = json_get_string(one, "reason");

		run_text_end_line(text);
		buf_puts(text, "[network] ");
		utf8_printable(text, host ? host : "", host ? strlen(host) : 0);
		buf_printf(text, ":%d: %s\n", json_object_get_int(json_get(one, "port", json_type_int)),
			   reason ? reason : "");
	}
	int64_t unrouted = json_object_get_int64(json_get(jail->network, "unrouted", json_type_int));
	if (unrouted > 0) {
		run_text_end_line(text);
		buf_printf(text, "[network] " JAIL_UNROUTED_TEXT "\n", (long long)unrouted);
	}
}

/* What the program wrote to a place that is gone now. */
static void add_left(const struct job_result *result, const char *mark, struct buf *text)
{
	const char *names = result->jail.left_in_tmp ? json_object_get_string(result->jail.left_in_tmp) : "";

	if (!*names)
		return;
	run_text_end_line(text);
	buf_printf(text, "%sleft in /tmp and gone with it: ", mark);
	utf8_printable(text, names, strlen(names));
	buf_puts(text, "; write what is to stay to /data\n");
}

void run_text_block(struct buf *text, const struct job_result *result, const struct run_streams *streams)
{
	run_text_stream(text, &streams->out, RUN_TEXT_AMONG);
	if (streams->error.size > 0) {
		run_text_end_line(text);
		buf_puts(text, "[stderr]\n");
	}
	run_text_stream(text, &streams->error, RUN_TEXT_AMONG);
	run_text_network(text, &result->jail);
	if (result->jail.verdict != JAIL_OK) {
		run_text_end_line(text);
		buf_printf(text, "[verdict %s] %s\n", jail_verdict_text(result->jail.verdict), result->jail.message);
	}
	if (*result->note) {
		run_text_end_line(text);
		buf_printf(text, "[session] %s\n", result->note);
	}
	add_left(result, "[files] ", text);
	if (result->jail.warnings) {
		run_text_end_line(text);
		buf_printf(text, "[compiler]\n%s", json_object_get_string(result->jail.warnings));
		run_text_end_line(text);
	}
}

/* Where the rest of a stream is. */
static void add_cut(const struct job_result *result, const struct run_shown *shown, const char *name, bool lost,
		    struct buf *text)
{
	if (shown->hidden > 0)
		buf_printf(
			text,
			"%s: %lld of %lld bytes are left out; read_output executionId=%s stream=%s offset=%lld reads "
			"on\n",
			name, (long long)shown->hidden, (long long)shown->size, result->id, name,
			(long long)shown->from);
	if (lost)
		buf_printf(text, "%s: what was printed beyond the limit was not recorded\n", name);
}

/* Each tool that was called, once. */
static void add_tools(const struct store_tools *tools, struct buf *text)
{
	for (size_t i = 0; i < tools->n_calls; i++) {
		const struct store_tool_call *call = &tools->calls[i];
		size_t total = 0, failed = 0, before = 0;

		for (size_t k = 0; k < tools->n_calls; k++) {
			const struct store_tool_call *other = &tools->calls[k];
			bool same = streq(other->server, call->server) && streq(other->tool, call->tool);

			total += same;
			failed += same && !streq(other->state, "done");
			before += same && k < i;
		}
		if (before > 0)
			continue;
		buf_puts(text, i == 0 ? "tools: " : ", ");
		utf8_printable(text, call->server, strnlen(call->server, NAME_SHOWN));
		buf_putc(text, '.');
		utf8_printable(text, call->tool, strnlen(call->tool, NAME_SHOWN));
		buf_printf(text, " ×%zu", total);
		if (failed > 0)
			buf_printf(text, " (%zu failed)", failed);
	}
	buf_puts(text, tools->n_calls > 0 ? "\n" : "");
}

/* The system calls that the jail refused; the sentence of a program that failed has them already (verdict_mention). */
static void add_denied(const struct jail_result *jail, struct buf *text)
{
	const size_t count = jail->denied ? json_object_array_length(jail->denied) : 0;

	if (jail->verdict == JAIL_RE || jail->verdict == JAIL_SG)
		return;
	for (size_t i = 0; i < count; i++)
		buf_printf(text, "%s%s%s", i ? ", " : "the jail refused: ",
			   json_get_string(json_object_array_get_idx(jail->denied, i), "name"),
			   i + 1 == count ? "\n" : "");
}

/* How it ended, if not well. */
static void add_verdict(struct server *server, const struct job_result *result, const struct run_shown *error,
			struct buf *text)
{
	if (result->jail.verdict != JAIL_OK)
		buf_printf(text, "%s: %s\n", jail_verdict_text(result->jail.verdict), result->jail.message);
	if (result->jail.verdict != JAIL_OK)
		run_missing_add(server, result, error, text);
}

/* What came of it otherwise. Files have the room that the others leave. */
static void add_notes(struct server *server, const struct job_result *result, const char *pictures, size_t room,
		      struct buf *text)
{
	auto_buf struct buf network = {0}, tools = {0};

	if (*result->note)
		buf_printf(text, "session: %s\n", result->note);
	for (const char *line = result->workspace; line && *line; line = strchrnul(line, '\n') + 1)
		buf_printf(text, "workspace: %.*s\n", (int)strcspn(line, "\n"), line);
	add_left(result, "", text);
	add_denied(&result->jail, text);
	buf_init(&network, room / 4);
	run_text_network(&network, &result->jail);
	buf_add(text, network.data, network.length);
	buf_init(&tools, room / 4);
	add_tools(&result->tools, &tools);
	run_shape_add(&result->tools, &tools);
	buf_add(text, tools.data, tools.length);
	run_text_end_line(text);
	const size_t taken = text->length + strlen(pictures);
	run_text_files(server, result, room - MIN(room, taken), text);
	buf_puts(text, pictures);
}

bool run_text_has_mark(const char *data, size_t length)
{
	return length > 0 && memmem(data, length, RUN_MARK, strlen(RUN_MARK)); /* data of nothing may be NULL */
}

/* Our own lines: the verdict first, then what the notes have, and where the rest of the streams is. */
static void add_own(const struct tool_call *call, const struct job_result *result, const struct run_streams *streams,
		    const struct buf *notes, struct buf *ours)
{
	add_verdict(call->server, result, &streams->error, ours);
	buf_add(ours, notes->data, notes->length);
	run_text_end_line(ours); /* what was cut at the bound has none */
	add_cut(result, &streams->out, "stdout", result->jail.stdout_truncated, ours);
	add_cut(result, &streams->error, "stderr", result->jail.stderr_truncated, ours);
	if (ours->length == 0 && (run_shown_has(&streams->out, RUN_MARK) || run_shown_has(&streams->error, RUN_MARK)))
		buf_puts(ours, "The program ended normally.\n");
}

/* In the order in which they are read: the reason of a failure is on stderr. */
struct titled {
	const char *title;
	const struct run_shown *shown;
};

static void add_titled(const struct titled order[2], struct json_object *content)
{
	bool titled = false; /* the first one's title is in our lines, if there are any */

	for (size_t i = 0; i < 2; i++) {
		auto_free char *title = xasprintf("[%s]\n", order[i].title);

		if (order[i].shown->size == 0)
			continue;
		if (titled)
			tool_add_text(content, title, strlen(title));
		titled = true;
		add_stream(order[i].shown, order[i].title, content);
	}
}

const char *run_text_value(const struct job_result *result)
{
	const char *value = result->jail.value ? json_object_get_string(result->jail.value) : NULL;

	return value ? value : "";
}

/* A block of its own behind the output, which it is no part of. */
static void add_apart(const char *title, const char *text, size_t length, struct json_object *content)
{
	auto_free char *block = xasprintf("[%s]\n%.*s%s", title, (int)length, text, text[length] ? "…\n" : "");

	if (length > 0)
		tool_add_text(content, block, strlen(block));
}

/* What is around the streams has its room first; they share what is left. */
void run_text_add(const struct tool_call *call, const struct job_result *result, const char *pictures,
		  struct json_object *content)
{
	const size_t room = run_text_room(call->server, call->token);
	const size_t notes_room = MIN((size_t)RUN_NOTES_MAX, room / 5 * 2);
	const bool failed = result->jail.verdict != JAIL_OK;
	const char *value = run_text_value(result);
	const size_t value_length = run_text_part(value, strlen(value), room / 2);
	const char *warnings = result->jail.warnings ? json_object_get_string(result->jail.warnings) : "";
	const size_t warnings_length = run_text_part(warnings, strlen(warnings), room / 4);
	auto_streams struct run_streams streams = {0};
	auto_buf struct buf notes = {0}, ours = {0}, head = {0};

	buf_init(&notes, notes_room);
	buf_init(&ours, RUN_NOTES_MAX);
	buf_init(&head, SIZE_MAX);
	add_notes(call->server, result, pictures, notes_room, &notes);
	const size_t taken = notes.length + strlen(call->ignored.names) + value_length + warnings_length + FRAME_MAX;

	run_streams_take(call->server, result, room - MIN(taken, room), failed && result->jail.verdict != JAIL_CE,
			 &streams);
	add_own(call, result, &streams, &notes, &ours);
	const struct titled error = {"stderr", &streams.error}, out = {"stdout", &streams.out};
	const struct titled order[] = {failed ? error : out, failed ? out : error};
	const struct titled *first = order[0].shown->size > 0 ? &order[0] : &order[1];

	if (ours.length > 0)
		buf_printf(&head, RUN_MARK " %s", ours.data);
	tool_note_ignored(call, &head);
	if (head.length > 0 && first->shown->size > 0)
		buf_printf(&head, "[%s]\n", first->title);
	if (head.length > 0)
		tool_add_text(content, head.data, head.length);
	if (ours.length == 0 && first->shown->size == 0 && value_length + warnings_length == 0)
		tool_add_text(content, "(no output)\n", strlen("(no output)\n"));
	add_titled(order, content);
	add_apart("value", value, value_length, content);
	add_apart("compiler", warnings, warnings_length, content);
}
