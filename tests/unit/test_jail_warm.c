/*
 * test_jail_warm.c - jails in which an interpreter waits for its program (jail/cell/cell_join.c): a program sees what
 * it sees where its interpreter was started for it.
 */
#include "warm_try.h"

#include <signal.h>

static const struct jail_spec python = {.runner = "python"};

/* What a program can see of itself. Not: times, addresses, inodes, what is random. */
static const char view[] =
	"import os, sys, signal, resource\n"
	"def read(path):\n"
	"    try: return open(path, 'rb').read()\n"
	"    except OSError as error: return error.errno\n"
	"print(sys.argv, sys.orig_argv, sys.flags, sys.path, sys.executable, sys.prefix, __name__, __file__)\n"
	"print(sorted(vars()), type(__loader__), __spec__, __builtins__)\n"
	"print(list(sys.modules))\n"
	"print(sys.stdin, sys.stdout, sys.stderr, sys.stdin.line_buffering, sys.stdout.line_buffering)\n"
	"print(sys.stderr.line_buffering, sys.stdout.write_through, sys.stdin.errors, sys.stdout.errors, "
	"sys.stderr.errors)\n"
	"print(sys.stdin.buffer.raw, sys.stdout.buffer.raw, sys.__stdout__ is sys.stdout, sys.stdout.seekable(), "
	"sys.stdin.seekable())\n"
	"print(sys.getrecursionlimit(), sys.gettrace(), [type(x) for x in sys.meta_path], len(sys.path_hooks), "
	"sorted(sys.path_importer_cache))\n"
	"print(os.getpid(), os.getppid(), os.getsid(0), os.getpgrp(), os.getresuid(), os.getresgid(), os.getgroups(), "
	"os.getcwd())\n"
	"print(os.environ, read('/proc/self/environ'), read('/proc/self/cmdline'), read('/proc/self/comm'))\n"
	"print([os.readlink('/proc/self/fd/' + fd).partition(':')[0] for fd in sorted(os.listdir('/proc/self/fd'))])\n"
	"print([os.get_inheritable(fd) for fd in range(3)], os.readlink('/proc/self/exe'), "
	"os.readlink('/proc/self/cwd'))\n"
	"print(os.readlink('/proc/self/root'), read('/proc/self/cgroup'), read('/proc/self/oom_score_adj'), "
	"read('/proc/self/limits'))\n"
	"print(read('/proc/self/oom_score'), read('/proc/self/loginuid'), read('/proc/self/timerslack_ns'), "
	"read('/proc/self/personality'))\n"
	"status = read('/proc/self/status').decode().splitlines()\n"
	"kept = ('Name', 'Umask', 'Tgid', 'Ngid', 'Pid', 'PPid', 'TracerPid', 'Uid', 'Gid', 'FDSize', 'Groups', 'NS', "
	"'Threads',\n"
	"        'Sig', 'Shd', 'Cap', 'NoNew', 'Seccomp', 'Cpus', 'Mems', 'CoreDumping', 'THP', 'x86')\n"
	"print('\\n'.join(line for line in status if line.startswith(kept)))\n"
	"print({n: str(signal.getsignal(n)).partition(' at ')[0] for n in signal.valid_signals()})\n"
	"print(resource.getrlimit(resource.RLIMIT_STACK), os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, "
	"0))\n"
	"print(sorted(os.listdir('/proc'), key=str)[:3], os.listdir('/dev/shm'), os.listdir('/tmp'), "
	"sorted(os.listdir('/code')))\n"
	"print(os.stat('/proc/self').st_uid, os.access('/proc/self/mem', os.R_OK), os.uname().nodename)\n"
	"child = os.fork()\n"
	"if child == 0: os._exit(0)\n"
	"print(child, os.waitpid(child, 0)[1])\n"
	"def deep(n):\n"
	"    try: return deep(n + 1)\n"
	"    except RecursionError: return n\n"
	"print(deep(0), sys._getframe().f_back.f_code.co_filename)\n";

static void run_in(struct jail_client *client, struct try *try, const struct jail_program *program, const char *code)
{
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	auto_once struct jail_once once = {.spec = python, .program = *program, .capture = true};
	struct err err = ERR_INIT;
	size_t length;

	once.program.code_fd = code_fd;
	assert_int_equal(jail_once_begin(client, &once, &err), 0);
	assert_true(jail_once_end(client, &once, &err) >= 0);
	assert_true(once.done);
	try_on_done(try, &once.result);
	assert_int_equal(jail_once_output(&once, 1, 64 << 20, &try->out, &length, NULL), 0);
	assert_int_equal(jail_once_output(&once, 2, 64 << 20, &try->error, &length, NULL), 0);
}

/* Fails with the first line that differs. */
static void assert_same(const char *after, const char *before, const char *code)
{
	size_t line = 0, i = 0;

	for (; after[i] && after[i] == before[i]; i++)
		line = after[i] == '\n' ? i + 1 : line;
	if (after[i] != before[i])
		fail_msg("%.40s\nwarm: %.*s\ncold: %.*s", code, (int)strcspn(after + line, "\n"), after + line,
			 (int)strcspn(before + line, "\n"), before + line);
}

/* The same program, cold and in a joined jail. */
static void compare(struct service *service, struct jail_client *cold, const struct jail_program *program,
		    const char *code, bool warm)
{
	auto_try struct try before = {.jail = NULL};
	auto_try struct try after = {.jail = NULL};

	run_in(cold, &before, program, code);
	warm_await(service->client);
	run_in(service->client, &after, program, code);
	assert_false(before.result.warm);
	if (after.result.warm != warm)
		fail_msg("%s: %s%s", warm ? "not in the interpreter that waited" : "in the interpreter that waited",
			 after.out, after.error);
	assert_same(after.out, before.out, code);
	assert_same(after.error, before.error, code);
	assert_int_equal(after.result.verdict, before.result.verdict);
	assert_int_equal(after.result.exit_code, before.result.exit_code);
	assert_int_equal(after.result.signal, before.result.signal);
	assert_string_equal(after.denied, before.denied);
}

static const char *const programs[] = {
	view,
	"print(1)",
	"2 + 3",
	"x = [1, 'two']\nx",
	"import nothing",
	"def f(): return 1 / 0\nf()",
	"this is no program",
	"raise SystemExit('text')",
	"import sys; sys.exit(7)",
	"import os; os._exit(9)",
	"import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
	"import atexit; atexit.register(print, 'end'); print('begin')",
	"class A:\n    def __del__(self): print('gone')\na = A()",
	"import threading, time\nthreading.Thread(target=lambda: (time.sleep(.05), print('late'))).start()",
	"open('/data/left', 'w').write('text')",
	"import subprocess; print(subprocess.run(['sh', '-c', 'echo $$ $PPID; ls /proc/self/fd'], "
	"capture_output=True).stdout)",
	"import multiprocessing\nwith multiprocessing.get_context('fork').Pool(1) as pool: print(pool.map(abs, [-1]))",
	"import asyncio\nasync def f(): return 3\nprint(await f())",
	"import sys; print(sys.stdin.read())",
	"import ctypes; print(ctypes.CDLL(None).mount(b'', b'/', None, 0, None))",
	"import warnings; warnings.warn('so')",
	"import inspect, pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A())).__class__, inspect.getsource(A))",
	"import locale, sys; print(locale.getlocale(), sys.getfilesystemencoding(), sys.stdout.encoding)",
	"import sys\nsys.stdout.close()",
	"import os\nos.close(1)\nprint('lost')",
	"import resource; print(resource.getrlimit(resource.RLIMIT_CORE), "
	"resource.getrlimit(resource.RLIMIT_SIGPENDING))",
	"import socket; print(socket.if_nameindex(), socket.gethostname())",
	"import signal, os\nsignal.raise_signal(signal.SIGINT)",
};

static void same_view(void **state)
{
	struct service *service = *state;
	struct jail_client *cold = try_client(NULL);
	const struct jail_program plain = {.stdin_fd = -1}, shows = {.stdin_fd = -1, .display = true};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		compare(service, cold, &plain, programs[i], true);
		compare(service, cold, &shows, programs[i], true);
	}
	jail_client_free(cold);
}

static void with_input(void **state)
{
	struct service *service = *state;
	struct jail_client *cold = try_client(NULL);
	const char *const args[] = {"one", "two words", "", NULL};
	const char reads[] =
		"import sys, os\nprint(sys.argv, sys.stdin.readline(), os.read(0, 100), sys.stdin.seekable())\n"
		"print(open('/proc/self/cmdline', 'rb').read(), os.getcwd())";
	auto_close int input = memfd_with("input", "line\nrest", 9);
	struct jail_program program = {.stdin_fd = input, .args = args, .cwd = "/tmp"};

	compare(service, cold, &program, reads, true);
	jail_client_free(cold);
}

/* What would differ is left to another interpreter, which is process 2 as well. */
static void other_interpreter(void **state)
{
	struct service *service = *state;
	struct jail_client *cold = try_client(NULL);
	const char *const env[] = {"PYTHONOPTIMIZE=2", "NAME=value", NULL};
	struct jail_program program = {.stdin_fd = -1, .env = env};

	compare(service, cold, &program, view, false);
	program = (struct jail_program){.stdin_fd = -1, .clock_us = 1700000000000000};
	compare(service, cold, &program, "import os, time; print(os.getpid(), time.time(), id(os))", false);
	jail_client_free(cold);
}

static void put(struct jail *jail, const char *name, const char *text)
{
	auto_close int fd = memfd_with("file", text, strlen(text));
	const struct jail_file file = {.name = name, .mode = 0644, .mtime_us = 1700000000000000, .fd = fd};

	assert_int_equal(jail_fill(jail, &file, 1, NULL), 0);
}

static void run_with_file(struct jail_client *client, struct try *try, const char *name)
{
	auto_close int code = memfd_with("code", "print('ran')", 12);
	struct jail_program program = {.code_fd = code, .stdin_fd = -1};

	try_begin(client, try, &python);
	put(try->jail, name, "import sys\nsys.stderr.write('shadow')\nraise SystemExit(3)\n");
	program.stdout_fd = try->out_fd;
	program.stderr_fd = try->error_fd;
	assert_int_equal(jail_run(try->jail, &program, NULL), 0);
	try_end(client, try);
	assert_true(try->done);
}

/* A file of the owner's in the place of a module that the interpreter has already. */
static void shadowed(void **state)
{
	struct service *service = *state;
	struct jail_client *cold = try_client(NULL);
	static const char *const names[] = {"os.py", "sitecustomize.py", "encodings/__init__.py",
					    ".packages/python/usercustomize.py"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_try struct try before = {.jail = NULL};
		auto_try struct try after = {.jail = NULL};

		run_with_file(cold, &before, names[i]);
		warm_await(service->client);
		run_with_file(service->client, &after, names[i]);
		assert_false(after.result.warm);
		assert_int_equal(after.result.exit_code, before.result.exit_code);
		assert_same(after.out, before.out, names[i]);
		assert_same(after.error, before.error, names[i]);
		assert_true(i != 1 || strstr(after.error, "shadow"));
	}
	jail_client_free(cold);
}

/* Other languages, and compile steps, begin in jails in which an interpreter waits as they do elsewhere. Of those that
 * services of tests have (LANGUAGES in the Makefile: not Perl). */
static void other_languages(void **state)
{
	struct service *service = *state;
	static const struct {
		const char *runner, *code;
	} rows[] = {
		{"bash", "echo $$ $PPID; ls /proc/self/fd | wc -l"},
		{"javascript", "console.log(process.pid, process.ppid)"},
		{"c", "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%d\\n\", getppid()); }"},
	};
	struct jail_client *cold = try_client(NULL);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct jail_spec spec = {.runner = rows[i].runner};
		auto_try struct try before = {.jail = NULL};
		auto_try struct try after = {.jail = NULL};

		try_program(cold, &before, &spec, rows[i].code);
		warm_await(service->client);
		try_program(service->client, &after, &spec, rows[i].code);
		assert_int_equal(before.result.verdict, JAIL_OK);
		assert_int_equal(after.result.verdict, JAIL_OK);
		assert_true(after.result.parked);
		assert_false(after.result.warm);
		assert_string_equal(after.out, before.out);
	}
	jail_client_free(cold);
}

/* What is random in a program, a value a line: in copies of one template, and of the next one, no value comes again. */
static const char randoms[] =
	"import os, random, secrets, ssl, tempfile, uuid\n"
	"for value in (os.urandom(8).hex(), random.random(), random.Random().random(), random.SystemRandom().random(),\n"
	"              secrets.token_hex(8), uuid.uuid1(), uuid.uuid4(), tempfile.mktemp(), ssl.RAND_bytes(8).hex(),\n"
	"              open('/proc/sys/kernel/random/uuid').read().strip()):\n"
	"    print(value)\n";
#define RANDOM_RUNS   20 /* of each template */
#define RANDOM_VALUES 10

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void nothing_repeats(void **state)
{
	struct service *service = *state;
	auto_free char **values = xcalloc((size_t)RANDOM_RUNS * 2 * RANDOM_VALUES, sizeof(*values));
	size_t n = 0;

	for (int run = 0; run < RANDOM_RUNS * 2; run++) {
		auto_try struct try try = {.jail = NULL};
		char *place;

		if (run == RANDOM_RUNS)
			kill(warm_template(service), SIGKILL);
		warm_await(service->client);
		try_program(service->client, &try, &python, randoms);
		assert_int_equal(try.result.verdict, JAIL_OK);
		assert_true(try.result.warm);
		for (char *line = strtok_r(try.out, "\n", &place); line; line = strtok_r(NULL, "\n", &place)) {
			assert_true(n < (size_t)(run + 1) * RANDOM_VALUES);
			values[n++] = xstrdup(line);
		}
		assert_int_equal(n, (run + 1) * RANDOM_VALUES);
	}
	assert_true(warm_count(service->client, "templates") >= 2);
	qsort(values, n, sizeof(*values), by_text);
	for (size_t i = 1; i < n; i++)
		assert_string_not_equal(values[i - 1], values[i]);
	for (size_t i = 0; i < n; i++)
		free(values[i]);
}

/* Where guests have the id of who started the jailer, the template would have it, too. */
static void not_where_ids_are_shared(void **state)
{
	struct service *service = *state;
	struct json_object *info = NULL;

	assert_int_equal(jail_client_info(service->client, &info, NULL), 0);
	const bool shared = streq(json_get_string(info, "mode"), "single-id");
	json_object_put(info);
	assert_int_equal(warm_count(service->client, "wanted"), !shared);
}

static int on(void **state)
{
	warm_start(state, "on");
	return 0;
}

static int always_exec(void **state)
{
	warm_start(state, "exec");
	return 0;
}

/* "exec": the same view by the other way. */
static void same_by_exec(void **state)
{
	struct service *service = *state;
	struct jail_client *cold = try_client(NULL);
	const struct jail_program plain = {.stdin_fd = -1}, shows = {.stdin_fd = -1, .display = true};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		compare(service, cold, i % 2 ? &shows : &plain, programs[i], false);
	jail_client_free(cold);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(same_view, on, service_teardown),
		cmocka_unit_test_setup_teardown(same_by_exec, always_exec, service_teardown),
		cmocka_unit_test_setup_teardown(with_input, on, service_teardown),
		cmocka_unit_test_setup_teardown(other_interpreter, on, service_teardown),
		cmocka_unit_test_setup_teardown(shadowed, on, service_teardown),
		cmocka_unit_test_setup_teardown(other_languages, on, service_teardown),
		cmocka_unit_test_setup_teardown(nothing_repeats, on, service_teardown),
		cmocka_unit_test_setup_teardown(not_where_ids_are_shared, on, service_teardown),
	};

	return try_run(tests, argc, argv, NULL, NULL);
}
