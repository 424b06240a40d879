/*
 * share.h - one user's share of a thread that many use.
 *
 * Each piece of work is charged to its user by the processor time that the thread took for it, so that nobody pays
 * for a busy machine. A user may take `burst_us` at once, and beyond that one part in SHARE_PARTS of the thread. A user
 * that takes more rests: nothing of it is taken up before rests_until_us.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHARE_PARTS    8
#define SHARE_LARGE_US 200 /* what takes less keeps nobody waiting */

struct share {
	int64_t burst_us, left_us, since_us; /* left_us: of burst_us, at that time */
	int64_t rests_until_us;              /* clock_monotonic_us; 0: does not rest */
};

void share_init(struct share *share, int64_t burst_us);
/* The processor time of this thread: where a piece of work begins. */
int64_t share_clock(void);
/* It ends here. True: the user rests now. */
bool share_charge(struct share *share, int64_t began_us);
/* The same for a large piece of work alone: small ones may take the whole thread while nobody else wants it. */
bool share_charge_large(struct share *share, int64_t began_us);
/* Does it rest? A rest that is over is forgotten. */
bool share_rests(struct share *share, int64_t now_us);
