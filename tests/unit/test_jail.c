/*
 * test_jail.c - verdicts and files of real programs in a real private jailer.
 *
 * Every verdict has a program that meets it; those of limits are in test_jail_limits.c. After each run nothing of it
 * may be left: that is checked in test_jail_host.c, from the outside.
 */
#include "jail_runs.h"

#include <signal.h>

/* -------- the program's own end ----------------------------------------------------------------------- */
static void result_of_a_program_that_ends_well(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python", "print('hello')\nimport sys\nprint('there', file=sys.stderr)\n");
	assert_verdict(&try, JAIL_OK);
	assert_string_equal(try.out, "hello\n");
	assert_string_equal(try.error, "there\n");
	assert_int_equal(try.result.exit_code, 0);
	assert_int_equal(try.result.stdout_bytes, 6);
	assert_string_equal(try.result.runner, "python");
	assert_string_equal(try.result.message, "The program ended normally.");
	assert_true(try.collected);
	assert_in_range(try.result.run.wall_us, 1000, 120000000);
	assert_in_range(try.result.run.cpu_user_us + try.result.run.cpu_system_us, 1000, 20000000);
	assert_in_range(try.result.run.memory_peak_bytes, MEBI, 256 * MEBI);
}

static void exit_status(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "bash", "exit 42");
	assert_verdict(&try, JAIL_RE);
	assert_int_equal(try.result.exit_code, 42);
	assert_string_equal(try.result.message, "The program ended with exit status 42.");
}

static void by_signal(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python", "import os\nos.abort()");
	assert_verdict(&try, JAIL_SG);
	assert_int_equal(try.result.signal, SIGABRT);
	assert_int_equal(try.result.exit_code, -1);
	try_clear(&try);
	run(&try, "bash", "kill -KILL $$");
	assert_verdict(&try, JAIL_SG);
	assert_int_equal(try.result.signal, SIGKILL);
	assert_false(try.result.oom_killed);
}

static void compile_step_has_its_own_account(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "c", "#include <stdio.h>\nint main(void){puts(\"compiled\");return 3;}\n");
	assert_verdict(&try, JAIL_RE);
	assert_int_equal(try.result.exit_code, 3);
	assert_string_equal(try.out, "compiled\n");
	assert_true(try.result.compiled);
	/* Each step has its own account. How long they take is the machine's affair, how much they do is not. */
	const struct jail_usage *compile = &try.result.compile, *ran = &try.result.run;
	assert_true(compile->wall_us > 0 && ran->wall_us > 0);
	assert_true(compile->cpu_user_us + compile->cpu_system_us > ran->cpu_user_us + ran->cpu_system_us);
	try_clear(&try);
	run(&try, "c",
	    "#include <fcntl.h>\nint main(void){return open(\"/code/main\", O_WRONLY) < 0 && open(\"/code/x\", "
	    "O_CREAT|O_WRONLY, 0600) < 0 "
	    "? 0 : 1;}\n");
	assert_verdict(&try, JAIL_OK);
}

static void compile_error(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "c", "int main(void){ return nothing; }\n");
	assert_verdict(&try, JAIL_CE);
	assert_non_null(strstr(try.error, "nothing"));
	assert_string_equal(try.result.message, "The compile step ended with exit status 1.");
	assert_int_equal(try.result.run.wall_us, 0);
}

static void stdin_args_env(void **state)
{
	auto_try struct try try = {.jail = NULL};
	const char *code = "import sys, os\nprint(sys.stdin.read(), sys.argv[1:], os.environ['X'], os.environ['HOME'], "
			   "sorted(os.environ))\n";
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	auto_close int in_fd = memfd_with("in", "input", 5);
	const char *args[] = {"a b", "\xff", NULL}, *env[] = {"X=1\n2", "HOME=/data", NULL};
	struct jail_spec spec = {.runner = "py"};
	struct err err = ERR_INIT;

	(void)state;
	try_begin(client, &try, &spec);
	struct jail_program program = {.code_fd = code_fd,
				       .args = args,
				       .env = env,
				       .stdin_fd = in_fd,
				       .stdout_fd = try.out_fd,
				       .stderr_fd = try.error_fd};
	assert_int_equal(jail_run(try.jail, &program, &err), 0);
	try_end(client, &try);
	assert_verdict(&try, JAIL_OK);
	assert_string_equal(
		try.out,
		"input ['a b', '\\udcff'] 1\n2 /data ['HOME', 'LANG', 'LOGNAME', 'MPLBACKEND', 'MPLCONFIGDIR', "
		"'OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PATH', "
		"'PYTHONDONTWRITEBYTECODE', 'PYTHONPATH', 'TMPDIR', 'USER', 'X']\n");
	/* The caller's file was copied: its position is where it was, and the guest cannot have written to it. */
	assert_int_equal(lseek(in_fd, 0, SEEK_CUR), 0);
}

/* -------- the end of a run ---------------------------------------------------------------------------- */
static void leader_ends(void **state)
{
	/* Children that hold the pipe, left the session, ignore signals, or start others: none of them holds the run
	 * up. */
	static const char *const programs[] = {
		"import os, time\nif os.fork() == 0: time.sleep(1000)\nprint('done')",
		"import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(1000)\n "
		"os._exit(0)\nprint('done')",
		"import os, time, signal\nif os.fork() == 0:\n for s in range(1, 65):\n  try: signal.signal(s, "
		"signal.SIG_IGN)\n  except "
		"(OSError, ValueError): pass\n time.sleep(1000)\n"
		"print('done')",
		"import os, time\ndef fork():\n try: return os.fork()\n except OSError: return 1\nfor i in "
		"range(20):\n if fork() == 0:\n  "
		"while True: fork()\nprint('done')",
		"import os\nfor i in range(24):\n pid = os.fork()\n if pid == 0: os._exit(0)\n if i % 2: "
		"os.waitpid(pid, "
		"0)\nprint('done')",
	};
	const struct jail_limits limits = {.pids = 16};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		auto_try struct try try = {.jail = NULL};

		/* They sleep beyond the wall limit: had one of them held the run up, the verdict would be TO. */
		run_limited(&try, programs[i], limits);
		assert_verdict(&try, JAIL_OK);
		assert_string_equal(try.out, "done\n");
	}
}

static void cancel_now(struct try *try)
{
	jail_cancel(try->jail);
}

static void cancelled_run_keeps_its_output(void **state)
{
	auto_try struct try try = {.jail = NULL, .on_output = cancel_now};

	(void)state;
	run(&try, "python", "import time\nprint('so far', flush=True)\ntime.sleep(60)");
	assert_verdict(&try, JAIL_CX);
	assert_string_equal(try.out, "so far\n");
	assert_true(try.outputs >= 1);
}

static void two_at_once(void **state)
{
	struct jail_spec spec = {.runner = "python"};
	auto_try struct try one = {.jail = NULL};
	auto_try struct try two = {.jail = NULL};
	const char *code = "import time, os\nopen('/dev/shm/mine', 'x').close()\nopen('/tmp/mine', "
			   "'x').close()\ntime.sleep(0.3)\nprint(os.listdir('/dev/shm'), os.listdir('/data'))";
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	struct try *both[] = {&one, &two};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		try_begin(client, both[i], &spec);
		struct jail_program program = {.code_fd = code_fd,
					       .stdin_fd = -1,
					       .stdout_fd = both[i]->out_fd,
					       .stderr_fd = both[i]->error_fd};
		assert_int_equal(jail_run(both[i]->jail, &program, NULL), 0);
	}
	for (size_t i = 0; i < 2; i++) {
		try_end(client, both[i]);
		assert_verdict(both[i], JAIL_OK);
		assert_string_equal(both[i]->out, "['mine'] []\n");
	}
}

/* One jail, several programs: files stay, processes do not, accounting is by difference. */
static void several_runs(void **state)
{
	auto_try struct try try = {.jail = NULL};
	struct jail_spec spec = {.runner = "python"};
	const char *codes[] = {"open('a','w').write('1')\nfor i in range(2000000): pass",
			       "print(open('a').read())\nopen('b','w').write('2')",
			       "import os\nos.unlink('a')\nopen('b','a').write('3')"};

	(void)state;
	try_begin(client, &try, &spec);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		auto_close int code_fd = memfd_with("code", codes[i], strlen(codes[i]));
		struct jail_program program = {
			.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try.out_fd, .stderr_fd = try.error_fd};

		assert_int_equal(jail_run(try.jail, &program, NULL), 0);
		assert_int_equal(jail_collect(try.jail, NULL), 0);
		assert_int_equal(jail_client_wait(client, try.jail, NULL), 0);
		assert_verdict(&try, JAIL_OK);
	}
	try_end(client, &try);
	assert_string_equal(try.out, "1\n");
	const struct {
		enum jail_change_kind kind;
		const char *name;
	} expected[] = {
		{JAIL_FILE_CREATED, "a"}, {JAIL_FILE_CREATED, "b"}, {JAIL_FILE_DELETED, "a"}, {JAIL_FILE_CHANGED, "b"}};
	assert_int_equal(try.n_changes, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_string_equal(try.changes[i].name, expected[i].name);
		assert_int_equal(try.changes[i].kind, expected[i].kind);
	}
	assert_string_equal(try.changes[3].content, "23");
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(result_of_a_program_that_ends_well),
		cmocka_unit_test(exit_status),
		cmocka_unit_test(by_signal),
		cmocka_unit_test(compile_step_has_its_own_account),
		cmocka_unit_test(compile_error),
		cmocka_unit_test(stdin_args_env),
		cmocka_unit_test(leader_ends),
		cmocka_unit_test(cancelled_run_keeps_its_output),
		cmocka_unit_test(two_at_once),
		cmocka_unit_test(several_runs),
	};

	return try_run(tests, argc, argv, start, stop);
}
