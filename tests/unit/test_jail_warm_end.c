/*
 * test_jail_warm_end.c - jails in which an interpreter waits (jail/cell/cell_join.c): whatever ends at whatever time,
 * each program has its answer, and nothing is left.
 */
#include "warm_try.h"

#include <signal.h>

#include "jail/cell/cell.h"

#define ROUNDS 30 /* of killing something at another moment */

static const struct jail_spec python = {.runner = "python"};

static void run_fine(struct jail_client *client)
{
	auto_try struct try try = {.jail = NULL};

	try_program(client, &try, &python, "print('fine')");
	if (try.failed)
		fail_msg("%s", try.err.text);
	if (try.result.verdict != JAIL_OK)
		fail_msg("%s: %s", try.result.message, try.error);
	assert_string_equal(try.out, "fine\n");
}

static void template_killed(void **state)
{
	struct service *service = *state;

	for (int round = 0; round < ROUNDS; round++) {
		pid_t template = warm_template(service);

		if (template)
			kill(template, SIGKILL);
		for (int i = 0; i <= round % 4; i++)
			run_fine(service->client);
	}
	warm_await(service->client);
	run_fine(service->client);
}

/* It is waited for by nobody but the jailer, which makes another one. */
static void template_hangs(void **state)
{
	struct service *service = *state;
	int64_t until = 0;

	warm_await(service->client);
	const pid_t template = warm_template(service);
	const int64_t started = warm_count(service->client, "templates");
	kill(template, SIGSTOP);
	while (warm_count(service->client, "templates") == started && patience_left(&until))
		run_fine(service->client);
	assert_true(warm_count(service->client, "templates") > started);
	assert_int_not_equal(warm_template(service), template);
	warm_await(service->client);
	run_fine(service->client);
}

struct waiting {
	pid_t pids[16];
	size_t n;
};

static bool note_waiting(void *arg, const char *comm)
{
	struct waiting *waiting = arg;

	waiting->n += streq(comm, "python3");
	return false;
}

static size_t count_interpreters(const struct service *service)
{
	struct waiting waiting = {.n = 0};

	eye_find(service->pid, note_waiting, &waiting);
	return waiting.n;
}

static bool is_waiting(void *arg, const char *comm)
{
	(void)arg;
	return streq(comm, "python3");
}

static pid_t waiting_below(pid_t child)
{
	return eye_find(child, is_waiting, NULL);
}

/* The child of an init: below the jailer's children. */
static pid_t find_waiting(const struct service *service)
{
	return warm_child(service, waiting_below);
}

static void waiting_killed(void **state)
{
	struct service *service = *state;

	for (int round = 0; round < ROUNDS; round++) {
		warm_await(service->client);
		const pid_t waiting = find_waiting(service);
		if (waiting > 0)
			kill(waiting, SIGKILL);
		run_fine(service->client);
	}
}

/* Nothing of a jailer's is left when it is gone, however it went. */
static void jailer_killed(void **state)
{
	struct service *service = *state;

	warm_await(service->client);
	auto_close int template = pidfd_open(warm_template(service), 0);
	auto_close int waiting = pidfd_open(find_waiting(service), 0);
	assert_true(template >= 0 && waiting >= 0);
	kill(service->pid, SIGKILL);
	assert_ends(template);
	assert_ends(waiting);
	waitpid(service->pid, NULL, 0);
	jail_client_free(steal(&service->client));
	service_start(service);
	run_fine(service->client);
}

/* After many runs there is as much as before: one template, the jails that are made ahead, and an interpreter in each.
 */
static void nothing_left(void **state)
{
	struct service *service = *state;
	int64_t until = 0;

	warm_await(service->client);
	auto_eye struct eye before = {.descriptors = 0};
	auto_eye struct eye after = {.descriptors = 0};
	eye_look(service, &before);
	for (int i = 0; i < ROUNDS; i++)
		run_fine(service->client);
	while (warm_count(service->client, "waiting") < CELLS_PARKED || count_interpreters(service) != 1 + CELLS_PARKED)
		assert_true(patience_left(&until));
	eye_look(service, &after);
	assert_true(after.descriptors <= before.descriptors + EYE_SLACK);
	assert_int_equal(warm_count(service->client, "templates"), 1);
}

/* A template serves so many jails; what its copies have alike is not alike for ever. */
static void template_renewed(void **state)
{
	struct service *service = *state;
	int64_t runs = 0;

	for (; warm_count(service->client, "templates") < 2; runs++) {
		warm_await(service->client);
		run_fine(service->client);
	}
	assert_true(runs <= TEMPLATE_JOINS);
	assert_true(warm_count(service->client, "joined") >= TEMPLATE_JOINS);
	warm_await(service->client);
	run_fine(service->client);
}

#define AT_ONCE 16

/* As many interpreters wait as programs came at once; after a while that is over. */
static void pool_follows(void **state)
{
	struct service *service = *state;
	int64_t until = 0;

	warm_await(service->client);
	while (warm_count(service->client, "target") <= CELLS_PARKED) {
		struct try tries[AT_ONCE] = {{.jail = NULL}};

		assert_true(patience_left(&until));
		for (size_t i = 0; i < AT_ONCE; i++)
			try_begin(service->client, &tries[i], &python);
		warm_count(service->client, "target"); /* all are opened */
		for (size_t i = 0; i < AT_ONCE; i++) {
			jail_close(tries[i].jail);
			close(tries[i].out_fd);
			close(tries[i].error_fd);
			try_clear(&tries[i]);
		}
	}
	for (until = 0; warm_count(service->client, "waiting") <= CELLS_PARKED;)
		assert_true(patience_left(&until));
	run_fine(service->client);
	for (until = 0; warm_count(service->client, "waiting") != CELLS_PARKED;)
		assert_true(patience_left(&until));
	run_fine(service->client);
}

/* Without memory for a single one none is made ahead, and programs run all the same. */
static void no_room(void **state)
{
	struct service *service = *state;

	for (int i = 0; i < 4; i++) {
		auto_try struct try try = {.jail = NULL};

		try_program(service->client, &try, &python, "print('fine')");
		assert_int_equal(try.result.verdict, JAIL_OK);
		assert_false(try.result.parked);
		assert_false(try.result.warm);
		assert_int_equal(warm_count(service->client, "target"), 0);
		assert_int_equal(warm_count(service->client, "waiting"), 0);
	}
}

static int without_room(void **state)
{
	setenv("SALLYPORT_JAILER_WARM_MB", "1", 1);
	warm_start(state, "on");
	unsetenv("SALLYPORT_JAILER_WARM_MB");
	return 0;
}

static int on(void **state)
{
	warm_start(state, "on");
	return 0;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(template_killed, on, service_teardown),
		cmocka_unit_test_setup_teardown(template_hangs, on, service_teardown),
		cmocka_unit_test_setup_teardown(waiting_killed, on, service_teardown),
		cmocka_unit_test_setup_teardown(jailer_killed, on, service_teardown),
		cmocka_unit_test_setup_teardown(nothing_left, on, service_teardown),
		cmocka_unit_test_setup_teardown(pool_follows, on, service_teardown),
		cmocka_unit_test_setup_teardown(no_room, without_room, service_teardown),
		cmocka_unit_test_setup_teardown(template_renewed, on, service_teardown),
	};

	return try_run(tests, argc, argv, NULL, NULL);
}
