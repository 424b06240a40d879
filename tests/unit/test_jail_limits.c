/*
 * test_jail_limits.c - every limit of a run met by a real program in a real private jailer.
 */
#include "jail/relay/net.h"
#include "jail_runs.h"

#define LATE_US 60000000 /* how late a busy machine may let the jailer see that a limit was reached */

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
	assert_true(try.result.run.cpu_user_us + try.result.run.cpu_system_us < try.result.run.wall_us);
	if (!try.out[0])
		return false;
	assert_string_equal(try.out, "before\n");
	/* What it had written by then is there. */
	assert_int_equal(try.n_changes, 1);
	assert_string_equal(try.changes[0].content, "k");
	return true;
}

static void wall_time_stops_a_program(void **state)
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

static void cpu_time_stops_a_program(void **state)
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

static void memory_stops_a_program(void **state)
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

static void output_is_cut_at_the_limit(void **state)
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
	/* On a slow machine the time may be over before there are so many. */
	for (int64_t cpu_us = 1000000 * try_patience();; cpu_us *= 2) {
		run_limited(&try, "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
			    (struct jail_limits){.pids = 16, .cpu_us = cpu_us});
		assert_verdict(&try, JAIL_TO);
		const bool hit = try.result.pids_limit_hit || weaker;

		try_clear(&try);
		if (hit)
			break;
		assert_true(cpu_us < PATIENCE_LIMIT_US);
	}
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

static void requests_above_the_caps_are_refused(void **state)
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
		{{.runner = "cobol"}, ERR_INVALID, "runner: unknown runner cobol"},
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

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(wall_time_stops_a_program),
		cmocka_unit_test(cpu_time_stops_a_program),
		cmocka_unit_test(memory_stops_a_program),
		cmocka_unit_test(output_is_cut_at_the_limit),
		cmocka_unit_test(both_pipes),
		cmocka_unit_test(fork_bomb),
		cmocka_unit_test(tmp_and_files),
		cmocka_unit_test(requests_above_the_caps_are_refused),
	};

	return try_run(tests, argc, argv, start, stop);
}
