/*
 * doors_grade.c - /fusion/common_evaluate and common_evaluate_batch: one program against all cases of its problem, as
 * ScaleBox' clients send them; see doors.h.
 *
 * The grading is that of `sallyport grade` (lib/grade/grade_batch.h) and one row of the record. Each case is answered
 * as run_code answers a run. Outputs are compared as ScaleBox does it, but for the number of lines, which has to be the
 * same.
 */
#include "doors_grade.h"

#include <string.h>

#include "cgi/http/client.h"
#include "lib/base/util.h"

static void clear(void *asked)
{
	doors_grade_clear(asked);
}

static int take(struct doors_call *call, int64_t *ret_patience_us)
{
	struct grade_body *body = call->asked;
	int result = doors_grade_body(call, body);

	*ret_patience_us = doors_fusion_patience(body->compile_seconds, body->run_seconds);
	return result;
}

/* -------- the answer ---------------------------------------------------------------------------------- */

static struct json_object *empty(void)
{
	return json_object_new_string("");
}

static struct json_object *text_of(const char *text)
{
	return doors_text(text, strlen(text));
}

/* Of a run, what it did; of an exam, what it came to. */
static struct json_object *run_step(const struct grade_batch_case *one)
{
	if (one->ran)
		return doors_fusion_step(one->wall_us, one->end == JAIL_TO,
					 doors_fusion_code(one->end, one->exit_code, one->signal),
					 doors_text(one->out ? one->out : "", one->out_length),
					 doors_text(one->err ? one->err : "", one->err_length));
	return doors_fusion_step(one->wall_us, one->verdict == GRADE_TLE, one->verdict != GRADE_AC, empty(),
				 one->verdict == GRADE_AC ? empty() : text_of(one->message));
}

static struct json_object *compile_step(const struct grade_batch_result *result, bool ran)
{
	const bool failed = !ran && result->verdict == GRADE_CE;

	if (!result->compiled || !(ran || failed))
		return NULL;
	return doors_fusion_step(result->make_us, false, failed, empty(), failed ? text_of(result->message) : empty());
}

/* As run_code. `one` NULL: the program was not made. */
static struct json_object *exec_info(const struct job_grading *grading, const struct grade_batch_case *one)
{
	const struct grade_batch_result *result = &grading->result;
	struct json_object *object = json_object_new_object();
	const enum grade_verdict verdict = one ? one->verdict : result->verdict;
	const bool ours = verdict == GRADE_JE || verdict == GRADE_SKIP;
	const bool good = one && (one->ran ? one->end == JAIL_OK : verdict == GRADE_AC);

	json_add_string(object, "status", ours ? "SandboxError" : good ? "Success" : "Failed");
	json_add(object, "message", ours ? text_of(one ? one->message : result->message) : empty());
	json_add(object, "compile_result", compile_step(result, one != NULL));
	json_add(object, "run_result", one && !(ours && !one->ran) ? run_step(one) : NULL);
	json_add_string(object, "executor_pod_name", grading->id);
	json_add(object, "files", json_object_new_object());
	return object;
}

static void answer(struct doors_call *call, const struct grade_body *body, const struct job_grading *grading)
{
	auto_json struct json_object *object = json_object_new_object();
	const struct grade_batch_result *result = &grading->result;
	struct json_object *tests = json_object_new_array(), *id = json_member(body->document, "id");
	/* Where there is no program, all cases are answered alike. */
	const bool all = json_object_get_boolean(json_member(body->asked, "all"));
	const size_t count = result->count > 0 ? result->count : all ? json_object_array_length(body->shown) : 1;

	for (size_t i = 0; i < count; i++) {
		const struct grade_batch_case *one = result->count > 0 ? &result->cases[i] : NULL;
		struct json_object *test = json_object_new_object();

		json_add_bool(test, "passed", one && one->verdict == GRADE_AC);
		json_add(test, "exec_info", exec_info(grading, one));
		json_add(test, "test_info", json_object_get(json_object_array_get_idx(body->shown, i)));
		json_object_array_add(tests, test);
	}
	json_add(object, "id", id ? json_object_get(id) : json_object_new_int(0));
	json_add_bool(object, "accepted", result->verdict == GRADE_AC);
	json_add_string(object, "extracted_code", body->code);
	json_add(object, "full_code", NULL);
	json_add(object, "test_code", NULL);
	json_add(object, "tests", tests);
	json_add(object, "extracted_type", NULL);
	json_add(object, "extra", NULL);
	reply_json(call->exchange.reply, 200, object);
	doors_name(call, grading->id, grading->verdict);
}

/* 500 is what these clients repeat. */
static void answer_failure(struct reply *reply, const struct err *err)
{
	auto_json struct json_object *object = json_object_new_object();

	if (err->code == ERR_INVALID || err->code == ERR_LIMIT) {
		doors_fusion_refuse(reply, err->member[0] ? err->member : NULL, "value_error", err->text);
		return;
	}
	json_add_string(object, "detail", err->text);
	reply_json(reply, 500, object);
}

static void run(struct doors_call *call)
{
	struct http_exchange *exchange = &call->exchange;
	const struct grade_body *body = call->asked;
	auto_grading struct job_grading grading = {0};
	struct job_engine *engine;
	struct err err = ERR_INIT;
	const struct jail_limits limits =
		doors_limits(exchange->server->config, (int64_t)(body->run_seconds * 1e6),
			     (int64_t)(body->compile_seconds * 1e6), body->memory_bytes);
	const struct job_request request = {.owner = exchange->token.owner,
					    .token_id = exchange->token.id,
					    .client = &exchange->client,
					    .language = body->language,
					    .code = {body->code, strlen(body->code)},
					    .limits = &limits};
	struct json_object *id = json_member(body->document, "id");

	client_came(&exchange->client, call->door->name, id ? json_object_get_string(id) : NULL);
	int failed = server_engine(exchange->server, &engine, &err);

	if (failed == 0)
		failed = job_grading_run(engine, &request, body->asked, doors_until(call), &grading, &err);
	if (failed < 0)
		answer_failure(exchange->reply, &err);
	else if (grading.result.left)
		exchange->reply->gone = true;
	else if (grading.result.stopped)
		doors_fusion_late(exchange->reply);
	else
		answer(call, body, &grading);
}

/* Each case is an object of the body, one of what is asked, and up to three of the answer. */
const struct door doors_grade = {
	.name = "fusion",
	.size = sizeof(struct grade_body),
	.copies = 5,
	.take = take,
	.run = run,
	.late = doors_fusion_late,
	.clear = clear,
};
