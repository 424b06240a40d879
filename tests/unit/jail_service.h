/* jail_service.h - for tests: a jailer as a service on a socket in a directory of its own, with one connected client.
 */
#pragma once

#include "host_count.h"
#include "jail_try.h"

#include <dirent.h>
#include <spawn.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

extern char **environ;

struct service {
	char dir[64];
	char *socket_path, *config_path, *log_path;
	pid_t pid;
	struct jail_client *client;
};

static inline void service_start(struct service *service)
{
	auto_free char *program = try_jailer();
	char name[] = "sallyport-jailer", option[] = "--config";
	char *argv[] = {name, option, service->config_path, NULL};
	posix_spawn_file_actions_t actions;
	struct err err = ERR_INIT;

	unlink(service->socket_path);
	int watch = inotify_init1(IN_CLOEXEC);
	assert_true(inotify_add_watch(watch, service->dir, IN_CREATE) >= 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 2, service->log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_int_equal(posix_spawn(&service->pid, program, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	/* The socket is there before anybody accepts: connecting waits for it, and the first answer for the rest. */
	auto_close int jailer = pidfd_open(service->pid, 0);
	while (access(service->socket_path, F_OK)) {
		struct pollfd pollers[] = {{.fd = watch, .events = POLLIN}, {.fd = jailer, .events = POLLIN}};
		char events[4096];

		assert_true(poll(pollers, 2, PATIENCE_MS) > 0);
		if (pollers[1].revents)
			fail_msg("the jailer does not start: see %s", service->log_path);
		assert_true(read(watch, events, sizeof(events)) > 0);
	}
	close(watch);
	while (jail_client_connect(service->socket_path, &service->client, &err))
		if (waitpid(service->pid, NULL, WNOHANG))
			fail_msg("%s", err.text); /* between bind and listen */
}

/* Members for the runners without caches, which the Makefile makes; in the virtual machine there are only the others.
 */
static inline char *service_runners(void)
{
	auto_free char *folder = config_program_dir();
	auto_free char *runners = xasprintf("%s/runners", folder), *link = xasprintf("%s/npm", runners);
	auto_free char *modules = realpath(link, NULL); /* the jailer binds no links */

	return modules ? xasprintf("\"runners_dir\":\"%s\",\"modules_dir\":\"%s\",", runners, modules) : xstrdup("");
}

static inline int service_setup(void **state)
{
	struct service *service = xcalloc(1, sizeof(*service));
	auto_free char *runners = service_runners();

	snprintf(service->dir, sizeof(service->dir), "/tmp/test_jail_host.XXXXXX");
	assert_non_null(mkdtemp(service->dir));
	chmod(service->dir, 0755);
	service->socket_path = xasprintf("%s/socket", service->dir);
	service->config_path = xasprintf("%s/config.json", service->dir);
	service->log_path = xasprintf("%s/log", service->dir);
	FILE *file = fopen(service->config_path, "we");
	fprintf(file, "{\"jailer\":{\"socket\":\"%s\",%s%s}," TRY_LIMITS "}", service->socket_path, runners,
		try_jailer_members());
	fclose(file);
	service_start(service);
	*state = service;
	return 0;
}

static inline int service_teardown(void **state)
{
	struct service *service = *state;
	auto_free char *answers = xasprintf("%s.answers", service->socket_path);

	jail_client_free(service->client);
	if (service->pid > 0) {
		kill(service->pid, SIGTERM);
		waitpid(service->pid, NULL, 0);
	}
	unlink(service->socket_path);
	unlink(answers);
	unlink(service->config_path);
	unlink(service->log_path);
	free(service->log_path);
	rmdir(service->dir);
	free(service->socket_path);
	free(service->config_path);
	free(service);
	return 0;
}

/* Directory of the instance's groups, in the memory hierarchy where there are several. True: it is v2, where the jailer
 * is in a child. */
static inline bool service_cgroup(const struct service *service, char *ret, size_t size)
{
	auto_free char *path = xasprintf("/proc/%d/cgroup", service->pid);
	auto_free char *text = NULL;
	struct json_object *info = NULL;
	size_t length;
	char own[256];

	assert_int_equal(jail_client_info(service->client, &info, NULL), 0); /* its answer says that it has started */
	int64_t instance = json_object_get_int64(json_get(info, "instance", json_type_int));
	snprintf(ret, size, "/sys/fs/cgroup/memory/sallyport/%lld", (long long)instance);
	bool v2 = streq(json_get_string(info, "cgroup"), "v2");
	json_object_put(info);
	if (!v2)
		return false;
	assert_int_equal(read_file_at(AT_FDCWD, path, 65536, &text, &length, NULL), 0);
	assert_int_equal(sscanf(strstr(text, "0::/"), "0::/%255s", own), 1);
	char *leaf = strstr(own, "/jailer");
	assert_non_null(leaf);
	*leaf = '\0';
	snprintf(ret, size, "/sys/fs/cgroup/%s", own);
	return true;
}

/* The jailer's instance in the v2 hierarchy; its children are the groups. */
static inline char *service_freezer(const struct service *service)
{
	auto_free char *own_path = xasprintf("/proc/%d/cgroup", service->pid);
	auto_free char *own = NULL;
	auto_free char *mounts = NULL;
	char mount[512] = "", *state;
	size_t length;

	assert_int_equal(read_file_at(AT_FDCWD, own_path, 65536, &own, &length, NULL), 0);
	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/mounts", 1 << 20, &mounts, &length, NULL), 0);
	for (char *line = strtok_r(mounts, "\n", &state); line && !mount[0]; line = strtok_r(NULL, "\n", &state))
		if (sscanf(line, "%*s %511s cgroup2 ", mount) != 1 || !strstr(line, " cgroup2 "))
			mount[0] = '\0';
	char *path = strstr(own, "0::");
	assert_non_null(path);
	path[strcspn(path, "\n")] = '\0';
	char *leaf = strstr(path, "/jailer");
	if (leaf)
		*leaf = '\0';
	return xasprintf("%s%s", mount, path + 3);
}

/* What a guest is found by: another program of this machine, another run of the same test among them, sleeps for
 * another time. */
static inline char *marked_sleep(const char *marker)
{
	return xasprintf("sleep 1000%s%07d", marker,
			 getpid()); /* as long for every pid: none is the beginning of another */
}

/* Host pid of the process whose arguments contain the marker; -1. */
static inline pid_t find_process(const char *marker)
{
	DIR *list = opendir("/proc");
	pid_t found = -1;

	for (struct dirent *entry; list && found < 0 && (entry = readdir(list));) {
		uint64_t pid;
		char path[64], text[4096];

		if (parse_u64(entry->d_name, 1, INT32_MAX, &pid) || (pid_t)pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%llu/cmdline", (unsigned long long)pid);
		auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		for (ssize_t i = 0; i < n; i++)
			if (text[i] == '\0')
				text[i] = ' ';
		if (n > 0 && (text[n] = '\0', strstr(text, marker)))
			found = (pid_t)pid;
	}
	closedir(list);
	return found;
}

static inline void assert_ends(int pidfd)
{
	struct pollfd poller = {.fd = pidfd, .events = POLLIN};

	if (poll(&poller, 1, PATIENCE_MS) != 1)
		fail_msg("a guest is still alive");
}

/* One ordinary program: it works (still). */
static inline void service_run_ok(struct jail_client *client)
{
	auto_try struct try try = {.jail = NULL};
	const struct jail_spec spec = {.runner = "bash"};

	try_program(client, &try, &spec, "echo fine");
	if (try.failed)
		fail_msg("%s", try.err.text);
	assert_int_equal(try.result.verdict, JAIL_OK);
	assert_string_equal(try.out, "fine\n");
}

/* A connection past the client's library. */
static inline int service_raw_connect(const struct service *service)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", service->socket_path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}
