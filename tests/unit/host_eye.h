/*
 * host_eye.h - for tests of the jail: what the host looks like, as text, before and after a probe.
 *
 * Only what a quiet jailer keeps as it is: the kinds of processes below it, the mounts of its namespace, its
 * descriptors and groups (up to those of the jails that it makes ahead), files and settings of the host that a guest
 * would like to change, and things named PROBE_MARK. Other programs of the machine come and go: they are not looked at.
 * What this account may not see is empty on both sides.
 */
#pragma once

#include "jail_service.h"

#include <sys/statvfs.h>

#include "tests/probe/probe.h"

#define EYE_SLACK 32  /* descriptors and groups of jails that are made ahead or just being taken apart */
#define EYE_TEXT  (1 << 20)

struct eye {
	struct buf text;
	size_t descriptors, groups, processes;
};

static inline void eye_clear(struct eye *eye)
{
	buf_clear(&eye->text);
}
#define auto_eye __attribute__((cleanup(eye_clear)))

static inline void eye_add_file(struct eye *eye, const char *path)
{
	auto_free char *text = NULL;
	size_t length;

	if (read_file_at(AT_FDCWD, path, EYE_TEXT, &text, &length, NULL) == 0)
		buf_printf(&eye->text, "%s: %s\n", path, text);
}

/* Asks for each process below `pid`, parents first, until the answer is true: that process. 0: it never was. */
static inline pid_t eye_find(pid_t pid, bool (*is)(void *arg, const char *comm), void *arg)
{
	auto_free char *path = xasprintf("/proc/%d/task/%d/children", pid, pid);
	auto_free char *children = NULL;
	pid_t found = 0;
	char *state;
	size_t length;
	uint64_t number;

	if (read_file_at(AT_FDCWD, path, EYE_TEXT, &children, &length, NULL))
		return 0;
	for (char *child = strtok_r(children, " ", &state); child && !found; child = strtok_r(NULL, " ", &state)) {
		auto_free char *comm_path = xasprintf("/proc/%s/comm", child);
		auto_free char *comm = NULL;

		if (read_file_at(AT_FDCWD, comm_path, 256, &comm, &length, NULL) ||
		    parse_u64(child, 1, INT32_MAX, &number))
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		found = is(arg, comm) ? (pid_t)number : eye_find((pid_t)number, is, arg);
	}
	return found;
}

/* Names of processes, each once; `seen` has them with blanks around. Jails that are made ahead are being made at any
 * time: their process 1 is called like the jailer until it says otherwise. */
static const char *const eye_ahead[] = {"init", "sallyport-jaile"};
struct eye_names {
	struct buf seen;
	size_t processes;
};

static inline bool eye_note(void *arg, const char *comm)
{
	struct eye_names *names = arg;
	auto_free char *word = xasprintf(" %s ", comm);

	names->processes++;
	for (size_t i = 0; i < ARRAY_SIZE(eye_ahead); i++)
		if (streq(comm, eye_ahead[i]))
			return false;
	if (!strstr(names->seen.data, word))
		buf_puts(&names->seen, word);
	return false;
}

static inline void eye_files(struct eye *eye, const char *jailer)
{
	const char *const files[] = {"/usr/bin/env",
				     "/usr/bin/python3",
				     "/bin/sh",
				     "/etc/passwd",
				     "/etc/shadow",
				     "/etc/hosts",
				     "/etc",
				     "/usr",
				     "/",
				     "/dev/null",
				     "/dev/zero",
				     "/lib64/ld-linux-x86-64.so.2",
				     jailer};
	const char *const folders[] = {"/tmp", "/dev/shm", "/var/tmp", "/run", "/", "/dev/mqueue"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct stat st;

		/* A device is written to all the time, and /etc by others: who they belong to is what must not change.
		 */
		if (stat(files[i], &st) == 0)
			buf_printf(&eye->text, "%s: mode %o owner %d:%d size %lld modified %lld.%09ld\n", files[i],
				   st.st_mode, st.st_uid, st.st_gid, (long long)(S_ISREG(st.st_mode) ? st.st_size : 0),
				   (long long)(S_ISREG(st.st_mode) ? st.st_mtim.tv_sec : 0),
				   S_ISREG(st.st_mode) ? st.st_mtim.tv_nsec : 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		DIR *list = opendir(folders[i]);

		for (struct dirent *entry; list && (entry = readdir(list));)
			if (str_starts(entry->d_name, PROBE_MARK) || str_starts(entry->d_name, "core"))
				buf_printf(&eye->text, "%s/%s\n", folders[i], entry->d_name);
		if (list)
			closedir(list);
	}
}

static inline void eye_settings(struct eye *eye)
{
	static const char *const settings[] = {"kernel/core_pattern",
					       "kernel/hostname",
					       "kernel/domainname",
					       "kernel/modprobe",
					       "kernel/sysrq",
					       "kernel/shmmax",
					       "kernel/msgmax",
					       "kernel/sem",
					       "kernel/randomize_va_space",
					       "fs/suid_dumpable",
					       "fs/protected_symlinks",
					       "fs/mqueue/queues_max",
					       "net/ipv4/ip_forward",
					       "net/ipv4/ping_group_range",
					       "net/core/somaxconn",
					       "vm/overcommit_memory",
					       "vm/swappiness",
					       "vm/mmap_min_addr",
					       "user/max_user_namespaces"};
	static const char *const objects[] = {"shm", "sem", "msg"};
	auto_free char *key = xasprintf(" %d ", PROBE_KEY);

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		auto_free char *path = xasprintf("/proc/sys/%s", settings[i]);

		eye_add_file(eye, path);
	}
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		auto_free char *path = xasprintf("/proc/sysvipc/%s", objects[i]);
		auto_free char *text = NULL;
		size_t length;

		if (read_file_at(AT_FDCWD, path, EYE_TEXT, &text, &length, NULL) == 0 && strstr(text, key))
			buf_printf(&eye->text, "a System V object of the probes in %s\n", path);
	}
	auto_free char *sockets = NULL;
	size_t length;
	if (read_file_at(AT_FDCWD, "/proc/net/unix", EYE_TEXT, &sockets, &length, NULL) == 0 &&
	    strstr(sockets, "@" PROBE_MARK "-"))
		buf_puts(&eye->text, "an abstract socket of the probes\n");
}

static inline size_t eye_groups(const struct service *service)
{
	char group[512];

	service_cgroup(service, group, sizeof(group));
	return count_entries(group);
}

static inline void eye_look(const struct service *service, struct eye *ret)
{
	auto_free char *mounts = xasprintf("/proc/%d/mountinfo", service->pid);
	auto_free char *descriptors = xasprintf("/proc/%d/fd", service->pid);
	auto_free char *jailer = try_jailer();
	struct eye_names names = {0};

	buf_init(&ret->text, EYE_TEXT);
	buf_init(&names.seen, 4096);
	eye_find(service->pid, eye_note, &names);
	buf_printf(&ret->text, "processes:%s\n", names.seen.data);
	buf_clear(&names.seen);
	ret->processes = names.processes;
	eye_add_file(ret, mounts);
	eye_files(ret, jailer);
	eye_settings(ret);
	ret->descriptors = count_entries(descriptors);
	ret->groups = eye_groups(service);
}

static inline bool eye_same(const struct eye *before, const struct eye *after)
{
	return streq(before->text.data, after->text.data) && after->descriptors <= before->descriptors + EYE_SLACK &&
	       after->groups <= before->groups + EYE_SLACK && after->processes <= before->processes + EYE_SLACK;
}

/* The first line that is another one. */
static inline void eye_complain(const struct eye *before, const struct eye *after, const char *name)
{
	const char *a = before->text.data, *b = after->text.data;

	while (*a && *a == *b)
		a++, b++;
	while (a > before->text.data && a[-1] != '\n')
		a--, b--;
	fail_msg("after %s the host is another one (descriptors %zu, groups %zu, processes %zu; before %zu, %zu, "
		 "%zu):\n%.*s\ninstead "
		 "of\n%.*s",
		 name, after->descriptors, after->groups, after->processes, before->descriptors, before->groups,
		 before->processes, (int)strcspn(b, "\n"), b, (int)strcspn(a, "\n"), a);
}

/* Waits until the host looks as it did. */
static inline void eye_assert_same(const struct service *service, const struct eye *before, const char *name)
{
	int64_t until = 0;

	for (;;) {
		auto_eye struct eye after = {.groups = 0};

		eye_look(service, &after); /* asks the jailer, too */
		if (eye_same(before, &after))
			return;
		if (!patience_left(&until))
			eye_complain(before, &after, name);
	}
}
