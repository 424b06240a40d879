/*
 * doors_fusion.c - /fusion/: SandboxFusion's API, as verl, tinker-cookbook and its own client call it; see doors.h.
 *
 * A program that fails is an answer with status 200 like any other. These clients take every other status for a fault
 * of the sandbox, and only 504 for one that is worth another try.
 */
#include <string.h>

#include "cgi/http/files.h"
#include "doors_fusion.h"
#include "lib/base/util.h"

#define PROGRAM "main.py" /* where it is put, among its files */

static void clear(void *asked)
{
	struct fusion_body *body = asked;

	json_object_put(body->document);
}

static int take(struct doors_call *call, int64_t *ret_patience_us)
{
	struct fusion_body *body = call->asked;
	int result = doors_fusion_body(call, body);

	*ret_patience_us = doors_fusion_patience(body->compile_seconds, body->run_seconds);
	return result;
}

/* -------- the answer ---------------------------------------------------------------------------------- */

static void answer(struct doors_call *call, const struct fusion_body *body, const struct job_result *result)
{
	auto_json struct json_object *object = json_object_new_object();
	const struct jail_result *jail = &result->jail;
	const bool compile_failed = jail->verdict == JAIL_CE,
		   ours = jail->verdict == JAIL_XX || jail->verdict == JAIL_CX;
	struct json_object *out = doors_stream(call, result, false), *error = doors_stream(call, result, true);
	struct json_object *compile = NULL, *run = NULL;

	if (compile_failed)
		compile = doors_fusion_step(jail->compile.wall_us, doors_compiled_late(jail),
					    jail->exit_code > 0 ? jail->exit_code : 1, out, error);
	else if (jail->compiled)
		compile = doors_fusion_step(jail->compile.wall_us, false, 0, json_object_new_string(""),
					    json_object_new_string(""));
	if (!compile_failed)
		run = doors_fusion_step(jail->run.wall_us, jail->verdict == JAIL_TO,
					doors_fusion_code(jail->verdict, jail->exit_code, jail->signal), out, error);
	json_add_string(object, "status",
			ours ? "SandboxError" : jail->verdict == JAIL_OK ? "Success" : "Failed");
	json_add_string(object, "message", ours ? jail->message : "");
	json_add(object, "compile_result", compile);
	json_add(object, "run_result", run);
	json_add_string(object, "executor_pod_name", result->id);
	json_add(object, "files", doors_fusion_fetched(call, body->fetch, result->conversation));
	reply_json(call->exchange.reply, 200, object);
	doors_name(call, result->id, jail->verdict);
}

static void answer_failure(struct reply *reply, const struct err *err)
{
	auto_json struct json_object *object = json_object_new_object();

	if (err->code == ERR_INVALID || err->code == ERR_LIMIT) {
		doors_fusion_refuse(reply, err->member[0] ? err->member : NULL, "value_error", err->text);
		return;
	}
	json_add_string(object, "status", "SandboxError");
	json_add_string(object, "message", err->text);
	json_add(object, "compile_result", NULL);
	json_add(object, "run_result", NULL);
	json_add(object, "executor_pod_name", NULL);
	json_add(object, "files", json_object_new_object());
	reply_json(reply, 200, object);
}

/* -------- the run ------------------------------------------------------------------------------------- */

static void run(struct doors_call *call)
{
	auto_doors_inputs struct doors_inputs inputs = {.program = PROGRAM};
	const struct fusion_body *body = call->asked;
	struct err err = ERR_INIT;
	struct job *job = NULL;
	const struct job_result *result;

	const struct jail_limits limits =
		doors_limits(call->exchange.server->config, (int64_t)(body->run_seconds * 1e6),
			     (int64_t)(body->compile_seconds * 1e6), body->memory_bytes);

	struct job_request request = {
		.language = body->language,
		.code = {json_object_get_string(body->code), (size_t)json_object_get_string_len(body->code)},
		.limits = &limits};

	if (body->input)
		request.stdin_text = (struct bind_text){json_object_get_string(body->input),
							(size_t)json_object_get_string_len(body->input)};
	int failed = doors_fusion_decode(body->files, &inputs, &err);

	inputs.fetched = body->fetch != NULL;
	if (failed == 0)
		failed = doors_arguments(body->args, &request.args, &err);
	auto_free const char **arguments = request.args.items;

	if (failed == 0)
		failed = doors_run(call, &request, &inputs, &job, &result, &err);
	if (failed == 0)
		answer(call, body, result);
	else if (failed != -ERR_CANCELLED)
		answer_failure(call->exchange.reply, &err);
	job_release(job);
}

/* -------- routes -------------------------------------------------------------------------------------- */

static const struct door run_code = {
	.name = "fusion",
	.size = sizeof(struct fusion_body),
	.copies = 1,
	.take = take,
	.run = run,
	.late = doors_fusion_late,
	.clear = clear,
};

/* Data sets are not here; its clients know this answer. */
static void no_data_set(struct http_exchange *exchange)
{
	auto_buf struct buf text = {0};
	auto_json struct json_object *document = NULL, *object = json_object_new_object();

	if (!files_change_body(exchange, &text))
		return;
	json_parse(text.data, text.length, &document, NULL);
	const char *name =
		json_object_is_type(document, json_type_object) ? json_get_string(document, "dataset") : NULL;
	auto_free char *said = xasprintf("no eval class found for dataset %.200s", name ? name : "");

	json_add_string(object, "detail", said);
	reply_json(exchange->reply, 400, object);
}

static bool asks_for_data_set(const char *rest)
{
	static const char *const names[] = {"list_datasets", "list_ids", "get_prompt_by_id", "get_prompts",
					    "get_prompts_by_id", "get_metrics", "get_metrics_function", "submit"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (streq(rest, names[i]))
			return true;
	return false;
}

void doors_fusion(struct http_exchange *exchange, const char *method, const char *rest)
{
	struct reply *reply = exchange->reply;
	const bool post = streq(method, "POST");

	if (!exchange->server->config->doors.fusion) {
		reply_refuse(reply, 404, "nothing here: doors.fusion is not on");
	} else if (post && streq(rest, "run_code")) {
		doors_serve(exchange, &run_code);
	} else if (post && (streq(rest, "common_evaluate") || streq(rest, "common_evaluate_batch"))) {
		doors_serve(exchange, &doors_grade);
	} else if (post && streq(rest, "run_jupyter")) {
		doors_serve(exchange, &doors_jupyter);
	} else if (post && asks_for_data_set(rest)) {
		no_data_set(exchange);
	} else if (streq(rest, "list_languages")) {
		auto_json struct json_object *list = doors_fusion_languages();

		reply_json(reply, 200, list);
	} else if (!post && (streq(rest, "v1/ping") || streq(rest, ""))) {
		auto_json struct json_object *pong = json_object_new_string("pong");

		reply_json(reply, 200, pong);
	} else {
		reply_refuse(reply, 404, "nothing here: POST /fusion/run_code runs a program");
	}
}
