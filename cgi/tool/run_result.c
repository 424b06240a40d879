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
#include "lib/store/store_blob.h"
#include "lib/store/store_file.h"

#define TEXT_MAX (64 * 1024 * 1024) /* of the text block; its parts have caps of their own */
#define URL_MAX  (16 * 1024)

static void add_usage(struct json_object *object, const struct jail_usage *usage)
{
	json_add_int(object, "wall_us", usage->wall_us);
	json_add_int(object, "cpu_us", usage->cpu_user_us + usage->cpu_system_us);
	json_add_int(object, "cpu_user_us", usage->cpu_user_us);
	json_add_int(object, "cpu_system_us", usage->cpu_system_us);
	json_add_int(object, "memory_peak_bytes", usage->memory_peak_bytes);
	json_add_int(object, "rss_peak_bytes", usage->rss_peak_bytes);
	json_add_int(object, "pids_peak", usage->pids_peak);
	json_add_int(object, "pids_hits", usage->pids_hits);
	json_add_int(object, "switches_voluntary", usage->switches_voluntary);
	json_add_int(object, "switches_forced", usage->switches_forced);
}

static struct json_object *safe_string(const char *data, size_t length)
{
	auto_buf struct buf safe = {0};

	buf_init(&safe, 4 * length + 1);
	utf8_safe(&safe, data, length);
	return json_object_new_string_len(safe.data, (int)safe.length);
}

static struct json_object *describe_file(struct server *server, const struct job_result *result,
					 const struct store_file *file)
{
	struct json_object *object = json_object_new_object();
	auto_buf struct buf url = {0};

	buf_init(&url, URL_MAX);
	uri_download(server->config, result->conversation, result->conversation_hash, file, &url);
	json_add(object, "name", safe_string(file->name, file->name_length));
	json_add_string(object, "url", url.data);
	json_add_int(object, "size", file->size);
	json_add_string(object, "media_type", file->media_type);
	return object;
}

static struct json_object *describe_files(struct server *server, const struct job_result *result)
{
	static const char *const names[] = {
		[JAIL_FILE_CREATED] = "created",
		[JAIL_FILE_CHANGED] = "changed",
		[JAIL_FILE_DELETED] = "deleted",
		[JAIL_FILE_NOT_KEPT] = "not_kept",
	};
	struct json_object *lists[ARRAY_SIZE(names)], *files = json_object_new_object();

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		lists[i] = json_object_new_array();
		json_add(files, names[i], lists[i]);
	}
	for (size_t i = 0; i < result->n_changes; i++) {
		const struct job_change *change = &result->changes[i];
		const struct store_file *file = &change->file;
		struct json_object *item;

		switch (change->kind) {
		case JAIL_FILE_DELETED:
			item = safe_string(file->name, file->name_length);
			break;
		case JAIL_FILE_NOT_KEPT:
			item = json_object_new_object();
			json_add(item, "name", safe_string(file->name, file->name_length));
			json_add_string(item, "reason", change->reason);
			break;
		default:
			item = describe_file(server, result, file);
		}
		json_object_array_add(lists[change->kind], item);
	}
	return files;
}

static struct json_object *structured(struct server *server, const struct job_result *result)
{
	const struct jail_result *jail = &result->jail;
	struct json_object *object = json_object_new_object();

	json_add_string(object, "execution_id", result->id);
	json_add_string(object, "verdict", jail_verdict_text(jail->verdict));
	json_add_string(object, "message", jail->message);
	if (jail->limit[0])
		json_add_string(object, "limit", jail->limit);
	if (jail->step[0])
		json_add_string(object, "step", jail->step);
	json_add_string(object, "language", jail->runner);
	json_add(object, "exit_code", jail->exit_code >= 0 ? json_object_new_int(jail->exit_code) : NULL);
	json_add(object, "signal", jail->signal > 0 ? json_object_new_int(jail->signal) : NULL);
	json_add_bytes(object, "stdout", result->stdout_text.data ? result->stdout_text.data : "",
		       result->stdout_text.length);
	json_add_bytes(object, "stderr", result->stderr_text.data ? result->stderr_text.data : "",
		       result->stderr_text.length);
	json_add_bool(object, "stdout_truncated", result->stdout_more || jail->stdout_truncated);
	json_add_bool(object, "stderr_truncated", result->stderr_more || jail->stderr_truncated);
	json_add_bool(object, "oom_killed", jail->oom_killed);
	json_add_int(object, "setup_us", jail->setup_us);
	json_add_bool(object, "warm", jail->warm);
	add_usage(object, &jail->run);
	if (jail->compiled) {
		struct json_object *compile = json_object_new_object();

		add_usage(compile, &jail->compile);
		json_add(object, "compile", compile);
	}
	if (*result->sandbox_id) {
		struct json_object *session = json_object_new_object();

		json_add_string(session, "sandbox_id", result->sandbox_id);
		json_add_int(session, "number", result->sandbox_seq);
		if (*result->note)
			json_add_string(session, "message", result->note);
		json_add(object, "session", session);
	}
	/* The array belongs to the job, other threads may read it: a copy. */
	if (jail->denied && json_object_array_length(jail->denied) > 0) {
		struct json_object *denied = NULL;

		if (json_object_deep_copy(jail->denied, &denied, NULL) == 0)
			json_add(object, "denied", denied);
	}
	struct json_object *network = NULL;
	if (jail->network && json_object_deep_copy(jail->network, &network, NULL) == 0)
		json_add(object, "network", network);
	json_add(object, "files", describe_files(server, result));
	return object;
}

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
		file = describe_file(server, result, &change->file);
		json_object_object_del(file, "size");
		json_object_object_del(file, "media_type");
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
		json_add(block, "name", safe_string(file->name, file->name_length));
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

/* What stands behind the text, whatever its form. */
static void add_rest(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	struct server *server = call->server;

	add_images(server, result, ret->content);
	if (call->protocol && strcmp(call->protocol, RUN_LINKS_SINCE) >= 0 && *result->conversation)
		add_links(result, ret->content);
	ret->structured = structured(server, result);
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
