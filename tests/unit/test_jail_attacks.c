/*
 * test_jail_attacks.c - probes that need more than a guest: somebody who fills, looks from outside, sets the clock, or
 * kills the jailer.
 *
 * Numbers are those of tests/probe/list.txt. The first argument is the one test that alone is to run.
 * TEST_MAY_SET_CLOCK=1 (the virtual machine of tests/vm) allows the clock to be set.
 */
#include "host_eye.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "gauged.h"
#include "jail/cell/cell.h"
#include "live_try.h"

#define AT_ONCE 50
#define KILLS   12
#define AGAIN   20

static void give(struct jail_client *client, struct try *try, const char *code)
{
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try->out_fd, .stderr_fd = try->error_fd};

	(void)client;
	assert_int_equal(jail_run(try->jail, &program, NULL), 0);
}

static void assert_ok(const struct try *try, const char *out)
{
	if (try->failed)
		fail_msg("%s", try->err.text);
	if (try->result.verdict != JAIL_OK)
		fail_msg("%s %s", try->result.message, try->error);
	if (out)
		assert_string_equal(try->out, out);
}

/* -------- H11: what is filled into a jail that a program has prepared for it -------------------------- */
static const char *const traps[] = {"link", "dangling", "fifo", "folder", "elsewhere/file", "middle/file", "mine"};
static const char prepare_traps[] = "import os\n"
				    "os.symlink('/tmp/target', 'link'); open('/tmp/target', 'w').write('untouched')\n"
				    "os.symlink('/tmp/made', 'dangling'); os.mkfifo('fifo'); os.mkdir('folder')\n"
				    "os.symlink('/tmp', 'elsewhere'); os.symlink('folder', 'middle'); open('mine', "
				    "'w').write('longer than it was')\n";
static const char look_at_traps[] =
	"import os\n" /* the empty folder makes way */
	"inside = os.listdir('folder') if os.path.isdir('folder') else []\n"
	"print(open('/tmp/target').read(), sorted(set(os.listdir('/tmp')) - {'matplotlib'}), inside)\n";

static void filled_over_traps(void **state)
{
	struct service *service = *state;
	auto_close int fd = memfd_with("file", "filled", 6);

	for (size_t i = 0; i < ARRAY_SIZE(traps); i++) {
		auto_try struct try try = {.jail = NULL};
		const struct jail_spec spec = {.runner = "python"};
		const struct jail_file file = {.name = traps[i], .mode = 0644, .fd = fd};

		try_begin(service->client, &try, &spec);
		give(service->client, &try, prepare_traps);
		assert_int_equal(jail_client_wait(service->client, try.jail, NULL), 0);
		assert_int_equal(jail_fill(try.jail, &file, 1, NULL), 0);
		give(service->client, &try, look_at_traps);
		assert_int_equal(jail_collect(try.jail, NULL), 0);
		try_end(service->client, &try);
		/* Refused, or put where it was meant to be: never through a link, and nobody waits for a reader. */
		if (!try.failed) {
			assert_ok(&try, "untouched ['target'] []\n");
			const struct try_change *change = try_find(&try, traps[i]);
			assert_true(!change || change->kind != JAIL_FILE_CREATED || streq(change->content, "filled") ||
				    streq(traps[i], "mine"));
		}
	}
}

/* -------- H16, H15: who a guest is for the host ------------------------------------------------------- */
static bool is_called(void *arg, const char *comm)
{
	return streq(comm, arg);
}

/* Starts a program and dispatches until it has written something. */
static void start_until_output(struct jail_client *client, struct try *try, const struct jail_spec *spec,
			       const char *code)
{
	try_begin(client, try, spec);
	give(client, try, code);
	while (!try->outputs && !try->done && !try->failed)
		assert_true(try_hear(client, PATIENCE_MS));
	assert_false(try->done);
	assert_false(try->failed);
}

static const char *line_of(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	assert_non_null(at);
	return at + strlen(name);
}

static void seen_from_outside(void **state)
{
	static const char *const capabilities[] = {"\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapBnd:", "\nCapAmb:"};
	struct service *service = *state;
	auto_try struct try try = {.jail = NULL};
	const struct jail_spec spec = {.runner = "bash"};
	auto_free char *text = NULL;
	int ids[4];
	size_t length;

	/* It says itself that it runs: however long the exec takes on a busy machine, it is there then. */
	start_until_output(service->client, &try, &spec,
			   "cp /usr/bin/bash /tmp/attacker; exec /tmp/attacker -c 'sleep 1000 & echo ready; wait; :'");
	char name[] = "attacker";
	pid_t pid;
	int64_t until = 0;
	while (!(pid = eye_find(service->pid, is_called, name)) && patience_left(&until))
		; /* the kernel's list of children may miss one while others end */
	assert_true(pid > 0);
	auto_free char *path = xasprintf("/proc/%d/status", pid);
	assert_int_equal(read_file_at(AT_FDCWD, path, EYE_TEXT, &text, &length, NULL), 0);
	static const char *const names[] = {"\nUid:", "\nGid:"};
	for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
		assert_int_equal(sscanf(line_of(text, names[n]), "%d %d %d %d", &ids[0], &ids[1], &ids[2], &ids[3]), 4);
		for (size_t i = 0; i < 4; i++) {
			assert_int_not_equal(ids[i], 0);
			assert_int_equal(ids[i], ids[0]);
			if (getuid() == 0)
				assert_true(ids[i] >= 0x70000000);
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++)
		assert_int_equal(strtoull(line_of(text, capabilities[i]), NULL, 16), 0);
	assert_int_equal(line_of(text, "\nNoNewPrivs:\t")[0], '1');
	assert_int_equal(line_of(text, "\nSeccomp:\t")[0], '2');
	if (getuid() == 0)
		assert_int_equal(strspn(line_of(text, "\nGroups:"), "\t "), strcspn(line_of(text, "\nGroups:"), "\n"));
	jail_cancel(try.jail);
	try_end(service->client, &try);
}

/* -------- D03: many jails that are made at the same time see nothing of each other -------------------- */
static void hundred_at_once(void **state)
{
	static const char code[] = "exec /data/probe D04\n";
	struct service *service = *state;
	const char *given = getenv("TEST_PROBES");
	auto_free char *folder = given ? xstrdup(given) : config_program_dir();
	auto_free char *program = xasprintf("%s/jail_probe", folder);
	auto_close int fd = open(program, O_RDONLY | O_CLOEXEC);
	const struct jail_file file = {.name = "probe", .mode = 0755, .fd = fd};
	struct try tries[AT_ONCE] = {{.jail = NULL}};
	const struct jail_spec spec = {.runner = "bash", .limits = {.pids = 8}};
	struct jail_client *clients[2] = {service->client, NULL};

	assert_true(fd >= 0);
	assert_int_equal(jail_client_connect(service->socket_path, &clients[1], NULL), 0);
	size_t at_once = AT_ONCE / (size_t)try_patience();
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < at_once; i++) {
			try_begin(clients[i % 2], &tries[i], &spec);
			assert_int_equal(jail_fill(tries[i].jail, &file, 1, NULL), 0);
			give(clients[i % 2], &tries[i], code);
		}
		for (size_t i = 0; i < at_once; i++) {
			try_end(clients[i % 2], &tries[i]);
			assert_ok(&tries[i], "held\n");
			try_clear(&tries[i]);
		}
	}
	jail_client_free(clients[1]);
}

/* -------- N10: descriptors that are on their way through sockets count against everybody who has the id ---- */
#define USUAL_FILES 1024 /* the soft limit that services and shells have */

/* Sends as many as it can, says why no more, and stays. */
static const char fill_sockets[] =
	"import array, errno, os, socket\n"
	"ours, theirs = socket.socketpair()\n"
	"fds = array.array('i', [0] * 253)\n"
	"try:\n"
	"    for i in range(1000): ours.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])\n"
	"except OSError as error:\n"
	"    print(errno.errorcode[error.errno], flush=True)\n"
	"    os.read(os.pipe()[0], 1)\n";

static void others_in_flight(void **state)
{
	struct service *service = *state;
	const struct jail_spec spec = {.runner = "python"}, other = {.runner = "bash"};
	auto_try struct try filler = {.jail = NULL};
	struct rlimit before;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){MIN(USUAL_FILES, before.rlim_max), before.rlim_max}),
			 0);
	start_until_output(service->client, &filler, &spec, fill_sockets);
	for (int i = 0; i < CELLS_PARKED + 2; i++) {
		auto_try struct try try = {.jail = NULL};

		try_program(service->client, &try, &other, "echo fine");
		assert_ok(&try, "fine\n");
	}
	jail_cancel(filler.jail);
	try_end(service->client, &filler);
	assert_string_equal(filler.out, "ETOOMANYREFS\n"); /* the kernel's limit was met */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* In a live jail the next run has the id of the one before in every mode; with bash each is a program of its own. */
static void earlier_in_flight(void **state)
{
	struct service *service = *state;

	live_need(live_possible(service->client));
	auto_live struct live live = {.client = NULL};
	auto_free char *code = xasprintf("cat >/tmp/fill.py <<'END'\n%sEND\nmkfifo /tmp/said\n"
					 "/usr/bin/python3 /tmp/fill.py >/tmp/said &\n"
					 "read -r said </tmp/said; echo $said",
					 fill_sockets);

	live_begin(&live, service->client, "bash", (struct jail_limits){0});
	live_expect(&live, code, JAIL_OK, "ETOOMANYREFS\n");
	for (int i = 0; i < 3; i++)
		live_expect(&live, "echo fine", JAIL_OK, "fine\n");
}

/* -------- G04, G05: grading --------------------------------------------------------------------------- */
/* What an earlier run left to work on is gone when the next one begins, in the same jail. */
static void work_ahead(void **state)
{
	struct service *service = *state;
	auto_try struct try try = {.jail = NULL};
	const struct jail_spec spec = {.runner = "python", .limits = {.pids = 32}};

	try_begin(service->client, &try, &spec);
	give(service->client, &try,
	     "import os\nfor i in range(8):\n if os.fork() == 0:\n  os.setsid()\n  while True:\n   open('/data/ahead', "
	     "'w').close(); "
	     "os.unlink('/data/ahead')\n");
	give(service->client, &try, "import os\nprint(len([p for p in os.listdir('/proc') if p.isdigit()]))\n");
	try_end(service->client, &try);
	assert_ok(&try, "2\n"); /* init and itself */
	assert_true(try.result.run.cpu_user_us + try.result.run.cpu_system_us < 5000000 * try_patience());
}

static int by_value(const void *a, const void *b)
{
	const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static void same_again(void **state)
{
	static const char code[] =
		"import hashlib, os\n"
		"digest = hashlib.sha256()\n"
		"for i in range(20000): digest.update(b'%d' % (i * i))\n"
		"held = bytearray(20 << 20)\n"
		"print(digest.hexdigest(), sorted(os.environ), os.getcwd(), os.getuid(), os.cpu_count(), os.getpid())\n"
		"raise SystemExit(7)\n";
	struct service *service = *state;
	const struct jail_spec spec = {.runner = "python"};
	auto_free char *first = NULL;
	int64_t peaks[AGAIN];

	for (int i = 0; i < AGAIN; i++) {
		auto_try struct try try = {.jail = NULL};

		try_program(service->client, &try, &spec, code);
		assert_int_equal(try.result.verdict, JAIL_RE);
		assert_int_equal(try.result.exit_code, 7);
		if (!first)
			first = xstrdup(try.out);
		assert_string_equal(try.out, first);
		peaks[i] = try.result.run.memory_peak_bytes;
	}
	/* Three of four within 5 %: who is the first to read a library that the host has forgotten pays for its pages.
	 * The CPU time is no matter for a test: what else the machine does is in it. */
	qsort(peaks, AGAIN, sizeof(peaks[0]), by_value);
	assert_in_range(peaks[AGAIN * 3 / 4], peaks[0], peaks[0] + peaks[0] / 20);
}

/* -------- C02: the host's clock is set while a program runs ------------------------------------------- */
static void jump(int seconds)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	now.tv_sec += seconds;
	assert_int_equal(clock_settime(CLOCK_REALTIME, &now), 0);
}

static void clock_jumps(void **state)
{
	struct service *service = *state;
	const int64_t limit = 1500000 * try_patience();
	const struct jail_spec spec = {.runner = "bash", .limits = {.wall_us = limit}};

	if (!getenv("TEST_MAY_SET_CLOCK")) {
		print_message("only the virtual machine's clock is set: skipped\n");
		skip();
	}
	for (int i = 0; i < 2; i++) {
		auto_try struct try try = {.jail = NULL};
		int seconds = i ? -7200 : 7200;

		start_until_output(service->client, &try, &spec, "echo ready; exec sleep 1000");
		jump(seconds);
		try_end(service->client, &try);
		jump(-seconds);
		assert_int_equal(try.result.verdict, JAIL_TO);
		assert_string_equal(try.result.limit, "wall");
		assert_in_range(try.result.run.wall_us, limit, limit + PATIENCE_MS * INT64_C(1000)); /* not 7,200 s */
	}
}

/* -------- P20, X11, X12: the jailer is killed at all sorts of moments --------------------------------- */
/* We are the reaper of what it leaves: when no child is left to wait for, nothing of it lives. */
static void nothing_outlives_a_killed_jailer(void **state)
{
	struct service *service = *state;
	const struct jail_spec spec = {.runner = "bash", .limits = {.pids = 32}};
	static const char *const codes[] = {"echo ready; sleep 1000",
					    "echo ready; while :; do (setsid sleep 1000 &) 2>/dev/null; done"};

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	for (int i = 0; i < KILLS / try_patience() + 4; i++) {
		auto_try struct try try = {.jail = NULL};

		if (i % 4 == 1) {
			try_begin(service->client, &try, &spec); /* asked for, not answered yet */
			give(service->client, &try, codes[0]);
		} else if (i % 4 >= 2) {
			start_until_output(service->client, &try, &spec, codes[i % 2]);
		}
		kill(service->pid, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
		assert_int_equal(errno, ECHILD);
		service->pid = 0;
		jail_client_free(service->client);
		service->client = NULL;
		if (i % 4) {
			close(try.out_fd);
			close(try.error_fd);
		}
		service_start(service);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	auto_try struct try try = {.jail = NULL};
	try_program(service->client, &try, &spec, "echo fine");
	assert_ok(&try, "fine\n");
	/* What the killed ones left in the cgroups was cleared by the next: what is there is of the jails made ahead.
	 */
	assert_in_range(eye_groups(service), 0, 64);
}

#define SERVED(test, jails) GAUGED(test, service_setup, service_teardown, jails)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		SERVED(filled_over_traps, 1),
		SERVED(seen_from_outside, 1),
		SERVED(hundred_at_once, AT_ONCE),
		SERVED(work_ahead, 2),
		SERVED(same_again, 1),
		SERVED(clock_jumps, 1),
		SERVED(nothing_outlives_a_killed_jailer, KILLS),
		SERVED(others_in_flight, 8),
		SERVED(earlier_in_flight, 8),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
