/*
 * run_text.c - see run_text.h.
 *
 * Bounds are of what the client gets, and a byte that is not UTF-8 becomes four: how much of a stream fits is found by
 * making it safe and looking at the length. The engine's result has the beginning of a stream; its end comes from the
 * record. Our own lines are written one by one; a line that no longer fits counts as "more".
 */
#include "run_text.h"

#include "cgi/http/files.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"

#define LINE_MAX_  (16 * 1024)
#define NAME_SHOWN 200                 /* bytes of a file's name */
#define FILES_MAX  (RUN_NOTES_MAX / 2) /* bytes of the lines that name files */
#define FRAME_MAX  64                  /* … and of what is around our lines */

/* -------- the streams --------------------------------------------------------------------------------- */

static size_t safe_length(const char *data, size_t length)
{
	auto_buf struct buf safe = {0};

	buf_init(&safe, SIZE_MAX);
	utf8_safe(&safe, data, length);
	return safe.length;
}

/* How many bytes from the beginning, or (`from_end`) from the end, become at most `room` bytes of text. */
static size_t fitting(const char *data, size_t length, size_t room, bool from_end)
{
	size_t n = MIN(length, room), safe;

	while (n > 0 && (safe = safe_length(from_end ? data + length - n : data, n)) > room)
		n = MIN(n - 1, n * room / safe);
	if (n == length)
		return n;
	if (!from_end)
		return utf8_cut(data, length, n);
	/* not in the middle of a character */
	for (int i = 0; i < 3 && n > 0 && ((unsigned char)data[length - n] & 0xc0) == 0x80; i++)
		n--;
	return n;
}

size_t run_text_part(const char *data, size_t length, size_t room)
{
	return fitting(data, length, room, false);
}

/* Half of the room for the beginning, half for the end, which the record has. */
static void cut(struct server *server, const struct job_result *result, bool is_stderr, size_t room,
		struct run_shown *ret)
{
	const bool more = is_stderr ? result->stderr_more : result->stdout_more;
	const size_t half = room / 2;
	const struct job_printed end = {
		.id = result->id, .is_stderr = is_stderr, .offset = -(int64_t)half, .length = (int64_t)half};
	const char *beginning = ret->head;
	const size_t had = ret->head_length;
	struct job_stream tail = {0};
	struct err err = ERR_INIT;

	ret->head_length = fitting(ret->head, ret->head_length, half, false);
	if (!more) {
		tail.length = MIN(had, half);
		tail.data = xmemdup(beginning + had - tail.length, tail.length + 1);
	} else if (job_printed_load(server->store, &end, &tail, &ret->size, &err) < 0) {
		log_event(LOG_ERROR, "the end of an output cannot be read", "execution", result->id, "error", err.text,
			  NULL);
		ret->hidden = ret->size - (int64_t)ret->head_length;
		return;
	}
	size_t length = MIN(tail.length, (size_t)MAX(ret->size - (int64_t)ret->head_length, (int64_t)0));
	size_t kept = fitting(tail.data + tail.length - length, length, half, true);

	memmove(tail.data, tail.data + tail.length - kept, kept);
	tail.data[kept] = '\0';
	ret->tail = (struct job_stream){tail.data, kept};
	ret->hidden = ret->size - (int64_t)ret->head_length - (int64_t)kept;
}

/* As text; what is beyond the room as it is is not looked at. */
static size_t wanted(const struct job_stream *stream, size_t room)
{
	return stream->length > room ? stream->length : safe_length(stream->data, stream->length);
}

static void take(struct server *server, const struct job_result *result, bool is_stderr, size_t room,
		 struct run_shown *ret)
{
	const struct job_stream *stream = is_stderr ? &result->stderr_text : &result->stdout_text;
	const bool more = is_stderr ? result->stderr_more : result->stdout_more;
	const int64_t written = is_stderr ? result->jail.stderr_bytes : result->jail.stdout_bytes;

	*ret = (struct run_shown){.head = stream->data, .head_length = stream->length};
	ret->size = MAX((int64_t)stream->length, more ? written : 0);
	if (more || wanted(stream, room) > room)
		cut(server, result, is_stderr, MIN(room, MAX(stream->length, (size_t)1)), ret);
}

/* A stream has half of the room for sure, and what the other one leaves. */
void run_streams_take(struct server *server, const struct job_result *result, size_t room, struct run_streams *ret)
{
	const size_t out = wanted(&result->stdout_text, room), error = wanted(&result->stderr_text, room);

	take(server, result, false, MAX(room / 2, room - MIN(error, room)), &ret->out);
	take(server, result, true, MAX(room / 2, room - MIN(out, room)), &ret->error);
}

void run_streams_clear(struct run_streams *streams)
{
	free(streams->out.tail.data);
	free(streams->error.tail.data);
}

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

	add_output(text, shown->head, shown->head_length, n_marks);
	if (shown->hidden == 0)
		return;
	run_text_end_line(text);
	buf_printf(text, "[cut here: %lld bytes are left out]\n", (long long)shown->hidden);
	add_output(text, shown->tail.data, shown->tail.length, n_marks);
}

static void add_stream(const struct run_shown *shown, const char *name, struct json_object *content)
{
	auto_free char *gap = xasprintf("[%lld bytes of %s are left out here]\n", (long long)shown->hidden, name);

	if (shown->head_length > 0)
		tool_add_text(content, shown->head, shown->head_length);
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
void run_text_files(struct server *server, const struct job_result *result, struct buf *text)
{
	const size_t before = text->length;
	size_t shown = 0, more = 0, packages = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < result->n_changes; i++) {
			const struct job_change *change = &result->changes[i];
			auto_buf struct buf line = {0};

			if ((change->kind == JAIL_FILE_CREATED || change->kind == JAIL_FILE_CHANGED) != (pass == 0))
				continue;
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
			if (line.overflow || text->length - before + line.length > FILES_MAX) {
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
}

static void add_cut(const struct job_result *result, const struct run_shown *shown, const char *name, bool lost,
		    struct buf *text)
{
	if (shown->hidden > 0)
		buf_printf(text,
			   "%s: %lld of %lld bytes are left out; read_output executionId=%s stream=%s offset=%zu reads "
			   "on\n",
			   name, (long long)shown->hidden, (long long)shown->size, result->id, name,
			   shown->head_length);
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

static bool holds(const char *data, size_t length, const char *word)
{
	return length > 0 && memmem(data, length, word, strlen(word)); /* data of nothing may be NULL */
}

/* Does the program's last word say that it misses a package? pip itself advises things that are not to be had here. */
static bool misses_package(const struct run_shown *error)
{
	static const char *const words[] = {"No module named '",      "Cannot find module '",
					    "Cannot find package '",  "externally-managed-environment",
					    "npm error code EROFS",   "pip: command not found",
					    "pip3: command not found", "npm: command not found"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (holds(error->head, error->head_length, words[i]) ||
		    holds(error->tail.data, error->tail.length, words[i]))
			return true;
	return false;
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

static void add_packages(struct server *server, struct buf *text)
{
	const char *list = tool_find(server, "list_runners") ? "; list_runners names those that are there" : "";

	if (server->config->network.allow.count > 0)
		buf_printf(text, "packages: in bash with network, pip install NAME or npm install NAME adds one%s\n",
			   list);
	else
		buf_printf(text, "packages: nothing can be installed here%s\n", list);
}

static void add_notes(struct server *server, const struct job_result *result, const struct run_streams *streams,
		      size_t images_hidden, struct buf *text)
{
	auto_buf struct buf network = {0};

	if (result->jail.verdict != JAIL_OK)
		buf_printf(text, "%s: %s\n", jail_verdict_text(result->jail.verdict), result->jail.message);
	if (result->jail.verdict == JAIL_RE && misses_package(&streams->error))
		add_packages(server, text);
	if (*result->note)
		buf_printf(text, "session: %s\n", result->note);
	for (const char *line = result->workspace; line && *line; line = strchrnul(line, '\n') + 1)
		buf_printf(text, "workspace: %.*s\n", (int)strcspn(line, "\n"), line);
	add_denied(&result->jail, text);
	add_cut(result, &streams->out, "stdout", result->jail.stdout_truncated, text);
	add_cut(result, &streams->error, "stderr", result->jail.stderr_truncated, text);
	buf_init(&network, RUN_NOTES_MAX / 4);
	run_text_network(&network, &result->jail);
	buf_add(text, network.data, network.length);
	auto_buf struct buf tools = {0};
	buf_init(&tools, RUN_NOTES_MAX / 4);
	add_tools(&result->tools, &tools);
	buf_add(text, tools.data, tools.length);
	run_text_files(server, result, text);
	if (images_hidden > 0)
		buf_printf(text, "%zu images are too many or too large to be shown here\n", images_hidden);
}

bool run_text_has_mark(const char *data, size_t length)
{
	return holds(data, length, RUN_MARK);
}

static bool has_mark(const struct run_shown *shown)
{
	return run_text_has_mark(shown->head, shown->head_length) ||
	       run_text_has_mark(shown->tail.data, shown->tail.length);
}

void run_text_add(const struct tool_call *call, const struct job_result *result, size_t images_hidden,
		  struct json_object *content)
{
	__attribute__((cleanup(run_streams_clear))) struct run_streams streams = {0};
	auto_buf struct buf notes = {0}, ours = {0};

	run_streams_take(call->server, result, RUN_STREAMS_MAX, &streams);
	const bool out = streams.out.size > 0, error = streams.error.size > 0;

	buf_init(&notes, RUN_NOTES_MAX - FRAME_MAX);
	add_notes(call->server, result, &streams, images_hidden, &notes);
	if (notes.length == 0 && (has_mark(&streams.out) || has_mark(&streams.error)))
		buf_puts(&notes, "The program ended normally.\n");
	if (notes.length > 0) {
		buf_init(&ours, RUN_NOTES_MAX);
		buf_puts(&ours, RUN_MARK " ");
		buf_add(&ours, notes.data, notes.length);
		run_text_end_line(&ours); /* what was cut at the bound has none */
		buf_puts(&ours, out ? "[stdout]\n" : error ? "[stderr]\n" : "");
		tool_add_text(content, ours.data, ours.length);
	} else if (!out && !error) {
		tool_add_text(content, "(no output)\n", strlen("(no output)\n"));
	}
	add_stream(&streams.out, "stdout", content);
	if (out && error)
		tool_add_text(content, "[stderr]\n", strlen("[stderr]\n"));
	add_stream(&streams.error, "stderr", content);
}
