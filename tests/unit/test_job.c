/* The job engine with a real store and a real jailer: files, order, bounds, refusals, output. */
#include "job_fixture.h"
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_execution.h"

#include <sys/resource.h>

#define MANY ", \"limits\": {\"in_flight\": 200, \"queue\": 200}"

static const struct job_change *change_of(const struct job_result *result, const char *name)
{
	for (size_t i = 0; i < result->n_changes; i++)
		if (streq(result->changes[i].file.name, name))
			return &result->changes[i];
	fail_msg("no change of %s", name);
	return NULL;
}

static void files_go_into_the_jail_and_changes_come_back(void **state)
{
	const char *code =
		"import os\n"
		"text = open('/data/in.csv').read() + open('/data/own.txt').read()\n"
		"os.mkdir('/data/sub'); open('/data/sub/out.txt', 'w').write(text.upper())\n"
		"os.remove('/data/own.txt'); open('/data/in.csv', 'a').write('more')\n"
		"open('/data/p.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 20)\n"
		"print(os.environ['FILE_BASE_URL'], os.environ['A'], os.sys.stdin.read(), os.sys.argv[1:])\n";
	const struct job_file own = {.name = "own.txt", .data = "own", .length = 3};
	struct job_request request;
	struct job *job;
	const struct job_result *result;
	struct store_conversation conversation;
	struct store_file found;
	auto_free char *expected = NULL, *text = NULL;
	auto_close int fd = -1;
	size_t length;

	(void)state;
	begin("");
	upload("talk", "in.csv", "a,b\n");
	request = fixture_request(&f, "talk", code);
	request.files = &own;
	request.n_files = 1;
	request.environment = (struct bind_map){(const char *[]){"A"}, (const char *[]){"1"}, 1};
	request.stdin_text = (struct bind_text){"hello", 5};
	request.args = (struct bind_strings){(const char *[]){"x", "y z"}, 2};
	job = fixture_run(&f, &request, JAIL_OK);
	result = fixture_wait(job);

	expected = xasprintf("http://127.0.0.1:8080/files/%s 1 hello ['x', 'y z']\n", result->conversation_hash);
	assert_string_equal(result->stdout_text.data, expected);
	assert_int_equal(result->n_changes, 4);
	assert_int_equal(change_of(result, "sub/out.txt")->kind, JAIL_FILE_CREATED);
	assert_int_equal(change_of(result, "in.csv")->kind, JAIL_FILE_CHANGED);
	assert_int_equal(change_of(result, "own.txt")->kind, JAIL_FILE_DELETED);
	assert_string_equal(change_of(result, "p.png")->file.media_type, "image/png");
	assert_string_equal(job_id(job), result->id);

	assert_ok(store_conversation_find(f.store, "alice", "talk", &conversation, &fixture_err));
	assert_string_equal(conversation.hash, result->conversation_hash);
	assert_ok(store_file_find(f.store, conversation.row, "sub/out.txt", 11, &found, &fixture_err));
	assert_int_equal(store_file_find(f.store, conversation.row, "own.txt", 7, &found, NULL), -ERR_NOT_FOUND);
	assert_ok(store_file_find(f.store, conversation.row, "sub/out.txt", 11, &found, &fixture_err));
	assert_ok(store_blob_open(f.store, found.blob, &fd, NULL, &fixture_err));
	assert_ok(read_fd(fd, 100, &text, &length, &fixture_err));
	assert_string_equal(text, "A,B\nOWN");
	job_release(job);
}

static void a_run_is_recorded_with_what_asked_for_it(void **state)
{
	struct job_request request;
	struct store_execution row = {0};
	struct job *job;

	(void)state;
	f.socket = true; /* a private jailer does not look for versions */
	fixture_make(&f, "");
	fixture_service_start(&f);
	fixture_start(&f);
	request = fixture_request(&f, NULL, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)");
	request.timeout_seconds = 7;
	job = fixture_run(&f, &request, JAIL_RE);
	assert_ok(store_execution_find(f.store, job_id(job), &row, &fixture_err));
	assert_int_equal(row.state, STORE_FINISHED);
	assert_string_equal(row.verdict, "RE");
	assert_int_equal(row.exit_code, 3);
	assert_string_equal(row.language, "python");
	if (!str_starts(row.fingerprint, "Python 3"))
		fail_msg("fingerprint \"%s\"", row.fingerprint);
	assert_string_equal(row.stdout_text.data, "out\n");
	assert_string_equal(row.stderr_text.data, "err\n");
	assert_string_equal(row.args_json, "[]");
	assert_non_null(strstr(row.limits_json, "\"wall_us\":7000000"));
	assert_true(row.run.wall_us > 0 && row.run.memory_peak_bytes > 0);
	assert_string_equal(row.token_id, f.token.id);
	store_execution_clear(&row);
	job_release(job);
}

static void calls_of_a_conversation_run_in_order(void **state)
{
	struct job_request first, second;
	struct job *a, *b;
	const struct job_request who = {.owner = "alice", .token_id = f.token.id, .conversation = "talk"};

	(void)state;
	(void)who;
	begin("");
	first = fixture_request(&f, "talk", "import time; time.sleep(0.3); open('/data/x', 'w').write('one')");
	second = fixture_request(&f, "talk", "print(open('/data/x').read(), open('/data/y').read())");
	a = fixture_submit(&f, &first);
	upload("talk", "y", "two"); /* waits for the run that is under way */
	b = fixture_submit(&f, &second);
	assert_string_equal(fixture_wait(b)->stdout_text.data, "one two\n");
	assert_int_equal(fixture_wait(a)->jail.verdict, JAIL_OK);
	job_release(a);
	job_release(b);
}

static void fifty_calls_at_once_all_end(void **state)
{
	struct job *jobs[50];
	char names[7][16];

	(void)state;
	begin(MANY);
	for (size_t i = 0; i < 7; i++)
		snprintf(names[i], sizeof(names[i]), "talk %zu", i);
	for (size_t i = 0; i < 50; i++) {
		struct job_request request = fixture_request(&f, names[i % 7],
							     "import os\n"
							     "n = len(os.listdir('/data'))\n"
							     "open('/data/f%d' % n, 'w').write(str(n)); print(n)");
		jobs[i] = fixture_submit(&f, &request);
	}
	for (size_t i = 0; i < 50; i++) {
		auto_free char *expected = xasprintf("%zu\n", i / 7);

		assert_string_equal(fixture_wait(jobs[i])->stdout_text.data, expected);
		job_release(jobs[i]);
	}
	assert_int_equal(fixture_executions(&f), 50);
}

static struct rlimit descriptors; /* as they were; rlim_max 0: nobody changed them */

static int end_of_thousands(void **state)
{
	if (descriptors.rlim_max > 0)
		prlimit(0, RLIMIT_NOFILE, &descriptors, NULL);
	return end(state);
}

/* More files than descriptors that a process may have open, in and out. */
static void a_run_may_have_more_files_than_descriptors(void **state)
{
	struct job_request request;
	struct job *job;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
	assert_int_equal(prlimit(0, RLIMIT_NOFILE, &(struct rlimit){256, descriptors.rlim_max}, NULL), 0);
	begin("");
	request = fixture_request(&f, "talk", "for i in range(2000): open('/data/%04d' % i, 'w').write(str(i))");
	job = fixture_run(&f, &request, JAIL_OK);
	assert_int_equal(fixture_wait(job)->n_changes, 2000);
	for (size_t i = 0; i < 2000; i++)
		if (fixture_wait(job)->changes[i].kind != JAIL_FILE_CREATED)
			fail_msg("%s: %s", fixture_wait(job)->changes[i].file.name,
				 fixture_wait(job)->changes[i].reason);
	job_release(job);
	request = fixture_request(&f, "talk",
				  "import os\nprint(sum(int(open('/data/' + n).read()) for n in os.listdir('/data')))");
	job = fixture_run(&f, &request, JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "1999000\n");
	job_release(job);
}

static void refused(const struct job_request *request, enum err_code code, const char *word)
{
	struct err err = ERR_INIT;
	struct job *job = NULL;

	assert_int_equal(job_submit(f.engine, request, &job, &err), -(int)code);
	if (!strstr(err.text, word))
		fail_msg("\"%s\" does not speak of %s", err.text, word);
}

static void a_refused_request_stores_nothing(void **state)
{
	struct job_request good, bad;
	auto_free char *blobs = NULL, *running = NULL, *huge = NULL, *large = NULL;
	struct job_file file = {.name = "a", .data = "x", .length = 1}, many[JOB_FILES_MAX + 1];
	struct bind_map one = {(const char *[]){"K"}, (const char *[]){"v"}, 1};
	struct store_conversation conversation;

	(void)state;
	begin("");
	blobs = xasprintf("%s/blobs", f.config.data_dir);
	running = xasprintf("%s/running", f.config.data_dir);
	huge = xcalloc(1, JAIL_ARGUMENTS_MAX + 1);
	memset(huge, 'x', JAIL_ARGUMENTS_MAX);
	large = xcalloc(1, 300 * 1024);
	good = fixture_request(&f, "talk", "print(1)");
	good.files = &file;
	good.n_files = 1;
	for (size_t i = 0; i <= JOB_FILES_MAX; i++)
		many[i] = file;

	bad = good, bad.language = "cobol";
	refused(&bad, ERR_INVALID, "python");
	bad = good, bad.network = true;
	refused(&bad, ERR_UNAVAILABLE,
		"network: not allowed on this server: network.allow in its configuration is empty");
	bad = good, bad.conversation = "a\nb";
	refused(&bad, ERR_INVALID, "conversationId");
	bad = good, bad.conversation = "";
	refused(&bad, ERR_INVALID, "conversationId");
	bad = good, bad.environment = bad.secrets = one;
	refused(&bad, ERR_INVALID, "secrets");
	bad = good, bad.environment = (struct bind_map){(const char *[]){"1A"}, (const char *[]){"v"}, 1};
	refused(&bad, ERR_INVALID, "environment");
	bad = good, bad.args = (struct bind_strings){(const char *[]){huge}, 1};
	refused(&bad, ERR_INVALID, "args");
	bad = good, bad.timeout_seconds = f.config.limits.wall_seconds_max + 1;
	refused(&bad, ERR_INVALID, "timeout_seconds");
	bad = good, bad.memory_mb = -1;
	refused(&bad, ERR_INVALID, "memory_mb");
	bad = good, bad.files = many, bad.n_files = JOB_FILES_MAX + 1;
	refused(&bad, ERR_INVALID, "at most 64");
	bad = good, bad.files = many, bad.n_files = 2;
	refused(&bad, ERR_INVALID, "files[1].filename");
	bad = good, bad.conversation = NULL;
	refused(&bad, ERR_INVALID, "files");
	for (size_t i = 0; i < 4; i++) {
		static const char *const names[] = {"", "..", "a/b", "a\x01"};

		file.name = names[i];
		refused(&good, ERR_INVALID, "files[0].filename");
	}
	file = (struct job_file){.name = "a", .data = large, .length = SIZE_MAX / 4};
	refused(&good, ERR_LIMIT, "do not fit");

	assert_int_equal(fixture_executions(&f), 0);
	assert_int_equal(fixture_files_below(blobs), 0);
	assert_int_equal(fixture_files_below(running), 0);
	assert_int_equal(store_conversation_find(f.store, "alice", "talk", &conversation, NULL), -ERR_NOT_FOUND);
}

static void too_many_calls_of_a_conversation_or_token_are_refused(void **state)
{
	struct job_request request;
	struct job *jobs[JOB_CONVERSATION_QUEUE + 2];
	size_t n = 0;
	struct err err = ERR_INIT;

	(void)state;
	begin(", \"limits\": {\"in_flight\": 18}");
	request = fixture_request(&f, "talk", "import time; time.sleep(1000)");
	while (n <= JOB_CONVERSATION_QUEUE)
		jobs[n++] = fixture_submit(&f, &request);
	refused(&request, ERR_BUSY, "16 calls are already waiting in this conversation");
	request.conversation = "another";
	jobs[n++] = fixture_submit(&f, &request);
	refused(&request, ERR_BUSY, "18 calls of this token");
	for (size_t i = n; i-- > 0;)
		job_cancel(jobs[i]);
	for (size_t i = 0; i < n; i++) {
		const struct job_result *result;
		int got = job_wait(jobs[i], -1, &result, &err);

		assert_true(got == -ERR_CANCELLED || (got == 0 && result->jail.verdict == JAIL_CX));
		job_cancel(jobs[i]); /* harmless */
		job_release(jobs[i]);
	}
	assert_true(fixture_executions(&f) <= 2);
}

static void a_call_beyond_the_servers_queue_is_refused(void **state)
{
	struct job_request request;
	struct job *jobs[3];

	(void)state;
	begin(", \"limits\": {\"queue\": 2}");
	f.config.jailer.jails = 1;
	request = fixture_request(&f, NULL, "import time; time.sleep(1000)");
	for (size_t i = 0; i < 3; i++)
		jobs[i] = fixture_submit(&f, &request);
	refused(&request, ERR_BUSY, "on this server");
	for (size_t i = 3; i-- > 0;)
		job_cancel(jobs[i]);
	for (size_t i = 0; i < 3; i++)
		job_release(jobs[i]);
}

static void long_output_goes_to_a_blob(void **state)
{
	struct job_request request;
	struct store_execution row = {0};
	struct job *job;
	const struct job_result *result;
	auto_free char *text = NULL, *running = NULL;
	size_t length;

	(void)state;
	begin("");
	request = fixture_request(&f, NULL, "print('x' * 99999)");
	job = fixture_run(&f, &request, JAIL_OK);
	result = fixture_wait(job);
	assert_true(result->stdout_more);
	assert_false(result->stderr_more);
	assert_int_equal(result->stdout_text.length, JOB_ANSWER_LEAST);
	assert_ok(store_execution_find(f.store, job_id(job), &row, &fixture_err));
	assert_null(row.stdout_text.data);
	assert_ok(store_text_read(f.store, &row.stdout_text, &text, &length, &fixture_err));
	assert_int_equal(length, 100000);
	store_execution_clear(&row);
	job_release(job);
	job_engine_stop(f.engine);
	f.engine = NULL;
	running = xasprintf("%s/running", f.config.data_dir);
	assert_int_equal(fixture_files_below(running), 0);
}

static void endless_output_ends_the_run(void **state)
{
	struct job_request request;
	struct store_execution row = {0};
	struct job *job;

	(void)state;
	begin("");
	request = fixture_request(&f, NULL, "import sys\nfor i in range(100): sys.stdout.write('x' * (1 << 20))");
	job = fixture_run(&f, &request, JAIL_OL);
	assert_ok(store_execution_find(f.store, job_id(job), &row, &fixture_err));
	assert_int_equal(row.stdout_text.length, 16 << 20);
	assert_true(row.stdout_truncated);
	store_execution_clear(&row);
	job_release(job);
}

static void files_beyond_an_owners_cap_are_not_kept(void **state)
{
	auto_free char *big = xcalloc(1, (2 << 20) + 1);
	const struct job_request who = {.owner = "alice", .token_id = "", .conversation = "talk"};
	struct job_file file = {.name = "big", .data = big, .length = 2 << 20};
	char hash[SHA256_HEX_SIZE];
	struct store_file ret;
	struct job_request request;
	struct job *job;
	const struct job_change *change;

	(void)state;
	begin(", \"retention\": {\"owner_mb\": 1}");
	assert_int_equal(job_upload(f.engine, &who, &file, &ret, hash, &fixture_err), -ERR_LIMIT);
	request = fixture_request(&f, "talk", "open('/data/big', 'w').write('x' * (2 << 20)); print('done')");
	job = fixture_run(&f, &request, JAIL_OK);
	change = change_of(fixture_wait(job), "big");
	assert_int_equal(change->kind, JAIL_FILE_NOT_KEPT);
	assert_true(*change->reason);
	job_release(job);
}

static void a_client_that_left_may_cancel_its_run(void **state)
{
	auto_close int watch = -1;
	int pair[2];
	struct job_request request;
	struct store_execution row = {0};
	struct job *job;

	(void)state;
	begin("");
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	request = fixture_request(&f, NULL, "import time; print('so far', flush=True); time.sleep(60)");
	watch = fixture_watch_running(&f);
	job = fixture_submit(&f, &request);
	fixture_wait_for_output(watch);
	close(pair[1]);
	assert_int_equal(job_wait(job, pair[0], NULL, &fixture_err), -ERR_CANCELLED);
	job_cancel(job);
	close(pair[0]);
	assert_int_equal(fixture_wait(job)->jail.verdict, JAIL_CX);
	assert_ok(store_execution_find(f.store, job_id(job), &row, &fixture_err));
	assert_string_equal(row.verdict, "CX");
	assert_string_equal(row.stdout_text.data, "so far\n");
	store_execution_clear(&row);
	job_release(job);
}

static void a_stop_waits_for_running_calls(void **state)
{
	struct job_request request;
	struct job *job;

	(void)state;
	begin("");
	request = fixture_request(&f, NULL, "import time; time.sleep(0.3); print('ended')");
	job = fixture_submit(&f, &request);
	job_engine_stop(f.engine);
	f.engine = NULL;
	assert_string_equal(fixture_wait(job)->stdout_text.data, "ended\n");
	job_release(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(files_go_into_the_jail_and_changes_come_back, end),
		cmocka_unit_test_teardown(a_run_is_recorded_with_what_asked_for_it, end),
		cmocka_unit_test_teardown(calls_of_a_conversation_run_in_order, end),
		cmocka_unit_test_teardown(fifty_calls_at_once_all_end, end),
		cmocka_unit_test_teardown(a_run_may_have_more_files_than_descriptors, end_of_thousands),
		cmocka_unit_test_teardown(a_refused_request_stores_nothing, end),
		cmocka_unit_test_teardown(too_many_calls_of_a_conversation_or_token_are_refused, end),
		cmocka_unit_test_teardown(a_call_beyond_the_servers_queue_is_refused, end),
		cmocka_unit_test_teardown(long_output_goes_to_a_blob, end),
		cmocka_unit_test_teardown(endless_output_ends_the_run, end),
		cmocka_unit_test_teardown(files_beyond_an_owners_cap_are_not_kept, end),
		cmocka_unit_test_teardown(a_client_that_left_may_cancel_its_run, end),
		cmocka_unit_test_teardown(a_stop_waits_for_running_calls, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
