/*
 * run_result.c - see run_result.h.
 *
 * Two views of the same struct job_result: the text block (what a model reads first: stdout as it came, stderr under a
 * mark, the verdict's sentence when it is not OK, one line a file) and structuredContent (everything, for programs).
 * What a program printed can imitate the marks in the text; it can't imitate structuredContent, so nothing that matters
 * is in the text alone. Bytes of a guest enter JSON through utf8_safe, names enter the text through utf8_printable,
 * URLs through percent-encoding. Images are read from the blob store, never from a place that a guest can write.
 */
#include "run_result.h"

#include "cgi/http/files.h"
#include "cgi/http/uri.h"
#include "cgi/mcp/mcp_stream.h"
#include "lib/base/log.h"
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "run_answer.h"
#include "lib/store/store_blob.h"
#include "lib/store/store_file.h"

#define TEXT_MAX (64 * 1024 * 1024) /* of the text block; its parts have caps of their own */
#define URL_MAX  (16 * 1024)

static void end_line(struct buf *text)
{
	if (text->length > 0 && text->data[text->length - 1] != '\n')
		buf_putc(text, '\n');
}

static void add_stream(struct buf *text, const struct job_result *result, bool is_stderr)
{
	const struct job_stream *stream = is_stderr ? &result->stderr_text : &result->stdout_text;

	if (stream->length == 0)
		return;
	buf_add(text, stream->data, stream->length);
	if (is_stderr ? result->stderr_more : result->stdout_more) {
		end_line(text);
		buf_printf(text,
			   "[cut here: only the first %zu bytes are shown; all that was recorded is the resource ",
			   stream->length);
		uri_output(text, result->id, is_stderr);
		buf_puts(text, "]\n");
	} else if (is_stderr ? result->jail.stderr_truncated : result->jail.stdout_truncated) {
		end_line(text);
		buf_puts(text, "[cut here: the rest was not recorded]\n");
	}
}

static void add_change(struct server *server, const struct job_result *result, const struct job_change *change,
		       struct buf *text)
{
	const struct store_file *file = &change->file;

	buf_printf(text, "- %s ", jail_change_text(change->kind));
	utf8_printable(text, file->name, file->name_length);
	if (change->kind == JAIL_FILE_NOT_KEPT) {
		buf_printf(text, ": %s", change->reason);
	} else if (change->kind != JAIL_FILE_DELETED) {
		buf_printf(text, " (%s, %lld bytes): ", file->media_type, (long long)file->size);
		uri_download(server->config, result->conversation, result->conversation_hash, file, text);
	}
	buf_putc(text, '\n');
}

/* The text block of the system whose run_code this one replaces: {"success","output","files":[{"name","url"}]}. */
static void add_text_json(struct server *server, const struct job_result *result, const struct buf *output,
			  struct json_object *content)
{
	auto_json struct json_object *object = json_object_new_object();
	struct json_object *files = json_object_new_array();
	auto_buf struct buf text = {0};

	json_add_bool(object, "success", result->jail.verdict == JAIL_OK);
	json_add_bytes(object, "output", output->data, output->length);
	for (size_t i = 0; i < result->n_changes; i++) {
		const struct job_change *change = &result->changes[i];
		struct json_object *file;

		if (change->kind != JAIL_FILE_CREATED && change->kind != JAIL_FILE_CHANGED)
			continue;
		file = run_answer_file(server->config, result, &change->file, RUN_TEXT_FORM);
		json_object_array_add(files, file);
	}
	json_add(object, "files", files);
	buf_init(&text, 2 * TEXT_MAX);
	json_print(&text, object);
	tool_add_text(content, text.data, text.length);
}

/* A program rarely says why it could not connect. */
static void add_network(struct buf *text, const struct jail_result *jail)
{
	struct json_object *denied = json_get(jail->network, "denied", json_type_array);

	for (size_t i = 0; denied && i < json_object_array_length(denied); i++) {
		struct json_object *one = json_object_array_get_idx(denied, i);
		const char *host = json_get_string(one, "host"), *reason = json_get_string(one, "reason");

		end_line(text);
		buf_printf(text, "[network] %s:%d: %s\n", host ? host : "",
			   json_object_get_int(json_get(one, "port", json_type_int)), reason ? reason : "");
	}
	int64_t unrouted = json_object_get_int64(json_get(jail->network, "unrouted", json_type_int));
	if (unrouted > 0) {
		end_line(text);
		buf_printf(text, "[network] " JAIL_UNROUTED_TEXT "\n", (long long)unrouted);
	}
}

/* What a model or a person reads: stdout as it is, then stderr, the verdict if it is not OK, the files. */
static void add_summary(struct server *server, const struct job_result *result, struct json_object *content)
{
	const char *form = server->config->tools.text;
	auto_buf struct buf text = {0};

	buf_init(&text, TEXT_MAX);
	add_stream(&text, result, false);
	if (result->stderr_text.length > 0) {
		end_line(&text);
		buf_puts(&text, "[stderr]\n");
	}
	add_stream(&text, result, true);
	add_network(&text, &result->jail);
	if (result->jail.verdict != JAIL_OK) {
		end_line(&text);
		buf_printf(&text, "[verdict %s] %s\n", jail_verdict_text(result->jail.verdict), result->jail.message);
	}
	if (*result->note) {
		end_line(&text);
		buf_printf(&text, "[session] %s\n", result->note);
	}
	if (form && streq(form, "json")) {
		add_text_json(server, result, &text, content);
		return;
	}
	if (result->n_changes > 0) {
		end_line(&text);
		buf_puts(&text, "[files]\n");
	}
	for (size_t i = 0; i < result->n_changes; i++)
		add_change(server, result, &result->changes[i], &text);
	if (text.length == 0)
		buf_puts(&text, "(no output)\n");
	tool_add_text(content, text.data, text.length);
}

/* Appends the file as an image block; false: it could not be read. */
static bool add_image(struct store *store, const struct store_file *file, struct json_object *content)
{
	auto_close int fd = -1;
	auto_free char *data = NULL;
	auto_buf struct buf text = {0};
	struct err err = ERR_INIT;
	int64_t size;
	size_t length;

	buf_init(&text, 2 * RUN_IMAGE_MAX);
	if (store_blob_open(store, file->blob, &fd, &size, &err) < 0 ||
	    read_fd(fd, RUN_IMAGE_MAX, &data, &length, &err) < 0) {
		log_event(LOG_ERROR, "image cannot be read", "blob", file->blob, "error", err.text, NULL);
		return false;
	}
	base64_encode(&text, data, length);
	struct json_object *block = json_object_new_object();

	json_add_string(block, "type", "image");
	json_add_string(block, "data", text.data);
	json_add_string(block, "mimeType", file->media_type);
	json_object_array_add(content, block);
	return true;
}

static void add_images(struct server *server, const struct job_result *result, struct json_object *content)
{
	int64_t left = RUN_IMAGES_MAX;

	for (size_t i = 0; i < result->n_changes; i++) {
		const struct job_change *change = &result->changes[i];
		bool there = change->kind == JAIL_FILE_CREATED || change->kind == JAIL_FILE_CHANGED;

		if (!there || !files_is_image(change->file.media_type) || change->file.size > MIN(RUN_IMAGE_MAX, left))
			continue;
		if (add_image(server->store, &change->file, content))
			left -= change->file.size;
	}
}

/* Every file that is there after the run, as a block that clients can read by resources/read. */
static void add_links(const struct job_result *result, struct json_object *content)
{
	for (size_t i = 0; i < result->n_changes; i++) {
		const struct store_file *file = &result->changes[i].file;
		auto_buf struct buf uri = {0};

		if (result->changes[i].kind != JAIL_FILE_CREATED && result->changes[i].kind != JAIL_FILE_CHANGED)
			continue;
		buf_init(&uri, URL_MAX);
		uri_file(&uri, result->conversation, file->name, file->name_length);
		struct json_object *block = json_object_new_object();

		json_add_string(block, "type", "resource_link");
		json_add_string(block, "uri", uri.data);
		json_add_bytes(block, "name", file->name, file->name_length);
		json_add_string(block, "mimeType", file->media_type);
		json_add_int(block, "size", file->size);
		json_object_array_add(content, block);
	}
}

static void add_isolator(const struct job_result *result, struct json_object *content)
{
	auto_buf struct buf text = {0};

	buf_init(&text, TEXT_MAX);
	if (result->jail.verdict != JAIL_OK)
		buf_printf(&text, "Execution Failed (%s): %s\n\n",
			   result->jail.verdict == JAIL_TO ? "timeout" : "error", result->jail.message);
	buf_puts(&text, "--- stdout ---\n");
	add_stream(&text, result, false);
	end_line(&text);
	buf_puts(&text, "--- stderr ---\n");
	add_stream(&text, result, true);
	tool_add_text(content, text.data, text.length);
}

/* What follows the text, whatever its form. */
static void add_rest(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	struct server *server = call->server;

	add_images(server, result, ret->content);
	if (call->revision->links && *result->conversation)
		add_links(result, ret->content);
	ret->structured = run_answer(server->config, result);
}

static struct tool_result begin(const struct job_result *result)
{
	return (struct tool_result){.content = json_object_new_array(), .is_error = result->jail.verdict != JAIL_OK};
}

void run_result_make(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	*ret = begin(result);
	add_summary(call->server, result, ret->content);
	add_rest(call, result, ret);
}

void run_result_make_isolator(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	*ret = begin(result);
	add_isolator(result, ret->content);
	add_rest(call, result, ret);
}

/* The client's log: when a run begins, and how it ended. */
static void log_begin(const struct tool_call *call, const struct job *job, const struct job_request *request)
{
	auto_free char *text = xasprintf("run %s: a %s program was accepted", job_id(job), request->language);

	if (call->mcp)
		mcp_log(call->mcp, "debug", text);
}

static void log_end(const struct tool_call *call, const struct job_result *result)
{
	const enum jail_verdict verdict = result->jail.verdict;
	const char *level = verdict == JAIL_OK ? "info" : verdict == JAIL_XX ? "error" : "warning";
	auto_free char *text =
		xasprintf("run %s: %s, %s", result->id, jail_verdict_text(verdict), result->jail.message);

	if (call->mcp)
		mcp_log(call->mcp, level, text);
}

int run_result_of(struct tool_call *call, const struct job_request *request, run_result_maker *make,
		  struct tool_result *ret, struct err *err)
{
	const struct job_result *made;
	struct job_engine *engine;
	struct job *job;
	bool as_task = false;
	int result = tool_task_choose(call, request->timeout_seconds, &as_task, err);

	if (result == 0)
		result = server_engine(call->server, &engine, err);
	if (result == 0 && as_task)
		return tool_task_start(call, engine, request, err);
	if (result == 0)
		result = job_submit(engine, request, &job, err);
	if (result < 0)
		return result;
	log_begin(call, job, request);
	result = tool_wait(call, job, &made, err);
	if (result == 0) {
		log_end(call, made);
		snprintf(call->outcome, sizeof(call->outcome), "%s", jail_verdict_text(made->jail.verdict));
		make(call, made, ret);
	}
	job_release(job);
	return result;
}
