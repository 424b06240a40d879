/*
 * doors_piston_body.c - see doors_piston.h.
 *
 * A body is read twice: before its request waits, so that what is wrong with it is said at once, and when it has its
 * place. The order of the checks is the original's, so that a body with two faults gets the same message. Languages
 * that grade are found before runners: they have names that no runner has, or files that no other program comes with.
 */
#include <stdarg.h>

#include "doors_piston.h"
#include "jail/client/client_runners.h"
#include "lib/base/text.h"
#include "lib/base/util.h"

#define RUN_MS     3000 /* the original's defaults */
#define COMPILE_MS 10000

int doors_piston_refuse(struct reply *reply, int status, const char *format, ...)
{
	auto_json struct json_object *object = json_object_new_object();
	char text[ERR_TEXT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	json_add_string(object, "message", text);
	reply_json(reply, status, object);
	return -ERR_INVALID;
}

const struct doors_graded doors_graded[] = {
	{DOORS_GRADED_IOI, "cpp"}, {"c++17", "cpp"}, {"cf_c++17", "cpp"}, {"cf_python3", "python"}, {0}};

struct json_object *doors_piston_file(const struct piston_body *body, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(body->files); i++) {
		struct json_object *file = json_object_array_get_idx(body->files, i);
		const char *its = json_get_string(file, "name");

		if (its && streq(its, name))
			return file;
	}
	return NULL;
}

/* Is its language one that grades? "c++17" without the problem's configuration is none. */
static bool take_grader(struct piston_body *body)
{
	for (const struct doors_graded *one = doors_graded; one->name && !body->grades; one++) {
		body->grades = streq(body->language, one->name) &&
			       (!streq(body->language, "c++17") || doors_piston_file(body, "grader_config"));
		if (body->grades)
			snprintf(body->runner, sizeof(body->runner), "%s", one->runner);
	}
	return body->grades;
}

static int take_runner(struct doors_call *call, struct piston_body *body)
{
	struct http_exchange *exchange = &call->exchange;
	struct job_engine *engine;

	if (server_engine(exchange->server, &engine, NULL) < 0)
		return doors_piston_refuse(exchange->reply, 503, "the server is stopping");
	auto_json struct json_object *runners = job_engine_runners(engine);
	struct json_object *runner = runners ? jail_runner_named(runners, body->language) : NULL;

	if (!runner || !json_object_get_boolean(json_get(runner, "available", json_type_boolean)))
		return doors_piston_refuse(exchange->reply, 400, "%.100s-%.100s runtime is unknown", body->language,
					   body->version);
	doors_version(runner, body->found);
	if (!doors_version_fits(body->version, body->found))
		return doors_piston_refuse(exchange->reply, 400, "%.100s-%.100s runtime is unknown", body->language,
					   body->version);
	snprintf(body->runner, sizeof(body->runner), "%s", json_get_string(runner, "name"));
	body->compiled = json_object_get_boolean(json_get(runner, "compiled", json_type_boolean));
	return 0;
}

static int take_limit(struct reply *reply, struct json_object *document, const char *name, int64_t standard,
		      int64_t most, int64_t *ret)
{
	struct json_object *value = NULL;

	*ret = standard;
	if (!json_object_object_get_ex(document, name, &value) || !value)
		return 0;
	if (!json_object_is_type(value, json_type_int) && !json_object_is_type(value, json_type_double))
		return doors_piston_refuse(reply, 400, "if specified, %s must be a number", name);
	const int64_t number = json_object_get_int64(value);

	if (most > 0 && number > most)
		return doors_piston_refuse(reply, 400, "%s cannot exceed the configured limit of %lld", name,
					   (long long)most);
	if (number < 0 && number != -1)
		return doors_piston_refuse(reply, 400, "%s must be non-negative", name);
	if (number > 0)
		*ret = number;
	return 0;
}

static int take_limits(struct doors_call *call, struct piston_body *body)
{
	const struct config_limits *limits = &call->exchange.server->config->limits;
	struct reply *reply = call->exchange.reply;
	const int64_t run_most = limits->wall_seconds_max * 1000, compile_most = limits->compile_seconds * 1000;
	int64_t run_ms = 0, compile_ms = 0, run_cpu_ms = 0, unused;
	int result = take_limit(reply, body->document, "compile_timeout", MIN(COMPILE_MS, compile_most), compile_most,
				&compile_ms);

	if (result == 0)
		result = take_limit(reply, body->document, "run_timeout", MIN(RUN_MS, run_most), run_most, &run_ms);
	if (result == 0)
		result = take_limit(reply, body->document, "compile_cpu_time", compile_most, compile_most, &unused);
	if (result == 0)
		result = take_limit(reply, body->document, "run_cpu_time", run_ms, run_most, &run_cpu_ms);
	if (result == 0)
		result = take_limit(reply, body->document, "compile_memory_limit", 0, 0, &unused);
	if (result == 0)
		result = take_limit(reply, body->document, "run_memory_limit", 0, limits->memory_mb_max << 20,
				    &body->memory_bytes);
	body->run_us = MIN(run_ms, run_cpu_ms) * 1000;
	body->compile_us = compile_ms * 1000;
	return result;
}

static int take_files(struct reply *reply, const struct piston_body *body)
{
	const size_t count = json_object_array_length(body->files);

	if (count == 0)
		return doors_piston_refuse(reply, 400, "files must contain at least one file");
	if (count > JOB_FILES_MAX)
		return doors_piston_refuse(reply, 400, "files must contain at most %d files", JOB_FILES_MAX);
	for (size_t i = 0; i < count; i++) {
		struct json_object *file = json_object_array_get_idx(body->files, i);
		const char *name = json_get_string(file, "name"), *encoding = json_get_string(file, "encoding");

		if (!json_get(file, "content", json_type_string))
			return doors_piston_refuse(reply, 400, "files[%zu].content is required as a string", i);
		if (name && *name && !doors_path(name))
			return doors_piston_refuse(reply, 400, "files[%zu].name must lead below the program's folder",
						   i);
		if (encoding && !streq(encoding, "utf8") && !streq(encoding, "base64") && !streq(encoding, "hex"))
			return doors_piston_refuse(reply, 400, "files[%zu].encoding must be utf8, base64 or hex", i);
	}
	return 0;
}

int doors_piston_body(struct doors_call *call, struct piston_body *ret)
{
	struct reply *reply = call->exchange.reply;
	struct err err = ERR_INIT;

	*ret = (struct piston_body){0};
	if (json_parse(call->body.data, call->body.length, &ret->document, &err) < 0)
		return doors_piston_refuse(reply, 400, "%s", err.text);
	if (!json_object_is_type(ret->document, json_type_object))
		return doors_piston_refuse(reply, 400, "the body must be a JSON object");
	ret->language = json_get_string(ret->document, "language");
	ret->version = json_get_string(ret->document, "version");
	ret->files = json_get(ret->document, "files", json_type_array);
	ret->args = json_get(ret->document, "args", json_type_array);
	ret->input = json_get(ret->document, "stdin", json_type_string);
	if (!ret->language)
		return doors_piston_refuse(reply, 400, "language is required as a string");
	if (!ret->version)
		return doors_piston_refuse(reply, 400, "version is required as a string");
	if (!ret->files)
		return doors_piston_refuse(reply, 400, "files is required as an array");
	int result = take_files(reply, ret);

	if (result == 0 && !take_grader(ret))
		result = take_runner(call, ret);
	return result < 0 ? result : take_limits(call, ret);
}

/* -------- what gradings use, too ---------------------------------------------------------------------- */

void doors_piston_late(struct reply *reply)
{
	doors_piston_refuse(reply, 503, "the server is busy and the program has not begun: try again");
}

int doors_piston_decode(struct json_object *file, size_t number, struct job_file *ret, struct err *err)
{
	const char *name = json_get_string(file, "name"), *encoding = json_get_string(file, "encoding");
	struct json_object *content = json_get(file, "content", json_type_string);
	const char *text = json_object_get_string(content);
	const size_t length = (size_t)json_object_get_string_len(content);
	auto_buf struct buf data = {0};
	int result = 0;

	buf_init(&data, length + 1);
	if (encoding && streq(encoding, "base64")) {
		result = base64_decode(text, length, &data, err);
	} else if (encoding && streq(encoding, "hex")) {
		auto_free uint8_t *bytes = xmalloc(length / 2 + 1);

		if (length % 2 != 0 || hex_decode(text, length, bytes) < 0)
			return err_set(err, ERR_INVALID, "files[%zu].content is not hexadecimal", number);
		buf_add(&data, bytes, length / 2);
	} else {
		buf_add(&data, text, length);
	}
	if (result < 0)
		return err_wrap(err, "files[%zu].content", number);
	ret->name = name && *name ? xstrdup(doors_path(name)) : xasprintf("file%zu.code", number);
	ret->data = buf_steal(&data, &ret->length);
	return 0;
}

void doors_piston_failure(struct reply *reply, const struct err *err)
{
	if (err->code == ERR_INVALID || err->code == ERR_LIMIT)
		doors_piston_refuse(reply, 400, "%s", err->text);
	else
		doors_piston_refuse(reply, err->code == ERR_BUSY || err->code == ERR_UNAVAILABLE ? 503 : 500, "%s",
				    err->text);
}
