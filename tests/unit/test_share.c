/* test_share.c - a user's share of a thread: what may be taken at once, how long it rests, that time gives it back. */
#include "lib/base/share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/util.h"

static void work_for(int64_t us)
{
	const int64_t began = share_clock();

	while (share_clock() - began < us)
		;
}

static void burst(void **state)
{
	struct share share;

	(void)state;
	share_init(&share, 50000);
	const int64_t began = share_clock();
	work_for(10000);
	assert_false(share_charge(&share, began));
	assert_false(share_rests(&share, clock_monotonic_us()));
	/* As if an hour had passed: never more than the burst comes back. */
	share.since_us -= INT64_C(3600000000);
	assert_false(share_charge(&share, share_clock()));
	assert_in_range(share.left_us, 40000, 50000);
	share.left_us = 0;
	work_for(10000);
	assert_true(share_charge(&share, began));
}

static void rests(void **state)
{
	struct share share;

	(void)state;
	share_init(&share, 0);
	const int64_t began = share_clock();
	work_for(5000);
	assert_true(share_charge(&share, began));
	assert_true(share_rests(&share, share.since_us));
	assert_true(share.rests_until_us >= share.since_us + SHARE_PARTS * INT64_C(5000));
	assert_true(share_rests(&share, share.rests_until_us - 1));
	assert_false(share_rests(&share, share.rests_until_us));
	assert_false(share_rests(&share, share.since_us)); /* it was forgotten */
}

/* Small pieces are free where only large ones count. */
static void large(void **state)
{
	struct share share;

	(void)state;
	share_init(&share, 0);
	assert_false(share_charge_large(&share, share_clock()));
	const int64_t began = share_clock();
	work_for(SHARE_LARGE_US);
	assert_true(share_charge_large(&share, began));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(burst), cmocka_unit_test(rests), cmocka_unit_test(large)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
