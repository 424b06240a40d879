/*
 * test_jail_host.c - the host's side of the jail: a jailer as a service, clients that vanish or send rubbish, a jailer
 * that is killed. After each of them the host is looked at: processes, cgroups, the other clients.
 *
 * A guest is found on the host by a marker in its command line, and its end is waited for with a pidfd: no sleeping.
 */
#include "gauged.h"
#include "jail_service.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "jail/cgroup/cgroup.h"
#include "jail/client/wire_fd.h"
#include "jail/idmap.h"

/* Of the jailer's memory in 500 jails; sanitizers keep what was freed, up to 256 MB. */
#ifdef __SANITIZE_ADDRESS__
#define GROWTH_KB (512 << 10)
#else
#define GROWTH_KB 512
#endif
#define SLACK 20 /* by how much the least of a window may differ: what jails hold that are being made or taken down */
#define WINDOW                                                                                                         \
	(CGROUP_GIVEN_MAX + 2) /* jails: where no moment is idle, the groups of so many dead ones are removed at once  \
				*/
/* Jails between two windows: had each left one thing behind, it were more than the slack. */
#define GROWTH_RUNS (try_patience() > 1 ? SLACK : 500)

/* A guest that runs for ever, leaves its session and is found by the marker; *ret_pidfd is of its grandchild. */
static void start_guest(struct jail_client *client, struct try *try, const char *marker, int *ret_pidfd)
{
	auto_free char *arguments = marked_sleep(marker);
	auto_free char *code = xasprintf("setsid %s &\nwhile echo ready; do sleep 0.3; done\n", arguments);
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	struct jail_spec spec = {.runner = "bash", .label = marker};

	try_begin(client, try, &spec);
	struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try->out_fd, .stderr_fd = try->error_fd};
	assert_int_equal(jail_run(try->jail, &program, NULL), 0);
	pid_t pid = -1;
	while (pid < 0) {
		assert_true(try_hear(client, PATIENCE_MS));
		if (try->outputs)
			pid = find_process(arguments);
	}
	*ret_pidfd = pidfd_open(pid, 0);
	assert_true(*ret_pidfd >= 0);
}

static size_t count_directories(const char *path)
{
	DIR *list = opendir(path);
	size_t n = 0;

	for (struct dirent *entry; list && (entry = readdir(list));)
		n += entry->d_type == DT_DIR && entry->d_name[0] != '.';
	if (list)
		closedir(list);
	return n;
}

/* -------- clients ------------------------------------------------------------------------------------- */
static void client_vanishes(void **state)
{
	struct service *service = *state;
	struct jail_client *other = NULL;
	auto_try struct try ours = {.jail = NULL};
	auto_try struct try theirs = {.jail = NULL};
	auto_close int our_guest = -1;
	auto_close int their_guest = -1;

	assert_int_equal(jail_client_connect(service->socket_path, &other, NULL), 0);
	start_guest(service->client, &ours, ".0001", &our_guest);
	start_guest(other, &theirs, ".0002", &their_guest);
	jail_client_free(other);
	assert_ends(their_guest);
	struct pollfd poller = {.fd = our_guest, .events = POLLIN};
	assert_int_equal(poll(&poller, 1, 0), 0);
	jail_cancel(ours.jail);
	try_end(service->client, &ours);
	assert_int_equal(ours.result.verdict, JAIL_CX);
	assert_ends(our_guest);
	close(theirs.out_fd);
	close(theirs.error_fd);
}

static void rubbish_ends_only_its_own_connection(void **state)
{
	struct service *service = *state;
	static const struct {
		const char *packet;
		const char *text;
	} cases[] = {
		{"", NULL},
		{"not json", "message:"},
		{"[]", "must be an object"},
		{"{}", "verb"},
		{"{\"v\":2,\"verb\":\"info\"}", "v: must be"},
		{"{\"v\":1,\"verb\":\"dance\"}", "verb"},
		{"{\"v\":1,\"verb\":\"info\",\"more\":1}", "more"},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":1}", "runner"},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":-1,\"runner\":\"bash\"}", "jail"},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":1,\"runner\":\"bash\",\"limits\":{\"wall_us\":-5}}",
		 "limits.wall_us"},
		{"{\"v\":1,\"verb\":\"open\",\"jail\":1,\"runner\":\"bash\",\"limits\":{\"wall_us\":"
		 "9223372036854775807}}",
		 "limits.wall_us"},
		{"{\"v\":1,\"verb\":\"fill\",\"jail\":1,\"files\":[{\"mode\":420,\"mtime_us\":0}]}", "carries"},
		{"{\"v\":1,\"verb\":\"fill\",\"jail\":1,\"files\":[{\"mode\":2541,\"mtime_us\":0}]}", "files[0].mode"},
		{"{\"v\":1,\"verb\":\"run\",\"jail\":1,\"args\":0,\"env\":0,\"stdin\":false,\"stdout\":false,"
		 "\"stderr\":false}",
		 "carries"},
		{"{\"v\":1,\"v\":1,\"verb\":\"info\"}", "message:"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_close int fd = service_raw_connect(service);
		char answer[4096];
		ssize_t n = 1;

		assert_true(send(fd, cases[i].packet, strlen(cases[i].packet), MSG_NOSIGNAL) >= 0);
		n = recv(fd, answer, sizeof(answer) - 1, 0);
		if (cases[i].text) {
			assert_true(n > 0);
			answer[n] = '\0';
			if (!strstr(answer, "\"event\":\"error\"") || !strstr(answer, cases[i].text))
				fail_msg("%s: %s", cases[i].packet, answer);
			n = recv(fd, answer, sizeof(answer) - 1, 0);
		}
		assert_int_equal(n, 0); /* and the connection is over */
	}
	service_run_ok(service->client);
}

/* A packet that is too long, and one with too many descriptors. */
static void too_much(void **state)
{
	struct service *service = *state;
	auto_free char *large = xcalloc(1, JAIL_WIRE_MAX + 10);
	int fds[WIRE_FD_LIMIT];
	char answer[4096];
	static const char request[] = "{\"v\":1,\"verb\":\"info\"}";

	memset(large, ' ', JAIL_WIRE_MAX + 10);
	auto_close int one = service_raw_connect(service);
	assert_int_equal(send(one, large, JAIL_WIRE_MAX + 10, MSG_NOSIGNAL), JAIL_WIRE_MAX + 10);
	ssize_t n = recv(one, answer, sizeof(answer) - 1, 0);
	assert_true(n > 0);
	answer[n] = '\0';
	assert_non_null(strstr(answer, "longer than 65536 bytes"));
	auto_close int two = service_raw_connect(service);
	for (size_t i = 0; i < WIRE_FD_LIMIT; i++)
		fds[i] = 0;
	assert_int_equal(wire_fd_send(two, request, sizeof(request) - 1, fds, WIRE_FD_LIMIT), 0);
	n = recv(two, answer, sizeof(answer) - 1, 0);
	assert_true(n > 0);
	answer[n] = '\0';
	assert_non_null(strstr(answer, "descriptors"));
	service_run_ok(service->client);
}

static void strangers_are_refused(void **state)
{
	struct service *service = *state;
	int status;

	if (getuid()) {
		print_message("another user can only be tried as root: skipped\n");
		skip();
	}
	pid_t pid = fork();
	if (pid == 0) {
		struct jail_client *client = NULL;
		struct json_object *info = NULL;
		struct err err = ERR_INIT;

		if (setgid(65534) || setuid(65534) || jail_client_connect(service->socket_path, &client, &err))
			_exit(1);
		_exit(jail_client_info(client, &info, &err) == -ERR_DENIED && strstr(err.text, "jailer.allowed_users")
			      ? 0
			      : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	service_run_ok(service->client);
}

/* More steps than a jail takes, and a jail for each number: bounded, in words. */
static void jails_and_steps_are_bounded(void **state)
{
	struct service *service = *state;
	struct jail_client *client = NULL;
	struct try tries[70] = {{.jail = NULL}};
	struct jail_spec spec = {.runner = "bash"};

	assert_int_equal(jail_client_connect(service->socket_path, &client, NULL), 0);
	for (size_t i = 0; i < 70; i++)
		try_begin(client, &tries[i], &spec);
	while (!tries[69].failed) /* they are opened or refused in their order, and what is refused is told at once */
		assert_true(try_hear(client, PATIENCE_MS));
	for (size_t i = 0; i < 70; i++) {
		assert_int_equal(tries[i].failed,
				 i >= 64); /* the jailer's own, which ask for versions, are not among them */
		if (tries[i].failed &&
		    (tries[i].err.code != ERR_BUSY || !strstr(tries[i].err.text, "jails are in use")))
			fail_msg("%s", tries[i].err.text);
	}
	jail_client_free(client);
	for (size_t i = 0; i < 70; i++) {
		close(tries[i].out_fd);
		close(tries[i].error_fd);
		try_clear(&tries[i]);
	}
	service_run_ok(service->client);
}

static long anonymous_kb(pid_t pid)
{
	auto_free char *path = xasprintf("/proc/%d/status", pid);
	auto_free char *text = NULL;
	size_t length;

	assert_int_equal(read_file_at(AT_FDCWD, path, 65536, &text, &length, NULL), 0);
	const char *line = strstr(text, "RssAnon:");
	return line ? strtol(line + 8, NULL, 10) : 0;
}

struct held {
	size_t fds, groups;
	long anonymous_kb;
};

/* The least that the jailer and its folder of groups hold after some jails, each: two are always made ahead, in
 * whatever state they are. */
static void least_held(struct service *service, const char *group, int jails, struct held *ret)
{
	auto_free char *fds = xasprintf("/proc/%d/fd", service->pid);

	*ret = (struct held){.fds = SIZE_MAX, .groups = SIZE_MAX, .anonymous_kb = LONG_MAX};
	for (int i = 0; i < jails; i++) {
		service_run_ok(service->client);
		const struct held now = {count_entries(fds), count_entries(group), anonymous_kb(service->pid)};

		ret->fds = MIN(ret->fds, now.fds);
		ret->groups = MIN(ret->groups, now.groups);
		ret->anonymous_kb = MIN(ret->anonymous_kb, now.anonymous_kb);
	}
}

/* Jail after jail: no descriptor, process, group or memory stays behind. */
static void no_growth(void **state)
{
	struct service *service = *state;
	struct held before, after;
	char group[512];

	if (getuid()) {
		print_message("only root sees the descriptors of the jailer: skipped\n");
		skip(); /* jumps: nothing may be held here */
	}
	service_cgroup(service, group, sizeof(group));
	least_held(service, group, WINDOW, &before); /* until it has all that it keeps */
	least_held(service, group, WINDOW, &before);
	for (int i = 0; i < GROWTH_RUNS; i++)
		service_run_ok(service->client);
	least_held(service, group, WINDOW, &after);
	assert_true(before.fds > 0 && before.groups > 0 && before.anonymous_kb > 0);
	assert_in_range(after.fds, 1, before.fds + SLACK);
	assert_in_range(after.groups, 1, before.groups + SLACK);
	assert_true(after.anonymous_kb < before.anonymous_kb + GROWTH_KB);
}

/* The id-map helper ends when it sees that the jailer has: until then a connection is made, and closed by its end. */
static void assert_nobody_listens(const struct service *service)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char byte;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", service->socket_path);
	for (int i = 0; i < 1000; i++) {
		auto_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
			return;
		assert_true(recv(fd, &byte, 1, 0) <= 0);
	}
	fail_msg("somebody still listens");
}

/* -------- the jailer ---------------------------------------------------------------------------------- */
static void ordered_stop(void **state)
{
	struct service *service = *state;
	auto_try struct try try = {.jail = NULL};
	auto_close int guest = -1;
	char group[512];
	int status;

	bool v2 = service_cgroup(service, group, sizeof(group));
	start_guest(service->client, &try, ".0003", &guest);
	bool known = v2 || (getuid() == 0 &&
			    access(group, F_OK) == 0); /* a user's may be elsewhere, the same path may be root's */
	size_t left = v2 ? 1 : 0;                                     /* v2: the one that the jailer itself is in */
	if (known)
		assert_true(count_directories(group) > left);
	kill(service->pid, SIGTERM);
	assert_int_equal(waitpid(service->pid, &status, 0), service->pid);
	service->pid = 0;
	assert_int_equal(status, 0);
	assert_ends(guest);
	if (known)
		assert_int_equal(count_directories(group), left);
	assert_nobody_listens(service);
	/* The client hears of it. */
	assert_int_equal(jail_client_wait(service->client, try.jail, NULL), -ERR_UNAVAILABLE);
	assert_true(try.done);
	assert_int_equal(try.result.verdict, JAIL_XX);
	close(try.out_fd);
	close(try.error_fd);
}

/* A run goes on, and the id-map helper accepts other clients. */
static void hangup_ends_nothing(void **state)
{
	struct service *service = *state;
	auto_try struct try try = {.jail = NULL};
	auto_close int guest = -1;
	auto_free char *tasks = xasprintf("/proc/%d/task/%d/children", service->pid, service->pid);
	auto_free char *children = NULL, *log = NULL;
	struct jail_client *other = NULL;
	char *state_of = NULL;
	size_t length;

	start_guest(service->client, &try, ".0009", &guest);
	assert_int_equal(read_file_at(AT_FDCWD, tasks, 65536, &children, &length, NULL), 0);
	for (char *pid = strtok_r(children, " ", &state_of); pid; pid = strtok_r(NULL, " ", &state_of))
		kill((pid_t)strtoll(pid, NULL, 10), SIGHUP);
	kill(service->pid, SIGHUP);
	do {
		free(log);
		assert_int_equal(read_file_at(AT_FDCWD, service->log_path, 1 << 20, &log, &length, NULL), 0);
	} while (!strstr(log, "SIGHUP is ignored"));
	assert_int_equal(waitpid(service->pid, NULL, WNOHANG), 0);
	assert_int_equal(jail_client_connect(service->socket_path, &other, NULL), 0);
	service_run_ok(other);
	jail_client_free(other);
	jail_cancel(try.jail);
	assert_int_equal(jail_client_wait(service->client, try.jail, NULL), 0);
	assert_int_equal(try.result.verdict, JAIL_CX);
	assert_ends(guest);
	close(try.out_fd);
	close(try.error_fd);
}

/* Kills the jailer in the middle of a run and starts the next one; tells whether that found groups to clear, and said
 * so. */
static void kill_and_restart(struct service *service, bool *ret_left, bool *ret_said)
{
	auto_try struct try try = {.jail = NULL};
	auto_close int guest = -1;
	auto_free char *log = NULL;
	size_t length;
	char group[512];
	bool v2 = service_cgroup(service, group, sizeof(group));
	bool known = v2 || (getuid() == 0 && access(group, F_OK) == 0);

	start_guest(service->client, &try, ".0004", &guest);
	pid_t first = service->pid;
	auto_close int jailer = pidfd_open(first, 0);
	kill(first, SIGKILL);
	assert_ends(jailer);
	waitpid(first, NULL, 0);
	assert_ends(guest);
	assert_int_equal(jail_client_wait(service->client, try.jail, NULL), -ERR_UNAVAILABLE);
	assert_int_equal(try.result.verdict, JAIL_XX);
	assert_string_equal(try.result.message, "The jailer ended while the program was running.");
	jail_client_free(service->client);
	*ret_left = !known || count_directories(group) > 0;
	unlink(service->log_path);
	service_start(service);
	service_run_ok(service->client);
	assert_int_equal(read_file_at(AT_FDCWD, service->log_path, 1 << 20, &log, &length, NULL), 0);
	*ret_said = strstr(log, "removed the cgroups of a jailer that was killed") != NULL;
	close(try.out_fd);
	close(try.error_fd);
}

/* The next one takes the place over, clears what is there and says so: unless another jailer of this machine, started
 * between the two, was faster. Each kill is looked at in the same way; those that nobody came between show it. */
static void killed_jailer_is_cleared_up_after(void **state)
{
	bool left = false, said = false;
	int64_t until = 0;

	do
		kill_and_restart(*state, &left, &said);
	while (!(left && said) && patience_left(&until));
	assert_true(left && said);
}

static void second_service(void **state)
{
	struct service *service = *state;
	auto_free char *program = try_jailer();
	char name[] = "sallyport-jailer", option[] = "--config";
	char *argv[] = {name, option, service->config_path, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	assert_int_equal(posix_spawn(&pid, program, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 1); /* another jailer listens there */
	service_run_ok(service->client);
}

/* A socket whose last holder is about to end (the id-map helper of a killed jailer) is nobody's; one that is held is
 * somebody's. */
static void dying_listener(void **state)
{
	struct service *service = *state;
	auto_free char *path = xasprintf("%s/other", service->dir);
	struct err err = ERR_INIT;
	int status;

	auto_close int first = -1;
	auto_close int second = -1;
	assert_int_equal(idmap_listen(path, &first, &err), 0);
	assert_int_equal(idmap_listen(path, &second, &err), -ERR_CONFLICT);
	assert_non_null(strstr(err.text, "another jailer listens"));
	close(accept(first, NULL, NULL)); /* of that try */
	pid_t holder = fork();
	if (holder == 0)
		_exit(accept(first, NULL, NULL) < 0);
	close_pointer(&first);
	assert_int_equal(idmap_listen(path, &second, &err), 0);
	assert_int_equal(waitpid(holder, &status, 0), holder);
	assert_int_equal(status, 0);
	unlink(path);
}

/* What it is on the host after it has started: nobody. */
static void jailer_of_root_becomes_nobody(void **state)
{
	struct service *service = *state;
	auto_free char *text = NULL;
	size_t length;
	unsigned uid = 0;

	if (getuid()) {
		print_message("not started as root: skipped\n");
		skip(); /* jumps: nothing may be held here */
	}
	auto_free char *path = xasprintf("/proc/%d/status", service->pid);
	service_run_ok(service->client); /* it has started */
	assert_int_equal(read_file_at(AT_FDCWD, path, 65536, &text, &length, NULL), 0);
	assert_int_equal(sscanf(strstr(text, "\nUid:"), "\nUid: %u", &uid), 1);
	assert_true(uid >= 0x70000000u);
	assert_non_null(strstr(text, "NoNewPrivs:\t1"));
	auto_free char *link = xasprintf("/proc/%d/root/etc/shadow", service->pid);
	assert_int_equal(access(link, F_OK), -1); /* the host's files are out of its reach */
}

static void runners_have_versions_and_libraries(void **state)
{
	struct service *service = *state;
	struct json_object *list = NULL;
	size_t found = 0;

	assert_int_equal(jail_client_runners(service->client, &list, NULL), 0);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *runner = json_object_array_get_idx(list, i);
		const char *name = json_get_string(runner, "name"), *version = json_get_string(runner, "version");

		if (streq(name, "python")) {
			assert_int_equal(strncmp(version, "Python 3.", 9), 0);
			assert_true(json_object_array_length(json_get(runner, "libraries", json_type_array)) > 10);
			found++;
		}
		if (streq(name, "bash")) {
			assert_non_null(strstr(version, "GNU bash"));
			found++;
		}
	}
	assert_int_equal(found, 2);
	json_object_put(list);
}

#define SERVED(test) cmocka_unit_test_setup_teardown(test, service_setup, service_teardown)

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		SERVED(client_vanishes),
		SERVED(rubbish_ends_only_its_own_connection),
		SERVED(too_much),
		SERVED(strangers_are_refused),
		SERVED(jails_and_steps_are_bounded),
		SERVED(no_growth),
		SERVED(ordered_stop),
		SERVED(hangup_ends_nothing),
		GAUGED(killed_jailer_is_cleared_up_after, service_setup, service_teardown, 1),
		SERVED(second_service),
		SERVED(dying_listener),
		SERVED(jailer_of_root_becomes_nobody),
		SERVED(runners_have_versions_and_libraries),
	};

	return try_run(tests, argc, argv, NULL, NULL);
}
