/* Tasks at work: their bodies, what they ask and are answered, how they are cancelled, how many there may be, and the
 * end of the server. */
#include "gateway.h"

#include "cgi/mcp/tasks.h"

static int begin(void **state)
{
	(void)state;
	fixture_open(&fixture);
	fixture.config.limits.tasks = 2 * TASKS_AT_WORK_MAX;
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
	char *message;

	assert_int_equal(hub_listen(fixture.server.hub, &listener, NULL), 0);
	while (tasks_at_work(fixture.server.tasks, id)) {
		hub_wait(fixture.server.hub, &listener, -1, 10000, &message);
		free(message);
	}
	hub_leave(fixture.server.hub, &listener);
	assert_int_equal(store_task_find(fixture.server.store, id, "alice", &task, NULL), 0);
	return task;
}

static int echo(struct task_at_work *work, const char *argument, struct json_object **ret, struct err *err)
{
	(void)work;
	return json_parse(argument, strlen(argument), ret, err);
}

static int refuse(struct task_at_work *work, const char *argument, struct json_object **ret, struct err *err)
{
	(void)work;
	(void)ret;
	return err_set(err, ERR_INTERNAL, "%s", argument);
}

static int hold(struct task_at_work *work, const char *argument, struct json_object **ret, struct err *err)
{
	(void)argument;
	(void)ret;
	while (task_sleep(work, 3600 * 1000000LL))
		;
	return err_set(err, ERR_CANCELLED, "held until the end");
}

static int ask_twice(struct task_at_work *work, const char *argument, struct json_object **ret, struct err *err)
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
	char *message;

	assert_int_equal(hub_listen(fixture.server.hub, &listener, NULL), 0);
	while (!(questions = tasks_questions(fixture.server.tasks, id)) ||
	       json_object_object_length(questions) != count) {
		json_object_put(questions);
		hub_wait(fixture.server.hub, &listener, -1, 10000, &message);
		free(message);
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
	assert_null(tasks_questions(fixture.server.tasks, task.id));
	store_task_clear(&task);
	/* One that is cancelled asks nothing any more. */
	task = start(ask_twice, "{\"a\":{}}");
	json_object_put(questions_of(task.id, 1));
	assert_int_equal(tasks_cancel(fixture.server.tasks, task.id, "alice", &task, NULL), 0);
	assert_null(tasks_questions(fixture.server.tasks, task.id));
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
	assert_non_null(strstr(err.text, "256 tasks are at work"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(results, begin, end),
		cmocka_unit_test_setup_teardown(cancelling, begin, end),
		cmocka_unit_test_setup_teardown(questions, begin, end),
		cmocka_unit_test_setup_teardown(bounded, begin,
						end), /* its end is that of a server with all places taken */
	};

	return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
