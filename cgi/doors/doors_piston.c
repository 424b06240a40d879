/*
 * doors_piston.c - /piston/api/v2/: Piston's REST API, as open-r1 and the clients on npm call it; see doors.h.
 *
 * Its messages are the original's. Any media type is taken: one of its clients sends text/plain. There is no order
 * between the two streams in the record: `output` is standard output, then standard error.
 */
#include <signal.h>
#include <string.h>

#include "doors_piston.h"
#include "lib/base/text.h"
#include "lib/base/util.h"

#define PATIENCE_US     INT64_C(30000000) /* open-r1 waits so long for a byte */

static void clear(void *asked)
{
	struct piston_body *body = asked;

	json_object_put(body->document);
}

static int take(struct doors_call *call, int64_t *ret_patience_us)
{
	*ret_patience_us = PATIENCE_US;
	return doors_piston_body(call, call->asked);
}

/* -------- the answer ---------------------------------------------------------------------------------- */

static const char *status_of(enum jail_verdict verdict)
{
	switch (verdict) {
	case JAIL_OK:
		return NULL;
	case JAIL_RE:
	case JAIL_CE:
		return "RE";
	case JAIL_TO:
		return "TO";
	case JAIL_OL:
		return "OL";
	case JAIL_SG:
	case JAIL_ML:
		return "SG";
	default:
		return "XX";
	}
}

static struct json_object *stage(const struct jail_result *jail, const struct jail_usage *usage,
				 enum jail_verdict verdict, struct json_object *out, struct json_object *error)
{
	const bool killed = verdict == JAIL_TO || verdict == JAIL_OL || verdict == JAIL_ML;
	const char *name = verdict == JAIL_SG ? sigabbrev_np(jail->signal) : killed ? "KILL" : NULL;
	struct json_object *object = json_object_new_object();
	auto_free char *signal = name ? xasprintf("SIG%s", name) : NULL;
	auto_buf struct buf both = {0};

	buf_init(&both, 2 * DOORS_STREAM_MAX * 3);
	buf_add(&both, json_object_get_string(out), (size_t)json_object_get_string_len(out));
	buf_add(&both, json_object_get_string(error), (size_t)json_object_get_string_len(error));
	json_add(object, "stdout", out);
	json_add(object, "stderr", error);
	json_add(object, "output", json_object_new_string_len(both.data, (int)both.length));
	json_add(object, "code", signal ? NULL : json_object_new_int(verdict == JAIL_OK ? 0 : jail->exit_code));
	json_add_string(object, "signal", signal);
	json_add_string(object, "message", verdict == JAIL_OK || verdict == JAIL_RE ? NULL : jail->message);
	json_add_string(object, "status", status_of(verdict));
	json_add_int(object, "cpu_time", usage->cpu_us / 1000);
	json_add_int(object, "wall_time", usage->wall_us / 1000);
	json_add_int(object, "memory", usage->memory_peak_bytes);
	return object;
}

static void answer(struct doors_call *call, const struct piston_body *body, const struct job_result *result)
{
	auto_json struct json_object *object = json_object_new_object();
	const struct jail_result *jail = &result->jail;
	const bool failed = jail->verdict == JAIL_CE;
	struct json_object *out, *error;

	if (jail->verdict == JAIL_XX || jail->verdict == JAIL_CX) {
		doors_piston_refuse(call->exchange.reply, 500, "%s", jail->message);
		return;
	}
	out = doors_stream(call, result, false);
	error = doors_stream(call, result, true);
	struct json_object *run = failed ? stage(jail, &jail->compile, doors_compiled_late(jail) ? JAIL_TO : JAIL_CE,
						 out, error)
					 : stage(jail, &jail->run, jail->verdict, out, error);

	json_add(object, "run", run);
	if (failed)
		json_add(object, "compile", json_object_get(run));
	else if (jail->compiled)
		json_add(object, "compile",
			 stage(jail, &jail->compile, JAIL_OK, json_object_new_string(""), json_object_new_string("")));
	json_add_string(object, "language", body->runner);
	json_add_string(object, "version", body->found);
	reply_json(call->exchange.reply, 200, object);
	doors_name(call, result->id, jail->verdict);
}

/* -------- the run ------------------------------------------------------------------------------------- */

static void run(struct doors_call *call)
{
	auto_doors_inputs struct doors_inputs inputs = {.count = 0};
	const struct piston_body *body = call->asked;
	struct err err = ERR_INIT;
	struct job *job = NULL;
	const struct job_result *result;
	struct job_file program = {0};
	int failed = 0;

	if (body->grades) {
		doors_piston_grade(call, body);
		return;
	}
	const struct jail_limits limits =
		doors_limits(call->exchange.server->config, body->run_us, body->compile_us, body->memory_bytes);

	for (size_t i = 1; failed == 0 && i < json_object_array_length(body->files); i++) {
		failed = doors_piston_decode(json_object_array_get_idx(body->files, i), i,
					     &inputs.files[inputs.count], &err);
		inputs.count += failed == 0;
	}
	if (failed == 0)
		failed = doors_piston_decode(json_object_array_get_idx(body->files, 0), 0, &program, &err);
	auto_free const char *name = program.name, *data = program.data;
	struct job_request request = {
		.language = body->runner, .code = {program.data, program.length}, .limits = &limits};
	auto_free const char **arguments = NULL;

	if (body->input)
		request.stdin_text = (struct bind_text){json_object_get_string(body->input),
							(size_t)json_object_get_string_len(body->input)};
	if (failed == 0)
		failed = doors_arguments(body->args, &request.args, &err);
	arguments = request.args.items;
	inputs.program = program.name;
	if (failed == 0)
		failed = doors_run(call, &request, &inputs, &job, &result, &err);
	if (failed == 0)
		answer(call, body, result);
	else if (failed != -ERR_CANCELLED)
		doors_piston_failure(call->exchange.reply, &err);
	job_release(job);
}

/* -------- routes -------------------------------------------------------------------------------------- */

static const struct door execute = {
	.name = "piston",
	.size = sizeof(struct piston_body),
	.copies = 1,
	.take = take,
	.run = run,
	.late = doors_piston_late,
	.clear = clear,
};

struct listing {
	struct json_object *all;
	bool packages;
};

/* As the two lists say them: `packages` leaves out the aliases. */
static void add_runtime(const struct listing *listing, const char *name, const char *version,
			struct json_object *aliases)
{
	struct json_object *one = json_object_new_object();

	json_add_string(one, "language", name);
	json_add_string(one, listing->packages ? "language_version" : "version", version);
	if (listing->packages)
		json_add_bool(one, "installed", true);
	else
		json_add(one, "aliases", aliases ? json_object_get(aliases) : json_object_new_array());
	json_object_array_add(listing->all, one);
}

static void list(struct http_exchange *exchange, bool packages)
{
	auto_json struct json_object *all = json_object_new_array(), *runners = NULL;
	struct listing listing = {all, packages};
	struct job_engine *engine;

	if (server_engine(exchange->server, &engine, NULL) == 0) {
		job_engine_await_runners(engine);
		runners = job_engine_runners(engine);
	}
	for (size_t i = 0; runners && i < json_object_array_length(runners); i++) {
		struct json_object *runner = json_object_array_get_idx(runners, i);
		char version[DOORS_VERSION_SIZE];

		if (!json_object_get_boolean(json_get(runner, "available", json_type_boolean)))
			continue;
		doors_version(runner, version);
		add_runtime(&listing, json_get_string(runner, "name"), version,
			    json_get(runner, "aliases", json_type_array));
	}
	for (const struct doors_graded *one = doors_graded; one->name; one++)
		add_runtime(&listing, one->name, DOORS_GRADED_VERSION, NULL);
	reply_json(exchange->reply, 200, all);
}

void doors_piston(struct http_exchange *exchange, const char *method, const char *rest)
{
	static const char base[] = "api/v2/";
	struct reply *reply = exchange->reply;
	const bool get = streq(method, "GET");

	if (!exchange->server->config->doors.piston) {
		reply_refuse(reply, 404, "nothing here: doors.piston is not on");
		return;
	}
	if (get && (streq(rest, "") || streq(rest, "api/v2") || streq(rest, base))) {
		doors_piston_refuse(reply, 200, "Piston v3.1.1 (Sallyport)");
		return;
	}
	rest = str_starts(rest, base) ? rest + strlen(base) : "";
	if (get && (streq(rest, "runtimes") || streq(rest, "packages")))
		list(exchange, streq(rest, "packages"));
	else if (streq(method, "POST") && streq(rest, "execute"))
		doors_serve(exchange, &execute);
	else if (streq(rest, "packages"))
		doors_piston_refuse(reply, 403, "packages are installed by the operator");
	else
		doors_piston_refuse(reply, 404, "Not Found");
}
