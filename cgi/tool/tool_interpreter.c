/*
 * tool_interpreter.c - initialize_sandbox and stop_sandbox, and what execute_code does between them: the set
 * "interpreter".
 *
 * The system that it replaces keeps one container between calls. Here it is a conversation with a name of its own whose
 * runs are live (lib/job/job_sandbox.h): the interpreter keeps its variables, and what programs leave in /data is
 * recorded and downloadable as ever. Images are names of languages here: "python:3.12-slim" and "node:22" say what they
 * hold, and one that is a plain system gets Python, which that system installed into it.
 */
#include "tool_interpreter.h"

#include "interpreters.h"
#include "jail/client/client_runners.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"
#include "run_result.h"

#define IMAGE_MAX           256
#define IMAGE_DEFAULT       "alpine:latest"
#define LANGUAGE_OF_SYSTEMS "python"

static bool enabled(const struct config *config)
{
	return config_has_set(config, "interpreter");
}

static const char *client_of(const struct tool_call *call)
{
	return call->session_id && *call->session_id ? call->session_id : call->token->id;
}

/* Takes the client's sandbox from it and ends its live runs. Where they cannot be ended now it stays the client's, who
 * can try again: else it would go on with nobody left to stop it. */
static int end_sandbox(struct tool_call *call, struct interpreter *ret, struct err *err)
{
	struct interpreters *interpreters = call->server->interpreters;
	struct job_engine *engine;
	size_t ended;
	int result = interpreters_find(interpreters, call->token->owner, client_of(call), true, ret, err);

	if (result < 0)
		return result;
	const struct job_request who = {
		TOOL_CALLER(call),
		.conversation = ret->conversation,
	};
	result = server_engine(call->server, &engine, err);
	if (result == 0)
		result = job_reset(engine, &who, &ended, err);
	if (result < 0)
		interpreters_put(interpreters, ret);
	return result;
}

/* -------- initialize_sandbox -------------------------------------------------------------------------- */

struct initialize_arguments {
	const char *image;
};
static const struct bind initialize_table[] = {
	BIND_MEMBER(struct initialize_arguments, image, "image", BIND_STRING, .min = 1, .max = IMAGE_MAX,
		    .description = "Language of the sandbox (python, node, …), "
				   "or an image named after one (python:3.12). "
				   "Default: alpine:latest, which has Python."),
	{0},
};

/* "docker.io/library/python:3.12" -> "python". */
static void image_name(const char *image, char ret[IMAGE_MAX + 1])
{
	const char *slash = strrchr(image, '/');

	snprintf(ret, IMAGE_MAX + 1, "%s", slash ? slash + 1 : image);
	ret[strcspn(ret, ":@")] = '\0';
}

static int language_of(struct json_object *runners, const char *image, char ret[32], struct err *err)
{
	static const char *const systems[] = {"alpine", "debian", "ubuntu", "fedora", "busybox", "linux"};
	struct json_object *runner;
	char name[IMAGE_MAX + 1];
	const char *language;

	image_name(image, name);
	for (size_t i = 0; i < ARRAY_SIZE(systems); i++)
		if (streq(name, systems[i]))
			snprintf(name, sizeof(name), LANGUAGE_OF_SYSTEMS);
	runner = jail_runner_named(runners, name);
	if (!runner)
		return err_member(err, "image",
				  "no language of this server has this name; list_runners lists them");
	language = json_get_string(runner, "name");
	if (!json_object_get_boolean(json_get(runner, "available", json_type_boolean)))
		return err_set(err, ERR_UNAVAILABLE, "image: %s is not installed on this server", language);
	snprintf(ret, 32, "%s", language);
	return 0;
}

static void answer(struct tool_result *ret, const struct interpreter *interpreter, const char *text)
{
	tool_answer(ret, text, json_object_new_object());
	json_add_string(ret->structured, "message", text);
	json_add_string(ret->structured, "language", interpreter->language);
	json_add_string(ret->structured, "conversationId", interpreter->conversation);
}

#define ANSWER_SCHEMA                                                                                                  \
	"{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"message\",\"language\","                  \
	"\"conversationId\"],\"properties\":{"                                                                         \
	"\"message\":{\"type\":\"string\"},\"language\":{\"type\":\"string\"},\"conversationId\":{\"type\":"           \
	"\"string\","                                                                                                  \
	"\"description\":\"The conversation that holds its files\"}}}"

static int initialize(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	const struct initialize_arguments *arguments = bound;
	const char *image = arguments->image ? arguments->image : IMAGE_DEFAULT;
	auto_json struct json_object *runners = tool_runners(call->server);
	struct interpreter interpreter = {0}, old;
	char id[ID_SIZE];
	int result;

	if (!runners)
		return err_set(err, ERR_UNAVAILABLE, JOB_JAILER_AWAY);
	if ((result = language_of(runners, image, interpreter.language, err)) < 0)
		return result;
	result = end_sandbox(call, &old, err);
	if (result < 0 && result != -ERR_NOT_FOUND)
		return result;
	id_new(id);
	snprintf(interpreter.owner, sizeof(interpreter.owner), "%s", call->token->owner);
	snprintf(interpreter.client, sizeof(interpreter.client), "%s", client_of(call));
	snprintf(interpreter.conversation, sizeof(interpreter.conversation), "sandbox-%s", id);
	interpreters_put(call->server->interpreters, &interpreter);
	auto_free char *text = xasprintf("Sandbox initialized with %s.", interpreter.language);

	answer(ret, &interpreter, text);
	return 0;
}

const struct tool tool_initialize_sandbox = {
	.name = "initialize_sandbox",
	.title = "Start a sandbox",
	.enabled = enabled,
	.scope = STORE_SCOPE_RUN,
	.description = "Starts a sandbox that persists between calls of execute_code: files, processes and (in "
		       "Python and "
		       "JavaScript) the "
		       "interpreter's "
		       "variables persist until stop_sandbox, or until the sandbox is idle for too long. An earlier "
		       "sandbox is ended.",
	.arguments = initialize_table,
	.arguments_size = sizeof(struct initialize_arguments),
	.output_schema = ANSWER_SCHEMA,
	.destructive = true,
	.call = initialize,
};

/* -------- stop_sandbox -------------------------------------------------------------------------------- */

static const struct bind stop_table[] = {{0}};

static int stop(struct tool_call *call, const void *bound, struct tool_result *ret, struct err *err)
{
	struct interpreter interpreter;
	int result = end_sandbox(call, &interpreter, err);

	(void)bound;
	if (result < 0)
		return result;
	answer(ret, &interpreter, "Sandbox stopped.");
	return 0;
}

const struct tool tool_stop_sandbox = {
	.name = "stop_sandbox",
	.title = "End a sandbox",
	.enabled = enabled,
	.scope = STORE_SCOPE_RUN,
	.description = "Ends the sandbox that initialize_sandbox started, with its variables and processes. Download "
		       "URLs of its files stay valid.",
	.arguments = stop_table,
	.output_schema = ANSWER_SCHEMA,
	.destructive = true,
	.call = stop,
};

/* -------- execute_code -------------------------------------------------------------------------------- */

int interpreter_execute(struct tool_call *call, const struct interpreter_call *what, struct tool_result *ret,
			struct err *err)
{
	struct interpreter interpreter;
	int result = interpreters_find(call->server->interpreters, call->token->owner, client_of(call), false,
				       &interpreter, err);

	if (result < 0)
		return result;
	const struct job_request request = {
		TOOL_CALLER(call),
		.conversation = interpreter.conversation,
		.language = what->language ? what->language : interpreter.language,
		.code = what->code,
		.live = true,
		.key = what->key,
		.key_hash = what->key_hash,
	};
	return run_result_of(call, &request, run_result_make_interpreter, ret, err);
}
