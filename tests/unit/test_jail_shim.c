/*
 * test_jail_shim.c - deterministic runs (jail_program.clock_us): what differs from run to run otherwise is the same.
 *
 * Real jailer, real interpreters. Each row is one thing that a program can print, run twice; those marked `differs` are
 * run twice without the clock, too, and must then differ, so that no row is about nothing.
 */
#include "live_try.h"

#include <string.h>

#define BEGAN_US INT64_C(1704067200000000) /* 2024-01-01 */

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

/* What it printed; the caller's. */
static char *printed(const char *runner, const char *code, int64_t clock_us)
{
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	auto_once struct jail_once once = {
		.spec = {.runner = runner},
		.program = {.code_fd = code_fd, .stdin_fd = -1, .clock_us = clock_us},
		.capture = true,
	};
	struct err err = ERR_INIT;
	char *out = NULL, *error = NULL;
	size_t length;

	if (jail_once(client, &once, &err) < 0)
		fail_msg("%s: %s", runner, err.text);
	assert_int_equal(jail_once_output(&once, 1, 1 << 20, &out, &length, NULL), 0);
	assert_int_equal(jail_once_output(&once, 2, 1 << 20, &error, &length, NULL), 0);
	if (once.result.verdict != JAIL_OK || *error)
		fail_msg("%s: %s: %s", code, once.result.message, error);
	free(error);
	return out;
}

static const struct row {
	const char *runner, *what, *code;
	bool differs;         /* without the clock */
	const char *expected; /* with it; NULL: anything */
} rows[] = {
	{"python", "clock", "import time\nprint(time.time())", true, NULL},
	{"python", "day", "import datetime\nprint(datetime.datetime.now().replace(microsecond=0))", false,
	 "2024-01-01 00:00:00\n"},
	{"python", "monotonic", "import time\nprint(time.monotonic(), time.perf_counter(), time.process_time())", true,
	 NULL},
	{"python", "time zone", "import os, time\nprint(os.environ.get('TZ'), time.tzname)", false,
	 "UTC ('UTC', 'UTC')\n"}, /* said, not what the host happens to have */
	{"python", "locale", "import os\nprint(os.environ['LANG'])", false, "C.UTF-8\n"},
	{"python", "random", "import random\nprint(random.random())", true, NULL},
	{"python", "urandom", "import os\nprint(os.urandom(40).hex(), open('/dev/urandom', 'rb').read(9).hex())", true,
	 NULL},
	{"python", "uuid", "import uuid\nprint(uuid.uuid4(), uuid.uuid1())", true, NULL},
	{"python", "set order", "print({'ab', 'cd', 'ef', 'gh', 'ij', 'kl', 'mn'}, hash('x'))", true, NULL},
	{"python", "address", "print(object(), id(print))", true, NULL},
	{"python", "host name", "import socket\nprint(socket.gethostname())", false, "jail\n"},
	{"python", "processors", "import os\nprint(os.cpu_count(), os.sched_getaffinity(0))", false, "1 {0}\n"},
	{"python", "directory",
	 "import os\nfor n in ('c', 'a', 'd', 'b'): open('/tmp/' + n, 'w').close()\n"
	 "print(os.listdir('/tmp'), [e.name for e in os.scandir('/tmp')])",
	 false, "['a', 'b', 'c', 'd'] ['a', 'b', 'c', 'd']\n"},
	{"python", "temporary file", "import tempfile\nprint(tempfile.mkdtemp())", true, NULL},
	{"python", "sleep", "import time\nt = time.time()\ntime.sleep(0.25)\nprint(round(time.time() - t, 4))", false,
	 "0.25\n"},
	{"python", "time-outs",
	 "import time, threading, asyncio, queue, select, subprocess\n"
	 "def took(f):\n"
	 "    t = time.monotonic()\n"
	 "    try: f()\n"
	 "    except (asyncio.TimeoutError, queue.Empty, subprocess.TimeoutExpired): pass\n"
	 "    print(round(time.monotonic() - t, 3))\n"
	 "took(lambda: threading.Event().wait(0.05))\n"
	 "took(lambda: queue.Queue().get(timeout=0.06))\n"
	 "took(lambda: select.select([], [], [], 0.07))\n"
	 "took(lambda: asyncio.run(asyncio.wait_for(asyncio.sleep(60), 0.08)))\n"
	 "th = threading.Thread(target=time.sleep, args=(0.09,))\n"
	 "took(lambda: (th.start(), th.join()))\n",
	 false, "0.05\n0.06\n0.07\n0.08\n0.09\n"},
	{"python", "a loop until then",
	 "import time\nt = time.time()\nwhile time.time() < t + 0.01: pass\nprint('over')", false, "over\n"},
	{"javascript", "clock", "console.log(Date.now(), performance.now())", true, NULL},
	{"javascript", "random", "console.log(Math.random(), require('crypto').randomUUID())", true, NULL},
	{"javascript", "processors", "console.log(require('os').availableParallelism())", false, "1\n"},
	{"javascript", "timer", "const t = Date.now(); setTimeout(() => console.log(Date.now() - t), 70)", false,
	 "70\n"},
	{"bash", "clock", "date +%F_%T.%N; echo $EPOCHREALTIME", true, NULL},
	{"bash", "random", "echo $RANDOM; mktemp -u; head -c 4 /dev/urandom | od -x; shuf -i 1-1000 -n 3", true, NULL},
	{"bash", "other processes' waits", "s=$(date +%s); sleep 1; e=$(date +%s); echo $((e - s))", false, "1\n"},
	{"bash", "directory", "cd /tmp && touch c a b && ls -U", false, "a\nb\nc\n"},
	{"bash", "processors", "nproc", false, "1\n"},
	{"c", "address, seed and the compiler's clock",
	 "#include <stdio.h>\n#include <stdlib.h>\n#include <time.h>\n"
	 "int main(void) { int x; srand((unsigned)time(NULL)); printf(\"%p %p %d %s\\n\", (void *)&x, malloc(1), "
	 "rand(), "
	 "__TIME__); }",
	 true, NULL},
	{"cpp", "random_device",
	 "#include <iostream>\n#include <random>\n#include <chrono>\n"
	 "int main() { std::random_device d; std::cout << d() << ' ' << "
	 "std::chrono::system_clock::now().time_since_epoch().count() << '\\n'; }",
	 true, NULL},
	{"go", "processors",
	 "package main\nimport (\"fmt\"; \"runtime\")\nfunc main() { fmt.Println(runtime.NumCPU()) }", false, "1\n"},
	{"typescript", "random", "console.log(crypto.randomUUID(), Math.random() as number)", true, NULL},
};

static void deterministic_runs_print_the_same(void **state)
{
	const struct row *row = *state;

	if (!live_runner(client, row->runner))
		skip();
	auto_free char *one = printed(row->runner, row->code, BEGAN_US);
	auto_free char *other = printed(row->runner, row->code, BEGAN_US);

	assert_string_equal(one, other);
	if (row->expected)
		assert_string_equal(one, row->expected);
	if (!row->differs)
		return;
	auto_free char *plain = printed(row->runner, row->code, 0);
	auto_free char *again = printed(row->runner, row->code, 0);
	assert_string_not_equal(plain, again);
}

/* The clock is the run's, not one for all. */
static void other_clock(void **state)
{
	const char *code = "import time\nprint(int(time.time()))";
	auto_free char *one = printed("python", code, BEGAN_US), *other = printed("python", code, 1000000);

	(void)state;
	assert_string_equal(one, "1704067200\n");
	assert_string_equal(other, "1\n");
}

/* Children that go on after a fork have a sequence of their own, and so do programs that are started. */
static void processes_differ(void **state)
{
	auto_free char *out = printed("python",
				      "import os, subprocess, sys\n"
				      "seen = {os.urandom(8), subprocess.run([sys.executable, '-c', 'import os, sys; "
				      "sys.stdout.buffer.write(os.urandom(8))'], capture_output=True).stdout}\n"
				      "r, w = os.pipe()\n"
				      "if os.fork() == 0:\n"
				      "    os.write(w, os.urandom(8))\n"
				      "    os._exit(0)\n"
				      "seen |= {os.read(r, 8), os.urandom(8)}\n"
				      "print(len(seen))\n",
				      BEGAN_US);

	(void)state;
	assert_string_equal(out, "4\n");
}

/* The clock of a live sandbox is that of its first run, and goes on. */
static void live_goes_on(void **state)
{
	auto_live struct live live = {.client = NULL};

	(void)state;
	if (!live_possible(client))
		skip();
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_ask(&live, "import time\ntime.sleep(1)\nprint(int(time.time()))",
		 &(struct jail_program){.stdin_fd = -1, .clock_us = BEGAN_US});
	live_take(&live);
	assert_string_equal(live.try.out, "1704067201\n");
	live_ask(&live, "import random\nprint(int(time.time()), random.random())",
		 &(struct jail_program){.stdin_fd = -1, .clock_us = BEGAN_US});
	live_take(&live);
	assert_memory_equal(live.try.out, "1704067201 0.", 13);
}

/* The jailer takes no time that cannot be one. */
static void bad_clock(void **state)
{
	auto_close int code_fd = memfd_with("code", "1", 1);
	auto_once struct jail_once once = {
		.spec = {.runner = "python"},
		.program = {.code_fd = code_fd, .stdin_fd = -1, .clock_us = -1},
		.capture = true,
	};
	struct err err = ERR_INIT;
	struct jail_client *own = try_client(NULL); /* the connection ends with it */

	(void)state;
	assert_true(jail_once(own, &once, &err) < 0);
	jail_once_clear(&once);
	jail_client_free(own);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(rows) + 4];
	char *names[ARRAY_SIZE(rows)];
	size_t n = 0;

	for (; n < ARRAY_SIZE(rows); n++) {
		names[n] = xasprintf("%s: %s", rows[n].runner, rows[n].what);
		tests[n] = (struct CMUnitTest){names[n], deterministic_runs_print_the_same, NULL, NULL,
					       (void *)(uintptr_t)&rows[n]};
	}
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(other_clock);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(processes_differ);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(live_goes_on);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(bad_clock);
	int result = cmocka_run_group_tests(tests, start, stop);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		free(names[i]);
	return result;
}
