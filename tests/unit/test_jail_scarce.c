/*
 * test_jail_scarce.c - a host that has run out of something: of processes, of namespaces. Whoever asks for a jail is
 * refused in words that name the limit; what was made is taken down; and when there is room again, jails are made
 * again.
 */
#include "gauged.h"
#include "jail_service.h"

#include <string.h>

#include "jail/cell/cell.h"

#define RUNS_MAX (CELLS_PARKED + 6) /* those made ahead are used up first; the next one is refused */

static bool run_once(struct service *service, struct err *ret_refusal)
{
	struct jail_spec spec = {.runner = "bash"};
	auto_try struct try try = {.jail = NULL};

	try_program(service->client, &try, &spec, "echo fine");
	if (try.failed) {
		*ret_refusal = try.err;
		return false;
	}
	assert_int_equal(try.result.verdict, JAIL_OK);
	assert_string_equal(try.out, "fine\n");
	return true;
}

static void write_to(const char *folder, const char *file, const char *text)
{
	auto_free char *path = xasprintf("%s/%s", folder, file);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write_all(fd, text, strlen(text)))
		fail_msg("writing %s to %s", text, path);
}

static void idle(struct service *service)
{
	struct json_object *list = NULL;

	assert_int_equal(jail_client_runners(service->client, &list, NULL),
			 0); /* answered when the runners have been asked */
	json_object_put(list);
}

static void no_processes(void **state)
{
	struct service *service = *state;
	auto_free char *group = xasprintf("/sys/fs/cgroup/pids/sp-test-scarce-%d", getpid());
	struct err refusal = ERR_INIT;
	char pid[16];
	int good = 0;

	idle(service);
	if (mkdir(group, 0755)) {
		free(steal(&group));
		print_message("no pids cgroup of v1 can be made here: skipped\n");
		skip(); /* jumps */
	}
	/* The jailer alone counts: its jails have groups of their own. */
	snprintf(pid, sizeof(pid), "%d", service->pid);
	write_to(group, "cgroup.procs", pid);
	write_to(group, "pids.max", "1");
	while (good < RUNS_MAX && run_once(service, &refusal))
		good++;
	write_to(group, "pids.max", "max");
	bool again = run_once(service, &(struct err){.code = 0});
	write_to("/sys/fs/cgroup/pids", "cgroup.procs", pid);
	rmdir(group);
	assert_true(good < RUNS_MAX);
	assert_int_equal(refusal.code, ERR_BUSY);
	assert_non_null(strstr(refusal.text, "no more processes can be made"));
	assert_non_null(strstr(refusal.text, "TasksMax"));
	assert_true(again);
	assert_true(run_once(service, &refusal));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		GAUGED(no_processes, service_setup, service_teardown, 8)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
