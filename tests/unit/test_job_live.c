/* Live sandboxes of the job engine: state, files, limits, ends of every kind and what is said of them, order, the
 * record, replay. */
#include "job_fixture.h"

#include "lib/job/job_known.h"
#include "lib/store/record/store_sandbox.h"

static struct job *live(const char *conversation, const char *language, const char *code, enum jail_verdict verdict)
{
	struct job_request request = fixture_request(&f, conversation, code);

	request.language = language;
	request.live = true;
	return fixture_run(&f, &request, verdict);
}

/* One run: its output, its number in the sandbox, and a part of what is said ("" nothing is). */
static void expect(const char *code, const char *out, int64_t number, const char *note)
{
	struct job *job = live("talk", "python", code, JAIL_OK);
	const struct job_result *result = fixture_wait(job);

	assert_string_equal(result->stdout_text.data, out);
	if (result->sandbox_seq != number || !*result->sandbox_id)
		fail_msg("run %lld of '%s', not %lld", (long long)result->sandbox_seq, result->sandbox_id,
			 (long long)number);
	if (*note ? !strstr(result->note, note) : *result->note)
		fail_msg("said: \"%s\", not \"%s\"", result->note, note);
	job_release(job);
}

static void reset(const char *conversation, const char *language, size_t expected)
{
	const struct job_request who = {
		.owner = "alice", .token_id = f.token.id, .conversation = conversation, .language = language};
	size_t ended = 99;

	assert_ok(job_reset(f.engine, &who, &ended, &fixture_err));
	assert_int_equal(ended, expected);
}

static void state_stays_until_it_is_reset(void **state)
{
	(void)state;
	begin("");
	expect("x = 40", "", 1, "");
	expect("print(x + 2)", "42\n", 2, "");
	expect("open('/tmp/t', 'w').write('kept')", "", 3, "");
	expect("print(open('/tmp/t').read(), x)", "kept 40\n", 4, "");
	reset("talk", NULL, 1);
	reset("talk", NULL, 0);
	expect("print('x' in globals(), __import__('os').path.exists('/tmp/t'))", "False False\n", 1, "");
	reset("talk", "bash", 0);
	reset("talk", "py", 1);
	expect("print('x' in globals())", "False\n", 1, "");
}

static void uploads_appear_and_changes_are_recorded(void **state)
{
	struct store_conversation conversation;
	struct store_file found;
	struct job *job;

	(void)state;
	begin("");
	upload("talk", "in", "one");
	expect("print(open('in').read()); open('made', 'w').write('1')", "one\n", 1, "");
	upload("talk", "in", "two");
	upload("talk", "new", "three");
	job = live("talk", "python", "print(open('in').read(), open('new').read(), open('made').read())", JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "two three 1\n");
	assert_int_equal(fixture_wait(job)->n_changes, 0); /* what was filled in is no change */
	job_release(job);
	job = live("talk", "python", "import os; os.remove('made'); open('new', 'a').write('!')", JAIL_OK);
	assert_int_equal(fixture_wait(job)->n_changes, 2);
	job_release(job);
	/* An ordinary run between them sees and changes the same files. */
	{
		struct job_request request =
			fixture_request(&f, "talk", "print(open('new').read()); open('in', 'w').write('plain')");

		job = fixture_run(&f, &request, JAIL_OK);
		assert_string_equal(fixture_wait(job)->stdout_text.data, "three!\n");
		assert_string_equal(fixture_wait(job)->sandbox_id, "");
		job_release(job);
	}
	expect("print(open('in').read())", "plain\n", 4, "");
	assert_ok(store_conversation_find(f.store, "alice", "talk", &conversation, &fixture_err));
	assert_int_equal(store_file_find(f.store, conversation.row, "made", 4, &found, NULL), -ERR_NOT_FOUND);
}

static void what_ends_it_is_said(void **state)
{
	struct job *job;

	(void)state;
	begin("");
	expect("x = 1", "", 1, "");
	{
		struct job_request request = fixture_request(&f, "talk", "raise ValueError('no')");

		request.live = true;
		job = fixture_run(&f, &request, JAIL_RE);
		assert_string_equal(fixture_wait(job)->note, ""); /* an error does not end it */
		job_release(job);
	}
	expect("print(x)", "1\n", 3, "");
	job = live("talk", "python", "import os; os.kill(os.getpid(), 9)", JAIL_SG);
	assert_non_null(strstr(fixture_wait(job)->note, "The session ended with this run"));
	job_release(job);
	expect("print('x' in globals())", "False\n", 1, "was lost (the last run ended it)");
	expect("print(2)", "2\n", 2, "");
}

static void a_limit_ends_it(void **state)
{
	struct job_request request;
	struct job *job;

	(void)state;
	begin("");
	request = fixture_request(&f, "talk", "x = 1");
	request.live = true;
	/* As little as Python can start in here, on whatever this machine does besides. */
	for (request.timeout_seconds = 1;; request.timeout_seconds *= 2) {
		job = fixture_submit(&f, &request);
		const enum jail_verdict verdict = fixture_wait(job)->jail.verdict;
		job_release(job);
		if (verdict != JAIL_TO || request.timeout_seconds * INT64_C(1000000) > PATIENCE_LIMIT_US) {
			assert_int_equal(verdict, JAIL_OK);
			break;
		}
	}
	request.code = (struct bind_text){"while True: pass", 16};
	request.timeout_seconds = 0; /* the session's own */
	job = fixture_run(&f, &request, JAIL_TO);
	assert_non_null(strstr(fixture_wait(job)->note, "ended with this run"));
	job_release(job);
	expect("print('x' in globals())", "False\n", 1, "was lost (the last run ended it)");
}

static void cancelling_ends_it(void **state)
{
	struct job_request request;
	struct job *job;
	auto_close int watch = -1;

	(void)state;
	begin("");
	expect("x = 1", "", 1, "");
	watch = fixture_watch_running(&f);
	request = fixture_request(&f, "talk", "import sys, time; print('here'); sys.stdout.flush(); time.sleep(60)");
	request.live = true;
	job = fixture_submit(&f, &request);
	fixture_wait_for_output(watch);
	job_cancel(job);
	assert_int_equal(fixture_wait(job)->jail.verdict, JAIL_CX);
	assert_non_null(strstr(fixture_wait(job)->note, "ended with this run"));
	job_release(job);
	expect("print('x' in globals())", "False\n", 1, "was lost (the last run ended it)");
}

/* The time is each run's own. */
static void another_time_is_for_one_run(void **state)
{
	struct job_request request;

	(void)state;
	begin("");
	expect("x = 1", "", 1, "");
	request = fixture_request(&f, "talk", "while x: pass");
	request.live = true;
	request.timeout_seconds = 1;
	struct job *job = fixture_run(&f, &request, JAIL_TO);
	assert_string_equal(fixture_wait(job)->jail.message, "The program was stopped after 1 s, its time limit.");
	job_release(job);
	request = fixture_request(&f, "talk", "print('fresh')");
	request.live = true;
	request.timeout_seconds = 300;
	job_release(fixture_run(&f, &request, JAIL_OK));
	expect("print(1)", "1\n", 2, "");
}

static void other_limits_are_refused(void **state)
{
	struct job_request request;
	struct job *job = NULL;

	(void)state;
	begin("");
	request = fixture_request(&f, "talk", "x = 1");
	request.live = true;
	request.memory_mb = 100;
	job_release(fixture_run(&f, &request, JAIL_OK));
	job_release(fixture_run(&f, &request, JAIL_OK));
	request.memory_mb = 101;
	job = fixture_submit(&f, &request);
	assert_int_equal(job_wait(job, -1, NULL, &fixture_err), -ERR_INVALID);
	assert_non_null(strstr(fixture_err.text, "memory_mb: this session was started with 100"));
	job_release(job);
	expect("print(x)", "1\n", 3, "");
	request.conversation = NULL;
	assert_int_equal(job_submit(f.engine, &request, &job, &fixture_err), -ERR_INVALID);
	assert_non_null(strstr(fixture_err.text, "session: needs a conversation"));
}

static void refused(const char *conversation, const char *owner, const char *text)
{
	struct job_request request = fixture_request(&f, conversation, "1");
	struct job *job;

	request.owner = owner;
	request.live = true;
	job = fixture_submit(&f, &request);
	assert_true(job_wait(job, -1, NULL, &fixture_err) < 0);
	if (!strstr(fixture_err.text, text))
		fail_msg("\"%s\" does not say \"%s\"", fixture_err.text, text);
	job_release(job);
}

static void as(const char *owner, const char *conversation)
{
	struct job_request request = fixture_request(&f, conversation, "pass");

	request.owner = owner;
	request.live = true;
	job_release(fixture_run(&f, &request, JAIL_OK));
}

static void sandboxes_beyond_a_cap_are_refused(void **state)
{
	size_t before;

	(void)state;
	begin(", \"limits\": {\"sandboxes\": 3, \"sandboxes_per_owner\": 2}");
	as("alice", "a1");
	as("alice", "a2");
	before = fixture_executions(&f);
	as("bob", "b1");
	refused("c1", "carol", "this server already has 3 live sandboxes");
	assert_int_equal(fixture_executions(&f), before + 1); /* nothing was stored */
	reset("a1", NULL, 1);
	as("carol", "c1");
}

/* Of its owner, and only of that one: the one that nobody used for longest. */
static void the_idlest_sandbox_gives_way(void **state)
{
	struct job_request request;
	struct job *first, *second;

	(void)state;
	begin(", \"limits\": {\"sandboxes_per_owner\": 2}");
	expect("x = 1", "", 1, "");
	as("bob", "b1");
	as("alice", "a1");
	expect("print(x)", "1\n", 2, "");
	as("alice", "a2"); /* in the place of a1 */
	expect("print(x)", "1\n", 3, "");
	as("alice", "a1"); /* of a2 */
	as("alice", "a3"); /* of talk */
	expect("print('x' in globals())", "False\n", 1,
	       "was lost (it was idle for too long, or gave way to a newer session)");
	/* One that runs gives no way. */
	auto_close int watch = fixture_watch_running(&f);
	request = fixture_request(&f, "a1", "import sys, time; print('here'); sys.stdout.flush(); time.sleep(60)");
	request.live = true;
	first = fixture_submit(&f, &request);
	fixture_wait_for_output(watch);
	auto_close int other = fixture_watch_running(&f);
	request.conversation = "a2";
	second = fixture_submit(&f, &request);
	fixture_wait_for_output(other);
	refused("a3", "alice", "you already have 2 live sandboxes, the maximum, and all of them run");
	job_cancel(first);
	job_cancel(second);
	fixture_wait(first);
	fixture_wait(second);
	job_release(first);
	job_release(second);
}

/* The last jail is never held by a sandbox, so that ordinary runs go on. */
static void sandboxes_leave_one_jail_to_others(void **state)
{
	struct job_request request;

	(void)state;
	f.socket = true; /* the number of jails is in the jailer's configuration, too */
	fixture_make(&f, ", \"limits\": {\"sandboxes\": 64, \"sandboxes_per_owner\": 64}");
	f.config.jailer.jails = 2;
	fixture_service_start(&f);
	fixture_start(&f);
	as("alice", "a1");
	refused("b1", "bob", "this server already has 1 live sandboxes");
	request = fixture_request(&f, "a2", "pass");
	job_release(fixture_run(&f, &request, JAIL_OK));
	as("alice", "a1");
}

static void a_limit_of_no_sandboxes_refuses_sessions(void **state)
{
	(void)state;
	begin(", \"limits\": {\"sandboxes\": 0}");
	refused("talk", "alice", "keeps no live sandboxes (limits.sandboxes)");
}

struct sandbox_row {
	char cause[16];
};

/* Waits (for the writer's log to move) until the newest sandbox has this end. */
static void await_cause(const char *sandbox_id, const char *cause)
{
	auto_free char *query = xasprintf(
		"sqlite3 -readonly %s/sallyport.db \"SELECT coalesce(cause, '-') FROM sandbox WHERE id = '%s'\"",
		f.config.data_dir, sandbox_id);
	int64_t until = 0;
	struct sandbox_row row = {0};

	do {
		FILE *out = popen(query, "re");

		assert_non_null(out);
		assert_non_null(fgets(row.cause, sizeof(row.cause), out));
		pclose(out);
		row.cause[strcspn(row.cause, "\n")] = '\0';
	} while (!streq(row.cause, cause) && patience_left(&until));
	assert_string_equal(row.cause, cause);
}

static void idle_ones_expire(void **state)
{
	struct job *job;

	(void)state;
	begin(", \"limits\": {\"sandbox_idle_seconds\": 1}");
	job = live("talk", "python", "x = 1", JAIL_OK);
	await_cause(fixture_wait(job)->sandbox_id, "idle");
	job_release(job);
	expect("print('x' in globals())", "False\n", 1, "was lost (it was idle for too long, or");
	job = live("talk", "bash", ":", JAIL_OK);
	await_cause(fixture_wait(job)->sandbox_id, "idle");
	job_release(job);
	reset("talk", NULL, 0); /* whoever asks for that does not miss the state of the first */
	expect("print('x' in globals())", "False\n", 1, "");
}

static void a_killed_jailer_loses_the_session(void **state)
{
	struct job_request request;
	struct job *job;
	auto_close int watch = -1;

	(void)state;
	f.socket = true;
	fixture_make(&f, "");
	fixture_service_start(&f);
	fixture_start(&f);
	/* Between two runs … */
	job = live("talk", "python", "x = 1", JAIL_OK);
	fixture_service_kill(&f);
	await_cause(fixture_wait(job)->sandbox_id, "lost");
	job_release(job);
	fixture_service_start(&f);
	expect("print('x' in globals())", "False\n", 1, "was lost (the sandbox failed)");
	/* … and in the middle of one. */
	watch = fixture_watch_running(&f);
	request = fixture_request(&f, "talk", "import sys, time; print('here'); sys.stdout.flush(); time.sleep(60)");
	request.live = true;
	job = fixture_submit(&f, &request);
	fixture_wait_for_output(watch);
	fixture_service_kill(&f);
	assert_int_equal(fixture_wait(job)->jail.verdict, JAIL_XX);
	assert_non_null(strstr(fixture_wait(job)->note, "ended with this run"));
	job_release(job);
	fixture_service_start(&f);
	expect("print('x' in globals())", "False\n", 1, "was lost (the sandbox failed)");
}

static void a_new_server_says_that_the_session_is_lost(void **state)
{
	(void)state;
	begin("");
	expect("x = 1", "", 1, "");
	job_engine_stop(f.engine);
	f.engine = NULL;
	store_close(f.store);
	f.store = NULL;
	fixture_open(&f);
	fixture_start(&f);
	expect("print('x' in globals())", "False\n", 1, "was lost (the server was started anew)");
}

static void two_at_once_are_in_order(void **state)
{
	struct job_request first, second;
	struct job *a, *b;

	(void)state;
	begin("");
	first = fixture_request(&f, "talk", "import time; time.sleep(0.2); x = 1");
	second = fixture_request(&f, "talk", "print(x)");
	first.live = second.live = true;
	a = fixture_submit(&f, &first);
	b = fixture_submit(&f, &second);
	reset("talk", NULL, 1); /* in order behind both */
	assert_string_equal(fixture_wait(b)->stdout_text.data, "1\n");
	assert_int_equal(fixture_wait(b)->sandbox_seq, 2);
	job_release(a);
	job_release(b);
}

static void conversations_and_languages_are_apart(void **state)
{
	struct job *job;

	(void)state;
	begin("");
	expect("x = 1", "", 1, "");
	job = live("other", "python", "print('x' in globals())", JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "False\n");
	job_release(job);
	job = live("talk", "bash", "x=2; sleep 1000 & echo hi >f", JAIL_OK);
	assert_non_null(strstr(fixture_wait(job)->note, "In bash it keeps files and processes"));
	job_release(job);
	job = live("talk", "bash", "echo \"[$x]\"; kill -0 $(pgrep sleep) && cat f", JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "[]\nhi\n");
	assert_string_equal(fixture_wait(job)->note, "");
	job_release(job);
	expect("print(x, open('f').read())", "1 hi\n\n", 2, "");
	reset("talk", NULL, 2);
}

static void a_repeated_key_runs_nothing(void **state)
{
	struct job_request request;
	struct job *first, *again;

	(void)state;
	begin("");
	expect("x = 0", "", 1, "");
	request = fixture_request(&f, "talk", "x += 1; print(x)");
	request.live = true;
	request.key = "k";
	request.key_hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	first = fixture_run(&f, &request, JAIL_OK);
	again = fixture_run(&f, &request, JAIL_OK);
	assert_string_equal(fixture_wait(again)->id, fixture_wait(first)->id);
	assert_string_equal(fixture_wait(again)->sandbox_id, fixture_wait(first)->sandbox_id);
	assert_int_equal(fixture_wait(again)->sandbox_seq, 2);
	job_release(first);
	job_release(again);
	expect("print(x)", "1\n", 3, "");
	/* As the first call for a sandbox it leaves none behind. */
	reset("talk", NULL, 1);
	job_release(fixture_run(&f, &request, JAIL_OK));
	reset("talk", NULL, 0);
}

static void known_files_are_found_by_name_and_content(void **state)
{
	struct job_known known = {0};
	struct store_file file = {.name = "b", .blob = "1", .mode = 0644, .mtime_us = 7};

	(void)state;
	assert_false(job_known_has(&known, &file));
	job_known_put(&known, &file);
	for (const char *const *name = (const char *const[]){"d", "a", "c", "", NULL}; *name; name++) {
		struct store_file other = file;

		other.name = *name;
		assert_false(job_known_has(&known, &other));
		job_known_put(&known, &other);
		assert_true(job_known_has(&known, &other));
	}
	assert_true(job_known_has(&known, &file));
	file.mode = 0600;
	assert_false(job_known_has(&known, &file));
	file.mode = 0644;
	file.mtime_us = 8;
	assert_false(job_known_has(&known, &file));
	file.mtime_us = 7;
	snprintf(file.blob, sizeof(file.blob), "2");
	assert_false(job_known_has(&known, &file));
	job_known_put(&known, &file);
	assert_true(job_known_has(&known, &file));
	assert_int_equal(known.count, 5);
	job_known_remove(&known, "b");
	job_known_remove(&known, "none");
	assert_false(job_known_has(&known, &file));
	assert_int_equal(known.count, 4);
	job_known_clear(&known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_files_are_found_by_name_and_content),
		cmocka_unit_test_teardown(state_stays_until_it_is_reset, end),
		cmocka_unit_test_teardown(uploads_appear_and_changes_are_recorded, end),
		cmocka_unit_test_teardown(what_ends_it_is_said, end),
		cmocka_unit_test_teardown(a_limit_ends_it, end),
		cmocka_unit_test_teardown(cancelling_ends_it, end),
		cmocka_unit_test_teardown(other_limits_are_refused, end),
		cmocka_unit_test_teardown(another_time_is_for_one_run, end),
		cmocka_unit_test_teardown(the_idlest_sandbox_gives_way, end),
		cmocka_unit_test_teardown(sandboxes_beyond_a_cap_are_refused, end),
		cmocka_unit_test_teardown(sandboxes_leave_one_jail_to_others, end),
		cmocka_unit_test_teardown(a_limit_of_no_sandboxes_refuses_sessions, end),
		cmocka_unit_test_teardown(idle_ones_expire, end),
		cmocka_unit_test_teardown(a_killed_jailer_loses_the_session, end),
		cmocka_unit_test_teardown(a_new_server_says_that_the_session_is_lost, end),
		cmocka_unit_test_teardown(two_at_once_are_in_order, end),
		cmocka_unit_test_teardown(conversations_and_languages_are_apart, end),
		cmocka_unit_test_teardown(a_repeated_key_runs_nothing, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
