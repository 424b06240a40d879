/* share.c - see share.h. */
#include "share.h"

#include <time.h>

#include "util.h"

void share_init(struct share *share, int64_t burst_us)
{
	*share = (struct share){.burst_us = burst_us, .left_us = burst_us, .since_us = clock_monotonic_us()};
}

int64_t share_clock(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000) + time.tv_nsec / 1000;
}

bool share_charge(struct share *share, int64_t began_us)
{
	const int64_t now = clock_monotonic_us(), won = (now - share->since_us) / SHARE_PARTS;

	share->left_us = MIN(share->left_us + won, share->burst_us) - (share_clock() - began_us);
	share->since_us = now;
	if (share->left_us < 0)
		share->rests_until_us = now - share->left_us * SHARE_PARTS;
	return share->left_us < 0;
}

bool share_charge_large(struct share *share, int64_t began_us)
{
	return share_clock() - began_us >= SHARE_LARGE_US && share_charge(share, began_us);
}

bool share_rests(struct share *share, int64_t now_us)
{
	if (share->rests_until_us && now_us >= share->rests_until_us)
		share->rests_until_us = 0;
	return share->rests_until_us != 0;
}
