/* test_jail_spare.c - what the jailer does in idle moments, and does without them: seen from outside, by its children
 * and groups. */
#include "jail_service.h"

#include <fcntl.h>

#include "jail/cell/cell.h"

#define SETTLED_US 100000

static size_t count_children(pid_t pid)
{
	auto_free char *path = xasprintf("/proc/%d/task/%d/children", pid, pid);
	auto_free char *text = NULL;
	size_t length, n = 0;

	assert_int_equal(read_file_at(AT_FDCWD, path, 65536, &text, &length, NULL), 0);
	for (const char *c = text; *c; c++)
		n += *c == ' ';
	return n;
}

static bool is_asleep(pid_t pid)
{
	auto_free char *path = xasprintf("/proc/%d/stat", pid);
	auto_free char *text = NULL;
	size_t length;

	assert_int_equal(read_file_at(AT_FDCWD, path, 4096, &text, &length, NULL), 0);
	return strncmp(strrchr(text, ')'), ") S", 3) == 0;
}

/* Jails are made ahead in idle moments. Between the opening of a jail and its program is none: the program would wait
 * for a clone. */
static void program_before_spare(void **state)
{
	struct service *service = *state;
	const int64_t patience_us = PATIENCE_MS * INT64_C(1000);
	const size_t settled = 1 + CELLS_PARKED; /* with the id-map helper */
	struct jail_spec spec = {.runner = "bash"};
	struct json_object *runners = NULL;
	struct try try = {.jail = NULL};
	auto_try struct try next = {.jail = NULL};

	if (getuid()) {
		print_message("a user's jailer has other children: skipped\n");
		skip();
	}
	assert_int_equal(jail_client_runners(service->client, &runners, NULL),
			 0); /* after those that ask for versions */
	json_object_put(runners);
	const int64_t began = clock_monotonic_us();

	/* For a while: one that is about to go is nobody's spare. A jailer that has something to do does not sleep,
	 * whether it gets a processor or not. */
	for (int64_t since = began, now = began; now - since < SETTLED_US; now = clock_monotonic_us()) {
		if (count_children(service->pid) != settled || !is_asleep(service->pid))
			since = now;
		assert_true(now - began < patience_us);
	}
	const int64_t before = clock_monotonic_us();

	try_begin(service->client, &try, &spec);
	assert_int_equal(jail_client_info(service->client, &runners, NULL), 0); /* sends what is queued */
	json_object_put(runners);
	while (count_children(service->pid) != settled + 1)
		assert_true(clock_monotonic_us() - before < patience_us);
	assert_true(clock_monotonic_us() - before >= CELLS_AWAIT_US); /* but it is made where no program comes */
	jail_close(steal(&try.jail));
	close(try.out_fd);
	close(try.error_fd);
	try_clear(&try);
	try_program(service->client, &next, &spec, "echo fine");
	assert_string_equal(next.out, "fine\n");
}

static void await_spare(struct jail_client *client)
{
	const int64_t patience_us = PATIENCE_MS * INT64_C(1000), began = clock_monotonic_us();

	for (int64_t spare = 0; spare != CELLS_PARKED;) {
		struct json_object *info = NULL;

		assert_true(clock_monotonic_us() - began < patience_us);
		assert_int_equal(jail_client_info(client, &info, NULL), 0);
		spare = json_object_get_int64(
			json_get(json_get(info, "states", json_type_object), "parked", json_type_int));
		json_object_put(info);
		usleep(1000);
	}
}

static bool runs_in_spare(struct jail_client *client, const char *runner, const char *code)
{
	const struct jail_spec spec = {.runner = runner};
	auto_try struct try try = {.jail = NULL};

	try_program(client, &try, &spec, code);
	assert_int_equal(try.result.verdict, JAIL_OK);
	assert_string_equal(try.out, "fine\n");
	return try.result.parked;
}

/* A private jailer's client says by its first jail which filters it needs: no others are made, and a jail that was made
 * ahead of a filter is given to nobody who needs it. */
static void spare_without_filter(void **state)
{
	struct jail_client *client = try_client(NULL);

	(void)state;
	assert_false(runs_in_spare(client, "bash", "echo fine"));
	await_spare(client);
	assert_false(runs_in_spare(client, "python", "print('fine')"));
	await_spare(client);
	assert_true(runs_in_spare(client, "python", "print('fine')"));
	await_spare(client);
	assert_true(runs_in_spare(client, "bash", "echo fine"));
	jail_client_free(client);
}

/* Where the first jail keeps us waiting, there is one ahead for whatever comes. */
static void spare_for_all(void **state)
{
	struct jail_client *client = try_client(NULL);

	(void)state;
	await_spare(client);
	assert_true(runs_in_spare(client, "python", "print('fine')"));
	jail_client_free(client);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(program_before_spare, service_setup, service_teardown),
		cmocka_unit_test(spare_without_filter),
		cmocka_unit_test(spare_for_all),
	};

	return try_run(tests, argc, argv, NULL, NULL);
}
