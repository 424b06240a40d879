/* test_jail.c - verdicts, limits and files of real programs in a real private jailer. */
#include "jail_try.h"

#include <signal.h>

static struct jail_client *client;

static int start(void **state)
{
	(void)state;
	client = try_client(getenv("TEST_CONFIG"));
	return 0;
}

static int stop(void **state)
{
	(void)state;
	jail_client_free(client);
	return 0;
}

static void run(struct try *try, const char *runner, const char *code)
{
	struct jail_spec spec = {.runner = runner};

	try_program(client, try, &spec, code);
}

static void assert_verdict(const struct try *try, enum jail_verdict verdict)
{
	if (try->failed)
		fail_msg("failed: %s", try->err.text);
	if (try->result.verdict != verdict)
		fail_msg("%s instead of %s: %s; stderr: %s", jail_verdict_text(try->result.verdict), jail_verdict_text(verdict),
			 try->result.message, try->error ? try->error : "");
}

static void prints(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python", "print('hello')\nimport sys\nprint('there', file=sys.stderr)\n");
	assert_verdict(&try, JAIL_OK);
	assert_string_equal(try.out, "hello\n");
	assert_string_equal(try.error, "there\n");
	assert_int_equal(try.result.exit_code, 0);
	assert_true(try.collected);
	assert_true(try.result.run.wall_us > 1000);
	assert_true(try.result.run.cpu_user_us + try.result.run.cpu_system_us > 1000);
	assert_true(try.result.run.memory_peak_bytes > 1 << 20);
}

static void compiles(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "c", "#include <stdio.h>\nint main(void){puts(\"compiled\");return 3;}\n");
	assert_verdict(&try, JAIL_RE);
	assert_int_equal(try.result.exit_code, 3);
	assert_string_equal(try.out, "compiled\n");
	assert_true(try.result.compiled);
}

static void bash(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "bash", "id -u; hostname; pwd; echo x > /data/a");
	assert_verdict(&try, JAIL_OK);
	assert_string_equal(try.out, "1000\njail\n/data\n");
	assert_int_equal(try.n_changes, 1);
	assert_string_equal(try.changes[0].content, "x\n");
}

int main(void){puts(\"compiled\");return 3;}\n");
	assert_verdict(&try, JAIL_RE);
	assert_int_equal(try.result.exit_code, 3);
	assert_string_equal(try.out, "compiled\n");
	assert_true(try.result.compiled);
}

static void bash(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "bash", "id -u; hostname; pwd; ls -la /; cat /proc/self/mounts; cat /proc/self/status; ip a 2>&1; ls -la /dev /proc/1 2>&1; echo x > /data/a; env; cat /proc/self/cgroup; ls /proc/self/fd");
	printf("%s%s", try.out, try.error);
	assert_verdict(&try, JAIL_OK);
	printf("wall %ld cpu %ld+%ld setup %ld mem %ld\n", try.result.run.wall_us, try.result.run.cpu_user_us, try.result.run.cpu_system_us, try.result.setup_us, try.result.run.memory_peak_bytes);
	assert_int_equal(try.n_changes, 1);
	assert_string_equal(try.changes[0].content, "x\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prints),
		cmocka_unit_test(compiles),
		cmocka_unit_test(bash),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
