/* Tasks at work: their bodies, what they ask and are answered, how they are cancelled, how many there may be, and the
 * end of the server. */
#include "gateway.h"

#include "cgi/mcp/tasks.h"

static int begin(void **state)
{
	(void)state;
	fixture_open(&fixture);
	fixture.config.limits.tasks = 2 * TASKS_AT_WORK_MAX;
	fixture.config.limits.answer_kb = 64;
	fixture.config.limits.task_seconds = 60;
	fixture.config.limits.task_seconds_max = 600;
	fixture.server.tasks = tasks_new(&fixture.server);
	return 0;
}

static int end(void **state)
{
	(void)state;
	fixture_close(&fixture);
	return 0;
}

static struct store_task start(task_body body, const char *argument)
{
	const struct task_start start = {.token = &fixture.alice, .tool = "test", .body = body, .argument = argument};
	struct store_task task;
	struct err err = ERR_INIT;

	if (tasks_start(fixture.server.tasks, &start, &task, &err) < 0)
		fail_msg("%s", err.text);
	return task;
}

/* Sleeps until the task is not at work any more, told by the hub. */
static struct store_task ended(const char *id)
{
	const char *ids[] = {id, NULL};
	struct hub_listener listener = {.owner = "alice", .topics = HUB_TASK_CHANGED, .uris = ids};
	struct store_task task;
	struct hub_message *message;

	assert_int_equal(hub_listen(fixture.server.hub, &listener, NULL), 0);
	while (tasks_at_work(fixture.server.tasks, id)) {
		hub_wait(fixture.server.hub, &listener, -1, 10000, &message);
		hub_message_free(message);
	}
	hub_leave(fixture.server.hub, &listener);
	assert_int_equal(store_task_find(fixture.server.store, id, "alice", &task, NULL), 0);
	return task;
}

static int echo(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	(void)work;
	return json_parse(argument, strlen(argument), ret, err);
}

static int refuse(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	(void)work;
	(void)ret;
	return err_set(err, ERR_INTERNAL, "%s", argument);
}

static int hold(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	(void)argument;
	(void)ret;
	while (task_sleep(work, 3600 * 1000000LL))
		;
	return err_set(err, ERR_CANCELLED, "held until the end");
}

static int ask_twice(struct running_task *work, const char *argument, struct json_object **ret, struct err *err)
{
	for (int round = 0; round < 2; round++) {
		struct json_object *questions = NULL;

		json_put_pointer(ret);
		json_parse(argument, strlen(argument), &questions, NULL);
		*ret = NULL;
		if (task_ask(work, questions, ret, err) < 0)
			return -(int)err->code;
	}
	return 0;
}

static void results(void **state)
{
	struct store_task good = start(echo, "{\"content\":[]}"),
			  bad = start(echo, "{\"content\":[],\"isError\":true}"), failed = start(refuse, "it broke");

	(void)state;
	assert_int_equal(good.ttl_ms, 60000);
	good = ended(good.id);
	assert_int_equal(good.state, STORE_TASK_COMPLETED);
	assert_string_equal(good.result, "{\"content\":[]}");
	assert_false(good.is_error);
	bad = ended(bad.id);
	assert_int_equal(bad.state, STORE_TASK_COMPLETED);
	assert_true(bad.is_error);
	failed = ended(failed.id);
	assert_int_equal(failed.state, STORE_TASK_FAILED);
	assert_string_equal(failed.message, "it broke");
	assert_null(failed.result);
	store_task_clear(&good);
	store_task_clear(&bad);
}

static void cancelling(void **state)
{
	struct tasks *tasks = fixture.server.tasks;
	struct store_task task = start(hold, NULL), found;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(tasks_cancel(tasks, task.id, "bob", &found, &err), -ERR_NOT_FOUND);
	assert_true(tasks_at_work(tasks, task.id));
	assert_int_equal(tasks_cancel(tasks, task.id, "alice", &found, &err), 0);
	assert_int_equal(found.state, STORE_TASK_CANCELLED);
	found = ended(task.id);
	assert_int_equal(found.state, STORE_TASK_CANCELLED); /* and not failed: the first end counts */
	assert_int_equal(tasks_cancel(tasks, task.id, "alice", &found, &err), -ERR_CONFLICT);
}

/* Sleeps until the task asks for so many things, told by the hub. */
static struct json_object *questions_of(const char *id, int count)
{
	const char *ids[] = {id, NULL};
	struct hub_listener listener = {.owner = "alice", .topics = HUB_TASK_CHANGED, .uris = ids};
	struct json_object *questions;
	struct hub_message *message;

	assert_int_equal(hub_listen(fixture.server.hub, &listener, NULL), 0);
	while (!(questions = tasks_questions(fixture.server.tasks, id, NULL)) ||
	       json_object_object_length(questions) != count) {
		json_object_put(questions);
		hub_wait(fixture.server.hub, &listener, -1, 10000, &message);
		hub_message_free(message);
	}
	hub_leave(fixture.server.hub, &listener);
	return questions;
}

static void answer(const char *id, const char *text)
{
	auto_json struct json_object *responses = NULL;

	assert_int_equal(json_parse(text, strlen(text), &responses, NULL), 0);
	tasks_answer(fixture.server.tasks, id, responses);
}

static void questions(void **state)
{
	struct store_task task = start(ask_twice, "{\"a\":{\"method\":\"m\"},\"b\":{\"method\":\"m\"}}");

	(void)state;
	json_object_put(questions_of(task.id, 2));
	answer(task.id, "{\"c\":{},\"a\":7}"); /* nobody asked for c, and that is no answer */
	json_object_put(questions_of(task.id, 2));
	answer(task.id, "{\"a\":{\"x\":1}}");
	auto_json struct json_object *left = questions_of(task.id, 1);

	assert_non_null(json_get(left, "b", json_type_object));
	answer(task.id, "{\"a\":{\"x\":2},\"b\":{}}"); /* a was answered before */
	json_object_put(questions_of(task.id, 2));     /* the second round */
	answer(task.id, "{\"b\":{\"y\":2},\"a\":{}}");
	task = ended(task.id);
	assert_string_equal(task.result, "{\"b\":{\"y\":2},\"a\":{}}");
	assert_null(tasks_questions(fixture.server.tasks, task.id, NULL));
	store_task_clear(&task);
	/* One that is cancelled asks nothing any more. */
	task = start(ask_twice, "{\"a\":{}}");
	json_object_put(questions_of(task.id, 1));
	assert_int_equal(tasks_cancel(fixture.server.tasks, task.id, "alice", &task, NULL), 0);
	assert_null(tasks_questions(fixture.server.tasks, task.id, NULL));
}

static void bounded(void **state)
{
	const struct task_start one_more = {.token = &fixture.alice, .tool = "test", .body = hold};
	struct store_task task;
	struct err err = ERR_INIT;

	(void)state;
	for (int i = 0; i < TASKS_AT_WORK_MAX; i++)
		start(hold, NULL);
	assert_int_equal(tasks_start(fixture.server.tasks, &one_more, &task, &err), -ERR_BUSY);
	assert_non_null(strstr(err.text, "256 tasks are already running"));
}

static struct store_execution finished_run(const char *id)
{
	static char stdout_text[] = "42\n", args[] = "[]", env[] = "{}", limits[] = "{}", more[] = "{}";
	struct store_execution run = {.state = STORE_FINISHED,
				      .owner = "alice",
				      .language = "python",
				      .code = {.data = stdout_text, .length = 3},
				      .args_json = args,
				      .env_json = env,
				      .limits_json = limits,
				      .result_json = more,
				      .verdict = "OK",
				      .exit_code = 0,
				      .stdout_text = {.data = stdout_text, .length = 3},
				      .created_us = 1,
				      .finished_us = 2};

	snprintf(run.id, sizeof(run.id), "%s", id);
	snprintf(run.token_id, sizeof(run.token_id), "%s", fixture.alice.id);
	return run;
}

static int add_run(struct store_txn *txn, void *arg, struct err *err)
{
	int result = store_txn_execution_begin(txn, arg, err);

	return result < 0 ? result : store_txn_execution_finish(txn, arg, NULL, 0, err);
}

/* A task of alice's that ended with its run in an earlier process. */
static struct store_task finished_task(void)
{
	struct store_task task = {.ttl_ms = 600000, .tool = "run_code"};
	struct store_execution run;
	struct err err = ERR_INIT;

	id_new(task.execution);
	run = finished_run(task.execution);
	snprintf(task.owner, sizeof(task.owner), "alice");
	snprintf(task.token_id, sizeof(task.token_id), "%s", fixture.alice.id);
	if (store_task_add(fixture.server.store, &task, 10, &err) < 0 ||
	    store_commit(fixture.server.store, add_run, &run, &err) < 0)
		fail_msg("%s", err.text);
	task.state = STORE_TASK_COMPLETED;
	if (store_task_end(fixture.server.store, &task, &err) < 0)
		fail_msg("%s", err.text);
	return task;
}

/* The result of a finished task is loaded from the record: no job engine, and so no jailer, is started for it. */
static void result_without_engine(void **state)
{
	const struct store_task task = finished_task();
	auto_free char *name = xasprintf("HTTP_MCP_NAME=%s", task.id);
	auto_free char *get = xasprintf(
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tasks/get\",\"params\":{\"taskId\":\"%s\","
		"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
		"\"io.modelcontextprotocol/clientCapabilities\":"
		"{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}}}",
		task.id);
	auto_answer struct answer got = ask(&fixture, "POST", "/mcp", get, "HTTP_MCP_PROTOCOL_VERSION=2026-07-28",
					    "HTTP_MCP_METHOD=tasks/get", name, NULL);

	(void)state;
	assert_non_null(strstr(got.body, "\"status\":\"completed\""));
	assert_non_null(strstr(got.body, "\"text\":\"42\\n\""));
	assert_null(fixture.server.engine);

	auto_answer struct answer hello =
		ask(&fixture, "POST", "/mcp",
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
		    "\"params\":{\"protocolVersion\":\"2025-11-25\","
		    "\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}",
		    NULL);
	auto_free char *session = xasprintf("HTTP_MCP_SESSION_ID=%s", header_of(&hello, "Mcp-Session-Id"));
	auto_free char *result = xasprintf(
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tasks/result\",\"params\":{\"taskId\":\"%s\"}}", task.id);
	auto_answer struct answer told = ask(&fixture, "POST", "/mcp", result, session, NULL);

	assert_non_null(strstr(told.body, "\"text\":\"42\\n\""));
	assert_null(fixture.server.engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(results, begin, end),
		cmocka_unit_test_setup_teardown(cancelling, begin, end),
		cmocka_unit_test_setup_teardown(questions, begin, end),
		cmocka_unit_test_setup_teardown(result_without_engine, begin, end),
		cmocka_unit_test_setup_teardown(bounded, begin,
						end), /* its end is that of a server with all places taken */
	};

	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
