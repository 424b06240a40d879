/* bridge_clock.c - how long a program waits for tools: that time is not its own. The jailer hears of long waits as they
 * begin and end, of many short ones by their sum. What a person takes to allow calls has an allowance of its own. */
#include "bridge_internal.h"

#define WAIT_SHOWN_US 20000  /* a shorter wait is not worth a message to the jailer … */
#define CREDIT_US     100000 /* … but many of them are */

/* How long the wall clock may stand still in all, as of now. */
static int64_t allowance(const struct bridge_run *run, int64_t now)
{
	const int64_t asked = run->asked_us + (run->asks_since_us ? now - run->asks_since_us : 0);

	return run->spec.caps.wait_us + MIN(asked, run->spec.caps.ask_us);
}

/* The program waits while a call is under way. */
void bridge_clock_note(struct bridge_run *run)
{
	const bool waits = run->inflight != NULL, asks = run->asking > 0;
	const int64_t now = clock_monotonic_us();

	if (!asks && run->asks_since_us)
		run->asked_us += now - run->asks_since_us;
	if (asks != (run->asks_since_us != 0))
		run->asks_since_us = asks ? now : 0;
	if (waits == (run->waits_since_us != 0))
		return;
	if (waits) {
		run->waits_since_us = now;
		return;
	}
	int64_t took = now - run->waits_since_us;

	run->waits_since_us = 0;
	took = MIN(took, MAX(allowance(run, now) - run->waited_us, 0));
	run->waited_us += took;
	if (!run->told)
		run->credit_us += took;
	if (run->spec.waits && (run->told || run->credit_us >= CREDIT_US)) {
		run->spec.waits(run->spec.waits_arg, false, run->credit_us);
		run->credit_us = 0;
	}
	run->told = false;
}

/* When the clock must be touched without an event: it stops, or has stood still for as long as it may. While a person
 * is asked the allowance grows as fast as the time passes, until all of it is used. */
int64_t bridge_clock_deadline(const struct bridge_run *run)
{
	const int64_t now = clock_monotonic_us();
	const int64_t most =
		run->asks_since_us ? run->spec.caps.wait_us + run->spec.caps.ask_us : allowance(run, now);

	if (!run->spec.waits || !run->waits_since_us)
		return INT64_MAX;
	if (!run->told)
		return run->waited_us < allowance(run, now) ? run->waits_since_us + WAIT_SHOWN_US : INT64_MAX;
	return run->waits_since_us + most - run->waited_us;
}

void bridge_clock_tick(struct bridge_run *run, int64_t now_us)
{
	if (now_us < bridge_clock_deadline(run))
		return;
	if (!run->told) {
		run->told = true;
		run->spec.waits(run->spec.waits_arg, true, run->credit_us + now_us - run->waits_since_us);
		run->credit_us = 0;
		return;
	}
	run->told = false;
	run->waited_us = allowance(run, now_us);
	run->spec.waits(run->spec.waits_arg, false, 0);
}
