/*
 * doors_grade_body.c - see doors_grade.h.
 *
 * What lib/grade is asked (grade_batch.h) is made out of the body: the cases as they are, the judge under our name of
 * its language. What the answer says of each case is kept apart, as the client has sent it. The program is the first
 * block with fences in the completion, or the one that defines the function in question; without fences, all of it.
 */
#include "doors_grade.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/grade/grade_batch.h"
#include "lib/grade/grade_sample.h"

#define TOTAL_SECONDS 300.0 /* for all cases, where the request says nothing */

void doors_grade_clear(struct grade_body *body)
{
	json_object_put(body->document);
	json_object_put(body->asked);
	json_object_put(body->shown);
	free(body->code);
}

/* -------- the cases ----------------------------------------------------------------------------------- */

static int refuse_cases(struct reply *reply, const char *text)
{
	return doors_fusion_refuse(reply, "config", "value_error", text);
}

/* Calls take a list of arguments, or JSON as text where json_input says so. */
static struct json_object *call_input(struct json_object *input, bool is_json)
{
	if (is_json || json_object_is_type(input, json_type_array))
		return json_object_get(input);
	struct json_object *list = json_object_new_array();

	json_object_array_add(list, json_object_get(input));
	return list;
}

static void show_case(struct grade_body *body, bool call, const char *function, struct json_object *input,
		      struct json_object *output)
{
	struct json_object *info = json_object_new_object();

	if (call) {
		json_add_string(info, "type", "function_call");
		json_add_string(info, "fn_name", function);
		json_add(info, "input", json_object_get(input));
		json_add(info, "output", json_object_get(output));
	} else {
		struct json_object *in = json_object_new_object(), *out = json_object_new_object();

		json_add(in, "stdin", json_object_get(input));
		json_add(out, "stdout", json_object_get(output));
		json_add(info, "input", in);
		json_add(info, "output", out);
	}
	json_object_array_add(body->shown, info);
}

static void add_case(struct grade_body *body, struct json_object *cases, const char *function, bool is_json,
		     struct json_object *input, struct json_object *output)
{
	struct json_object *one = json_object_new_object();

	json_add(one, "input", function ? call_input(input, is_json) : json_object_get(input));
	json_add(one, "output", json_object_get(output));
	json_object_array_add(cases, one);
	show_case(body, function != NULL, function, input, output);
}

/* A list of objects; of an object of lists the caller makes one. */
static int take_list(struct reply *reply, struct grade_body *body, struct json_object *list, const char *function,
		     bool is_json)
{
	struct json_object *cases = json_object_new_array();
	const size_t count = json_object_array_length(list);

	json_add(body->asked, "cases", cases);
	if (count == 0 || count > GRADE_BATCH_CASES)
		return refuse_cases(reply, "test_cases: there must be between 1 and 10000");
	for (size_t i = 0; i < count; i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		if (!json_object_is_type(one, json_type_object))
			return refuse_cases(reply, "test_cases: each must be an object");
		struct json_object *input = json_member(one, "input"), *output = json_member(one, "output");

		if (!function && (!json_object_is_type(input, json_type_string) ||
				  !json_object_is_type(output, json_type_string)))
			return refuse_cases(reply, "test_cases: input and output must be strings");
		add_case(body, cases, function, is_json, input, output);
	}
	return 0;
}

static int take_cases(struct reply *reply, struct grade_body *body, struct json_object *given, const char *function)
{
	struct json_object *inputs = json_get(given, "input", json_type_array),
			   *outputs = json_get(given, "output", json_type_array);
	auto_json struct json_object *list = json_object_new_array();

	if (json_object_is_type(given, json_type_array))
		return take_list(reply, body, given, function, false);
	if (!inputs || !outputs || json_object_array_length(inputs) != json_object_array_length(outputs))
		return refuse_cases(reply, "test_cases: there must be as many outputs as inputs");
	for (size_t i = 0; i < json_object_array_length(inputs); i++) {
		struct json_object *one = json_object_new_object();

		json_add(one, "input", json_object_get(json_object_array_get_idx(inputs, i)));
		json_add(one, "output", json_object_get(json_object_array_get_idx(outputs, i)));
		json_object_array_add(list, one);
	}
	return take_list(reply, body, list, function, json_object_get_boolean(json_member(given, "json_input")));
}

/* Tests that are code: those of HumanEval call check(ENTRY), those of MultiPL-E are the end of the program. */
static int take_tests(struct reply *reply, struct grade_body *body, struct json_object *given)
{
	static const char *const known[] = {"prompt", "test", "entry_point", "tests"};
	const char *language = body->language;
	struct json_object *task = json_object_new_object();

	json_add(body->asked, "task", task);
	json_add_string(task, "prompt", "");
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (json_get_string(given, known[i]))
			json_add_string(task, known[i], json_get_string(given, known[i]));
	if (!json_get_string(given, "tests") && (!json_get_string(given, "test") || !streq(language, "python")))
		return refuse_cases(reply, "test_cases: tests must be a string, or in Python test and entry_point");
	if (!json_get_string(given, "tests") && !json_get_string(given, "entry_point"))
		return refuse_cases(reply, "test_cases: entry_point is missing");
	if (json_get_string(given, "tests")) {
		if (!streq(language, "python") && !streq(language, "cpp") && !streq(language, "go") &&
		    !streq(language, "javascript"))
			return refuse_cases(reply, "tests that are code are graded in python, cpp, go and nodejs");
		json_add_string(task, "name", "tests");
		json_add_string(task, "language", language);
	}
	json_object_array_add(body->shown, json_object_new_object());
	return 0;
}

static int take_kind(struct reply *reply, struct grade_body *body, struct json_object *given)
{
	struct json_object *first =
		json_object_is_type(given, json_type_array) ? json_object_array_get_idx(given, 0) : given;
	const char *type = json_get_string(first, "type"), *function = json_get_string(first, "fn_name");

	type = type ? type : function ? "function_call" : "stdin_stdout";
	if (streq(type, "assert")) {
		json_add_string(body->asked, "kind", "tests");
		return take_tests(reply, body, first);
	}
	if (streq(type, "stdin_stdout")) {
		json_add_string(body->asked, "kind", "stdin");
		return take_cases(reply, body, given, NULL);
	}
	if (!streq(type, "function_call"))
		return refuse_cases(reply, "test_cases: the type is stdin_stdout, function_call or assert");
	if (!function || !streq(body->language, "python"))
		return refuse_cases(reply, "test_cases: function_call needs fn_name, and the language python");
	json_add_string(body->asked, "kind", "call");
	json_add_string(body->asked, "function", function);
	return take_cases(reply, body, given, function);
}

/* -------- the rest of the body ------------------------------------------------------------------------ */

static int take_judge(struct reply *reply, struct grade_body *body, struct json_object *extra)
{
	const char *code = json_get_string(extra, "special_judge_program"),
		   *language = json_get_string(extra, "special_judge_language");
	struct json_object *judge;

	if (!code)
		return 0;
	language = doors_fusion_language(reply, language ? language : "python");
	if (!language)
		return -ERR_INVALID;
	judge = json_object_new_object();
	json_add_string(judge, "language", language);
	json_add_string(judge, "code", code);
	json_add_bool(judge, "always", json_object_get_boolean(json_member(extra, "force_special_judge")));
	json_add(body->asked, "judge", judge);
	return 0;
}

static int take_config(struct reply *reply, struct grade_body *body, struct json_object *config)
{
	const char *language = json_get_string(config, "language");
	struct json_object *extra = json_get(config, "extra", json_type_object),
			   *data = json_get(config, "provided_data", json_type_object),
			   *cases = json_member(data, "test_cases");
	int result;

	if (!language || !*language) {
		auto_json struct json_object *object = json_object_new_object();

		json_add_string(object, "detail", "config.language field must exist, got None");
		reply_json(reply, 400, object);
		return -ERR_INVALID;
	}
	if (json_member(config, "custom_extract_logic"))
		return doors_fusion_refuse(reply, "config", "value_error", "custom_extract_logic is not supported");
	if (streq(language, "javascript") || streq(language, "js"))
		language = "nodejs";
	if (!(body->language = doors_fusion_language(reply, language)))
		return -ERR_INVALID;
	if (!cases)
		return refuse_cases(reply, "provided_data.test_cases is missing");
	if ((result = doors_fusion_seconds(reply, config, "compile_timeout", DOORS_FUSION_SECONDS,
					   &body->compile_seconds)) < 0 ||
	    (result = doors_fusion_seconds(reply, config, "run_timeout", DOORS_FUSION_SECONDS, &body->run_seconds)) <
		    0 ||
	    (result = doors_fusion_seconds(reply, extra, "total_timeout", TOTAL_SECONDS, &body->total_seconds)) < 0 ||
	    (result = doors_fusion_memory(reply, config, "memory_limit_mb", &body->memory_bytes)) < 0 ||
	    (result = take_judge(reply, body, extra)) < 0)
		return result;
	json_add_int(body->asked, "total_us", (int64_t)(body->total_seconds * 1e6));
	json_add_bool(body->asked, "all", json_object_get_boolean(json_member(extra, "run_all_cases")));
	return take_kind(reply, body, cases);
}

int doors_grade_body(struct doors_call *call, struct grade_body *ret)
{
	struct reply *reply = call->exchange.reply;
	struct err err = ERR_INIT;

	*ret = (struct grade_body){.asked = json_object_new_object(), .shown = json_object_new_array()};
	if (json_parse(call->body.data, call->body.length, &ret->document, &err) < 0)
		return doors_fusion_refuse(reply, NULL, "json_invalid", err.text);
	struct json_object *text = json_get(ret->document, "completion", json_type_string);
	const char *completion = json_object_get_string(text);

	if (!json_object_is_type(ret->document, json_type_object))
		return doors_fusion_refuse(reply, NULL, "model_attributes_type", "Input should be an object");
	if (!completion)
		return doors_fusion_refuse(reply, "completion", "missing", "Field required");
	if (strlen(completion) < (size_t)json_object_get_string_len(text))
		return doors_fusion_refuse(reply, "completion", "value_error", "the program holds a NUL");
	if (!json_get(ret->document, "config", json_type_object))
		return doors_fusion_refuse(reply, "config", "missing", "Field required");
	int result = take_config(reply, ret, json_get(ret->document, "config", json_type_object));

	if (result < 0)
		return result;
	const char *entry = json_get_string(json_get(ret->asked, "task", json_type_object), "entry_point");

	if (!entry)
		entry = json_get_string(ret->asked, "function");
	ret->code = grade_sample_unfence(completion, entry ? entry : "");
	if (!ret->code)
		ret->code = xstrdup(completion);
	return 0;
}
