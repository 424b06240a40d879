/* test_pool.c - how many jails are made ahead (jail/cell/pool.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "jail/cell/pool.h"

#define MEBI(n) ((int64_t)(n) << 20)

static void open_jails(struct pool *pool, size_t n, int64_t now_us)
{
	for (size_t i = 0; i < n; i++)
		pool_opened(pool, now_us);
}

static void follows_what_comes_at_once(void **state)
{
	const int64_t begin = INT64_C(1000) * POOL_WINDOW_US;
	struct pool pool;

	(void)state;
	pool_init(&pool, 2, 64, MEBI(256));
	pool_turn(&pool, begin, MEBI(8192));
	assert_int_equal(pool_target(&pool), 2);
	for (int i = 0; i < 100; i++) /* one after the other */
		pool_opened(&pool, begin + i * POOL_SLOT_US);
	assert_int_equal(pool_target(&pool), 2);
	open_jails(&pool, 20, begin + 100 * POOL_SLOT_US);
	assert_int_equal(pool_target(&pool), 20);
	open_jails(&pool, 5, begin + 101 * POOL_SLOT_US);
	assert_int_equal(pool_target(&pool), 20);
	open_jails(&pool, 500, begin + 102 * POOL_SLOT_US);
	assert_int_equal(pool_target(&pool), 64);
	pool_turn(&pool, begin + POOL_WINDOW_US, MEBI(8192));
	assert_int_equal(pool_deadline(&pool), begin + 2 * POOL_WINDOW_US);
	assert_int_equal(pool_target(&pool), 64); /* it came in the last window */
	pool_turn(&pool, begin + 2 * POOL_WINDOW_US, MEBI(8192));
	assert_int_equal(pool_target(&pool), 2);
}

static void keeps_to_its_memory(void **state)
{
	struct pool pool;

	(void)state;
	pool_init(&pool, 2, 64, 10 * POOL_JAIL_BYTES);
	open_jails(&pool, 40, 1);
	assert_int_equal(pool_target(&pool), 10);
	pool_turn(&pool, POOL_WINDOW_US, -1); /* the machine does not say */
	assert_int_equal(pool_target(&pool), 10);
	open_jails(&pool, 40, POOL_WINDOW_US);
	pool_turn(&pool, 2 * POOL_WINDOW_US, 5 * POOL_SHARE * POOL_JAIL_BYTES);
	assert_int_equal(pool_target(&pool), 5);
	pool_turn(&pool, 3 * POOL_WINDOW_US, POOL_SHARE * POOL_JAIL_BYTES - 1);
	assert_int_equal(pool_target(&pool), 0);
	pool_turn(&pool, 4 * POOL_WINDOW_US, MEBI(8192));
	assert_int_equal(pool_target(&pool), 2);
}

static void owes_one_to_busy_times(void **state)
{
	struct pool pool;

	(void)state;
	pool_init(&pool, 2, 64, MEBI(256));
	open_jails(&pool, POOL_OWED - 1, 1);
	assert_false(pool_owes(&pool));
	pool_opened(&pool, 1);
	assert_true(pool_owes(&pool));
	pool_made(&pool);
	assert_false(pool_owes(&pool));
}

static void stays_as_it_is_without_interpreters(void **state)
{
	struct pool pool;

	(void)state;
	pool_init(&pool, 2, 0, 0);
	open_jails(&pool, 100, 1);
	assert_int_equal(pool_target(&pool), 2);
	assert_int_equal(pool_deadline(&pool), INT64_MAX);
	assert_false(pool_owes(&pool));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_what_comes_at_once),
		cmocka_unit_test(keeps_to_its_memory),
		cmocka_unit_test(owes_one_to_busy_times),
		cmocka_unit_test(stays_as_it_is_without_interpreters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
