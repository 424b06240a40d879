/* warm_try.h - for tests: a jailer with jailer.warm, and what it says of the interpreters that wait in its jails. */
#pragma once

#include "host_eye.h"

/* A service whose jails are joined; `mode`: "on" or "exec". */
static inline void warm_start(void **state, const char *mode)
{
	struct json_object *runners = NULL;
	auto_free char *members = xasprintf("\"weaker_limits\":false,\"warm\":\"%s\"", mode);

	unsetenv("SALLYPORT_JAILER_WARM"); /* it wins over the configuration */
	setenv("TEST_CONFIG_JAILER", members, 1);
	service_setup(state);
	unsetenv("TEST_CONFIG_JAILER");
	/* Its own programs, which find out versions, are over when they are answered. */
	struct service *service = *state;
	assert_int_equal(jail_client_runners(service->client, &runners, NULL), 0);
	json_object_put(runners);
}

/* What `each` finds first among the jailer's children, by host pid; 0: nothing. */
static inline pid_t warm_child(const struct service *service, pid_t (*each)(pid_t child))
{
	auto_free char *path = xasprintf("/proc/%d/task/%d/children", service->pid, service->pid);
	auto_free char *children = NULL;
	size_t length;
	char *state;
	pid_t found = 0;

	assert_int_equal(read_file_at(AT_FDCWD, path, EYE_TEXT, &children, &length, NULL), 0);
	for (char *child = strtok_r(children, " ", &state); child && !found; child = strtok_r(NULL, " ", &state))
		found = each((pid_t)strtol(child, NULL, 10));
	return found;
}

static inline pid_t warm_if_template(pid_t child)
{
	auto_free char *path = xasprintf("/proc/%d/cmdline", child);
	auto_free char *line = NULL;
	size_t length;

	return read_file_at(AT_FDCWD, path, 4096, &line, &length, NULL) == 0 && strstr(line, "python3") ? child : 0;
}

/* Host pid of the template; 0: there is none. The jailer's other children are inits, which have no command line. */
static inline pid_t warm_template(const struct service *service)
{
	return warm_child(service, warm_if_template);
}
