/*
 * test_jail_live_end.c - how live sandboxes end: limits, cancelling, and guests that lie to the jail from where the
 * driver should be.
 *
 * The driver (jail/guest/python.py) is the guest's own: any program can write to its descriptor, close it or hand it to
 * others. None of that may do more than end that one sandbox.
 */
#include "live_jailer.h"

#include <signal.h>

/* -------- the end ------------------------------------------------------------------------------------- */
static void over(struct live *live)
{
	assert_true(live->try.result.ended);
	live_run(live, "print('again')");
	assert_int_equal(live->try.result.verdict, JAIL_XX);
	assert_true(live->try.result.ended);
	assert_string_equal(live->try.out, "");
	assert_true(live->try.collected);
}

/* A sandbox that has had a run. The interpreter's start counts, too: a limit that was too short for it here is doubled.
 */
static void begin_limited(struct live *live, const char *runner, struct jail_limits asked)
{
	asked.wall_us *= try_patience();
	asked.cpu_us *= try_patience();
	for (;; asked.wall_us *= 2) {
		live_begin(live, client, runner, asked);
		if (live_run(live, "")->verdict != JAIL_TO || asked.wall_us == 0 || asked.wall_us > PATIENCE_LIMIT_US)
			break;
		live_end(live);
	}
	if (live->try.result.verdict != JAIL_OK)
		fail_msg("%s: %s", runner, live->try.result.message);
}

static void limits_end_the_interpreter(void **state)
{
	live_need(possible);
	static const struct {
		const char *runner, *code, *limit;
		enum jail_verdict verdict;
		struct jail_limits limits;
	} cases[] = {
		{"python", "import time\ntime.sleep(60)", "wall", JAIL_TO, {.wall_us = 2000000}},
		{"python", "while True: pass", "cpu", JAIL_TO, {.cpu_us = 1500000}},
		{"python", "x = bytearray(200 << 20)", "memory", JAIL_ML, {.memory_bytes = 64 * MEBI}},
		/* A helper is killed for lack of memory, and the interpreter is not. */
		{"python",
		 "import os\nif os.fork() == 0: x = bytearray(200 << 20)\nos.wait()",
		 "memory",
		 JAIL_ML,
		 {.memory_bytes = 64 * MEBI}},
		{"python", "while True: print('x' * 1000)", "output", JAIL_OL, {.output_bytes = 100000}},
		{"javascript", "setInterval(() => {}, 1000)", "wall", JAIL_TO, {.wall_us = 2000000}},
		{"bash", "sleep 60", "wall", JAIL_TO, {.wall_us = 1000000}},
		{"bash", "yes", "output", JAIL_OL, {.output_bytes = 100000}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (!live_runner(client, cases[i].runner))
			continue;
		auto_live struct live live = {.client = NULL};

		begin_limited(&live, cases[i].runner, cases[i].limits);
		live_run(&live, cases[i].code);
		if (live.try.result.verdict != cases[i].verdict || !streq(live.try.result.limit, cases[i].limit))
			fail_msg("%s: %s (%s)", cases[i].code, jail_verdict_text(live.try.result.verdict),
				 live.try.result.message);
		over(&live);
	}
}

/* A limit counts for each run, not for the sum; output too. */
static void limits_of_each_run(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "python",
		   (struct jail_limits){.cpu_us = 2500000 * try_patience(), .output_bytes = 3000});
	for (int i = 0; i < 4; i++) {
		live_run(&live, "import time\nt = time.process_time()\nwhile time.process_time() < t + 1: "
				"pass\nprint('x' * 2000)");
		assert_int_equal(live.try.result.verdict, JAIL_OK);
		assert_int_equal(live.try.result.stdout_bytes, 2001);
	}
}

static void on_output_cancel(struct try *try)
{
	jail_cancel(try->jail);
}

static void cancelled_run_ends_the_interpreter(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_run(&live, "import time");
	live.try.on_output = on_output_cancel;
	live_run(&live, "print('x', flush=True)\ntime.sleep(60)");
	assert_int_equal(live.try.result.verdict, JAIL_CX);
	assert_string_equal(live.try.out, "x\n");
	over(&live);
}

/* -------- guests that lie ----------------------------------------------------------------------------- */
static void driver_cannot_be_impersonated(void **state)
{
	live_need(possible);
	static const struct {
		const char *code;
		enum jail_verdict verdict;
		int value; /* exit status or signal */
		bool ended;
	} cases[] = {
		{"import os; os._exit(9)", JAIL_RE, 9, true},
		{"import os; os._exit(0)", JAIL_OK, 0, true},
		{"import os; os.kill(os.getpid(), 9)", JAIL_SG, SIGKILL, true},
		{"import os; os.abort()", JAIL_SG, SIGABRT, true},
		{"import ctypes; ctypes.string_at(0)", JAIL_SG, SIGSEGV, true},
		{"import os, time\nif os.fork() == 0: time.sleep(60)\nos.kill(-1, 9); os.wait()", JAIL_OK, 0,
		 false}, /* spares who calls it, and process 1 cannot be killed from within */
		/* garbage, too much, too often, nothing, somebody else */
		{"import os; os.write(3, b'garbage'); import time; time.sleep(60)", JAIL_SG, SIGKILL, true},
		{"import os; os.write(3, b'x' * 100000); import time; time.sleep(60)", JAIL_SG, SIGKILL, true},
		{"import os\nos.write(3, b'\\x05')\n", JAIL_RE, 5, false},
		{"import os\nfor i in range(50): os.write(3, b'\\x06')\n", JAIL_RE, 6, false},
		{"import os, time; os.close(3); time.sleep(60)", JAIL_SG, SIGKILL, true},
		{"import os\nif os.fork() == 0:\n  while True: pass\nos.close(3); os._exit(7)", JAIL_RE, 7, true},
		{"import os\nif os.fork() == 0:\n  os.write(3, b'\\x08')\n  while True: pass\nwhile True: pass",
		 JAIL_RE, 8, false},
		{"import os\nif os.fork() == 0: pass\nelse: os.wait()", JAIL_OK, 0,
		 false}, /* the child comes to the end of the source, too */
		{"import socket, os\ns = socket.socket(fileno=os.dup(3))\nsocket.send_fds(s, [b'\\x04'], [0, 1, 2] * "
		 "50)",
		 JAIL_RE, 4, false},
		{"import os\nos.unlink('/code/.start'); os.unlink('/code/main.py')", JAIL_OK, 0, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_live struct live live = {.client = NULL};

		live_begin(&live, client, "python", (struct jail_limits){0});
		live_run(&live, "x = 1");
		live_run(&live, cases[i].code);
		const struct jail_result *result = &live.try.result;
		if (result->verdict != cases[i].verdict ||
		    (result->verdict == JAIL_SG ? result->signal : result->exit_code) != cases[i].value ||
		    result->ended != cases[i].ended)
			fail_msg("%s: %s %d %s (%s)", cases[i].code, jail_verdict_text(result->verdict),
				 result->signal ? result->signal : result->exit_code, result->ended ? "ended" : "",
				 result->message);
	}
}

/* Orders that are not taken: the socket fills, and the driver is ended, not waited for. */
static void deaf_driver_is_ended(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};
	auto_free char *long_text = xcalloc(1, 30001);
	const char *args[] = {long_text, NULL};
	int runs = 0;

	(void)state;
	memset(long_text, 'x', 30000);
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_run(&live,
		 "import os, time\nif os.fork() == 0:\n  while True:\n    os.write(3, b'\\0')\n    time.sleep(0.001)\n"
		 "while True: time.sleep(1)");
	for (; runs < 1000 && !live.try.result.ended; runs++) {
		live_ask(&live, "", &(struct jail_program){.args = args, .stdin_fd = -1});
		live_take(&live);
	}
	assert_in_range(runs, 1, 999);
	if (live.try.result.verdict != JAIL_SG)
		fail_msg("%s after %d runs: %s", live.try.result.message, runs, live.try.error);
}

/* Locks are counted by init, which is asked by the filter of the run that a process began in. */
static void background_locks(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "bash", (struct jail_limits){0});
	live_expect(&live,
		    "(until [ -e /tmp/go ]; do sleep 0.01; done; flock /tmp/l echo later; touch /tmp/gone) & echo",
		    JAIL_OK, "\n");
	live_expect(&live, "echo between", JAIL_OK, "between\n");
	live_expect(&live, "touch /tmp/go; until [ -e /tmp/gone ]; do sleep 0.01; done", JAIL_OK, "later\n");
}

static void pipe_refused(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_ask(&live, "pass", &(struct jail_program){.stdin_fd = ends[0]});
	assert_int_equal(jail_client_wait(client, live.try.jail, NULL), 0);
	assert_true(live.try.failed);
	assert_int_equal(live.try.err.code, ERR_INVALID);
	assert_non_null(strstr(live.try.err.text, "must be files, not pipes"));
	close(ends[0]);
	close(ends[1]);
}

/* The next run's files could not be filled in. */
static void read_only_refused(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "bash", (struct jail_limits){0});
	live_ask(&live, "true", &(struct jail_program){.stdin_fd = -1, .read_only = true});
	assert_int_equal(jail_client_wait(client, live.try.jail, NULL), 0);
	assert_true(live.try.failed);
	assert_int_equal(live.try.err.code, ERR_INVALID);
	assert_non_null(strstr(live.try.err.text, "read_only: is not for a live sandbox"));
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(background_locks),
		cmocka_unit_test(limits_end_the_interpreter),
		cmocka_unit_test(limits_of_each_run),
		cmocka_unit_test(cancelled_run_ends_the_interpreter),
		cmocka_unit_test(driver_cannot_be_impersonated),
		cmocka_unit_test(deaf_driver_is_ended),
		cmocka_unit_test(pipe_refused),
		cmocka_unit_test(read_only_refused),
	};

	return try_run(tests, argc, argv, start, stop);
}
