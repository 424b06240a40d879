/*
 * test_jail_live_faults.c - every step of a live sandbox fails once: opening it, thawing, starting a program or a
 * driver, talking to it, freezing, filling and collecting in between; see jail_faults.h.
 *
 * Each fault gets a few sandboxes, of which each has a few runs with a file, an input and a collection. A run of a
 * sandbox ends normally, or it (or the sandbox) says what failed, or the sandbox ends with it and says that; then the
 * sandbox is closed, strace goes, the next one works in all of its runs, and the jailer has on the host what it had.
 */
#include "jail_faults.h"

#include <string.h>

#include "live_try.h"

#define SANDBOXES_MAX 6 /* two made ahead, one that fails while being made ahead, and some */
#define COUNTS_MAX    20 /* on a busy machine a jail made ahead takes a call of those counted, now and then */
#define RUNS          3

struct fault {
	const char *runner, *call, *when, *path; /* path NULL: any */
	const char *says;                        /* step or error; NULL: the sandbox ends, with the verdict `ends` */
	enum jail_verdict ends;
};

static const struct fault faults[] = {
	/* opening, in the jailer: cell_live.c, cgroup_freezer.c */
	{"bash", "mkdirat", "1+", NULL, "making a cgroup to freeze", 0},
	{"bash", "openat", "1+", "cgroup.events", "opening the cgroup to freeze", 0},
	{"bash", "pipe2", "1+", NULL, "making a pipe for the program's output", 0},
	{"bash", "fcntl", "1+", NULL, "making a pipe for the program's output", 0},
	{"bash", "fchmod", "1+", NULL, "making a pipe for the program's output", 0},
	/* before a run */
	{"bash", "openat", "1", "cgroup.freeze", "thaw the jail", 0},
	{"python", "openat", "3", "cgroup.freeze", "thaw the jail", 0},
	{"bash", "fcntl", "6", NULL, "look at /data", 0},
	{"bash", "fcntl", "8", NULL, "pipes", 0},
	{"bash", "openat", "3", "/code", "write the source", 0},
	{"bash", "sendfile", "9", NULL, "write the source", 0},
	{"bash", "openat", "2+", "/data", "filling /data", 0},
	{"c", "fspick", "1+", NULL, "make /code read-only", 0},
	{"c", "fspick", "2+", NULL, "thaw the jail", 0},
	/* a program and a driver, in init: init.c, init_live.c */
	{"bash", "landlock_create_ruleset", "2", NULL, "Landlock's rules", 0},
	{"bash", "vfork", "2", NULL, "fork", 0},
	{"bash", "memfd_create", "2", NULL, "standard input", 0},
	{"python", "memfd_create", "1", NULL, "standard input", 0},
	{"python", "socketpair", "2", NULL, "socket for the driver", 0},
	{"python", "dup2", "4", NULL, "standard descriptors", 0},
	{"python", "execve", "1", NULL, "start the program", 0},
	{"python", "ftruncate", "2", NULL, "standard input", 0},
	/* init cannot talk to the driver, or to the jailer, or not wait: that is its end */
	{"python", "sendto", "3", NULL, NULL, JAIL_SG},
	{"python", "sendto", "4", NULL, "init", 0},
	{"bash", "poll", "2", NULL, "init", 0},
	{"python", "recvfrom", "4", NULL, NULL, JAIL_SG},
	/* after a run */
	{"bash", "openat", "2", "cgroup.freeze", NULL, JAIL_OK},
	{"python", "openat", "4", "cgroup.freeze", NULL, JAIL_OK},
	{"bash", "getdents64", "1+", NULL, "reading the files of /data", 0},
};

static struct CMUnitTest tests[ARRAY_SIZE(faults) + 1];
static char names[ARRAY_SIZE(faults)][96];
static struct service *service;
static struct host idle;

/* -------- a sandbox ----------------------------------------------------------------------------------- */
static const char *code_of(const char *runner)
{
	return streq(runner, "python") ? "print(input())"
	       : streq(runner, "c")
		       ? "#include <stdio.h>\nint main(void) { char s[9]; return puts(fgets(s, 5, stdin)) < 0; }"
		       : "read -r x; echo \"$x\"";
}

static bool fine(const struct live *live)
{
	return !live->try.failed && live->try.result.verdict == JAIL_OK && !live->try.result.ended;
}

static void run_once(struct live *live, const char *runner, int number)
{
	struct try *try = &live->try;
	auto_free char *name = xasprintf("file%d", number);
	auto_close int input = memfd_with("input", "fine\n", 5);
	const struct jail_file file = {.name = name, .mode = 0644, .fd = input};
	const struct jail_program program = {.stdin_fd = input};

	assert_int_equal(jail_fill(try->jail, &file, 1, NULL), 0);
	live_ask(live, code_of(runner), &program);
	assert_int_equal(jail_client_wait(live->client, try->jail, NULL), 0);
	try->out = try_read(try->out_fd);
	try->error = try_read(try->error_fd);
	if (fine(live) && !streq(try->out, "fine\n"))
		fail_msg("a run said \"%s\" and \"%s\"", try->out, try->error);
}

/* Up to the first run that is not fine; live_end is the caller's. */
static void use_sandbox(struct live *live, const char *runner)
{
	live_begin(live, service->client, runner, (struct jail_limits){0});
	for (int i = 0; i < RUNS; i++) {
		run_once(live, runner, i);
		if (!fine(live))
			break;
	}
}

/* Was it the fault, and told as it must be? Anything else that is not fine fails the test. */
static bool seen(const struct fault *fault, const struct try *try, char *wrong, size_t size)
{
	const struct jail_result *result = &try->result;

	if (try->failed && fault->says && strstr(try->err.text, fault->says))
		return true;
	if (!try->failed && result->ended && fault->says && result->verdict == JAIL_XX &&
	    strstr(result->step, fault->says))
		return true;
	if (!try->failed && result->ended && !fault->says && result->verdict == fault->ends)
		return true;
	/* What is made ahead meets the fault elsewhere: opening then fails, or the sandbox, and each says where. */
	bool said = try->failed ? try->err.text[0] : result->verdict == JAIL_XX && result->step[0] && result->ended;
	if (!said)
		snprintf(wrong, size, "%s, ended: %d, \"%.200s\"",
			 try->failed ? "failed" : jail_verdict_text(result->verdict), result->ended,
			 try->failed ? try->err.text : result->message);
	return false;
}

static void works_again(const char *runner)
{
	bool good = false;

	for (int i = 0; i <= CELLS_PARKED && !good; i++) {
		auto_live struct live live = {.client = NULL};

		use_sandbox(&live, runner);
		good = fine(&live);
		if (!good && i == CELLS_PARKED)
			fail_msg("the next sandbox: %s%s", live.try.err.text, live.try.result.message);
	}
}

static void fails_once(void **state)
{
	const struct fault *fault = *state;
	char wrong[400] = "", last[400] = "nothing";
	bool found = false;
	struct host ready;

	assert_int_equal(host_await_idle(service, &ready), 0); /* so that calls can be counted */
	live_need_runner(service->client, fault->runner);
	/* A jail that is made ahead may take a call of those that are counted: then they are counted anew. */
	for (int count = 0; count < COUNTS_MAX && !found && !wrong[0]; count++) {
		pid_t strace = strace_attach(service->pid, fault->call, fault->when, fault->path);

		for (int i = 0; i < SANDBOXES_MAX && !found && !wrong[0]; i++) {
			auto_live struct live live = {.client = NULL};

			use_sandbox(&live, fault->runner);
			found = !fine(&live) && seen(fault, &live.try, wrong, sizeof(wrong));
			if (!fine(&live))
				snprintf(last, sizeof(last), "%.200s%.190s", live.try.err.text,
					 live.try.result.message);
		}
		strace_detach(strace);
	}
	if (!found)
		fail_msg("%s", wrong[0] ? wrong : last);
	works_again(fault->runner);
	host_assert_idle(service, &idle);
}

/* The program itself enters what can be frozen. Beside a group of threads no other group takes processes, and no call
 * before fails. */
static void unopened_freezer_fails_the_run(void **state)
{
	(void)state;
	auto_live struct live live = {.client = NULL};
	auto_free char *top = service_freezer(service);
	auto_free char *beside = xasprintf("%s/threads", top);
	auto_free char *type = xasprintf("%s/cgroup.type", beside);

	assert_int_equal(mkdir(beside, 0755), 0);
	auto_close int fd = open(type, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "threaded", 8), 8);
	live_begin(&live, service->client, "bash", (struct jail_limits){0});
	run_once(&live, "bash", 0);
	assert_int_equal(live.try.result.verdict, JAIL_XX);
	assert_string_equal(live.try.result.step, "enter the cgroup to freeze");
	assert_true(live.try.result.ended);
	live_end(&live);
	assert_int_equal(rmdir(beside), 0);
	works_again("bash");
	host_assert_idle(service, &idle);
}

static int setup(void **state)
{
	struct json_object *list = NULL;

	(void)state;
	service_setup((void **)&service);
	assert_int_equal(jail_client_runners(service->client, &list, NULL), 0); /* from then on the jailer is idle */
	json_object_put(list);
	if (!live_possible(service->client))
		return -1;
	works_again("bash");
	return host_await_idle(service, &idle);
}

static int teardown(void **state)
{
	(void)state;
	return service_teardown((void **)&service);
}

int main(int argc, char **argv)
{
	if (!faults_possible())
		return faults_skipped();
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct fault *fault;

		if (!faults_called(faults[i].call))
			continue;
		memcpy(&fault, &(const struct fault *){&faults[i]}, sizeof(fault));
		snprintf(names[i], sizeof(names[i]), "%s %s %s%s%s: %.40s", fault->runner, fault->call, fault->when,
			 fault->path ? " " : "", fault->path ? fault->path : "", fault->says ? fault->says : "ends");
		tests[n++] = (struct CMUnitTest){.name = names[i], .test_func = fails_once, .initial_state = fault};
	}
	tests[n++] = (struct CMUnitTest){.name = "bash: enter the cgroup to freeze",
					 .test_func = unopened_freezer_fails_the_run};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests("faults of live jails", tests, n, setup, teardown);
}
