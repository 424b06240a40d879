/* `sallyport replay` on what a real engine recorded: identical, different, not comparable; output, exit codes. */
#include <sqlite3.h>

#include "job_fixture.h"

static void record(const char *conversation, const char *language, const char *code, enum jail_verdict verdict)
{
	struct job_request request = fixture_request(&f, conversation, code);

	request.language = language;
	request.timeout_seconds = verdict == JAIL_TO ? 1 : 0;
	job_release(fixture_run(&f, &request, verdict));
}

/* Runs `sallyport replay ARGUMENTS`; its exit code, and its standard output in *ret (the caller's). */
static int replay(const char *arguments, char **ret)
{
	auto_free char *command = xasprintf("%s/sallyport replay --config %s %s 2>&1", f.bin, f.config_path, arguments);
	FILE *out = popen(command, "re");
	size_t size = 0;
	int status;

	assert_non_null(out);
	*ret = NULL;
	if (getdelim(ret, &size, '\0', out) < 0)
		**ret = '\0';
	status = pclose(out);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void expect(const char *arguments, int code, const char *word)
{
	auto_free char *out = NULL;
	int got = replay(arguments, &out);

	if (got != code || !strstr(out, word))
		fail_msg("replay %s: exit %d instead of %d, or no \"%s\" in:\n%s", arguments, got, code, word, out);
}

static void alter(const char *sql)
{
	auto_free char *path = xasprintf("%s/sallyport.db", f.config.data_dir);
	sqlite3 *db;
	char *text = NULL;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
		fail_msg("%s: %s", sql, text);
	sqlite3_close(db);
}

static void record_all_kinds(void)
{
	fixture_start(&f);
	upload("talk", "in.csv", "a\n1\n");
	record("talk", "python",
	       "import os; text = open('/data/in.csv').read(); open('/data/out.csv', 'w').write(text * 2); "
	       "print(os.environ)\n",
	       JAIL_OK);
	record("talk", "python", "import os; os.remove('/data/out.csv'); print(sorted(os.listdir('/data')))", JAIL_OK);
	record(NULL, "python", "import sys; print('one\\ntwo\\nthree'); sys.exit(4)", JAIL_RE);
	record(NULL, "python", "import os; os.kill(os.getpid(), 9)", JAIL_SG);
	record(NULL, "python", "print('x' * 200000)", JAIL_OK);
	record(NULL, "python", "import sys\nwhile True: sys.stdout.write('x' * (1 << 20))", JAIL_OL);
	record(NULL, "bash", "echo before; while :; do :; done", JAIL_TO);
	job_engine_stop(f.engine);
	f.engine = NULL;
}

static void identical_then_altered(void **state)
{
	(void)state;
	fixture_make(&f, "");
	record_all_kinds();
	expect("--all", 0, "7 identical, 0 differ, 0 not replayable");
	expect("--all -j 3 --json", 0,
	       "{\"summary\":{\"identical\":7,\"equal_after_normalising\":0,\"different\":0,\"flaky\":0,"
	       "\"not_replayable\":0,\"failed\":0,\"seconds\":");
	expect("--all --json", 0, ",\"classes\":{\"identical\":7}}}");
	expect("--verdict RE --json", 0,
	       "\"language\":\"python\",\"class\":\"identical\",\"differences\":[],\"hidden_by\":[]}");
	expect("--language bash --quiet", 0, "1 identical");
	alter("UPDATE execution SET stdout = replace(stdout, 'two', 'tvo') WHERE exit_code = 4");
	expect("--all --quiet", 1, "stdout, line 2:\n    recorded: \"tvo\"\n    now:      \"two\"");
	expect("--verdict RE --json", 1, "\"line\":2,\"recorded\":\"\\\"tvo\\\"\",\"now\":\"\\\"two\\\"\"");
	alter("UPDATE execution SET exit_code = 5 WHERE exit_code = 4");
	expect("--verdict RE", 1, "exit code:\n    recorded: 5\n    now:      4");
	alter("UPDATE execution_file SET blob = (SELECT blob FROM execution_file WHERE phase = 'before' LIMIT 1) WHERE "
	      "change = 'created'");
	expect("--conversation talk", 1, "file \"out.csv\":\n    recorded: created");
	alter("UPDATE execution SET verdict = 'OK' WHERE verdict = 'SG'");
	expect("--all", 1, "verdict:\n    recorded: OK");
}

static void not_comparable(void **state)
{
	struct job_request request;
	struct job *job;

	(void)state;
	begin("");
	request = fixture_request(&f, NULL, "print(1)");
	request.secrets = (struct bind_map){(const char *[]){"KEY"}, (const char *[]){"value"}, 1};
	job_release(fixture_run(&f, &request, JAIL_OK));
	request = fixture_request(&f, NULL, "import time; time.sleep(30)");
	job = fixture_submit(&f, &request);
	job_cancel(job);
	job_wait(job, -1, NULL, NULL);
	job_release(job);
	record(NULL, "python", "print(2)", JAIL_OK);
	alter("UPDATE execution SET verdict = 'XX' WHERE stdout = '2' || char(10)");
	expect("--all", 0, "given secrets, which are never stored, or variables that an export left out: KEY");
	expect("--verdict XX", 0, "0 identical, 0 differ, 1 not replayable");
}

static void with_secrets(void **state)
{
	static const char *const codes[] = {
		"import os, base64; k = os.environ['KEY']; print(k, base64.b64encode(k.encode()), len(k))\n"
		"open('/data/copy.txt', 'w').write('key=' + k); open('/data/' + k, 'w').write('1')",
		"import os; print(open('/data/copy.txt').read(), os.environ['KEY'], os.environ['OTHER'])",
	};
	const char *names[] = {"KEY", "OTHER"}, *values[] = {"open sesame", "abracadabra"};

	(void)state;
	begin("");
	for (int live = 0; live < 2; live++)
		for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
			struct job_request request = fixture_request(&f, live ? "live" : "plain", codes[i]);

			request.live = live;
			request.secrets = (struct bind_map){names, values, i + 1};
			job_release(fixture_run(&f, &request, JAIL_OK));
		}
	setenv("KEY", "open sesame", 1);
	expect("--all", 0, "0 identical, 0 differ, 4 not replayable");
	expect("--all --secret KEY", 0, "OTHER (give them with --secret)");
	expect("--all --secret KEY --secret OTHER=abracadabra", 0, "4 identical, 0 differ, 0 not replayable");
	expect("--conversation plain --secret KEY=longer_than_it_was --secret OTHER=abracadabra", 1,
	       "1 identical, 1 differ");
	expect("--all --secret NOT_SET_ANYWHERE", 2, "no such variable");
	expect("--all --secret 1A=abcd", 2, "--secret takes NAME=VALUE or NAME");
}

static void usage(void **state)
{
	(void)state;
	fixture_make(&f, "");
	expect("", 2, "which executions");
	expect("--all 0123", 2, "either ids");
	expect("-j 0 --all", 2, "jobs");
	expect("ffffffff", 3, "ffffffff");
	expect("--help", 0, "Exit codes");
	expect("--all", 0, "0 identical");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(identical_then_altered, end),
		cmocka_unit_test_teardown(not_comparable, end),
		cmocka_unit_test_teardown(with_secrets, end),
		cmocka_unit_test_teardown(usage, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
