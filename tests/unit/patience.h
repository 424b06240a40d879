/*
 * patience.h - for tests: how long they wait for what must come. It comes early or the test fails, so a long wait costs
 * nothing.
 *
 * What is an event is waited for with poll and PATIENCE_MS. What sends none (a number of descriptors, a folder of
 * cgroups) is looked at again and again: by the clock, not a number of times, because how much happens between two
 * looks is the machine's affair.
 */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/util.h"

#define PATIENCE_MS     (120000 * try_patience())
#define PATIENCE_GAP_MS 2
/* Of a run that is ended by a limit of time on purpose, but must have come to some point by then: a test begins with
 * what an ordinary machine needs, and doubles it up to here while it was too short. */
#define PATIENCE_LIMIT_US (64 * INT64_C(1000000))

/* How many times longer than on an ordinary machine a test waits, or what it allows a program: an emulated processor is
 * slow. */
static inline int try_patience(void)
{
	const char *given = getenv("TEST_PATIENCE");
	uint64_t value;

	return given && parse_u64(given, 1, 100, &value) == 0 ? (int)value : 1;
}

/*
 * Whether to look again: `int64_t until = 0; while (!there() && patience_left(&until)) ;`, and then it is asserted. The
 * gap leaves the processor to those who are waited for; and a jailer that is asked without one may never have the idle
 * moment in which it clears away.
 */
static inline bool patience_left(int64_t *until_us)
{
	const int64_t now = clock_monotonic_us();

	if (!*until_us)
		*until_us = now + PATIENCE_MS * INT64_C(1000);
	poll(NULL, 0, PATIENCE_GAP_MS);
	return now < *until_us;
}
