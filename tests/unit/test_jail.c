/*
 * test_jail.c - verdicts, limits and files of real programs in a real private jailer.
 *
 * Every verdict and every limit has a program that meets it. After each run nothing of it may be left: that is checked
 * in test_jail_host.c, from the outside.
 */
#include "jail/net.h"
#include "jail_try.h"

#include <poll.h>
#include <signal.h>

#define MEBI    (1 << 20)
#define LATE_US 60000000 /* how late a busy machine may let the jailer see that a limit was reached */

static struct jail_client *client;
static bool shares_id; /* with who started the jailer: half as many open files, so that others of that user have room
			  (init_limits) */
static bool weaker; /* no cgroup: resource limits only, and no counters */

static int start(void **state)
{
	struct json_object *info = NULL;

	(void)state;
	client = try_client(getenv("TEST_CONFIG"));
	assert_int_equal(jail_client_info(client, &info, NULL), 0);
	weaker = json_object_get_boolean(json_get(info, "weaker_limits", json_type_boolean));
	shares_id = streq(json_get_string(info, "mode"), "single-id");
	json_object_put(info);
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

static void run_limited(struct try *try, const char *code, struct jail_limits limits)
{
	struct jail_spec spec = {.runner = "python", .limits = limits};

	try_program(client, try, &spec, code);
}

static void assert_verdict(const struct try *try, enum jail_verdict verdict)
{
	if (try->failed)
		fail_msg("failed: %s", try->err.text);
	if (try->result.verdict != verdict)
		fail_msg("%s instead of %s: %s; stderr: %s", jail_verdict_text(try->result.verdict),
			 jail_verdict_text(verdict), try->result.message, try->error ? try->error : "");
}

/* -------- the program's own end ----------------------------------------------------------------------- */
static void ok(void **state)
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

static void compiled(void **state)
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
		"input ['a b', '\\udcff'] 1\n2 /data ['HOME', 'LANG', 'LOGNAME', 'MPLBACKEND', 'MPLCONFIGDIR', 'PATH', "
		"'PYTHONDONTWRITEBYTECODE', 'PYTHONPATH', 'TMPDIR', 'USER', 'X']\n");
	/* The caller's file was copied: its position is where it was, and the guest cannot have written to it. */
	assert_int_equal(lseek(in_fd, 0, SEEK_CUR), 0);
}

/* -------- limits -------------------------------------------------------------------------------------- */
/* True: the program had come to its output by then. */
static bool stopped_at(int64_t limit)
{
	auto_try struct try try = {.jail = NULL};

	run_limited(&try, "import time\nopen('kept','w').write('k')\nprint('before', flush=True)\ntime.sleep(1000)",
		    (struct jail_limits){.wall_us = limit});
	assert_verdict(&try, JAIL_TO);
	assert_string_equal(try.result.limit, "wall");
	if (limit == 1500000)
		assert_string_equal(try.result.message, "The program was stopped after 1.5 s, its time limit.");
	assert_in_range(try.result.run.wall_us, limit, limit + LATE_US);
	assert_true(try.result.run.cpu_user_us + try.result.run.cpu_system_us < 1000000 * try_patience());
	if (!try.out[0])
		return false;
	assert_string_equal(try.out, "before\n");
	/* What it had written by then is there. */
	assert_int_equal(try.n_changes, 1);
	assert_string_equal(try.changes[0].content, "k");
	return true;
}

static void wall(void **state)
{
	int64_t limit = 1500000 * try_patience();

	(void)state;
	for (; !stopped_at(limit); limit *= 2)
		assert_true(limit < PATIENCE_LIMIT_US);
}

/* CPU time that a program used which was stopped for that. */
static int64_t cpu_used(const char *code, struct jail_limits limits)
{
	auto_try struct try try = {.jail = NULL};

	run_limited(&try, code, limits);
	assert_verdict(&try, JAIL_TO);
	assert_string_equal(try.result.limit, "cpu");
	int64_t used = try.result.run.cpu_user_us + try.result.run.cpu_system_us;
	if (!weaker)
		assert_in_range(used, limits.cpu_us, limits.cpu_us + LATE_US);
	return used;
}

/* A jailer that has to wait for a processor itself sees later that the time is used up: it is exact in some run, not in
 * every one. */
static void assert_cpu_exact(const char *code, struct jail_limits limits)
{
	int64_t most = limits.cpu_us + 200000 * try_patience(), until = 0, used;

	while ((used = cpu_used(code, limits)) > most && patience_left(&until))
		;
	assert_in_range(used, limits.cpu_us, most);
}

static void cpu(void **state)
{
	const struct jail_limits limits = {.cpu_us = 300000}, two_cores = {.cpu_us = 300000, .cpu_percent = -1};

	(void)state;
	if (weaker) { /* whole seconds, each process for itself */
		assert_in_range(cpu_used("while True: pass", limits), 500000, 1500000);
	} else {
		assert_cpu_exact("while True: pass", limits);
		assert_cpu_exact("import os\nos.fork()\nwhile True: pass", two_cores); /* they share the budget */
	}
}

static void memory(void **state)
{
	auto_try struct try try = {.jail = NULL};
	const struct jail_limits limits = {.memory_bytes = 64 * MEBI};

	(void)state;
	run_limited(&try, "x = bytearray(200 << 20)\nprint('no')", limits);
	if (weaker) { /* the allocation fails in the program */
		assert_verdict(&try, JAIL_RE);
		assert_non_null(strstr(try.error, "MemoryError"));
		return;
	}
	assert_verdict(&try, JAIL_ML);
	assert_true(try.result.oom_killed);
	assert_string_equal(try.result.limit, "memory");
	assert_in_range(try.result.run.memory_peak_bytes, 60 * MEBI, 64 * MEBI);
	try_clear(&try);
	run_limited(&try, "f = open('/dev/shm/x', 'wb')\nwhile True: f.write(bytes(1 << 20))", limits);
	assert_verdict(&try, JAIL_ML);
	try_clear(&try);
	run_limited(&try, "import os\nf = os.memfd_create('x')\nwhile True: os.write(f, bytes(1 << 20))", limits);
	assert_verdict(&try, JAIL_ML);
}

static void output(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	/* 100 MB against the default limit of 16 MiB over both streams. */
	run(&try, "python", "import sys\nfor i in range(100): sys.stdout.write('x' * 999999 + '\\n')");
	assert_verdict(&try, JAIL_OL);
	assert_int_equal(try.result.stdout_bytes, 16 * MEBI);
	assert_int_equal(strlen(try.out), 16 * MEBI);
	assert_true(try.result.stdout_truncated);
	try_clear(&try);
	run_limited(&try, "import sys\nsys.stdout.write('o' * 600)\nsys.stdout.flush()\nsys.stderr.write('e' * 600)",
		    (struct jail_limits){.output_bytes = 1000});
	assert_verdict(&try, JAIL_OL);
	assert_int_equal(try.result.stdout_bytes, 600);
	assert_int_equal(try.result.stderr_bytes, 400);
	try_clear(&try);
	run_limited(&try, "import sys\nsys.stdout.write('o' * 1000)", (struct jail_limits){.output_bytes = 1000});
	assert_verdict(&try, JAIL_OK);
	assert_false(try.result.stdout_truncated);
}

static void both_pipes(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python",
	    "import sys\nfor i in range(300):\n sys.stderr.write('e' * 10000)\n sys.stdout.write('o' * 10000)");
	assert_verdict(&try, JAIL_OK);
	assert_int_equal(strlen(try.out), 3000000);
	assert_int_equal(strlen(try.error), 3000000);
}

static void fork_bomb(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run_limited(&try, "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
		    (struct jail_limits){.pids = 16, .cpu_us = 1000000 * try_patience()});
	assert_verdict(&try, JAIL_TO);
	assert_true(try.result.pids_limit_hit || weaker);
	try_clear(&try);
	run_limited(&try,
		    "import os, time\npids = 0\ntry:\n while True:\n  if os.fork() == 0: time.sleep(60)\n  pids += "
		    "1\nexcept OSError as e: "
		    "print(pids + 1, e.errno)",
		    (struct jail_limits){.pids = 20});
	assert_verdict(&try, JAIL_OK);
	assert_string_equal(try.out, "20 11\n");
}

static void tmp_and_files(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run_limited(&try,
		    "import os, errno\n"
		    "def full(path):\n"
		    " n = 0\n"
		    " try:\n"
		    "  with open(path, 'wb', 0) as f:\n"
		    "   while True: n += f.write(bytes(1 << 20))\n"
		    " except OSError as e: print(path, n >> 20, errno.errorcode[e.errno])\n"
		    " os.unlink(path)\n"
		    "full('/data/x'); full('/tmp/x')\n"
		    "n = 0\n"
		    "try:\n"
		    " while True: os.close(os.open('/data/%d' % n, os.O_CREAT)); n += 1\n"
		    "except OSError as e: print(n, errno.errorcode[e.errno])\n"
		    "try: os.truncate('/data/0', 1 << 60)\n"
		    "except OSError as e: print(errno.errorcode[e.errno])\n"
		    "n = 0\n"
		    "try:\n"
		    " while True: os.open('/', 0); n += 1\n"
		    "except OSError as e: print(n, errno.errorcode[e.errno])\n",
		    (struct jail_limits){.data_bytes = 8 * MEBI, .data_inodes = 100, .tmp_bytes = 4 * MEBI});
	assert_verdict(&try, JAIL_OK);
	assert_string_equal(try.out, shares_id ? "/data/x 8 ENOSPC\n/tmp/x 4 ENOSPC\n99 ENOSPC\nEFBIG\n509 EMFILE\n"
					       : "/data/x 8 ENOSPC\n/tmp/x 4 ENOSPC\n99 ENOSPC\nEFBIG\n1021 EMFILE\n");
	assert_int_equal(try.n_changes, 99);
}

static void caps(void **state)
{
	(void)state;
	const struct {
		struct jail_spec spec;
		enum err_code code;
		const char *text;
	} cases[] = {
		{{.runner = "python", .limits.wall_us = 301000000},
		 ERR_LIMIT,
		 "limits.wall_us: 301000000 is more than this server allows, 300000000"},
		{{.runner = "python", .limits.memory_bytes = INT64_C(1) << 40}, ERR_LIMIT, NULL},
		{{.runner = "python", .limits.pids = 513}, ERR_LIMIT, NULL},
		{{.runner = "python", .limits.data_bytes = INT64_C(2) << 30}, ERR_LIMIT, NULL},
		{{.runner = "cobol"}, ERR_INVALID, "runner: there is no runner cobol"},
		{{.runner = "python", .network = true}, ERR_UNAVAILABLE, NET_REFUSED},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_try struct try try = {.jail = NULL};

		try_program(client, &try, &cases[i].spec, "print(1)");
		assert_true(try.failed);
		assert_false(try.done);
		assert_int_equal(try.err.code, cases[i].code);
		if (cases[i].text)
			assert_string_equal(try.err.text, cases[i].text);
	}
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

static void cancelled(void **state)
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
		cmocka_unit_test(ok),
		cmocka_unit_test(exit_status),
		cmocka_unit_test(by_signal),
		cmocka_unit_test(compiled),
		cmocka_unit_test(compile_error),
		cmocka_unit_test(stdin_args_env),
		cmocka_unit_test(wall),
		cmocka_unit_test(cpu),
		cmocka_unit_test(memory),
		cmocka_unit_test(output),
		cmocka_unit_test(both_pipes),
		cmocka_unit_test(fork_bomb),
		cmocka_unit_test(tmp_and_files),
		cmocka_unit_test(caps),
		cmocka_unit_test(leader_ends),
		cmocka_unit_test(cancelled),
		cmocka_unit_test(two_at_once),
		cmocka_unit_test(several_runs),
	};

	return try_run(tests, argc, argv, start, stop);
}
