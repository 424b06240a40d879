/*
 * jail_try.h - for tests of the jail: run one program in a real private jailer and keep everything that came of it.
 *
 * The jailer's program is $TEST_JAILER, else ../bin/sallyport-jailer beside the test. Nothing is mocked.
 */
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "jail/client/client_once.h"
#include "jail/client/jail.h"
#include "lib/base/buf.h"
#include "lib/base/config.h"
#include "lib/base/util.h"
#include "patience.h"

#define TRY_CHANGES 5000

struct try_change {
	enum jail_change_kind kind;
	char *name;
	char *reason;
	char *content; /* of created and changed files up to 64 KiB */
	int64_t size;
	uint32_t mode;
};
struct
try {
	struct jail_result result;
	char *denied; /* names of refused system calls, separated by blanks */
	bool done, collected, failed;
	struct err err;
	int out_fd, error_fd;
	char *out, *error; /* what the program wrote */
	struct try_change *changes;
	size_t n_changes;
	int outputs; /* events */
	void (*on_output)(struct try * try);
	struct jail *jail;
	void *arg;
};

static inline char *try_jailer(void)
{
	const char *given = getenv("TEST_JAILER");
	auto_free char *dir = config_program_dir();

	return given ? xstrdup(given) : xasprintf("%s/../bin/sallyport-jailer", dir);
}

/* What a program gets that names no limit, as "limits" in the tests' configurations: whoever must come to its end does,
 * however busy the machine is. */
#define TRY_LIMITS "\"limits\":{\"wall_seconds\":120,\"compile_seconds\":120}"

/* More members of "jailer" in the tests' configurations. A user who has no cgroup runs the tests with weaker limits;
 * one who has, and root, have it used all the same. */
static inline const char *try_jailer_members(void)
{
	const char *given = getenv("TEST_CONFIG_JAILER");

	if (given && given[0])
		return given;
	return getuid() ? "\"weaker_limits\":true" : "\"weaker_limits\":false";
}

static inline struct jail_client *try_client(const char *config)
{
	char made[] = "/tmp/jail_try.XXXXXX";
	auto_free char *program = try_jailer();
	struct jail_client *client = NULL;
	struct err err = ERR_INIT;

	auto_close int fd = mkostemp(made, O_CLOEXEC);
	dprintf(fd, "{\"jailer\":{%s}," TRY_LIMITS "}", try_jailer_members());
	if (jail_client_spawn(program, config && config[0] ? config : made, &client, &err))
		fail_msg("%s", err.text);
	/* It has read the file when it answers, or has ended. */
	struct json_object *info = NULL;
	if (jail_client_info(client, &info, &err))
		fail_msg("%s", err.text);
	json_object_put(info);
	unlink(made);
	return client;
}

static inline void try_on_done(void *arg, const struct jail_result *result)
{
	struct try *try = arg;

	size_t n = result->denied ? json_object_array_length(result->denied) : 0;

	try->result = *result;
	try->result.denied = NULL;
	free(try->denied);
	try->denied = xstrdup("");
	for (size_t i = 0; i < n; i++) {
		auto_free char *before = try->denied;

		try->denied = xasprintf("%s%s%s", before, i ? " " : "",
					json_get_string(json_object_array_get_idx(result->denied, i), "name"));
	}
	try->done = true;
}

static inline void try_on_output(void *arg, int64_t out, int64_t error)
{
	struct try *try = arg;

	(void)out;
	(void)error;
	try->outputs++;
	if (try->on_output)
		try->on_output(try);
}

static inline void try_on_file(void *arg, const struct jail_change *change)
{
	struct try *try = arg;

	assert_true(try->n_changes < TRY_CHANGES);
	struct try_change *kept = &try->changes[try->n_changes++];
	*kept = (struct try_change){
		.kind = change->kind,
		.name = xstrdup(change->name),
		.reason = change->reason ? xstrdup(change->reason) : NULL,
		.size = change->size,
		.mode = change->mode,
	};
	if (change->fd >= 0) {
		kept->content = xcalloc(1, 65537);
		assert_true(pread(change->fd, kept->content, 65536, 0) >= 0);
		close(change->fd);
	}
}

static inline void try_on_collected(void *arg)
{
	((struct try *)arg)->collected = true;
}

/* Until there is a result it is no good one: a test that looks at nothing else fails. */
static const struct jail_result try_no_result = {.verdict = JAIL_XX, .exit_code = -1};

static inline void try_on_failed(void *arg, const struct err *err)
{
	struct try *try = arg;

	try->failed = true;
	try->err = *err;
}

static const struct jail_events try_events = {try_on_output, try_on_done, try_on_file, try_on_collected, try_on_failed};

static inline char *try_read(int fd)
{
	char *text;
	size_t length;

	assert_true(lseek(fd, 0, SEEK_SET) == 0);
	assert_int_equal(read_fd(fd, 64 << 20, &text, &length, NULL), 0);
	return text;
}

/* -------- jailer.warm --------------------------------------------------------------------------------- */
static inline int64_t warm_count(struct jail_client *client, const char *name)
{
	struct json_object *info = NULL;

	assert_int_equal(jail_client_info(client, &info, NULL), 0);
	const int64_t n =
		json_object_get_int64(json_get(json_get(info, "warm", json_type_object), name, json_type_int));
	json_object_put(info);
	return n;
}

/* Until an interpreter waits in a jail. */
static inline void warm_await(struct jail_client *client)
{
	int64_t until = 0;

	while (warm_count(client, "waiting") == 0)
		assert_true(patience_left(&until));
}

/* Where the environment has TEST_WARM (and TEST_CONFIG_JAILER says "warm"), programs do not begin before. */
static inline void try_await_warm(struct jail_client *client)
{
	if (getenv("TEST_WARM") && warm_count(client, "wanted"))
		warm_await(client);
}

static inline void try_begin(struct jail_client *client, struct try *try, const struct jail_spec *spec)
{
	struct err err = ERR_INIT;

	try_await_warm(client);
	try->result = try_no_result;
	try->changes = xcalloc(TRY_CHANGES, sizeof(*try->changes));
	try->out_fd = memfd_create("out", MFD_CLOEXEC);
	try->error_fd = memfd_create("err", MFD_CLOEXEC);
	if (jail_open(client, spec, &try_events, try, &try->jail, &err))
		fail_msg("%s", err.text);
}

static inline void try_end(struct jail_client *client, struct try *try)
{
	struct err err = ERR_INIT;

	if (jail_client_wait(client, try->jail, &err))
		fail_msg("%s", err.text);
	jail_close(steal(&try->jail));
	try->out = try_read(try->out_fd);
	try->error = try_read(try->error_fd);
	close(try->out_fd);
	close(try->error_fd);
}

/* Sends what waits to be sent, dispatches what has come; false: nothing has, for so long. Other than a question it has
 * no end of its own: a jailer that makes a hundred jails on a busy machine is long in coming to one. */
static inline bool try_hear(struct jail_client *client, int timeout_ms)
{
	struct pollfd poller = {.fd = jail_client_fd(client), .events = jail_client_poll_events(client)};

	if (poll(&poller, 1, timeout_ms) != 1)
		return false;
	assert_int_equal(jail_client_dispatch(client, NULL), 0);
	return true;
}

static inline void try_clear(struct try *try)
{
	for (size_t i = 0; i < try->n_changes; i++) {
		free(try->changes[i].name);
		free(try->changes[i].reason);
		free(try->changes[i].content);
	}
	free(try->changes);
	free(try->out);
	free(try->error);
	free(try->denied);
	*try = (struct try){.jail = NULL};
}
#define auto_try __attribute__((cleanup(try_clear)))

/* The program in a jail of its own, from open to the last file. */
static inline void try_program(struct jail_client *client, struct try *try, const struct jail_spec *spec,
			       const char *code)
{
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	auto_once struct jail_once once = {
		.spec = *spec,
		.program = {.code_fd = code_fd, .stdin_fd = -1},
		.capture = true,
		.file = try_on_file,
		.output = try_on_output,
		.arg = try,
	};
	struct err err = ERR_INIT;
	size_t length;

	try_await_warm(client);
	try->result = try_no_result;
	try->changes = xcalloc(TRY_CHANGES, sizeof(*try->changes));
	if (jail_once_begin(client, &once, &err) < 0)
		fail_msg("%s", err.text);
	try->jail = once.jail; /* for cancel */
	if (jail_once_end(client, &once, &err) < 0 && once.failure.code == ERR_NONE)
		fail_msg("%s", err.text);
	try->jail = NULL;
	if (once.failure.code != ERR_NONE)
		try_on_failed(try, &once.failure);
	if (once.done)
		try_on_done(try, &once.result);
	try->collected = once.done && once.over;
	assert_int_equal(jail_once_output(&once, 1, 64 << 20, &try->out, &length, NULL), 0);
	assert_int_equal(jail_once_output(&once, 2, 64 << 20, &try->error, &length, NULL), 0);
}

static inline const struct try_change *try_find(const struct try *try, const char *name)
{
	for (size_t i = 0; i < try->n_changes; i++)
		if (streq(try->changes[i].name, name))
			return &try->changes[i];
	return NULL;
}

/* Keeps the tests that the arguments name; all of them without any. Returns how many. */
static inline size_t try_chosen(struct CMUnitTest *tests, size_t n, int argc, char **argv)
{
	size_t kept = 0;

	if (argc < 2)
		return n;
	for (size_t i = 0; i < n; i++)
		for (int k = 1; k < argc; k++)
			if (streq(tests[i].name, argv[k])) {
				tests[kept++] = tests[i];
				break;
			}
	if (kept != (size_t)argc - 1) { /* else a test that was renamed would no longer run, and nobody know */
		print_error("%d tests were named, there are %zu of these\n", argc - 1, kept);
		exit(2);
	}
	return kept;
}
#define try_run(tests, argc, argv, setup, teardown)                                                                    \
	_cmocka_run_group_tests("tests", tests, try_chosen(tests, ARRAY_SIZE(tests), argc, argv), setup, teardown)
