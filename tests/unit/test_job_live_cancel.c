/* A call of a session that is cancelled before its program has begun ends itself, and not the session; its replay
 * leaves it out. */
#include "job_fixture.h"

#include "store_gate.h"

static struct job_request request_of(const char *code)
{
	struct job_request request = fixture_request(&f, "talk", code);

	request.live = true;
	return request;
}

/* Taken by the session, and cancelled while its row waits to be written. */
static struct job *cancel_before_it_begins(const struct job_request *request)
{
	struct gate gate;
	struct job *job;

	gate_shut(&gate, f.store);
	job = fixture_submit(&f, request);
	fixture_wait_step(&f, job_id(job), JOB_BEGINNING);
	job_cancel(job);
	gate_open(&gate);
	assert_int_equal(fixture_wait(job)->jail.verdict, JAIL_CX);
	return job;
}

static int add_output(void *arg, const struct store_execution *execution, const struct job_replay *made,
		      struct err *err)
{
	struct buf *all = arg;
	auto_free char *text = NULL;
	size_t length;

	(void)execution;
	assert_ok(read_fd(made->stdout_fd, 65536, &text, &length, err));
	buf_add(all, text, length);
	return 0;
}

static void replays_as(const char *id, const char *expected)
{
	auto_free char *program = xasprintf("%s/sallyport-jailer", f.bin);
	struct jail_client *client = NULL;
	struct store_execution execution;
	auto_buf struct buf all = {0};

	buf_init(&all, 65536);
	assert_ok(jail_client_spawn(program, f.config_path, &client, &fixture_err));
	assert_ok(store_execution_find(f.store, id, &execution, &fixture_err));
	const struct job_replay_from from = {.store = f.store, .client = client};

	assert_ok(job_replay(&from, &execution, add_output, &all, &fixture_err));
	assert_int_equal(all.length, strlen(expected));
	assert_memory_equal(all.data, expected, all.length);
	store_execution_clear(&execution);
	jail_client_free(client);
}

static void a_session_goes_on_after_a_cancelled_call(void **state)
{
	char id[ID_SIZE];

	(void)state;
	fixture_make(&f, "");
	fixture_start(&f);
	struct job_request first = request_of("x = 1; print(x)"), second = request_of("x = 2; print('never')");
	struct job_request third = request_of("print(x + 6)");

	job_release(fixture_run(&f, &first, JAIL_OK));
	struct job *job = cancel_before_it_begins(&second);
	assert_string_equal(fixture_wait(job)->note, "");
	job_release(job);
	job = fixture_run(&f, &third, JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "7\n");
	assert_int_equal(fixture_wait(job)->sandbox_seq, 3);
	snprintf(id, sizeof(id), "%s", fixture_wait(job)->id);
	job_release(job);
	replays_as(id, "1\n7\n");
}

static void a_cancelled_first_call_leaves_no_session(void **state)
{
	(void)state;
	fixture_make(&f, "");
	fixture_start(&f);
	struct job_request first = request_of("x = 1"), second = request_of("print('x' in globals())");

	job_release(cancel_before_it_begins(&first));
	struct job *job = fixture_run(&f, &second, JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "False\n");
	assert_string_equal(fixture_wait(job)->note, "");
	job_release(job);
}

/* What went from the conversation meanwhile is still in /data then, and not forgotten. */
static void files_that_went_meanwhile_go_with_the_next_run(void **state)
{
	char id[ID_SIZE];

	(void)state;
	fixture_make(&f, "");
	fixture_start(&f);
	struct job_request make = request_of("open('f', 'w').write('1'); print('made')"),
			   never = request_of("print('never')");
	struct job_request take = fixture_request(&f, "talk", "import os; os.remove('f')");
	struct job_request look = request_of("import os; print(os.listdir())");

	job_release(fixture_run(&f, &make, JAIL_OK));
	job_release(fixture_run(&f, &take, JAIL_OK));
	job_release(cancel_before_it_begins(&never));
	struct job *job = fixture_run(&f, &look, JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "[]\n");
	assert_int_equal(fixture_wait(job)->sandbox_seq, 3);
	snprintf(id, sizeof(id), "%s", fixture_wait(job)->id);
	job_release(job);
	replays_as(id, "made\n[]\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_session_goes_on_after_a_cancelled_call, end),
		cmocka_unit_test_teardown(a_cancelled_first_call_leaves_no_session, end),
		cmocka_unit_test_teardown(files_that_went_meanwhile_go_with_the_next_run, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
