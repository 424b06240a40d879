/*
 * test_jail_faults.c - every step of making a jail fails once: strace, attached to a running jailer service and the
 * jails that it makes, has one system call answer with an error.
 *
 * strace counts calls per process: `when=K` is the K-th of each jail's init, and of the jailer, too. Jails that were
 * made ahead are used up first, so each fault gets a few runs: every one of them ends normally or says XX (or is
 * refused), and one of them names the step. Then strace goes, the next run works, and processes, descriptors, groups
 * and mounts of the jailer are as many as before.
 */
#include "jail_faults.h"

#include <signal.h>
#include <string.h>

#include "jail/cell/cell.h"

#define RUNS_MAX 8 /* two made ahead, one that fails while being made ahead, and some */

struct fault {
	const char *call, *when, *says;
	const char *path; /* only calls that name it are counted; NULL: all */
};

/* In the order of init_setup.c and init.c; then what the jailer itself does, where every attempt fails. */
static const struct fault faults[] = {
	{"write", "1", "enter the cgroup", NULL},
	{"recvfrom", "1", "wait for the id maps", NULL},
	{"openat", "1", "open the OOM score", NULL},
	{"setgroups", "1", "set ids", NULL},
	{"setresgid", "1", "set ids", NULL},
	{"setresuid", "1", "set ids", NULL},
	{"prctl", "2", "death signal", NULL},
	{"prctl", "3", "death signal", NULL},
	{"unshare", "1", "cgroup namespace", NULL},
	{"sethostname", "1", "host name", NULL},
	{"setdomainname", "1", "host name", NULL},
	{"dup3", "1", "keep descriptors", NULL},
	{"close_range", "1", "keep descriptors", NULL},
	{"mount", "1", "bind the root", NULL},
	{"mount", "2", "bind the root", NULL},
	{"chdir", "1", "bind the root", NULL},
	{"mount", "1", "mount /tmp", "tmp"},
	{"mount", "1", "mount /tmp", "dev/shm"},
	{"move_mount", "1", "attach /data", NULL},
	{"move_mount", "2", "attach /code", NULL},
	{"mount", "1", "mount /proc", "proc"},
	{"mount", "1", "mount /proc", "proc/keys"},
	{"mount", "1", "inodes of its own", "usr"},
	{"pivot_root", "1", "pivot_root", NULL},
	{"umount2", "1", "pivot_root", NULL},
	{"chdir", "2", "pivot_root", NULL},
	{"socket", "1", "loopback", NULL},
	{"ioctl", "1", "loopback", NULL},
	{"prctl", "4", "drop capabilities", NULL},
	{"capset", "1", "drop capabilities", NULL},
	{"close_range", "2", "close descriptors", NULL},
	{"signalfd4", "1", "watch children", NULL},
	{"socketpair", "1", "socket for the listener", NULL},
	{"sendfile", "1", "write the source", NULL},
	{"vfork", "1", "fork", NULL},
	{"setsid", "1", "session", NULL},
	{"dup2", "1", "standard descriptors", NULL},
	{"prlimit64", "1", "resource limits", NULL},
	{"landlock_create_ruleset", "1", "Landlock's rules", NULL},
	{"landlock_add_rule", "3", "Landlock's rules", NULL},
	{"landlock_restrict_self", "1", "Landlock", NULL},
	{"seccomp", "1", "seccomp filter", NULL},
	{"execve", "1", "start the program", NULL},
	{"pipe2", "1", "pipes", NULL},
	{"fsopen", "1+", "making a file system for the jail", NULL},
	{"fsconfig", "1+", "making a file system for the jail", NULL},
	{"fsmount", "1+", "mounting a file system for the jail", NULL},
	{"socketpair", "1+", "making a socket for the jail", NULL},
	{"openat", "1+", "making a cgroup for the jail", NULL},
	{"clone3", "1+", "making the jail's namespaces", NULL},
	{"epoll_ctl", "1+", "watching the jail", NULL},
};

static struct CMUnitTest tests[ARRAY_SIZE(faults)];
static char names[ARRAY_SIZE(faults)][64];
static struct service *service;
static struct host idle; /* of the jailer before the first fault */

/* -------- runs ---------------------------------------------------------------------------------------- */
static void run_once(struct try *try)
{
	struct jail_spec spec = {.runner = "bash"};

	try_program(service->client, try, &spec, "echo fine");
}

/* `broken`: so many jails that were made ahead may have met the fault; whoever gets one of them is told. */
static void run_ok(int broken)
{
	bool good = false;

	for (int i = 0; i <= broken && !good; i++) {
		auto_try struct try try = {.jail = NULL};

		run_once(&try);
		good = !try.failed && try.result.verdict == JAIL_OK && streq(try.out, "fine\n");
		if (!good && i == broken)
			fail_msg("%s%s", try.err.text, try.result.message);
	}
}

static void fails_once(void **state)
{
	const struct fault *fault = *state;
	bool seen = false;
	pid_t strace = strace_attach(service->pid, fault->call, fault->when, fault->path);

	for (int i = 0; i < RUNS_MAX && !seen; i++) {
		auto_try struct try try = {.jail = NULL};

		run_once(&try);
		const char *said = try.failed ? try.err.text : try.result.message;
		seen = strstr(said, fault->says) != NULL;
		if (!try.failed && try.result.verdict == JAIL_OK)
			continue;
		if ((!try.failed && try.result.verdict != JAIL_XX) ||
		    (seen && !try.failed && !strstr(try.result.step, fault->says))) {
			kill(strace, SIGINT);
			fail_msg("%s: %s", jail_verdict_text(try.result.verdict), said);
		}
	}
	strace_detach(strace);
	if (!seen)
		fail_msg("no run said \"%s\"", fault->says);
	run_ok(CELLS_PARKED);
	host_assert_idle(service, &idle);
}

static int setup(void **state)
{
	struct json_object *list = NULL;

	(void)state;
	service_setup((void **)&service);
	/* Answered when the languages have told their versions: from then on the jailer is idle. */
	assert_int_equal(jail_client_runners(service->client, &list, NULL), 0);
	json_object_put(list);
	run_ok(0);
	return host_await_idle(service, &idle);
}

static int teardown(void **state)
{
	(void)state;
	return service_teardown((void **)&service);
}

int main(void)
{
	if (!faults_possible())
		return faults_skipped();
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct fault *fault;

		if (!faults_called(faults[i].call))
			continue;
		memcpy(&fault, &(const struct fault *){&faults[i]}, sizeof(fault));
		snprintf(names[i], sizeof(names[i]), "%s %s %s: %.30s", fault->call, fault->path ? fault->path : "call",
			 fault->when, fault->says);
		tests[n++] = (struct CMUnitTest){.name = names[i], .test_func = fails_once, .initial_state = fault};
	}
	return _cmocka_run_group_tests("faults", tests, n, setup, teardown);
}
