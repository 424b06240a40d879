/*
 * run_answer.c - see run_answer.h.
 *
 * The tables say what a client sees of a result and in which form; the struct of an answer is filled out of the job's
 * result, whose JSON other threads may read, so what goes into the answer is a copy. Names and output of a guest are
 * made safe text here.
 */
#include "run_answer.h"

#include <string.h>

#include "cgi/http/files.h"
#include "lib/base/util.h"
#include "run_text.h"

#define URL_MAX         (16 * 1024)
#define RUN_CALLS_SHOWN 50 /* calls of tools */

struct answer_file {
	struct json_object *name;
	const char *url, *media_type;
	int64_t size;
};
struct answer_lost {
	struct json_object *name;
	const char *reason;
};
struct answer_files {
	struct json_object *created, *changed, *deleted, *not_kept;
};
struct answer_session {
	const char *sandbox_id, *message;
	int64_t number;
};
struct answer_call {
	int64_t seq;
	struct json_object *server, *tool;
	const char *state;
	int64_t ms, bytes;
};
struct answer {
	const char *execution_id;
	struct jail_result jail;
	struct json_object *out, *error;
	struct answer_session session;
	struct answer_files files;
	struct json_object *tool_calls;
	const char *workspace;
};

#define ROW(struct_, field, kind) .name = #field, .type = kind, .offset = offsetof(struct struct_, field)
#define JSON(struct_, field, kind) ROW(struct_, field, kind), .flags = BIND_JSON

static const struct bind file_table[] = {
	{JSON(answer_file, name, BIND_STRING)},
	{ROW(answer_file, url, BIND_STRING)},
	{ROW(answer_file, size, BIND_INT), .views = JAIL_ANSWER},
	{ROW(answer_file, media_type, BIND_STRING), .views = JAIL_ANSWER},
	{0},
};
static const struct bind lost_table[] = {
	{JSON(answer_lost, name, BIND_STRING)},
	{ROW(answer_lost, reason, BIND_STRING)},
	{0},
};
static const struct bind files_table[] = {
	{JSON(answer_files, created, BIND_OBJECTS), .table = file_table},
	{JSON(answer_files, changed, BIND_OBJECTS), .table = file_table},
	{JSON(answer_files, deleted, BIND_STRINGS)},
	{JSON(answer_files, not_kept, BIND_OBJECTS), .table = lost_table},
	{0},
};
static const struct bind session_table[] = {
	{ROW(answer_session, sandbox_id, BIND_STRING), .description = "Runs with the same id shared one sandbox"},
	{ROW(answer_session, number, BIND_INT), .description = "Of this run in its sandbox, from 1 on"},
	{ROW(answer_session, message, BIND_STRING),
	 .sparse = JAIL_ANSWER,
	 .description = "What became of its state"},
	{0},
};
static const struct bind call_table[] = {
	{ROW(answer_call, seq, BIND_INT)},
	{JSON(answer_call, server, BIND_STRING)},
	{JSON(answer_call, tool, BIND_STRING)},
	{ROW(answer_call, state, BIND_STRING), .description = "done, failed, refused or cancelled"},
	{ROW(answer_call, ms, BIND_INT)},
	{ROW(answer_call, bytes, BIND_INT), .description = "Of the result"},
	{0},
};
const struct bind run_answer_table[] = {
	{ROW(answer, execution_id, BIND_STRING), .description = "Under this id the run is recorded"},
	{ROW(answer, jail, BIND_INLINE), .table = jail_result_table},
	{.name = "stdout", .type = BIND_STRING, .flags = BIND_JSON, .offset = offsetof(struct answer, out)},
	{.name = "stderr", .type = BIND_STRING, .flags = BIND_JSON, .offset = offsetof(struct answer, error)},
	{ROW(answer, session, BIND_OBJECT), .sparse = JAIL_ANSWER, .table = session_table},
	{ROW(answer, files, BIND_OBJECT), .table = files_table},
	{.name = "toolCalls",
	 .type = BIND_OBJECTS,
	 .flags = BIND_JSON,
	 .sparse = JAIL_ANSWER,
	 .offset = offsetof(struct answer, tool_calls),
	 .table = call_table,
	 .description = "The program's calls of tools; of many, the first"},
	{ROW(answer, workspace, BIND_STRING),
	 .sparse = JAIL_ANSWER,
	 .description = "Lines about changes that are not in the user's folder"},
	{0},
};

struct json_object *run_answer_file(const struct server *server, const struct job_result *result,
				    const struct store_file *file, unsigned view)
{
	auto_json struct json_object *name = json_new_safe(file->name, file->name_length);
	auto_buf struct buf url = {0};

	buf_init(&url, URL_MAX);
	files_place_download(server, result->conversation, result->conversation_hash, file, &url);
	const struct answer_file shown = {name, url.data, file->media_type, file->size};
	return bind_print_view(file_table, &shown, view);
}

static struct json_object *lost_file(const struct job_change *change)
{
	auto_json struct json_object *name = json_new_safe(change->file.name, change->file.name_length);
	const struct answer_lost shown = {name, change->reason};

	return bind_print_view(lost_table, &shown, JAIL_ANSWER);
}

static void add_files(const struct server *server, const struct job_result *result, struct answer_files *files)
{
	struct json_object **const lists[] = {
		[JAIL_FILE_CREATED] = &files->created,
		[JAIL_FILE_CHANGED] = &files->changed,
		[JAIL_FILE_DELETED] = &files->deleted,
		[JAIL_FILE_NOT_KEPT] = &files->not_kept,
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		*lists[i] = json_object_new_array();
	for (size_t i = 0; i < result->n_changes; i++) {
		const struct job_change *change = &result->changes[i];
		struct json_object *item;

		if (change->kind == JAIL_FILE_DELETED)
			item = json_new_safe(change->file.name, change->file.name_length);
		else if (change->kind == JAIL_FILE_NOT_KEPT)
			item = lost_file(change);
		else
			item = run_answer_file(server, result, &change->file, JAIL_ANSWER);
		json_object_array_add(*lists[change->kind], item);
	}
}

static struct json_object *tool_calls(const struct store_tools *tools)
{
	struct json_object *list = tools->n_calls > 0 ? json_object_new_array() : NULL;

	for (size_t i = 0; i < MIN(tools->n_calls, (size_t)RUN_CALLS_SHOWN); i++) {
		const struct store_tool_call *call = &tools->calls[i];
		auto_json struct json_object *server = json_new_safe(call->server, strlen(call->server));
		auto_json struct json_object *tool = json_new_safe(call->tool, strlen(call->tool));
		const int64_t began_us = call->started_us ? call->started_us : call->queued_us;
		const int64_t ms = (call->finished_us - began_us) / 1000;
		const int64_t bytes = (int64_t)call->result_length;
		const struct answer_call shown = {call->seq, server, tool, call->state, ms, bytes};

		json_object_array_add(list, bind_print_view(call_table, &shown, JAIL_ANSWER));
	}
	return list;
}

/* The result belongs to the job, and other threads may read it: copies. */
static struct json_object *copy_of(struct json_object *from)
{
	struct json_object *copy = NULL;

	if (from != NULL)
		json_object_deep_copy(from, &copy, NULL);
	return copy;
}

struct json_object *run_answer(const struct server *server, const struct job_result *result)
{
	struct answer answer = {
		.execution_id = result->id,
		.jail = result->jail,
		.out = json_new_safe(result->stdout_text.data, result->stdout_text.length),
		.error = json_new_safe(result->stderr_text.data, result->stderr_text.length),
	};

	answer.jail.denied = copy_of(result->jail.denied);
	answer.jail.network = copy_of(result->jail.network);
	answer.jail.value = *run_text_value(result) ? copy_of(result->jail.value) : NULL;
	answer.jail.warnings = copy_of(result->jail.warnings);
	answer.jail.left_in_tmp = copy_of(result->jail.left_in_tmp);
	answer.jail.stdout_truncated |= result->stdout_more;
	answer.jail.stderr_truncated |= result->stderr_more;
	if (*result->sandbox_id)
		answer.session = (struct answer_session){result->sandbox_id, result->note, result->sandbox_seq};
	add_files(server, result, &answer.files);
	answer.tool_calls = tool_calls(&result->tools);
	answer.workspace = result->workspace;
	struct json_object *object = bind_print_view(run_answer_table, &answer, JAIL_ANSWER);

	bind_clear(run_answer_table, &answer);
	return object;
}
