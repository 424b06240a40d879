/* Idempotency keys with a real store and real jails: the first result again, at once, later and after a restart. */
#include "job_fixture.h"

#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_request.h"
#include "lib/store/retention/store_expire.h"

#define HASH_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HASH_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
/* Acts: a second run would be seen in the file. */
#define ACTS "import os; open('/data/runs', 'a').write('x'); print(os.urandom(8).hex(), os.path.getsize('/data/runs'))"

static struct job_request keyed(const char *conversation, const char *code, const char *key, const char *hash)
{
	struct job_request request = fixture_request(&f, conversation, code);

	request.key = key;
	request.key_hash = hash;
	return request;
}

static void assert_same(const struct job_result *a, const struct job_result *b)
{
	assert_string_equal(a->id, b->id);
	assert_int_equal(a->jail.verdict, b->jail.verdict);
	assert_string_equal(a->jail.message, b->jail.message);
	assert_int_equal(a->jail.exit_code, b->jail.exit_code);
	assert_int_equal(a->jail.run.wall_us, b->jail.run.wall_us);
	assert_string_equal(a->jail.runner, b->jail.runner);
	assert_int_equal(a->stdout_text.length, b->stdout_text.length);
	assert_memory_equal(a->stdout_text.data, b->stdout_text.data, a->stdout_text.length);
	assert_int_equal(a->stdout_more, b->stdout_more);
	assert_string_equal(a->conversation_hash, b->conversation_hash);
	assert_int_equal(a->n_changes, b->n_changes);
	for (size_t i = 0; i < a->n_changes; i++) {
		assert_int_equal(a->changes[i].kind, b->changes[i].kind);
		assert_string_equal(a->changes[i].file.name, b->changes[i].file.name);
		assert_string_equal(a->changes[i].file.blob, b->changes[i].file.blob);
		assert_int_equal(a->changes[i].file.size, b->changes[i].file.size);
	}
}

static void both_wait_for_one(void **state)
{
	struct job_request request;
	struct job *first, *second, *third;

	(void)state;
	begin("");
	request = keyed("c", ACTS, "k", HASH_A);
	first = fixture_submit(&f, &request);
	second = fixture_submit(&f, &request);
	assert_same(fixture_wait(first), fixture_wait(second));
	assert_int_equal(fixture_wait(first)->jail.verdict, JAIL_OK);
	assert_int_equal(fixture_wait(first)->n_changes, 1);
	assert_int_equal(fixture_executions(&f), 1);
	/* After a restart as well. */
	job_release(second);
	job_engine_stop(f.engine);
	f.engine = NULL;
	store_close(f.store);
	fixture_open(&f);
	fixture_start(&f);
	third = fixture_submit(&f, &request);
	assert_string_equal(fixture_wait(third)->stdout_text.data, fixture_wait(first)->stdout_text.data);
	assert_same(fixture_wait(first), fixture_wait(third));
	assert_int_equal(fixture_executions(&f), 1);
	job_release(third);
	/* A day that was served later the key is free. */
	f.store->served_us += STORE_REQUEST_TTL_US + 1;
	assert_ok(store_expire(f.store, clock_now_us(), NULL, NULL, &fixture_err));
	third = fixture_run(&f, &request, JAIL_OK);
	assert_string_not_equal(fixture_wait(third)->id, job_id(first));
	assert_int_equal(fixture_executions(&f), 2);
	job_release(third);
	job_release(first);
}

/* Without a common conversation, too (execute_code gives each call one of its own): three at once, one run. */
static void repeated_calls_of_other_conversations_wait_too(void **state)
{
	static const char *const conversations[] = {"c1", "c2", "c3"};
	struct job *jobs[3];

	(void)state;
	begin("");
	for (size_t i = 0; i < 3; i++) {
		struct job_request request = keyed(conversations[i], ACTS, "k", HASH_A);

		jobs[i] = fixture_submit(&f, &request);
	}
	for (size_t i = 1; i < 3; i++)
		assert_same(fixture_wait(jobs[0]), fixture_wait(jobs[i]));
	assert_int_equal(fixture_wait(jobs[0])->jail.verdict, JAIL_OK);
	assert_int_equal(fixture_executions(&f), 1);
	for (size_t i = 0; i < 3; i++)
		job_release(jobs[i]);
}

static void a_repeated_call_gets_the_whole_first_result(void **state)
{
	const char *code = "import sys\nprint('x' * 100000)\nprint('gone wrong', file=sys.stderr)\nsys.exit(3)\n";
	struct job_request request;
	struct job *first, *second;

	(void)state;
	begin("");
	request = keyed("c", code, "k", HASH_A);
	first = fixture_run(&f, &request, JAIL_RE);
	second = fixture_run(&f, &request, JAIL_RE);
	assert_same(fixture_wait(first), fixture_wait(second));
	assert_string_equal(fixture_wait(second)->stderr_text.data, "gone wrong\n");
	assert_true(fixture_wait(second)->stdout_more);
	job_release(first);
	job_release(second);
}

static void a_key_with_other_arguments_is_refused(void **state)
{
	struct job_request request;
	struct job *job;
	struct err err = ERR_INIT;

	(void)state;
	begin("");
	request = keyed("c", ACTS, "k", HASH_A);
	job_release(fixture_run(&f, &request, JAIL_OK));
	request.key_hash = HASH_B;
	job = fixture_submit(&f, &request);
	assert_int_equal(job_wait(job, -1, NULL, &err), -ERR_CONFLICT);
	assert_non_null(strstr(err.text, "idempotencyKey: was used"));
	job_release(job);
	/* The same key is another owner's own. */
	request.owner = "bob";
	job_release(fixture_run(&f, &request, JAIL_OK));
	assert_int_equal(fixture_executions(&f), 2);
}

/* A run that was cancelled may have acted, and its files are kept: its key gives that result again. */
static void cancelled_does_not_act_again(void **state)
{
	struct job_request request;
	struct job *job;
	int watch;

	(void)state;
	begin("");
	request = keyed("c", "import time\nopen('runs', 'a').write('x')\nprint('here', flush=True)\ntime.sleep(60)",
			"k", HASH_A);
	watch = fixture_watch_running(&f);
	job = fixture_submit(&f, &request);
	fixture_wait_for_output(watch);
	close(watch);
	job_cancel(job);
	assert_int_equal(fixture_wait(job)->jail.verdict, JAIL_CX);
	job_release(job);
	job = fixture_submit(&f, &request);
	const struct job_result *again = fixture_wait(job);

	assert_int_equal(again->jail.verdict, JAIL_CX);
	assert_string_equal(again->stdout_text.data, "here\n");
	job_release(job);
	assert_int_equal(fixture_executions(&f), 1);
	/* What the record says of one that was cancelled before its program was started. */
	auto_free char *unstarted =
		xasprintf("sqlite3 %s/sallyport.db 'UPDATE execution SET run_wall_us = 0'", f.config.data_dir);

	assert_int_equal(system(unstarted), 0);
	request = keyed("c", "print(1)", "k", HASH_A);
	job_release(fixture_run(&f, &request, JAIL_OK));
	assert_int_equal(fixture_executions(&f), 2);
}

static void a_repeated_upload_puts_nothing(void **state)
{
	struct job_request who;
	struct job_file file = {.name = "a", .data = "first", .length = 5};
	char hash[SHA256_HEX_SIZE];
	struct store_file stored, found;
	struct store_conversation conversation;
	struct err err = ERR_INIT;

	(void)state;
	begin("");
	who = (struct job_request){
		.owner = "alice", .token_id = f.token.id, .conversation = "c", .key = "k", .key_hash = HASH_A};
	assert_ok(job_upload(f.engine, &who, &file, &stored, hash, &fixture_err));
	who.key = NULL;
	file = (struct job_file){.name = "a", .data = "later", .length = 5};
	assert_ok(job_upload(f.engine, &who, &file, &stored, hash, &fixture_err));
	/* The repeated call does not put the old content back. */
	who.key = "k";
	file = (struct job_file){.name = "a", .data = "first", .length = 5};
	assert_ok(job_upload(f.engine, &who, &file, &stored, hash, &fixture_err));
	assert_ok(store_conversation_find(f.store, "alice", "c", &conversation, &fixture_err));
	assert_ok(store_file_find(f.store, conversation.row, "a", 1, &found, &fixture_err));
	char later[SHA256_HEX_SIZE];

	sha256_hex("later", 5, later);
	assert_string_equal(found.blob, later);
	who.key_hash = HASH_B;
	assert_int_equal(job_upload(f.engine, &who, &file, &stored, hash, &err), -ERR_CONFLICT);
}

/* A result is loaded as job_wait returned it, without an engine; one that is not there, or not yet, is an error. */
static void a_result_is_loaded_as_it_was_returned(void **state)
{
	const char *acts =
		"import os, sys\nos.remove('old')\nopen('new', 'w').write('n')\nprint('x' * 100)\nsys.exit(4)";
	struct job_request request;
	struct job_result loaded = {0};
	struct job *job;
	int watch;

	(void)state;
	begin("");
	upload("c", "old", "o");
	request = fixture_request(&f, "c", acts);
	job = fixture_run(&f, &request, JAIL_RE);
	assert_int_equal(fixture_wait(job)->n_changes, 2);
	request.code = (struct bind_text){.data = "import time; print(1, flush=True); time.sleep(100)", .length = 50};
	watch = fixture_watch_running(&f);
	struct job *other = fixture_submit(&f, &request);

	fixture_wait_for_output(watch);
	close(watch);
	assert_int_equal(job_result_load(f.store, job_id(other), 1, &loaded, &fixture_err), -ERR_BUSY);
	assert_int_equal(job_result_load(f.store, "01a1fe94-e307-78ae-94ea-045bddbdeef6", 1, &loaded, &fixture_err),
			 -ERR_NOT_FOUND);
	job_cancel(other);
	fixture_wait(other);
	job_release(other);
	job_engine_stop(f.engine);
	f.engine = NULL;
	assert_ok(job_result_load(f.store, job_id(job), 1000, &loaded, &fixture_err));
	assert_same(fixture_wait(job), &loaded);
	job_result_clear(&loaded);
	assert_ok(job_result_load(f.store, job_id(job), 7, &loaded, &fixture_err));
	assert_int_equal(loaded.stdout_text.length, 7);
	assert_string_equal(loaded.stdout_text.data, "xxxxxxx");
	assert_true(loaded.stdout_more);
	job_result_clear(&loaded);
	job_release(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(both_wait_for_one, end),
		cmocka_unit_test_teardown(a_repeated_call_gets_the_whole_first_result, end),
		cmocka_unit_test_teardown(repeated_calls_of_other_conversations_wait_too, end),
		cmocka_unit_test_teardown(a_key_with_other_arguments_is_refused, end),
		cmocka_unit_test_teardown(cancelled_does_not_act_again, end),
		cmocka_unit_test_teardown(a_repeated_upload_puts_nothing, end),
		cmocka_unit_test_teardown(a_result_is_loaded_as_it_was_returned, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
