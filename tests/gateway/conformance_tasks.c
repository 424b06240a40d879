/*
 * conformance_tasks.c - fixtures that go on as tasks, on threads of their own; see conformance.h and tasks.h.
 *
 * The suite drives them in the modern era; slow_compute is a task for clients of revision 2025-11-25 that ask for one,
 * too.
 */
#include <poll.h>

#include "cgi/mcp/mcp_tasks.h"
#include "conformance.h"
#include "lib/base/util.h"

#define SECONDS_MAX 120
#define JOB_US      200000 /* how long a job takes that comes to nothing */

/* {"content":[{"type":"text",…}],"isError":…} */
static struct json_object *result(const char *text, bool is_error)
{
	struct tool_result result = {.content = json_object_new_array(), .is_error = is_error};

	tool_add_text(result.content, text, strlen(text));
	return tool_result_object(&result, TOOL_RESULTS_STRUCTURED);
}

static int begin(struct mcp_call *call, task_body body, const char *argument)
{
	struct task_start start = {
		.tool = json_get_string(call->message->params, "name"), .body = body, .argument = argument};
	struct err err = ERR_INIT;

	if (!call->task.possible)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: only as a task");
	return mcp_task_start(call, &start, &err) < 0 ? mcp_fail(call, RPC_INTERNAL, "Internal error: %s", err.text)
						      : 0;
}

int conformance_greet(struct mcp_call *call, struct json_object *arguments)
{
	const char *name = json_get_string(arguments, "name");
	auto_free char *text = xasprintf("Hello, %s!", name ? name : "");

	return conformance_text(call, text);
}

/* `argument`: "SECONDS LABEL" */
static int compute(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	char *label;
	long seconds = strtol(argument, &label, 10);
	auto_free char *text = xasprintf("Computed%s for %ld s", label, seconds);

	if (!task_sleep(work, seconds * 1000000LL))
		return err_set(err, ERR_CANCELLED, "cancelled");
	*ret = result(text, false);
	return 0;
}

int conformance_compute(struct mcp_call *call, struct json_object *arguments)
{
	struct json_object *member = json_get(arguments, "seconds", json_type_int);
	int64_t seconds = member ? json_object_get_int64(member) : 0;
	const char *label = json_get_string(arguments, "label");

	if (seconds < 0 || seconds > SECONDS_MAX)
		return mcp_fail(call, RPC_INVALID_PARAMS, "Invalid params: seconds: at most %d", SECONDS_MAX);
	auto_free char *argument = xasprintf("%d %s", (int)seconds, label ? label : "");

	if (call->task.possible)
		return begin(call, compute, argument);
	poll(NULL, 0, (int)seconds * 1000);
	return conformance_text(call, argument);
}

static int fail_job(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	(void)argument;
	if (!task_sleep(work, JOB_US))
		return err_set(err, ERR_CANCELLED, "cancelled");
	*ret = result("The job failed, as it always does", true);
	return 0;
}

int conformance_failing(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return begin(call, fail_job, NULL);
}

static int break_job(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	(void)argument;
	(void)ret;
	task_sleep(work, JOB_US);
	return err_set(err, ERR_INTERNAL, "the job broke, as it always does");
}

int conformance_protocol_error(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return begin(call, break_job, NULL);
}

/* One question to the user. */
static void add_question(struct json_object *questions, const char *key, const char *message)
{
	static const char schema[] =
		"{\"type\":\"object\",\"properties\":{\"confirm\":{\"type\":\"boolean\"}},\"required\":[\"confirm\"]}";
	struct json_object *question = json_object_new_object(), *params = json_object_new_object(), *form = NULL;

	json_parse(schema, sizeof(schema) - 1, &form, NULL);
	json_add_string(params, "message", message);
	json_add(params, "requestedSchema", form);
	json_add_string(question, "method", "elicitation/create");
	json_add(question, "params", params);
	json_add(questions, key, question);
}

static int give_answers(struct running_task *work, struct json_object *questions, struct json_object **ret,
			struct err *err)
{
	auto_json struct json_object *answers = NULL;
	auto_buf struct buf text = {0};

	if (task_ask(work, questions, &answers, err) < 0)
		return -(int)err->code;
	buf_init(&text, HTTP_REPLY_MAX);
	buf_puts(&text, "The client answered: ");
	json_print(&text, answers);
	*ret = result(text.data, false);
	return 0;
}

static int confirm(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	struct json_object *questions = json_object_new_object();
	auto_free char *message = xasprintf("Delete %s?", argument);

	add_question(questions, "confirm", message);
	return give_answers(work, questions, ret, err);
}

int conformance_confirm(struct mcp_call *call, struct json_object *arguments)
{
	const char *name = json_get_string(arguments, "filename");

	return begin(call, confirm, name ? name : "the file");
}

static int ask_two(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	struct json_object *questions = json_object_new_object();

	(void)argument;
	add_question(questions, "first", "Go on with the first part?");
	add_question(questions, "second", "Go on with the second part?");
	return give_answers(work, questions, ret, err);
}

int conformance_multi_input(struct mcp_call *call, struct json_object *arguments)
{
	(void)arguments;
	return begin(call, ask_two, NULL);
}

static int repeat(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	if (!task_sleep(work, JOB_US))
		return err_set(err, ERR_CANCELLED, "cancelled");
	*ret = result(argument, false);
	return 0;
}

/* The questions come first, as results of the call; what was answered is the task's. */
int conformance_input_task(struct mcp_call *call, struct json_object *arguments)
{
	auto_buf struct buf text = {0};
	int all = conformance_rounds(call);

	(void)arguments;
	if (all <= 0)
		return all;
	buf_init(&text, HTTP_REPLY_MAX);
	buf_puts(&text, "The client answered: ");
	json_print(&text, json_get(call->message->params, "inputResponses", json_type_object));
	return begin(call, repeat, text.data);
}
