/*
 * test_jail_denied.c - refused system calls are reported by name, whatever becomes of the run, and are not reported
 * where they are not worth it; a flood of them is the guest's own CPU time; the ones that are answered otherwise: sync,
 * and netlink sockets of ROUTE; what the families of runners differ in.
 */
#include "jail_try.h"

#include <string.h>

#define CALLS                                                                                                          \
	"import ctypes, os, socket, sys, time\n"                                                                       \
	"libc = ctypes.CDLL(None, use_errno=True)\n"                                                                   \
	"def call(name, *args):\n"                                                                                     \
	" ctypes.set_errno(0)\n"                                                                                       \
	" return getattr(libc, name)(*args), ctypes.get_errno()\n"

static struct jail_client *client;
static bool weaker;

static void run(struct try *try, const char *runner, struct jail_limits limits, const char *code)
{
	struct jail_spec spec = {.runner = runner, .limits = limits};

	try_program(client, try, &spec, code);
	if (try->failed)
		fail_msg("%s", try->err.text);
}

static void by_name(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python", (struct jail_limits){.wall_us = 0},
	    CALLS "print(call('mount', b'a', b'/tmp', b'tmpfs', 0, None), call('ptrace', 0, 0, 0, 0))\n"
		  "print(call('mount', b'a', b'/tmp', b'x', 0, None))\n"
		  "try: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n"
		  "except OSError as e: print(e.errno)\n"
		  "sys.exit(3)\n");
	assert_string_equal(try.out, "(-1, 1) (-1, 1)\n(-1, 1)\n1\n");
	assert_int_equal(try.result.verdict, JAIL_RE);
	assert_string_equal(try.denied, "mount ptrace socket");
	assert_string_equal(try.result.message,
			    "The program ended with exit status 3. The jail refused it: mount, ptrace, socket.");
}

/* Threads and processes are made with clone all the time; every flag that stands for a namespace is refused and told
 * of, alone and beside others, in the lower half of the register only (the kernel looks at no other). */
static void clone_namespaces(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python", (struct jail_limits){.wall_us = 0},
	    CALLS "import threading\n"
		  "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
		  "libc.syscall.restype = ctypes.c_long\n"
		  "number = 56 if os.uname().machine == 'x86_64' else 220\n"
		  "for flags in [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000,\n"
		  "              0x7e020080, 0x30000000, 0x10000000 | 0x100, 0x10000000 | 1 << 40]:\n"
		  " pid, error = call('syscall', ctypes.c_long(number), ctypes.c_ulong(flags | 17), 0, 0, 0, 0)\n"
		  " if pid == 0: os._exit(0)\n"
		  " if pid != -1 or error != 1: print('made', hex(flags), pid, error)\n"
		  "pid, error = call('syscall', ctypes.c_long(number), ctypes.c_ulong(17 | 1 << 40), 0, 0, 0, 0)\n"
		  "if pid == 0: os._exit(0)\n"
		  "print(pid > 0, os.waitpid(pid, 0)[1])\n");
	assert_string_equal(try.out, "thread\nTrue 0\n");
	assert_string_equal(try.denied, "clone");
}

/* What others do with the files that all see is not theirs to watch (probe E02b); the rest of fcntl is there. */
static void no_watching(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python", (struct jail_limits){.wall_us = 0},
	    CALLS
	    "import fcntl, signal\n"
	    "print(call('inotify_init'), call('inotify_init1', 0))\n"
	    "f = open('/data/f', 'w+')\n"
	    "fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_UN)\n"
	    "fcntl.fcntl(f, fcntl.F_DUPFD, 100); fcntl.fcntl(f, fcntl.F_SETFL, os.O_APPEND); fcntl.fcntl(f, "
	    "fcntl.F_SETOWN, os.getpid())\n"
	    "print(fcntl.fcntl(os.pipe()[1], 1031, 4096), fcntl.fcntl(os.memfd_create('m', 2), 1034))\n" /* SETPIPE_SZ,
													    GET_SEALS */
	    "for cmd in fcntl.F_NOTIFY, 1024, 1025, 1036:\n"
	    " try: fcntl.fcntl(os.open('/usr/bin', os.O_RDONLY), cmd, 1); print('worked', cmd)\n"
	    " except OSError as e: print(e.errno, end=' ')\n");
	assert_string_equal(try.out, "(-1, 1) (-1, 1)\n4096 0\n1 1 1 1 ");
	assert_string_equal(try.denied, "inotify_init inotify_init1");
}

static void cancel_now(struct try *try)
{
	jail_cancel(try->jail);
}

/* In children, from threads, and when the run is ended from outside before init could tell at its end. */
static void however_it_ends(void **state)
{
	auto_try struct try try = {.jail = NULL, .on_output = cancel_now};

	(void)state;
	run(&try, "python", (struct jail_limits){.wall_us = 0},
	    CALLS "import threading\n"
		  "if os.fork() == 0: call('unshare', 0x10000000); os._exit(0)\n"
		  "os.wait()\n"
		  "t = threading.Thread(target=lambda: call('chroot', b'/tmp')); t.start(); t.join()\n"
		  "print('both', flush=True)\n"
		  "while True: time.sleep(1)\n");
	assert_int_equal(try.result.verdict, JAIL_CX);
	assert_string_equal(try.denied, "unshare chroot");
}

/* Each call costs init some microseconds: they count. Two processes, so that init has to serve more than one. */
static void refused_calls_cost_the_guest(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	if (weaker) {
		print_message("nothing counts the CPU time of a whole jail here: skipped\n");
		skip();
	}
	run(&try, "python", (struct jail_limits){.cpu_us = 400000}, CALLS "os.fork()\nwhile True: libc.setns(-1, 0)\n");
	assert_int_equal(try.result.verdict, JAIL_TO);
	assert_string_equal(try.result.limit, "cpu");
	assert_string_equal(try.denied, "setns");
	auto_try struct try next = {.jail = NULL};
	run(&next, "bash", (struct jail_limits){.wall_us = 0}, "echo fine");
	assert_string_equal(next.out, "fine\n");
}

/* What interpreters do by themselves is not worth a word. */
static void ordinary_programs_are_refused_nothing(void **state)
{
	static const struct {
		const char *runner, *code;
	} programs[] = {
		{"bash", "ls / | wc -l; cat <(echo x); sleep 0.01 & wait"},
		{"python", "import os, socket, subprocess, asyncio, multiprocessing, tempfile, threading\n"
			   "subprocess.run(['true']); asyncio.run(asyncio.sleep(0))\n"},
		{"c", "#include <pthread.h>\n#include <stdio.h>\nint main(void) { puts(\"x\"); return 0; }"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		auto_try struct try try = {.jail = NULL};

		run(&try, programs[i].runner, (struct jail_limits){.wall_us = 0}, programs[i].code);
		assert_int_equal(try.result.verdict, JAIL_OK);
		assert_string_equal(try.denied, "");
	}
}

/* They work with a bad descriptor: the kernel has not seen them. */
static void sync_is_idle(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python", (struct jail_limits){.wall_us = 0},
	    CALLS "print(call('syncfs', -1)); os.sync(); print(call('fsync', -1), call('fdatasync', -1))");
	assert_string_equal(try.out, "(0, 0)\n(0, 0) (0, 0)\n");
	assert_string_equal(try.denied, "");
}

static void netlink_is_for_routes_only(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run(&try, "python", (struct jail_limits){.wall_us = 0},
	    CALLS "print(socket.if_nameindex())\n"
		  "for protocol in range(1, 32):\n"
		  " try: print(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol))\n"
		  " except PermissionError: pass\n");
	assert_string_equal(try.out, "[(1, 'lo')]\n");
	assert_string_equal(try.denied, "socket");
}

/* A jailer with one runner file of its own; the program's result. */
static void run_own(struct try *try, const char *runner, const char *code)
{
	char folder[] = "/tmp/test_jail_denied.XXXXXX";
	struct jail_client *usual = client;

	assert_non_null(mkdtemp(folder));
	chmod(folder, 0755);
	auto_free char *file = xasprintf("%s/own.json", folder);
	auto_free char *config = xasprintf("%s/config", folder);
	auto_close int runner_fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(write_all(runner_fd, runner, strlen(runner)), 0);
	auto_close int config_fd = open(config, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	dprintf(config_fd, "{\"jailer\":{\"runners_dir\":\"%s\",%s}," TRY_LIMITS "}", folder, try_jailer_members());
	client = try_client(config);
	run(try, "own", (struct jail_limits){.wall_us = 0}, code);
	jail_client_free(client);
	client = usual;
	unlink(file);
	unlink(config);
	rmdir(folder);
}

#define OWN "{\"name\":\"own\",\"source\":\"main.py\",\"interpreters\":[\"/usr/bin/python3\"],\"install\":\"-\","
#define RUN "\"run\":[\"{interpreter}\",\"/code/main.py\"]"

static void quiet_calls_are_not_mentioned(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	run_own(&try, OWN RUN ",\"quiet\":[\"ptrace\",\"keyctl\"]}",
		CALLS "call('ptrace', 0, 0, 0, 0); call('chroot', b'/tmp')");
	assert_int_equal(try.result.verdict, JAIL_OK);
	assert_string_equal(try.denied, "chroot");
}

/* -------- families: the same program, and what it may call in each of them ---------------------------- */
/* One call of each group that only some have. What is allowed fails at its arguments, or does not. */
#define TRIED                                                                                                          \
	CALLS "import errno\n"                                                                                         \
	      "numbers = dict(shmget=29, splice=275, get_mempolicy=239, semget=64, remap_file_pages=216, "             \
	      "memfd_create=319, "                                                                                     \
	      "execveat=322,\n"                                                                                        \
	      "               membarrier=324, pkey_alloc=330, personality=135)\n"                                      \
	      "def may(name):\n"                                                                                       \
	      " return call('syscall', numbers[name], *[ctypes.c_long(0)] * 6)[1] != errno.EPERM\n"                    \
	      "def socks(family):\n"                                                                                   \
	      " try: socket.socket(family).close()\n"                                                                  \
	      " except PermissionError: return False\n"                                                                \
	      " return True\n"                                                                                         \
	      "print(*[name for name in sorted(numbers) if may(name)], *[f.name for f in (socket.AF_UNIX, "            \
	      "socket.AF_INET) if socks(f)])\n"

#define SOCKETS " AF_UNIX AF_INET\n"
static const struct {
	const char *member, *may, *denied;
} family_cases[] = {
	{"", SOCKETS + 1,
	 "execveat get_mempolicy membarrier memfd_create pkey_alloc remap_file_pages semget shmget splice"},
	{",\"seccomp\":\"base\"", SOCKETS + 1,
	 "execveat get_mempolicy membarrier memfd_create pkey_alloc remap_file_pages semget shmget splice"},
	{",\"seccomp\":\"native\"",
	 "execveat get_mempolicy membarrier memfd_create personality pkey_alloc remap_file_pages semget shmget "
	 "splice" SOCKETS,
	 ""},
	{",\"seccomp\":\"python\"", "execveat get_mempolicy memfd_create splice" SOCKETS,
	 "membarrier pkey_alloc remap_file_pages semget shmget"},
	{",\"seccomp\":\"javascript\"", "memfd_create pkey_alloc" SOCKETS,
	 "execveat get_mempolicy membarrier remap_file_pages semget shmget splice"},
	{",\"seccomp\":\"go\"", "splice" SOCKETS,
	 "execveat get_mempolicy membarrier memfd_create pkey_alloc remap_file_pages semget shmget"},
	{",\"seccomp\":\"compiler\"", "\n",
	 "execveat get_mempolicy membarrier memfd_create pkey_alloc remap_file_pages semget shmget splice socket"},
};

static void each_family_has_its_own_calls(void **state)
{
	(void)state;
#ifndef __x86_64__
	skip(); /* the numbers are this machine's */
#endif
	for (size_t i = 0; i < ARRAY_SIZE(family_cases); i++) {
		auto_try struct try try = {.jail = NULL};
		auto_free char *runner = xasprintf(OWN RUN "%s}", family_cases[i].member);

		run_own(&try, runner, TRIED);
		assert_string_equal(try.out, family_cases[i].may);
		assert_string_equal(try.denied, family_cases[i].denied);
		assert_int_equal(try.result.verdict, JAIL_OK);
	}
}

/* The two steps of one run have filters of their own. */
static void compile_step(void **state)
{
#define COMPILE OWN "\"compile\":[\"{interpreter}\",\"/code/main.py\",\"compile\"]," RUN ",\"seccomp\":\"go\""
#define STEP                                                                                                           \
	CALLS "try: socket.socket().close(); here = 'a socket'\n"                                                      \
	      "except PermissionError: here = 'no socket'\n"                                                           \
	      "if len(sys.argv) > 1: open('/code/compiled', 'w').write(here)\n"                                        \
	      "else: print(open('/code/compiled').read(), here)\n"
	auto_try struct try usual = {.jail = NULL};
	auto_try struct try named = {.jail = NULL};

	(void)state;
	run_own(&usual, COMPILE "}", STEP);
	assert_string_equal(usual.out, "no socket a socket\n");
	assert_string_equal(usual.denied, "socket");
	run_own(&named, COMPILE ",\"seccomp_compile\":\"base\"}", STEP);
	assert_string_equal(named.out, "a socket a socket\n");
	assert_string_equal(named.denied, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name),
		cmocka_unit_test(no_watching),
		cmocka_unit_test(clone_namespaces),
		cmocka_unit_test(however_it_ends),
		cmocka_unit_test(refused_calls_cost_the_guest),
		cmocka_unit_test(ordinary_programs_are_refused_nothing),
		cmocka_unit_test(sync_is_idle),
		cmocka_unit_test(netlink_is_for_routes_only),
		cmocka_unit_test(quiet_calls_are_not_mentioned),
		cmocka_unit_test(each_family_has_its_own_calls),
		cmocka_unit_test(compile_step),
	};
	struct json_object *info = NULL;

	client = try_client(getenv("TEST_CONFIG"));
	if (jail_client_info(client, &info, NULL))
		return 1;
	const char *cgroup = json_get_string(info, "cgroup");
	weaker = cgroup && streq(cgroup, "none");
	json_object_put(info);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	jail_client_free(client);
	return failed;
}
