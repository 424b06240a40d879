/*
 * test_jail_late.c - a jailer that comes late: it waits for a processor, or serves others, while a program ends and its
 * time limit passes.
 *
 * The jailer is stopped meanwhile (SIGSTOP). The verdict is that of the program's own clock, as the result shows it:
 * who ended in time is not told otherwise, and who did not is, although nobody came to stop it.
 */
#include "jail_service.h"

#include <signal.h>

#define LIMIT_US INT64_C(1000000)

static void stop_jailer(const struct service *service)
{
	int status;

	assert_int_equal(kill(service->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(service->pid, &status, WUNTRACED), service->pid);
	assert_true(WIFSTOPPED(status));
}

/* The program's process; -1: the run is over. */
static int find_guest(struct jail_client *client, const struct try *try, const char *name)
{
	pid_t pid = -1;

	while (!try->done && (pid = find_process(name)) < 0)
		try_hear(client, PATIENCE_GAP_MS);
	return try->done ? -1 : pidfd_open(pid, 0);
}

static void end_and_let_pass(int guest, int *input, int64_t limit_us, bool in_time)
{
	if (in_time) {
		close(steal_fd(input)); /* of which the program waits for the end */
		assert_ends(guest);
	}
	poll(NULL, 0, (int)(limit_us / 1000) + 1); /* the limit began before */
	if (!in_time) {
		close(steal_fd(input));
		assert_ends(guest);
	}
}

/* A program that ends before its limit, or after it, and the jailer hears of neither. Tells whether that is what became
 * of it: a machine that is busy enough has the limit pass before everything is prepared. */
static bool run_unseen(struct service *service, int64_t limit_us, bool in_time)
{
	auto_free char *name = xasprintf("test_jail_late.%07d", getpid());
	auto_free char *code = xasprintf("exec -a %s head -n 1", name);
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	const struct jail_spec spec = {.runner = "bash", .limits = {.wall_us = limit_us}};
	auto_try struct try try = {.jail = NULL};
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	auto_close int theirs = ends[0];
	auto_close int ours = ends[1];
	try_begin(service->client, &try, &spec);
	struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = theirs, .stdout_fd = try.out_fd, .stderr_fd = try.error_fd};
	assert_int_equal(jail_run(try.jail, &program, NULL), 0);
	auto_close int guest = find_guest(service->client, &try, name);
	close(steal_fd(&theirs));
	if (guest >= 0) {
		stop_jailer(service);
		end_and_let_pass(guest, &ours, limit_us, in_time);
		assert_int_equal(kill(service->pid, SIGCONT), 0);
	}
	try_end(service->client, &try);
	assert_false(try.failed);
	const enum jail_verdict expected = try.result.run.wall_us < limit_us ? JAIL_OK : JAIL_TO;
	if (try.result.verdict != expected)
		fail_msg("%s after %lld us, with a limit of %lld: %s", jail_verdict_text(try.result.verdict),
			 (long long)try.result.run.wall_us, (long long)limit_us, try.result.message);
	return guest >= 0 && expected == (in_time ? JAIL_OK : JAIL_TO);
}

static void ended_in_time(void **state)
{
	for (int64_t limit = LIMIT_US; !run_unseen(*state, limit, true); limit *= 2)
		assert_true(limit < PATIENCE_LIMIT_US);
}

static void ended_too_late(void **state)
{
	for (int64_t limit = LIMIT_US; !run_unseen(*state, limit, false); limit *= 2)
		assert_true(limit < PATIENCE_LIMIT_US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ended_in_time, service_setup, service_teardown),
		cmocka_unit_test_setup_teardown(ended_too_late, service_setup, service_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
