/* live_try.h - for tests of live jails: one jail, any number of runs, each with its own output and changes, in a real
 * private jailer. */
#pragma once

#include "jail/client/client_runners.h"
#include "jail_try.h"

#define MEBI (1 << 20)

struct live {
	struct jail_client *client;
	struct try try;
};

static inline void live_forget(struct try *try)
{
	for (size_t i = 0; i < try->n_changes; i++) {
		free(try->changes[i].name);
		free(try->changes[i].reason);
		free(try->changes[i].content);
	}
	try->n_changes = 0;
	free(steal(&try->out));
	free(steal(&try->error));
	try->done = try->collected = false;
}

static inline void live_begin(struct live *live, struct jail_client *client, const char *runner,
			      struct jail_limits limits)
{
	const struct jail_spec spec = {.runner = runner, .limits = limits, .live = true};

	*live = (struct live){.client = client};
	try_begin(client, &live->try, &spec);
}

/* Asks for a run and its files; live_take waits for them. */
static inline void live_ask(struct live *live, const char *code, const struct jail_program *given)
{
	struct try *try = &live->try;
	struct jail_program program = given ? *given : (struct jail_program){.stdin_fd = -1};
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	struct err err = ERR_INIT;

	live_forget(try);
	assert_int_equal(ftruncate(try->out_fd, 0), 0);
	assert_int_equal(ftruncate(try->error_fd, 0), 0);
	assert_int_equal(lseek(try->out_fd, 0, SEEK_SET), 0);
	assert_int_equal(lseek(try->error_fd, 0, SEEK_SET), 0);
	program.code_fd = code_fd;
	program.stdout_fd = try->out_fd;
	program.stderr_fd = try->error_fd;
	if (jail_run(try->jail, &program, &err) || jail_collect(try->jail, &err))
		fail_msg("%s", err.text);
}

static inline const struct jail_result *live_take(struct live *live)
{
	struct try *try = &live->try;
	struct err err = ERR_INIT;

	if (jail_client_wait(live->client, try->jail, &err))
		fail_msg("%s", err.text);
	if (try->failed)
		fail_msg("%s", try->err.text);
	assert_true(try->done && try->collected);
	try->out = try_read(try->out_fd);
	try->error = try_read(try->error_fd);
	return &try->result;
}

static inline const struct jail_result *live_run(struct live *live, const char *code)
{
	live_ask(live, code, NULL);
	return live_take(live);
}

static inline void live_end(struct live *live)
{
	if (!live->client)
		return;
	jail_close(steal(&live->try.jail));
	close(live->try.out_fd);
	close(live->try.error_fd);
	live_forget(&live->try);
	try_clear(&live->try);
	live->client = NULL;
}
#define auto_live __attribute__((cleanup(live_end)))

/* Runs the code, which must end with this verdict and this output (NULL: any). */
static inline void live_expect(struct live *live, const char *code, enum jail_verdict verdict, const char *out)
{
	const struct jail_result *result = live_run(live, code);

	if (result->verdict != verdict || (out && !streq(live->try.out, out)))
		fail_msg("%s: %s (%s), output %s, stderr %s", code, jail_verdict_text(result->verdict), result->message,
			 live->try.out, live->try.error);
}

/* Can this host freeze? Where it cannot, live jails must be refused in words. */
static inline bool live_possible(struct jail_client *client)
{
	struct json_object *info = NULL;

	assert_int_equal(jail_client_info(client, &info, NULL), 0);
	bool possible = json_object_get_boolean(json_get(info, "live", json_type_boolean));
	json_object_put(info);
	return possible;
}

static inline bool live_runner(struct jail_client *client, const char *name)
{
	struct json_object *runners = NULL;

	assert_int_equal(jail_client_runners(client, &runners, NULL), 0);
	struct json_object *runner = jail_runner_named(runners, name);
	bool there = json_object_get_boolean(json_get(runner, "available", json_type_boolean));
	json_object_put(runners);
	return there;
}

/* Skips the test; jumps, so nothing may be held. */
static inline void live_need_runner(struct jail_client *client, const char *name)
{
	if (!live_runner(client, name)) {
		print_message("%s is not here: skipped\n", name);
		skip();
	}
}

static inline void live_need(bool possible)
{
	if (!possible) {
		print_message("nothing can be frozen here: skipped\n");
		skip();
	}
}
