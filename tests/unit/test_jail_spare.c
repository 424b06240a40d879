/* test_jail_spare.c - what the jailer does in idle moments, and does without them: seen from outside, by its children
 * and groups. */
#include "jail_service.h"

#include <fcntl.h>

#include "jail/cell.h"

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
	const size_t settled = 1 + CELLS_PARKED; /* with the porter */
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

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(program_before_spare, service_setup, service_teardown)};

	return try_run(tests, argc, argv, NULL, NULL);
}
