/* The table of a result's fields: each field goes over the wire, and into the record and back, by its row alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "jail/client/jail.h"
#include "jail/client/wire.h"
#include "lib/base/util.h"

/* A value that is not empty, in each member that the table names, whatever it is called. */
static void fill(const struct bind *table, void *bound, int *seed)
{
	for (const struct bind *bind = table; bind->name; bind++) {
		char *at = (char *)bound + bind->offset;

		++*seed;
		if (bind->flags & BIND_JSON)
			continue;
		switch (bind->type) {
		case BIND_BOOL:
			*(bool *)(void *)at = true;
			break;
		case BIND_INT:
			if (bind->size == sizeof(int))
				*(int *)(void *)at = *seed;
			else
				*(int64_t *)(void *)at = *seed;
			break;
		case BIND_CHARS:
			snprintf(at, bind->size, "text %d", *seed);
			break;
		case BIND_CHOICE:
			*(int *)(void *)at = JAIL_TO;
			break;
		case BIND_OBJECT:
		case BIND_INLINE:
			fill(bind->table, at, seed);
			break;
		default:
			fail_msg("%s has a type that this test does not know", bind->name);
		}
	}
}

static struct json_object *parse(const char *text)
{
	struct json_object *object = NULL;
	struct err err = ERR_INIT;

	if (json_parse(text, strlen(text), &object, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return object;
}

static struct jail_result full(void)
{
	struct jail_result result = {0};
	int seed = 0;

	fill(jail_result_table, &result, &seed);
	result.denied = parse("[{\"name\":\"mount\",\"number\":165}]");
	result.network = parse("{\"connections\":1,\"bytes_in\":2,\"bytes_out\":3,\"unrouted\":4,\"denied\":["
			       "{\"host\":\"example.com\",\"port\":80,\"reason\":\"not listed\"}]}");
	return result;
}

static void expect_same(const struct jail_result *one, const struct jail_result *other, unsigned view)
{
	auto_json struct json_object *first = bind_print_view(jail_result_table, one, view),
				     *second = bind_print_view(jail_result_table, other, view);

	assert_string_equal(json_object_to_json_string(first), json_object_to_json_string(second));
}

static void over_the_wire(void **state)
{
	struct jail_result before = full(), after;
	auto_json struct json_object *object = jail_result_print(&before);
	struct err err = ERR_INIT;

	(void)state;
	if (jail_result_parse(object, &after, &err) < 0)
		fail_msg("%s", err.text);
	expect_same(&before, &after, BIND_VIEWS);
	jail_result_clear(&before);
	jail_result_clear(&after);
}

/* What a run was found to have used and done stands in a column or in `result`; nothing gets lost on the way. */
static void in_the_record(void **state)
{
	struct jail_result before = full(), after = {0};
	auto_json struct json_object *columns = bind_print_view(jail_result_table, &before, JAIL_COLUMNS),
				     *more = bind_print_view(jail_result_table, &before, JAIL_RECORD);

	(void)state;
	bind_recall(jail_result_table, columns, &after, JAIL_COLUMNS);
	bind_recall(jail_result_table, more, &after, JAIL_RECORD);
	snprintf(after.runner, sizeof(after.runner), "%s", before.runner); /* columns of what was asked */
	snprintf(after.fingerprint, sizeof(after.fingerprint), "%s", before.fingerprint);
	after.run.cpu_us = before.run.cpu_us; /* the sum of two columns */
	after.compile.cpu_us = before.compile.cpu_us;
	expect_same(&before, &after, JAIL_ANSWER);
	expect_same(&before, &after, JAIL_REPORT);
	jail_result_clear(&before);
	jail_result_clear(&after);
}

/* Rows that version 1 of the schema holds, as its gateways wrote them. */
static void old_records(void **state)
{
	auto_json struct json_object *old = parse(
		"{\"limit\":\"wall\",\"step\":\"mount /proc\",\"step_errno\":1,\"compiled\":true,\"oom_killed\":true,"
		"\"pids_limit_hit\":true,\"rss_peak_bytes\":5,\"pids_peak\":6,\"pids_hits\":7,"
		"\"switches_voluntary\":8,\"switches_forced\":9,\"compile\":{\"rss_peak_bytes\":10,\"pids_peak\":11,"
		"\"pids_hits\":12,\"switches_voluntary\":13,\"switches_forced\":14},"
		"\"denied\":[{\"name\":\"mount\",\"number\":165}],\"note\":\"a note\"}");
	auto_json struct json_object *older = parse("{\"limit\":\"\",\"compiled\":false,\"denied\":[\"mount\"]}");
	struct jail_result result = {.run.wall_us = 3};

	(void)state;
	bind_recall(jail_result_table, old, &result, JAIL_RECORD);
	assert_string_equal(result.limit, "wall");
	assert_string_equal(result.step, "mount /proc");
	assert_int_equal(result.step_errno, 1);
	assert_true(result.compiled && result.oom_killed && result.pids_limit_hit);
	assert_int_equal(result.run.wall_us, 3);
	assert_int_equal(result.run.rss_peak_bytes, 5);
	assert_int_equal(result.run.switches_forced, 9);
	assert_int_equal(result.compile.pids_hits, 12);
	assert_int_equal(json_object_array_length(result.denied), 1);
	jail_result_clear(&result);
	/* Names of calls without their numbers, as they were once, are no shape that an answer may have. */
	bind_recall(jail_result_table, older, &result, JAIL_RECORD);
	assert_null(result.denied);
	assert_string_equal(result.limit, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_the_wire),
		cmocka_unit_test(in_the_record),
		cmocka_unit_test(old_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
