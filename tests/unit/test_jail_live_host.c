/*
 * test_jail_live_host.c - the host's side of live sandboxes: frozen guests whose client goes or whose jailer is killed,
 * and a hundred of them at once. After each the host is looked at. Its arguments name the tests that are to run.
 */
#include "jail_service.h"

#include <signal.h>

#include "live_jailer.h"

#define JAILS        ((size_t)(100 / try_patience()))
#define FDS_A_JAIL   20
#define BYTES_A_JAIL (128 * 1024) /* of the jailer's own memory */
#define SLACK        60

#ifdef __SANITIZE_ADDRESS__ /* keeps what was freed for a while */
static const bool counts_memory = false;
#else
static const bool counts_memory = true;
#endif

static int setup(void **state)
{
	auto_free char *members = xasprintf("%s,\"jails\":%zu", try_jailer_members(), JAILS);

	setenv("TEST_CONFIG_JAILER", members, 1);
	service_setup(state);
	unsetenv("TEST_CONFIG_JAILER");
	possible = live_possible(((struct service *)*state)->client);
	return 0;
}

/* What the kernel says of the cgroup that a process is in. */
static bool is_frozen(const struct service *service, pid_t pid)
{
	auto_free char *top = service_freezer(service);
	auto_free char *cgroup_path = xasprintf("/proc/%d/cgroup", pid);
	auto_free char *text = NULL;
	auto_free char *events = NULL;
	size_t length;

	assert_int_equal(read_file_at(AT_FDCWD, cgroup_path, 65536, &text, &length, NULL), 0);
	char *path = strstr(text, "0::");
	path[strcspn(path, "\n")] = '\0';
	const char *instance = strstr(path, strrchr(top, '/'));
	assert_non_null(instance);
	auto_free char *events_path = xasprintf("%s%s/cgroup.events", top, instance + strlen(strrchr(top, '/')));
	assert_int_equal(read_file_at(AT_FDCWD, events_path, 4096, &events, &length, NULL), 0);
	return strstr(events, "frozen 1") != NULL;
}

/* A live jail with a process that stays, frozen; a pidfd of it. */
static void freeze_guest(struct live *live, struct jail_client *owner, const char *marker, pid_t *ret_pid,
			 int *ret_pidfd)
{
	auto_free char *arguments = marked_sleep(marker);
	auto_free char *code = xasprintf(
		"setsid %s & until read -rd '' name </proc/$!/cmdline && [ \"$name\" = sleep ]; do :; done", arguments);

	live_begin(live, owner, "bash", (struct jail_limits){0});
	live_expect(live, code, JAIL_OK, "");
	*ret_pid = find_process(arguments);
	assert_true(*ret_pid > 0);
	*ret_pidfd = pidfd_open(*ret_pid, 0);
	assert_true(*ret_pidfd >= 0);
}

static void closed_jail_kills_its_frozen_guest(void **state)
{
	live_need(possible);
	struct service *service = *state;
	auto_live struct live live = {.client = NULL};
	auto_close int guest = -1;
	pid_t pid;

	freeze_guest(&live, service->client, ".1001", &pid, &guest);
	assert_true(is_frozen(service, pid));
	live_end(&live);
	assert_ends(guest);
}

static void client_vanishes(void **state)
{
	live_need(possible);
	struct service *service = *state;
	struct jail_client *other = NULL;
	auto_close int guest = -1;
	struct live live;
	pid_t pid;

	assert_int_equal(jail_client_connect(service->socket_path, &other, NULL), 0);
	freeze_guest(&live, other, ".1002", &pid, &guest);
	jail_client_free(other);
	assert_ends(guest);
	live.try.jail = NULL; /* went with its client */
	live_end(&live);
}

static void jailer_killed(void **state)
{
	live_need(possible);
	struct service *service = *state;
	auto_close int guest = -1;
	struct live live;
	pid_t pid;

	freeze_guest(&live, service->client, ".1003", &pid, &guest);
	kill(service->pid, SIGKILL);
	waitpid(service->pid, NULL, 0);
	assert_ends(guest);
	jail_client_free(service->client);
	live.try.jail = NULL;
	live_end(&live);
	/* The next one takes the place over. */
	service_start(service);
	assert_true(live_possible(service->client));
	auto_live struct live next = {.client = NULL};
	live_begin(&next, service->client, "bash", (struct jail_limits){0});
	live_expect(&next, "echo fine", JAIL_OK, "fine\n");
}

static int64_t resident(pid_t pid)
{
	auto_free char *path = xasprintf("/proc/%d/statm", pid);
	auto_free char *text = NULL;
	size_t length;
	long long pages;

	assert_int_equal(read_file_at(AT_FDCWD, path, 4096, &text, &length, NULL), 0);
	assert_int_equal(sscanf(text, "%*d %lld", &pages), 1);
	return pages * sysconf(_SC_PAGESIZE);
}

/* As many as the configuration allows, all frozen with something in them, and one more. */
static void a_hundred(void **state)
{
	live_need(possible);
	struct service *service = *state;
	auto_free struct live *lives = xcalloc(JAILS + 1, sizeof(*lives));
	auto_free char *fds = xasprintf("/proc/%d/fd", service->pid);

	assert_int_equal(jail_client_connect(service->socket_path, &client, NULL), 0);
	assert_true(live_runner(client, "bash")); /* versions are known then, and no probe has a jail */
	size_t before = count_entries(fds);
	int64_t memory = resident(service->pid);
	for (size_t i = 0; i < JAILS; i++) {
		live_begin(&lives[i], client, "bash", (struct jail_limits){0});
		live_expect(&lives[i], "sleep 1000.1004 & echo $! >/tmp/pid", JAIL_OK, "");
	}
	if (getuid() == 0)
		assert_in_range(count_entries(fds), before + JAILS, before + JAILS * FDS_A_JAIL);
	if (counts_memory)
		assert_true(resident(service->pid) - memory < (int64_t)JAILS * BYTES_A_JAIL);
	live_begin(&lives[JAILS], client, "bash", (struct jail_limits){0});
	live_ask(&lives[JAILS], "", NULL);
	assert_int_equal(jail_client_wait(client, lives[JAILS].try.jail, NULL), 0);
	assert_true(lives[JAILS].try.failed);
	assert_int_equal(lives[JAILS].try.err.code, ERR_BUSY);
	live_end(&lives[JAILS]);
	/* Each of them is still there. */
	for (size_t i = 0; i < JAILS; i++)
		live_expect(&lives[i], "kill -0 $(cat /tmp/pid) && echo alive", JAIL_OK, "alive\n");
	for (size_t i = 0; i < JAILS; i++)
		live_end(&lives[i]);
	auto_live struct live last = {.client = NULL};
	live_begin(&last, client, "bash", (struct jail_limits){0});
	live_expect(&last, "echo room", JAIL_OK, "room\n");
	live_end(&last);
	jail_client_free(steal(&client));
	int64_t until = 0; /* the last of them are being taken down */
	while (getuid() == 0 && count_entries(fds) > before + SLACK && patience_left(&until))
		;
	if (getuid() == 0)
		assert_in_range(count_entries(fds), 1, before + SLACK);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(closed_jail_kills_its_frozen_guest, setup, service_teardown),
		cmocka_unit_test_setup_teardown(client_vanishes, setup, service_teardown),
		cmocka_unit_test_setup_teardown(jailer_killed, setup, service_teardown),
		cmocka_unit_test_setup_teardown(a_hundred, setup, service_teardown),
	};

	return try_run(tests, argc, argv, NULL, NULL);
}
