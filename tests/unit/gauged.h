/*
 * gauged.h - puts the gauge (host_gauge.h) around each test of a suite, from before its setup until after its teardown:
 *
 *     const struct CMUnitTest tests[] = {GAUGED(test, setup, teardown, JAILS), …};
 *
 * JAILS: how many jails the test has at once; each may raise the meters as far as one jail may. A test that raised one
 * too far runs again, because other programs of the host are in the numbers; it fails if that happens each time.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host_gauge.h"

#define GAUGED_ROUNDS 3
#define GAUGED_MEMORY (INT64_C(256) << 20) /* of a jail that names no limit */

struct gauged {
	CMUnitTestFunction test;
	CMFixtureFunction setup, teardown;
	int64_t jails;
	struct gauge gauge;
	void *state;
	bool set_up, measuring;
};

static inline int gauged_end(struct gauged *gauged)
{
	int result = 0;

	if (gauged->set_up)
		result = gauged->teardown(&gauged->state);
	gauged->set_up = false;
	if (gauged->measuring)
		gauge_stop(&gauged->gauge);
	gauged->measuring = false;
	return result;
}

static inline void gauged_run(void **state)
{
	struct gauged *gauged = *state;

	for (int round = 1;; round++) {
		int64_t by;

		assert_int_equal(gauge_start(&gauged->gauge), 0);
		gauged->measuring = true;
		gauged->state = NULL;
		assert_int_equal(gauged->setup(&gauged->state), 0);
		gauged->set_up = true;
		gauged->test(&gauged->state);
		assert_int_equal(gauged_end(gauged), 0);
		enum gauge_meter meter = gauge_wrong_of(&gauged->gauge, GAUGED_MEMORY, gauged->jails, &by);

		if (meter == GAUGE_METERS)
			return;
		print_message("%s of the host rose by %lld\n", gauge_names[meter], (long long)by);
		if (round == GAUGED_ROUNDS)
			fail_msg("what it takes of the host, no limit counts");
	}
}

/* A test that failed or was skipped did not come to its end. */
static inline int gauged_teardown(void **state)
{
	return gauged_end(*state);
}

#define GAUGED(function, before, after, count)                                                                         \
	{                                                                                                              \
		.name = #function, .test_func = gauged_run, .teardown_func = gauged_teardown,                          \
		.initial_state = &(struct gauged)                                                                      \
		{                                                                                                      \
			.test = (function), .setup = (before), .teardown = (after), .jails = (int64_t)(count)          \
		}                                                                                                      \
	}
