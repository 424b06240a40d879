/*
 * test_jail_live.c - live sandboxes: what stays from run to run, what is frozen meanwhile, which files changed.
 *
 * Real jailer, real interpreters. Where the host cannot freeze (no cgroup v2 to be had), the refusal is what is tested.
 */
#include "live_jailer.h"

#define FROZEN_SECONDS_MAX 30 /* what is not frozen by then never is */

/* -------- what stays ---------------------------------------------------------------------------------- */
static void python_state(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_expect(&live, "import math\nx = 40\ndef f(y): return x + y\n", JAIL_OK, "");
	assert_false(live.try.result.ended);
	assert_false(live.try.result.warm);
	live_expect(&live, "print(f(2), math.pi > 3)", JAIL_OK, "42 True\n");
	assert_true(live.try.result.warm);
	live_expect(&live, "1 + 1", JAIL_OK, ""); /* a script, no console: nothing is echoed */
	live_expect(&live, "import sys\nsys.exit(3)", JAIL_RE, "");
	assert_int_equal(live.try.result.exit_code, 3);
	assert_false(live.try.result.ended);
	live_expect(&live, "sys.exit('words')", JAIL_RE, "");
	assert_string_equal(live.try.error, "words\n");
	assert_int_equal(live.try.result.exit_code, 1);
	live_expect(&live, "print(x, __name__, __file__, sys.argv)", JAIL_OK,
		    "40 __main__ /code/main.py ['/code/main.py']\n");
	assert_string_equal(live.try.result.runner, "python");
}

/* As python3 main.py shows it; code of an earlier run is still found, with its own lines. */
static void python_errors(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_expect(&live, "def f():\n    return 1 // 0 # here\nf()\n", JAIL_RE, "");
	assert_string_equal(live.try.error,
			    "Traceback (most recent call last):\n"
			    "  File \"/code/main.py\", line 3, in <module>\n    f()\n"
			    "  File \"/code/main.py\", line 2, in f\n    return 1 // 0 # here\n           ~~^^~~\n"
			    "ZeroDivisionError: integer division or modulo by zero\n");
	live_expect(&live, "\n\n\nf()", JAIL_RE, "");
	assert_non_null(strstr(live.try.error, "  File \"/code/main.py#2\", line 4, in <module>\n    f()\n"));
	assert_non_null(strstr(live.try.error, "  File \"/code/main.py\", line 2, in f\n    return 1 // 0 # here\n"));
	live_expect(&live, "print('no'\n", JAIL_RE, "");
	assert_non_null(strstr(live.try.error, "SyntaxError: '(' was never closed\n"));
	assert_null(strstr(live.try.error, "Traceback"));
	live_expect(&live, "def g(): g()\ng()", JAIL_RE, "");
	assert_non_null(strstr(live.try.error, "RecursionError"));
	live_expect(&live, "x = '\0", JAIL_RE, "");
	live_expect(&live, "print('still here')", JAIL_OK, "still here\n");
}

static void given_to_a_run(const char *runner, const char *code)
{
	auto_live struct live live = {.client = NULL};
	auto_close int input = memfd_with("in", "one\ntwo\n", 8);
	const char *args[] = {"a", "", "b c", NULL}, *env[] = {"X=1=2", "HOME=/data", NULL}, *other[] = {"Y=3", NULL};

	live_begin(&live, client, runner, (struct jail_limits){0});
	live_ask(&live, code, &(struct jail_program){.args = args, .env = env, .stdin_fd = input});
	live_take(&live);
	assert_string_equal(live.try.out, "one\ntwo\n[\"a\",\"\",\"b c\"] 1=2 - /data\n");
	/* The next run has its own. */
	live_ask(&live, code, &(struct jail_program){.env = other, .stdin_fd = -1});
	live_take(&live);
	assert_string_equal(live.try.out, "[] - 3 -\n");
	assert_int_equal(lseek(input, 0, SEEK_SET), 0);
	live_ask(&live, code, &(struct jail_program){.stdin_fd = input});
	live_take(&live);
	assert_string_equal(live.try.out, "one\ntwo\n[] - - -\n");
}

static void python_input(void **state)
{
	live_need(possible);
	(void)state;
	given_to_a_run(
		"python",
		"import sys, os, json\nprint(sys.stdin.read() + json.dumps(sys.argv[1:], separators=(',', ':')), "
		"*(os.environ.get(n, '-') for n in ('X', 'Y', 'HOME')))");
}

static void javascript_input(void **state)
{
	live_need(possible);
	live_need_runner(client, "javascript");
	(void)state;
	given_to_a_run("javascript", "let text = ''\nfor await (const part of process.stdin) text += part\n"
				     "console.log(text + JSON.stringify(process.argv.slice(2)), "
				     "...['X', 'Y', 'HOME'].map((n) => process.env[n] ?? '-'))");
}

static void javascript_state(void **state)
{
	live_need(possible);
	live_need_runner(client, "javascript");
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "javascript", (struct jail_limits){0});
	live_expect(&live, "const a = 40; let b = 1; class C { two() { return 2 } }\nfunction f(x) { return a + x }",
		    JAIL_OK, "");
	live_expect(&live, "b++; console.log(f(new C().two()), b)", JAIL_OK, "42 2\n");
	live_expect(&live, "const a = 1 // again\nconsole.log(a)", JAIL_OK, "1\n");
	live_expect(&live, "const p = await new Promise((r) => setTimeout(r, 5, 'awaited'))\nconsole.log(p)", JAIL_OK,
		    "awaited\n");
	/* A run is over when nothing is left to do, as a script is. */
	live_expect(&live, "async function main() { await null; setTimeout(() => console.log('late'), 20) }\nmain()",
		    JAIL_OK, "late\n");
	live_expect(&live, "console.log(require('path').basename('/x/y'), typeof require('csv-parser'), __filename)",
		    JAIL_OK, "y function /code/main.js\n");
	live_expect(&live,
		    "import fs, { readFileSync as read } from 'node:fs'\nimport * as os from 'os';\n"
		    "console.log(typeof fs.statSync, typeof read, typeof os.cpus)",
		    JAIL_OK, "function function function\n");
	live_expect(&live, "console.log(typeof read, (await import('node:path')).sep, \"import('x')\")", JAIL_OK,
		    "function / import('x')\n");
	live_expect(&live, "process.exitCode = 4", JAIL_RE, "");
	assert_int_equal(live.try.result.exit_code, 4);
	live_expect(&live, "console.log('and on')", JAIL_OK, "and on\n");
}

static void javascript_errors(void **state)
{
	live_need(possible);
	live_need_runner(client, "javascript");
	static const struct {
		const char *code, *says;
	} cases[] = {
		{"\nthrow new Error('first')",
		 "/code/main.js:2\nthrow new Error('first')\n      ^\n\nError: first\n    at /code/main.js:2:7"},
		{"await Promise.reject(new TypeError('second'))", "TypeError: second\n    at /code/main.js#2:1"},
		{"setTimeout(() => { throw new Error('third') }, 1)", "Error: third\n    at "},
		{"Promise.reject(new Error('fourth'))", "Error: fourth\n    at "},
		{"const = 1", "SyntaxError: Unexpected token '='"},
		{"throw 'words'", "words"},
		{"await new Promise(() => {})", "unsettled top-level await"},
		{"function g() { g() } g()", "RangeError: Maximum call stack size exceeded"},
	};
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "javascript", (struct jail_limits){0});
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		live_expect(&live, cases[i].code, JAIL_RE, "");
		if (!strstr(live.try.error, cases[i].says) || strstr(live.try.error, "/code/.helper") ||
		    live.try.result.ended)
			fail_msg("%s: %s", cases[i].code, live.try.error);
		assert_int_equal(live.try.result.exit_code, 1);
	}
	live_expect(&live, "console.log('still here')", JAIL_OK, "still here\n");
	live_expect(&live, "process.exit(5)", JAIL_RE, "");
	assert_int_equal(live.try.result.exit_code, 5);
	assert_true(live.try.result.ended);
}

/* Without a driver each run is a process of its own: files, /tmp and processes stay. */
static void shell_keeps_files_and_processes(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "bash", (struct jail_limits){0});
	live_expect(&live,
		    "x=1; cd /tmp; echo data >/data/a; echo tmp >b; (while sleep 0.01; do echo tick >>/tmp/ticks; "
		    "done) & echo $! >pid\n"
		    "until [ -e ticks ]; do sleep 0.01; done",
		    JAIL_OK, "");
	assert_int_equal(live.try.n_changes, 1);
	live_expect(&live, "echo \"${x-unset} $PWD\"; cat /data/a /tmp/b; kill -0 $(cat /tmp/pid) && echo alive",
		    JAIL_OK, "unset /data\ndata\ntmp\nalive\n");
	/* It goes on when it is thawed. */
	live_expect(&live,
		    "n=$(wc -l </tmp/ticks); while [ $(wc -l </tmp/ticks) -le $((n + 2)) ]; do sleep 0.01; done; kill "
		    "$(cat /tmp/pid)",
		    JAIL_OK, "");
	/* Frozen before it took the signal, perhaps: it ends then. */
	live_expect(&live, "while kill -0 $(cat /tmp/pid) 2>/dev/null; do :; done; echo dead; exit 7", JAIL_RE,
		    "dead\n");
	assert_int_equal(live.try.result.exit_code, 7);
	assert_false(live.try.result.ended);
}

/* Compiled anew each time, although /code is read-only while the program runs. */
static void compiled_programs_are_built_each_time(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "c", (struct jail_limits){0});
	live_expect(&live,
		    "#include <stdio.h>\n#include <fcntl.h>\nint main(void){puts(\"one\");return open(\"/code/main\", "
		    "O_WRONLY) >= 0;}\n",
		    JAIL_OK, "one\n");
	live_expect(&live, "int main(void) { return nothing; }\n", JAIL_CE, "");
	assert_non_null(strstr(live.try.error, "nothing"));
	assert_false(live.try.result.ended);
	live_expect(&live, "#include <stdio.h>\nint main(void){puts(\"two\");return 2;}\n", JAIL_RE, "two\n");
	assert_true(live.try.result.compiled);
	assert_false(live.try.result.warm); /* each run is a process of its own */
}

/* Output of what stays belongs to the run in which it is written. */
static void background_output(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "bash", (struct jail_limits){0});
	live_expect(&live, "(until [ -e /tmp/go ]; do sleep 0.01; done; echo later; touch /tmp/gone) & echo now",
		    JAIL_OK, "now\n");
	live_expect(&live, "touch /tmp/go; until [ -e /tmp/gone ]; do sleep 0.01; done", JAIL_OK, "later\n");
	live_expect(&live, "echo by name >/dev/stdout; echo so too >/dev/stderr", JAIL_OK, "by name\n");
	assert_string_equal(live.try.error, "so too\n");
}

/* -------- frozen -------------------------------------------------------------------------------------- */
/* Between runs no CPU time is used, and the account of a run is its own. */
static void frozen_jail_uses_no_cpu_time(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_expect(&live,
		    "import threading, time\nn = 0\ndef spin():\n  global n\n  while True: n += 1\n"
		    "threading.Thread(target=spin, daemon=True).start()\nwhile n < 1000: time.sleep(0.001)\n"
		    "print(time.monotonic(), time.process_time())",
		    JAIL_OK, NULL);
	double wall[2], cpu[2];
	assert_int_equal(sscanf(live.try.out, "%lf %lf", &wall[0], &cpu[0]), 2);
	/* Another jail that takes its time: the spinning thread would use as much, the second program needs less than
	 * half of it. On a busy machine it spins for longer before it is frozen and after it was thawed, but not with
	 * the time that lies between. */
	auto_live struct live other = {.client = NULL};
	live_begin(&other, client, "bash", (struct jail_limits){0});
	for (int seconds = try_patience();; seconds *= 2) {
		auto_free char *sleeps = xasprintf("sleep %d", seconds);

		live_expect(&other, sleeps, JAIL_OK, "");
		live_expect(&live, "print(time.monotonic(), time.process_time())", JAIL_OK, NULL);
		assert_int_equal(sscanf(live.try.out, "%lf %lf", &wall[1], &cpu[1]), 2);
		assert_true(wall[1] - wall[0] > seconds);
		const int64_t own = live.try.result.run.cpu_user_us + live.try.result.run.cpu_system_us;
		if (cpu[1] - cpu[0] < 0.5 * seconds && own < INT64_C(500000) * seconds)
			break;
		if (seconds > FROZEN_SECONDS_MAX)
			fail_msg("%.3f s of CPU time in %d s, %lld us of them the run's", cpu[1] - cpu[0], seconds,
				 (long long)own);
		wall[0] = wall[1], cpu[0] = cpu[1];
	}
	live_expect(&live, "a = bytearray(64 << 20)\ntime.sleep(0.05)", JAIL_OK, "");
	assert_in_range(live.try.result.run.wall_us, 50000, 120000000);
	assert_in_range(live.try.result.run.cpu_user_us + live.try.result.run.cpu_system_us, 10000, 120000000);
	assert_true(live.try.result.run.memory_peak_bytes == 0 || live.try.result.run.memory_peak_bytes > 64 * MEBI);
}

/* -------- files --------------------------------------------------------------------------------------- */
static void put(struct live *live, const char *name, const char *content)
{
	auto_close int fd = memfd_with("file", content, strlen(content));
	const struct jail_file file = {.name = name, .mode = 0644, .mtime_us = 1000000, .fd = fd};
	struct err err = ERR_INIT;

	if (jail_fill(live->try.jail, &file, 1, &err))
		fail_msg("%s", err.text);
}

static void take_away(struct live *live, const char *name, const char *other)
{
	const struct jail_file files[] = {{.name = name}, {.name = other}};
	struct err err = ERR_INIT;

	if (jail_remove(live->try.jail, files, 2, &err))
		fail_msg("%s", err.text);
}

static void removed_files(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "bash", (struct jail_limits){0});
	put(&live, "in/up", "1");
	put(&live, "both", "2");
	live_expect(&live, "cat in/up both; >own; mkdir dir; ln -s /etc link", JAIL_OK, "12");
	/* What the run itself made, what is not there, and what is no file: names that lead elsewhere touch nothing. */
	take_away(&live, "in/up", "own");
	take_away(&live, "dir", "link/passwd");
	take_away(&live, "nothing/at/all", "both/below");
	put(&live, "dir", "a file now");
	live_expect(&live, "find * | sort | tr '\\n' ' '; cat dir", JAIL_OK, "both dir in link a file now");
	assert_int_equal(live.try.n_changes, 1);
	assert_int_equal(try_find(&live.try, "link")->kind, JAIL_FILE_NOT_KEPT);
}

/* What a folder holds besides files of the record is no reason to fail: links lead nowhere, and what is too deep says
 * so. */
static void folder_makes_way(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};

	(void)state;
	live_begin(&live, client, "bash", (struct jail_limits){0});
	live_expect(&live,
		    "mkdir -p d/e/f keep; >keep/x; ln -s ../keep d/link; ln -s /data/keep/x d/e/x; mkfifo d/e/fifo",
		    JAIL_OK, "");
	live_expect(&live, "cd d/e/f; >../file", JAIL_OK, "");
	take_away(&live, "d/e/file", "none");
	put(&live, "d", "a file now");
	live_expect(&live, "find * | sort | tr '\n' ' '; cat d", JAIL_OK, "d keep keep/x a file now");
	live_expect(&live, "p=g; for i in {1..40}; do mkdir $p; p=$p/g; done", JAIL_OK, "");
	put(&live, "g", "too deep");
	live_ask(&live, ":", NULL);
	assert_int_equal(jail_client_wait(client, live.try.jail, NULL), 0);
	assert_true(live.try.failed);
	assert_non_null(strstr(live.try.err.text, "cannot be put there: Directory not empty"));
}

static void files(const char *runner, const char *const code[4])
{
	auto_live struct live live = {.client = NULL};

	live_begin(&live, client, runner, (struct jail_limits){0});
	put(&live, "in/up", "first");
	live_expect(&live, code[0], JAIL_OK, "first\n"); /* also makes `a` and `b` */
	assert_int_equal(live.try.n_changes, 2);
	assert_int_equal(try_find(&live.try, "a")->kind, JAIL_FILE_CREATED);
	live_expect(&live, code[1], JAIL_OK, ""); /* nothing */
	assert_int_equal(live.try.n_changes, 0);
	put(&live, "in/up", "second");
	put(&live, "new", "2");
	live_expect(&live, code[2], JAIL_OK, "second2\n"); /* writes `a` again, with the same size, and removes `b` */
	assert_int_equal(live.try.n_changes, 2);
	assert_int_equal(try_find(&live.try, "a")->kind, JAIL_FILE_CHANGED);
	assert_string_equal(try_find(&live.try, "a")->content, "2");
	assert_int_equal(try_find(&live.try, "b")->kind, JAIL_FILE_DELETED);
	/* Two collections without a run between them: nothing changed. */
	live_forget(&live.try);
	live.try.done = true;
	assert_int_equal(jail_collect(live.try.jail, NULL), 0);
	live_take(&live);
	assert_int_equal(live.try.n_changes, 0);
	/* What a run that was ended has written can still be had. */
	live_ask(&live, code[3], NULL);
	live_take(&live);
	assert_true(live.try.result.ended);
	assert_int_equal(live.try.n_changes, 1);
	assert_string_equal(try_find(&live.try, "last")->content, "x");
}

static void python_files(void **state)
{
	live_need(possible);
	(void)state;
	files("python", (const char *const[]){
				"print(open('in/up').read())\nf = open('a', 'w')\nf.write('1')\nf.close()\nopen('b', "
				"'w').close()",
				"pass",
				"import os\nprint(open('in/up').read() + open('new').read())\nopen('a', "
				"'w').write('2')\nos.unlink('b')",
				"open('last', 'w').write('x')\nos._exit(0)",
			});
}

static void shell_files(void **state)
{
	live_need(possible);
	(void)state;
	files("bash", (const char *const[]){
			      "cat in/up; echo; printf 1 >a; >b",
			      ":",
			      "echo $(cat in/up)$(cat new); printf 2 >a; rm b",
			      "printf x >last; head -c 17M /dev/zero",
		      });
}

/* Several runs, one collection: everything since the last one. */
static void late_collection(void **state)
{
	live_need(possible);
	auto_live struct live live = {.client = NULL};
	const char *code = "printf x >>list; touch $(wc -c <list)";
	auto_close int code_fd = memfd_with("code", code, strlen(code));

	(void)state;
	live_begin(&live, client, "bash", (struct jail_limits){0});
	for (int i = 0; i < 2; i++)
		assert_int_equal(jail_run(live.try.jail,
					  &(struct jail_program){
						  .code_fd = code_fd, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1},
					  NULL),
				 0);
	live_expect(&live, code, JAIL_OK, "");
	assert_int_equal(live.try.n_changes, 4);
	assert_string_equal(try_find(&live.try, "list")->content, "xxx");
	assert_int_equal(try_find(&live.try, "1")->kind, JAIL_FILE_CREATED);
}

/* A program of several files, each run in place. */
static void entries(const char *runner, const char *const names[3], const char *const contents[3])
{
	auto_live struct live live = {.client = NULL};

	live_begin(&live, client, runner, (struct jail_limits){0});
	for (int i = 0; i < 3; i++)
		put(&live, names[i], contents[i]);
	for (int i = 0; i < 2; i++) {
		live_ask(&live, contents[i], &(struct jail_program){.entry = names[i], .stdin_fd = -1});
		live_take(&live);
		if (live.try.result.verdict != JAIL_OK || !streq(live.try.out, i ? "2\n" : "1\n"))
			fail_msg("%s: %s%s", names[i], live.try.out, live.try.error);
	}
}

static void python_entries(void **state)
{
	live_need(possible);
	(void)state;
	entries("python", (const char *const[]){"a/one.py", "a/two.py", "a/near.py"},
		(const char *const[]){"import near\nnear.n += 1\nprint(near.n)",
				      "import near\nnear.n += 1\nprint(near.n)", "n = 0"});
}

static void javascript_entries(void **state)
{
	live_need(possible);
	live_need_runner(client, "javascript");
	(void)state;
	entries("javascript", (const char *const[]){"a/one.js", "a/two.js", "a/near.mjs"},
		(const char *const[]){"import near from './near.mjs'\nconsole.log(++near.n)",
				      "console.log(++(await import('./near.mjs')).default.n)",
				      "export default { n: 0 }"});
}

/* Where nothing can be frozen: said in words, before anything runs. */
static void refused_where_nothing_can_be_frozen(void **state)
{
	struct live live;

	(void)state;
	if (possible)
		skip();
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_ask(&live, "pass", NULL);
	assert_int_equal(jail_client_wait(client, live.try.jail, NULL), 0);
	assert_true(live.try.failed);
	assert_int_equal(live.try.err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(live.try.err.text, "live sandboxes are not available on this server, because "));
	live_end(&live);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(python_state),
		cmocka_unit_test(python_errors),
		cmocka_unit_test(python_input),
		cmocka_unit_test(javascript_state),
		cmocka_unit_test(javascript_errors),
		cmocka_unit_test(javascript_input),
		cmocka_unit_test(shell_keeps_files_and_processes),
		cmocka_unit_test(compiled_programs_are_built_each_time),
		cmocka_unit_test(background_output),
		cmocka_unit_test(frozen_jail_uses_no_cpu_time),
		cmocka_unit_test(removed_files), cmocka_unit_test(folder_makes_way),
		cmocka_unit_test(python_files),
		cmocka_unit_test(shell_files),
		cmocka_unit_test(late_collection),
		cmocka_unit_test(python_entries),
		cmocka_unit_test(javascript_entries),
		cmocka_unit_test(refused_where_nothing_can_be_frozen),
	};

	return try_run(tests, argc, argv, start, stop);
}
