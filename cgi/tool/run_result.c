/*
 * run_result.c - see run_result.h.
 *
 * Two views of the same struct job_result: text for the model (run_text.h), and details for programs (everything).
 * Bytes of a guest enter JSON through utf8_safe, names enter the text through utf8_printable, URLs through
 * percent-encoding. Images are read from the blob store, never from a place that a guest can write.
 */
#include "run_result.h"

#include "cgi/http/files.h"
#include "cgi/http/uri.h"
#include "cgi/mcp/mcp_stream.h"
#include "lib/base/log.h"
#include "lib/base/utf8.h"
#include "lib/base/util.h"
#include "lib/store/record/store_resource.h"
#include "run_answer.h"
#include "run_pictures.h"
#include "run_python_answer.h"
#include "run_text.h"
#include "tool_park.h"

#define URL_MAX  (16 * 1024)
#define JSON_MAX (8 * 1024 * 1024) /* of the JSON form while it is made; what is sent of it has run_text_room */

/* -------- the form of tools.text = json --------------------------------------------------------------- */

/* {"success","output","files":[{"name","url"}]}: run_code's answer in the system that this one replaces. Its output is
 * one text, and its files are all of the conversation's, as many as fit. */
struct json_form {
	const struct server *server;
	const struct job_result *result;
	struct json_object *files;
	size_t room; /* bytes that the list may still take */
};

static int add_json_file(void *arg, const struct store_owner_file *found)
{
	struct json_form *form = arg;
	auto_buf struct buf printed = {0};

	if (!streq(found->conversation, form->result->conversation))
		return 1;
	auto_json struct json_object *file = run_answer_file(form->server, form->result, &found->file, RUN_TEXT_FORM);

	buf_init(&printed, JSON_MAX);
	json_print(&printed, file);
	if (printed.length + 1 > form->room)
		return 1;
	form->room -= printed.length + 1;
	json_object_array_add(form->files, steal(&file));
	return 0;
}

/* Printing makes text longer (a newline becomes two bytes): what is too long is printed again with less output. */
static void add_json(const struct tool_call *call, const struct job_result *result, struct json_object *content)
{
	auto_json struct json_object *files = json_object_new_array();
	const size_t most = run_text_room(call->server, call->token);
	struct json_form form = {call->server, result, files, MIN((size_t)RUN_NOTES_MAX / 2, most / 5 * 2)};
	auto_buf struct buf text = {0};
	size_t room = most;

	const struct store_page page = {.owner = call->token->owner,
					.conversation = result->conversation,
					.name = "",
					.limit = INT64_MAX};
	struct err err = ERR_INIT;

	if (*result->conversation && store_owner_files(call->server->store, &page, add_json_file, &form, &err) < 0)
		log_event(LOG_ERROR, "files of a conversation cannot be listed", "conversation", result->conversation,
			  "error", err.text, NULL);
	buf_init(&text, JSON_MAX);
	do {
		auto_streams struct run_streams streams = {0};
		auto_json struct json_object *object = json_object_new_object();
		auto_buf struct buf output = {0};

		run_streams_take(call->server, result, run_text_streams_room(room, 0), false, &streams);
		buf_init(&output, JSON_MAX);
		run_text_block(&output, result, &streams);
		json_add_bool(object, "success", result->jail.verdict == JAIL_OK);
		json_add_bytes(object, "output", output.data, output.length);
		json_add(object, "files", json_object_get(files));
		buf_reset(&text);
		json_print(&text, object);
		room = room / 5 * 4;
	} while (text.length > most && room > 0);
	tool_add_text(content, text.data, text.length);
}

/* -------- images and links ---------------------------------------------------------------------------- */

/* Of the files that are there after the run. */
static void add_images(const struct tool_call *call, const struct job_result *result, struct json_object *content,
		       struct buf *notes)
{
	auto_free const struct store_file **files = xcalloc(result->n_changes + 1, sizeof(*files));
	size_t count = 0;

	for (size_t i = 0; i < result->n_changes; i++) {
		const struct job_change *change = &result->changes[i];

		if ((change->kind == JAIL_FILE_CREATED || change->kind == JAIL_FILE_CHANGED) &&
		    run_pictures_has(&change->file))
			files[count++] = &change->file;
	}
	run_pictures_add(call, files, count, content, notes);
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

static void add_isolator(const struct tool_call *call, const struct job_result *result, struct json_object *content)
{
	const size_t room = run_text_streams_room(run_text_room(call->server, call->token), 0);
	auto_streams struct run_streams streams = {0};
	auto_buf struct buf text = {0};

	run_streams_take(call->server, result, room, result->jail.verdict != JAIL_OK, &streams);
	buf_init(&text, JSON_MAX);
	if (result->jail.verdict != JAIL_OK)
		buf_printf(&text, "Execution Failed (%s): %s\n\n",
			   result->jail.verdict == JAIL_TO ? "timeout" : "error", result->jail.message);
	buf_puts(&text, "--- stdout ---\n");
	run_text_stream(&text, &streams.out, RUN_TEXT_AMONG);
	run_text_end_line(&text);
	buf_puts(&text, "--- stderr ---\n");
	run_text_stream(&text, &streams.error, RUN_TEXT_AMONG);
	tool_add_text(content, text.data, text.length);
}

/* -------- the answer ---------------------------------------------------------------------------------- */

/* One block, as the other system has it. */
static void add_interpreter(const struct tool_call *call, const struct job_result *result, struct json_object *content)
{
	const size_t room = run_text_room(call->server, call->token);
	auto_streams struct run_streams streams = {0};
	auto_buf struct buf text = {0}, files = {0};

	buf_init(&files, JSON_MAX);
	run_text_files(call->server, result, room / 5 * 2, &files);
	run_streams_take(call->server, result, run_text_streams_room(room, files.length),
			 result->jail.verdict != JAIL_OK, &streams);
	buf_init(&text, JSON_MAX);
	run_text_block(&text, result, &streams);
	if (result->n_changes > 0)
		buf_puts(&text, "[files]\n");
	buf_add(&text, files.data, files.length);
	if (text.length == 0)
		buf_puts(&text, "(no output)\n");
	tool_add_text(content, text.data, text.length);
}

enum form { FORM_OWN, FORM_ISOLATOR, FORM_INTERPRETER, FORM_BRIDGE };

/* The text comes first, and says how many images are hidden: these are looked at before. */
static void make(const struct tool_call *call, const struct job_result *result, enum form form, struct tool_result *ret)
{
	struct server *server = call->server;
	auto_json struct json_object *images = json_object_new_array();
	const bool is_error = result->jail.verdict != JAIL_OK;
	auto_buf struct buf pictures = {0};

	buf_init(&pictures, RUN_NOTES_MAX);
	if (!is_error) /* clients hand an error's picture to their models as text: its address is enough */
		add_images(call, result, images, &pictures);
	buf_putc(&pictures, '\0');

	*ret = (struct tool_result){.content = json_object_new_array(), .is_error = is_error};
	if (form == FORM_BRIDGE)
		run_python_answer(call, result, ret);
	else if (form == FORM_INTERPRETER)
		add_interpreter(call, result, ret->content);
	else if (form == FORM_ISOLATOR)
		add_isolator(call, result, ret->content);
	else if (streq(server->config->tools.text, "json"))
		add_json(call, result, ret->content);
	else
		run_text_add(call, result, pictures.data, ret->content);
	ret->notes_ignored = form == FORM_OWN && !streq(server->config->tools.text, "json");
	for (size_t i = 0; i < json_object_array_length(images); i++)
		json_object_array_add(ret->content, json_object_get(json_object_array_get_idx(images, i)));
	if (server->config->tools.links && call->revision->links && *result->conversation)
		add_links(result, ret->content);
	ret->structured = run_answer(server, result);
}

void run_result_make(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	make(call, result, FORM_OWN, ret);
}

void run_result_make_isolator(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	make(call, result, FORM_ISOLATOR, ret);
}

void run_result_make_interpreter(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	make(call, result, FORM_INTERPRETER, ret);
}

void run_result_make_bridge(const struct tool_call *call, const struct job_result *result, struct tool_result *ret)
{
	make(call, result, FORM_BRIDGE, ret);
}

/* The client's log: how a run ended. */
static void log_end(const struct tool_call *call, const struct job_result *result)
{
	const enum jail_verdict verdict = result->jail.verdict;
	const char *level = verdict == JAIL_OK ? "info" : verdict == JAIL_XX ? "error" : "warning";
	auto_free char *text =
		xasprintf("run %s: %s, %s", result->id, jail_verdict_text(verdict), result->jail.message);

	if (call->mcp)
		mcp_log(call->mcp, level, text);
}

/* Until the run is over, or the client is asked something; the run is taken over. */
static int wait_for(struct tool_call *call, struct tool_run *run, run_result_maker *maker, struct tool_result *ret,
		    struct err *err)
{
	const struct job_result *made;
	int result = tool_wait(call, run, &made, err);

	if (result == 0) {
		log_end(call, made);
		snprintf(call->outcome, sizeof(call->outcome), "%s", jail_verdict_text(made->jail.verdict));
		maker(call, made, ret);
	}
	tool_run_release(run);
	return MIN(result, 0);
}

int run_result_of(struct tool_call *call, const struct job_request *request, run_result_maker *maker,
		  struct tool_result *ret, struct err *err)
{
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
	auto_free char *text = xasprintf("run %s: a %s program was accepted", job_id(job), request->language);

	if (call->mcp)
		mcp_log(call->mcp, "debug", text);
	struct tool_run *run = tool_run_new(job, request->tools, request->key_hash);

	if (call->tool->pass)
		run->who = "The model";
	return wait_for(call, run, maker, ret, err);
}

/* The run ended while nobody asked for it. */
static int recall(struct tool_call *call, const char *id, run_result_maker *maker, struct tool_result *ret,
		  struct err *err)
{
	struct job_result made;
	int result = job_result_load(call->server->store, id, job_answer_max(call->server->config), &made, err);

	if (result < 0)
		return err_wrap(err, "the run that asked has ended without a result");
	snprintf(call->outcome, sizeof(call->outcome), "%s", jail_verdict_text(made.jail.verdict));
	maker(call, &made, ret);
	job_result_clear(&made);
	return 1;
}

int run_result_again(struct tool_call *call, const char *hash, run_result_maker *maker, struct tool_result *ret,
		     struct err *err)
{
	struct tool_run *run;
	char id[ID_SIZE];
	int result = tool_unpark(call, hash, &run, id, err);

	if (result == -ERR_INVALID) {
		mcp_fail(call->mcp, RPC_INVALID_PARAMS, "Invalid params: %s", err->text);
		call->answered = true;
		return 1;
	}
	if (result <= 0)
		return result;
	if (!run)
		return recall(call, id, maker, ret, err);
	result = wait_for(call, run, maker, ret, err);
	return result < 0 ? result : 1;
}
