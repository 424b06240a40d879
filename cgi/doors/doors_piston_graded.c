/*
 * doors_piston_graded.c - languages that grade: cms_ioi, c++17 (cf_c++17) and cf_python3, as open-r1 calls them; see
 * doors_piston.h.
 *
 * For Piston these are packages of scripts that build a submission, run it on input.txt and judge what it printed. Here
 * it is one grading of lib/grade with one case, so that the submission sees neither the right output nor the checker.
 * Standard output of `run` is the score, standard error what is said of it, as of those scripts.
 *
 *     cms_ioi       graders/ID.cpp with the other sources in graders/, checker/ (C++), graders/grader_config.json
 *     c++17, …      main.cpp or the first file, checker.py, grader_config: TIME_LIMIT=s, MEMORY_LIMIT=MiB
 *
 * Both: input.txt and correct_output.txt. Without a checker outputs are compared word by word. Problems with a manager
 * (task type Communication), and programs that read and write files, are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "doors_piston.h"
#include "lib/base/util.h"

#define STANDARD "-std=gnu++17" /* of all of these packages */
#define FOLDER   "graders/"
#define CHECKER  "checker/"

struct graded_body {
	struct json_object *asked, *judge; /* judge: NULL, or in asked */
	char *code;
	double seconds;
	int64_t memory_bytes;
};

static void body_clear(struct graded_body *body)
{
	json_object_put(body->asked);
	free(body->code);
}
#define auto_body __attribute__((cleanup(body_clear)))

/* -------- files --------------------------------------------------------------------------------------- */

/* Its text; false: the reply says what is wrong with it. NULL: it is not there. */
static bool text_of(struct reply *reply, struct json_object *file, char **ret, size_t *ret_length)
{
	struct job_file decoded = {0};
	struct err err = ERR_INIT;

	if (!file)
		return true;
	if (doors_piston_decode(file, 0, &decoded, &err) < 0) {
		doors_piston_refuse(reply, 400, "%s", err.text);
		return false;
	}
	free(unconst(decoded.name));
	*ret = (char *)unconst(decoded.data);
	*ret_length = decoded.length;
	return true;
}

/* -------- what is asked ------------------------------------------------------------------------------- */

static bool is_code(const char *name)
{
	return str_ends(name, ".cpp") || str_ends(name, ".cc") || str_ends(name, ".h") || str_ends(name, ".hpp");
}

static bool is_part(const char *name)
{
	static const char *const parts[] = {FOLDER "grader.cpp", FOLDER "stub.cpp", FOLDER "manager.cpp"};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (streq(name, parts[i]))
			return true;
	return false;
}

/* One of the files of cms_ioi, where it belongs. */
static int sort_file(struct reply *reply, struct graded_body *ret, struct json_object *file, struct json_object *mine,
		     struct json_object *judges)
{
	const char *name = json_get_string(file, "name");
	const bool checks = name && str_starts(name, CHECKER);
	auto_free char *text = NULL;
	size_t length = 0;

	if (!name || !is_code(name) || !(checks || str_starts(name, FOLDER)))
		return 0;
	if (streq(name, FOLDER "manager.cpp"))
		return doors_piston_refuse(reply, 400, "problems with a manager are not supported");
	if (!text_of(reply, file, &text, &length))
		return -ERR_INVALID;
	if (checks && streq(name, CHECKER "checker.cpp")) {
		json_add_string(ret->judge, "name", name);
		json_add_string(ret->judge, "code", text);
	} else if (checks) {
		json_add_string(judges, name, text);
	} else if (!is_part(name) && str_ends(name, ".cpp") && !ret->code) {
		json_add_string(ret->asked, "name", name);
		ret->code = steal(&text);
	} else {
		json_add_string(mine, name, text);
	}
	return 0;
}

static int take_ioi(struct reply *reply, const struct piston_body *body, struct graded_body *ret)
{
	struct json_object *mine = json_object_new_object(), *judges = json_object_new_object();
	auto_json struct json_object *config = NULL;
	auto_free char *text = NULL;
	size_t length = 0;
	int result = 0;

	ret->judge = json_object_new_object();
	json_add(ret->asked, "files", mine);
	json_add(ret->asked, "judge", ret->judge);
	json_add_string(ret->judge, "language", "cpp");
	json_add(ret->judge, "files", judges);
	for (size_t i = 0; result == 0 && i < json_object_array_length(body->files); i++)
		result = sort_file(reply, ret, json_object_array_get_idx(body->files, i), mine, judges);
	if (result < 0)
		return result;
	if (!ret->code)
		return doors_piston_refuse(reply, 400, "there is no submission: graders/ID.cpp");
	if (!json_get_string(ret->judge, "code")) {
		json_object_object_del(ret->asked, "judge");
		ret->judge = NULL;
	}
	if (!text_of(reply, doors_piston_file(body, FOLDER "grader_config.json"), &text, &length))
		return -ERR_INVALID;
	if (text && json_parse(text, length, &config, NULL) == 0) {
		struct json_object *seconds = NULL;
		const char *type = json_get_string(config, "task_type");

		if (type && !streq(type, "Batch"))
			return doors_piston_refuse(reply, 400, "the task type %.50s is not supported", type);
		if (json_object_object_get_ex(config, "time_limit", &seconds))
			ret->seconds = json_object_get_double(seconds);
	}
	return 0;
}

/* A number behind "NAME=" at the beginning of a line; 0: it is not there. */
static double setting(const char *text, const char *name)
{
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (str_starts(line, name) && line[strlen(name)] == '=')
			return strtod(line + strlen(name) + 1, NULL);
	return 0;
}

static int take_codeforces(struct reply *reply, const struct piston_body *body, struct graded_body *ret)
{
	struct json_object *main = doors_piston_file(body, "main.cpp");
	auto_free char *config = NULL, *checker = NULL;
	size_t length = 0;

	if (!text_of(reply, main ? main : json_object_array_get_idx(body->files, 0), &ret->code, &length) ||
	    !text_of(reply, doors_piston_file(body, "grader_config"), &config, &length) ||
	    !text_of(reply, doors_piston_file(body, "checker.py"), &checker, &length))
		return -ERR_INVALID;
	if (config && strstr(config, "INPUT_MODE=file"))
		return doors_piston_refuse(reply, 400, "programs that read and write files are not supported");
	ret->seconds = config ? setting(config, "TIME_LIMIT") : 0;
	ret->memory_bytes = config ? (int64_t)(setting(config, "MEMORY_LIMIT") * LIMIT_MEBI) : 0;
	if (!checker)
		return 0;
	ret->judge = json_object_new_object();
	json_add_string(ret->judge, "language", "python");
	json_add_string(ret->judge, "code", checker);
	json_add(ret->asked, "judge", ret->judge);
	return 0;
}

static int take_body(struct reply *reply, const struct piston_body *body, struct graded_body *ret)
{
	struct json_object *cases = json_object_new_array(), *one = json_object_new_object();
	auto_free char *input = NULL, *output = NULL;
	size_t length = 0;
	int result;

	*ret = (struct graded_body){.asked = json_object_new_object()};
	json_add_string(ret->asked, "kind", "stdin");
	json_add_bool(ret->asked, "words", true);
	if (streq(body->runner, "cpp"))
		json_add_string(ret->asked, "option", STANDARD);
	json_add(ret->asked, "cases", cases);
	json_object_array_add(cases, one);
	result = streq(body->language, DOORS_GRADED_IOI) ? take_ioi(reply, body, ret)
							 : take_codeforces(reply, body, ret);
	if (result < 0)
		return result;
	if (ret->judge) {
		json_add_bool(ret->judge, "scores", true);
		json_add_bool(ret->judge, "always", true);
		if (streq(json_get_string(ret->judge, "language"), "cpp"))
			json_add_string(ret->judge, "option", STANDARD);
	}
	if (!text_of(reply, doors_piston_file(body, "input.txt"), &input, &length))
		return -ERR_INVALID;
	json_add(one, "input", json_object_new_string_len(input ? input : "", (int)length));
	length = 0;
	if (!text_of(reply, doors_piston_file(body, "correct_output.txt"), &output, &length))
		return -ERR_INVALID;
	json_add(one, "output", json_object_new_string_len(output ? output : "", (int)length));
	return 0;
}

/* -------- the answer ---------------------------------------------------------------------------------- */

static struct json_object *stage(int code, const char *out, const char *said, int64_t wall_us,
				 const struct grade_batch_case *one)
{
	struct json_object *object = json_object_new_object();
	auto_free char *both = xasprintf("%s%s", out, said);

	json_add(object, "stdout", doors_text(out, strlen(out)));
	json_add(object, "stderr", doors_text(said, strlen(said)));
	json_add(object, "output", doors_text(both, strlen(both)));
	json_add_int(object, "code", code);
	json_add(object, "signal", NULL);
	json_add(object, "message", NULL);
	json_add(object, "status", code ? json_object_new_string("RE") : NULL);
	json_add_int(object, "cpu_time", one ? one->cpu_us / 1000 : 0);
	json_add_int(object, "wall_time", wall_us / 1000);
	json_add_int(object, "memory", one ? one->memory_bytes : 0);
	return object;
}

static void answer(struct doors_call *call, const struct piston_body *body, const struct job_grading *grading)
{
	auto_json struct json_object *object = json_object_new_object();
	struct reply *reply = call->exchange.reply;
	const struct grade_batch_result *result = &grading->result;
	const struct grade_batch_case *one = result->count > 0 ? &result->cases[0] : NULL;

	if (result->verdict == GRADE_JE) {
		doors_piston_refuse(reply, 500, "%s", result->message);
		return;
	}
	if (result->verdict == GRADE_SKIP) {
		doors_piston_refuse(reply, 400, "%s", result->message);
		return;
	}
	if (one) {
		auto_free char *out = xasprintf("%s\n", one->score ? one->score : one->verdict == GRADE_AC ? "1" : "0");
		const char *said = one->score || *one->message ? one->message
				   : one->verdict == GRADE_AC  ? "Output is correct"
							       : "";

		json_add(object, "run", stage(0, out, said, one->wall_us, one));
		json_add(object, "compile", stage(0, "", "", result->make_us, NULL));
	} else {
		json_add(object, "run", stage(1, "", result->message, result->make_us, NULL));
		json_add(object, "compile", stage(1, "", result->message, result->make_us, NULL));
	}
	json_add_string(object, "language", body->language);
	json_add_string(object, "version", DOORS_GRADED_VERSION);
	reply_json(reply, 200, object);
	doors_name(call, grading->id, grading->verdict);
}

void doors_piston_grade(struct doors_call *call, const struct piston_body *body)
{
	struct http_exchange *exchange = &call->exchange;
	auto_body struct graded_body mine;
	auto_grading struct job_grading grading = {0};
	struct job_engine *engine;
	struct err err = ERR_INIT;

	if (take_body(exchange->reply, body, &mine) < 0)
		return;
	const struct jail_limits limits = doors_limits(
		exchange->server->config, mine.seconds > 0 ? (int64_t)(mine.seconds * 1e6) : body->run_us,
		body->compile_us, body->memory_bytes > 0 ? body->memory_bytes : mine.memory_bytes);
	const struct job_request request = {.owner = exchange->token.owner,
					    .token_id = exchange->token.id,
					    .client = &exchange->client,
					    .language = body->runner,
					    .code = {mine.code, strlen(mine.code)},
					    .limits = &limits};
	int failed = server_engine(exchange->server, &engine, &err);

	if (failed == 0)
		failed = job_grading_run(engine, &request, mine.asked, doors_until(call), &grading, &err);
	if (failed < 0)
		doors_piston_failure(exchange->reply, &err);
	else if (grading.result.left)
		exchange->reply->gone = true;
	else if (grading.result.stopped)
		doors_piston_late(exchange->reply);
	else
		answer(call, body, &grading);
}
