/*
 * jail_runs.h - a private jailer for all tests of a program, and short ways to run code in it: test_jail.c and
 * test_jail_limits.c.
 */
#pragma once

#include "jail_try.h"

#define MEBI (1 << 20)

static struct jail_client *client;
static bool shares_id; /* with who started the jailer: half as many open files, so that others of that user have room
			  (init_limits) */
static bool weaker;    /* no cgroup: resource limits only, and no counters */

static inline int start(void **state)
{
	struct json_object *info = NULL;

	(void)state;
	client = try_client(getenv("TEST_CONFIG"));
	assert_int_equal(jail_client_info(client, &info, NULL), 0);
	weaker = json_object_get_boolean(json_get(info, "weaker_limits", json_type_boolean));
	shares_id = streq(json_get_string(info, "mode"), "single-id");
	json_object_put(info);
	return 0;
}

static inline int stop(void **state)
{
	(void)state;
	jail_client_free(client);
	return 0;
}

static inline void run(struct try *try, const char *runner, const char *code)
{
	struct jail_spec spec = {.runner = runner};

	try_program(client, try, &spec, code);
}

static inline void run_limited(struct try *try, const char *code, struct jail_limits limits)
{
	struct jail_spec spec = {.runner = "python", .limits = limits};

	try_program(client, try, &spec, code);
}

static inline void assert_verdict(const struct try *try, enum jail_verdict verdict)
{
	if (try->failed)
		fail_msg("failed: %s", try->err.text);
	if (try->result.verdict != verdict)
		fail_msg("%s instead of %s: %s; stderr: %s", jail_verdict_text(try->result.verdict),
			 jail_verdict_text(verdict), try->result.message, try->error ? try->error : "");
}
