/*
 * jail_faults.h - for tests that let steps of the jail fail: strace, attached to a running process and what it starts,
 * has system calls answer with an error; and what a jailer has on the host, to be compared before and after.
 */
#pragma once

#include "jail_service.h"

#include <signal.h>

#include "jail/cell/cell.h"
#include "jail/init/landlock.h"

struct host {
	size_t children, fds, groups, frozen, mounts;
};

/* -------- the host ------------------------------------------------------------------------------------ */
static inline size_t count_children(pid_t parent)
{
	DIR *list = opendir("/proc");
	size_t n = 0;

	for (struct dirent *entry; list && (entry = readdir(list));) {
		char path[300], text[512];
		int of = 0;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		auto_close int fd =
			entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
		if (got <= 0)
			continue;
		text[got] = '\0';
		char *behind = strrchr(text, ')');
		n += behind && sscanf(behind + 1, " %*c %d", &of) == 1 && of == parent;
	}
	closedir(list);
	return n;
}

static inline struct host host_look(const struct service *service)
{
	struct json_object *info = NULL;
	char path[128];
	struct host host;

	/* A round trip: the jailer has done what was before it. */
	assert_int_equal(jail_client_info(service->client, &info, NULL), 0);
	snprintf(path, sizeof(path), "/sys/fs/cgroup/memory/sallyport/%lld",
		 (long long)json_object_get_int64(json_get(info, "instance", json_type_int)));
	json_object_put(info);
	host.groups = count_entries(path);
	snprintf(path, sizeof(path), "/proc/%d/fd", service->pid);
	host.fds = count_entries(path);
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", service->pid);
	host.mounts = count_lines(path);
	assert_true(host.mounts > 0);
	host.children = count_children(service->pid);
	auto_free char *freezer = service_freezer(service);
	host.frozen = count_entries(freezer);
	return host;
}

static inline bool host_at_most(const struct host *now, const struct host *most)
{
	return now->children <= most->children && now->fds <= most->fds && now->groups <= most->groups &&
	       now->mounts <= most->mounts && now->frozen <= most->frozen;
}

static inline void host_assert_idle(const struct service *service, const struct host *idle)
{
	struct host after;
	int64_t until = 0;

	while (after = host_look(service), !host_at_most(&after, idle))
		if (!patience_left(&until))
			fail_msg("left behind: children %zu -> %zu, descriptors %zu -> %zu, groups %zu -> %zu, frozen "
				 "groups %zu -> %zu, "
				 "mounts %zu -> %zu",
				 idle->children, after.children, idle->fds, after.fds, idle->groups, after.groups,
				 idle->frozen, after.frozen, idle->mounts, after.mounts);
}

/* Until there are the id-map helper and the jails that are made ahead, and nothing more. -1: never. What is looked at
 * first may be from before the last of them was made, and what is looked at last from after that: only what has been
 * the same twice holds. */
static inline int host_await_idle(const struct service *service, struct host *ret)
{
	struct host before = {.children = 0};
	int64_t until = 0;

	while (*ret = host_look(service),
	       ret->children != 1 + CELLS_PARKED || memcmp(ret, &before, sizeof(before)) != 0) {
		before = *ret;
		if (!patience_left(&until))
			return -1;
	}
	return 0;
}

/* -------- strace -------------------------------------------------------------------------------------- */
/* Fails the calls `when` (as strace has it, of each process) of this pid and of what it starts; path NULL: any. */
static inline pid_t strace_attach(pid_t traced, const char *call, const char *when, const char *path)
{
	auto_free char *inject = xasprintf("inject=%s:error=ENOMEM:when=%s", call, when);
	char program[] = "strace", follow[] = "-f", attach[] = "-p", expression[] = "-e", out[] = "-o",
	     nowhere[] = "/dev/null";
	char only[] = "-P", number[16], said[4096];
	auto_free char *place = path ? xstrdup(path) : NULL;
	char *argv[] = {program, follow, out, nowhere, expression, inject, attach, number, place ? only : NULL,
			place,   NULL};
	posix_spawn_file_actions_t actions;
	size_t n = 0;
	pid_t pid;
	int ends[2];

	snprintf(number, sizeof(number), "%d", traced);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
	assert_int_equal(posix_spawnp(&pid, program, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	/* It says so when it has hold of the process. */
	do {
		ssize_t got = read(ends[0], said + n, sizeof(said) - 1 - n);

		if (got <= 0)
			fail_msg("strace: %.*s", (int)n, said);
		n += (size_t)got;
		said[n] = '\0';
	} while (!strstr(said, "attached"));
	/* Its end of the pipe stays open until it ends: what it says later must not block or kill it. */
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	return pid;
}

static inline void strace_detach(pid_t pid)
{
	kill(pid, SIGINT);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* -------- where they can be made ---------------------------------------------------------------------- */
static inline bool faults_possible(void)
{
	return getuid() == 0 && access("/sys/fs/cgroup/memory", F_OK) == 0;
}

static inline bool faults_called(const char *call)
{
	return !str_starts(call, "landlock") ||
	       landlock_abi() >= LANDLOCK_ABI_LEAST; /* not where the kernel has none */
}

static inline void faults_skip(void **state)
{
	(void)state;
	print_message("only root may trace the jailer, and cgroup v1 is looked at: skipped\n");
	skip();
}

static inline int faults_skipped(void)
{
	const struct CMUnitTest none[] = {cmocka_unit_test(faults_skip)};

	return cmocka_run_group_tests(none, NULL, NULL);
}
