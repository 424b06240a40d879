/* Where the jobs of an engine are (job_engine_list): waiting, running and over, with whose they are and since when. */
#include "job_fixture.h"

#include <pthread.h>

#include "store_gate.h"

#define HOLDS "print('here', flush=True)\nimport time; time.sleep(100)"

static void the_list_has_waiting_running_and_ended_jobs(void **state)
{
	const int64_t begun_us = clock_now_us();
	struct job_request request;
	struct job_listing line;

	(void)state;
	begin("");
	request = fixture_request(&f, "talk", HOLDS);
	struct job *first = fixture_submit(&f, &request);

	line = fixture_wait_step(&f, job_id(first), JOB_RUNNING);
	assert_string_equal(line.owner, "alice");
	assert_string_equal(line.conversation, "talk");
	assert_in_range(line.since_us, begun_us, clock_now_us());
	struct job *second = fixture_submit(&f, &request);

	line = fixture_wait_step(&f, job_id(second), JOB_WAITING);
	const int64_t waiting_since_us = line.since_us;

	request.conversation = NULL; /* another one runs meanwhile */
	struct job *alone = fixture_submit(&f, &request);

	line = fixture_wait_step(&f, job_id(alone), JOB_RUNNING);
	assert_string_equal(line.conversation, "");
	job_cancel(alone);
	fixture_wait(alone);
	fixture_wait_step(&f, job_id(alone), JOB_OVER);
	line = fixture_wait_step(&f, job_id(second), JOB_WAITING);
	assert_in_range(line.since_us, waiting_since_us - 1000, waiting_since_us + 1000); /* two clocks */
	job_cancel(first);
	fixture_wait(first);
	line = fixture_wait_step(&f, job_id(second), JOB_RUNNING);
	assert_true(line.since_us > waiting_since_us);
	job_cancel(second);
	fixture_wait(second);
	job_release(first);
	job_release(second);
	job_release(alone);
}

/* While the writer is kept from working, a job is seen in the steps in which the writer has it; so is what waits behind
 * it. */
static void a_job_at_the_writer_is_listed_in_its_step(void **state)
{
	struct job_request request, other;
	struct gate gate;

	(void)state;
	begin("");
	request = fixture_request(&f, "talk", HOLDS);
	other = fixture_request(&f, "talk", "pass");
	gate_shut(&gate, f.store);
	struct job *job = fixture_submit(&f, &request), *next = fixture_submit(&f, &other);

	fixture_wait_step(&f, job_id(job), JOB_BEGINNING);
	gate_open(&gate);
	fixture_wait_step(&f, job_id(job), JOB_RUNNING);
	gate_shut(&gate, f.store);
	job_cancel(job);
	fixture_wait_step(&f, job_id(job), JOB_RECORDING);
	fixture_wait_step(&f, job_id(next), JOB_WAITING);
	gate_open(&gate);
	assert_int_equal(fixture_wait(job)->jail.verdict, JAIL_CX);
	assert_int_equal(fixture_wait(next)->jail.verdict, JAIL_OK);
	fixture_wait_step(&f, job_id(next), JOB_OVER);
	job_release(job);
	job_release(next);
}

/* The jailer is lost while a run's end is being recorded: the result is the run's own. */
static void a_jailer_lost_while_recording_changes_no_result(void **state)
{
	struct job_request request;
	struct gate gate;
	struct json_object *runners;
	int64_t until = 0;

	(void)state;
	f.socket = true;
	fixture_make(&f, "");
	fixture_service_start(&f);
	fixture_start(&f);
	request = fixture_request(&f, "talk", HOLDS);
	request.live = true;
	struct job *job = fixture_submit(&f, &request);

	fixture_wait_step(&f, job_id(job), JOB_RUNNING);
	gate_shut(&gate, f.store);
	job_cancel(job);
	fixture_wait_step(&f, job_id(job), JOB_RECORDING);
	fixture_service_kill(&f);
	while ((runners = job_engine_runners(f.engine))) { /* until the engine has noticed */
		json_object_put(runners);
		assert_true(patience_left(&until));
	}
	fixture_wait_step(&f, job_id(job), JOB_RECORDING);
	gate_open(&gate);
	assert_int_equal(fixture_wait(job)->jail.verdict, JAIL_CX);
	job_release(job);
}

/* Of those that are over only the last ones stay, in the order in which they ended; a refused one is none of them. */
static void only_the_last_ended_jobs_stay_listed(void **state)
{
	char ids[JOB_ENDED_LISTED + 3][ID_SIZE];
	auto_free struct job_listing *lines = NULL;
	struct job_request request;
	struct job *refused;

	(void)state;
	begin("");
	request = fixture_request(&f, NULL, "pass");
	assert_int_equal(job_engine_list(f.engine, &lines), 0);
	free_pointer(&lines);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		struct job *job = fixture_run(&f, &request, JAIL_OK);

		memcpy(ids[i], job_id(job), ID_SIZE);
		job_release(job);
	}
	request.language = "no such";
	assert_int_equal(job_submit(f.engine, &request, &refused, NULL), -ERR_INVALID);
	upload("talk", "a", "not a job");
	assert_int_equal(job_engine_list(f.engine, &lines), JOB_ENDED_LISTED);
	for (size_t i = 0; i < JOB_ENDED_LISTED; i++) {
		assert_string_equal(lines[i].id, ids[i + 3]);
		assert_int_equal(lines[i].step, JOB_OVER);
	}
}

static _Atomic bool enough;

static void *keep_listing(void *arg)
{
	while (!enough) {
		auto_free struct job_listing *lines = NULL;
		size_t count = job_engine_list(f.engine, &lines);

		for (size_t i = 0; i < count; i++)
			if (!id_valid(lines[i].id) || !*job_step_text(lines[i].step))
				return NULL;
	}
	return arg;
}

/* While jobs come and go: every line is whole (and the thread sanitizer has nothing to say). */
static void lines_are_whole_while_jobs_come_and_go(void **state)
{
	struct job *jobs[12];
	pthread_t thread;
	void *fine;

	(void)state;
	begin(", \"limits\": {\"in_flight\": 20}");
	enough = false;
	assert_int_equal(pthread_create(&thread, NULL, keep_listing, &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct job_request request = fixture_request(&f, i % 2 ? "talk" : NULL, "open('made', 'w').write('x')");

		jobs[i] = fixture_submit(&f, &request);
		upload("talk", "up", "x");
	}
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		assert_int_equal(fixture_wait(jobs[i])->jail.verdict, JAIL_OK);
		job_release(jobs[i]);
	}
	enough = true;
	assert_int_equal(pthread_join(thread, &fine), 0);
	assert_non_null(fine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(the_list_has_waiting_running_and_ended_jobs, end),
		cmocka_unit_test_teardown(a_job_at_the_writer_is_listed_in_its_step, end),
		cmocka_unit_test_teardown(a_jailer_lost_while_recording_changes_no_result, end),
		cmocka_unit_test_teardown(only_the_last_ended_jobs_stay_listed, end),
		cmocka_unit_test_teardown(lines_are_whole_while_jobs_come_and_go, end),
	};

	return cmocka_run_group_tests_name("job_list", tests, NULL, NULL);
}
