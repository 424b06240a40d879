/*
 * test_cell_states.c - the table of a jail's states (jail/cell/cell_internal.h): what must hold for all of its rows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jail/cell/cell_internal.h"

/* Every state is reached from the first one; only DYING is never left. */
static void reached(void **state)
{
	bool seen[CELL_STATES] = {[CELL_PARKED] = true};

	(void)state;
	for (int round = 0; round < CELL_STATES; round++)
		for (int from = CELL_PARKED; from < CELL_STATES; from++)
			for (int event = 0; seen[from] && event < CELL_EVENTS; event++)
				seen[cell_next((enum cell_state)from, (enum cell_event)event)] = true;
	for (int at = CELL_PARKED; at < CELL_STATES; at++) {
		assert_true(seen[at]);
		assert_int_equal(cell_next((enum cell_state)at, CELL_DESTROYED),
				 at == CELL_DYING ? CELL_IMPOSSIBLE : CELL_DYING);
	}
	for (int event = 0; event < CELL_EVENTS; event++)
		assert_int_equal(cell_next(CELL_DYING, (enum cell_event)event), CELL_IMPOSSIBLE);
}

/* Init may end at any time, but a dead jail is never asked to run, and stays dead. */
static void dead(void **state)
{
	(void)state;
	for (int at = CELL_BUILDING; at < CELL_DEAD; at++)
		assert_int_equal(cell_next((enum cell_state)at, CELL_DIED), CELL_DEAD);
	for (int event = 0; event < CELL_EVENTS; event++) {
		enum cell_state next = cell_next(CELL_DEAD, (enum cell_event)event);

		assert_true(next == CELL_IMPOSSIBLE || next == CELL_DEAD ||
			    (next == CELL_DYING && event == CELL_DESTROYED));
	}
	assert_int_equal(cell_next(CELL_DEAD, CELL_RUN), CELL_IMPOSSIBLE);
	assert_int_equal(cell_next(CELL_DEAD, CELL_COLLECT), CELL_DEAD);
}

/* One run at a time: none begins, and nothing is collected, before the last one was delivered. */
static void one_run(void **state)
{
	(void)state;
	for (int at = CELL_PARKED; at < CELL_STATES; at++) {
		const struct cell cell = {.state = (enum cell_state)at};
		enum cell_state collects = cell_next(cell.state, CELL_COLLECT);

		if (cell_has_run(&cell))
			assert_int_equal(collects, CELL_IMPOSSIBLE);
		if (collects != CELL_IMPOSSIBLE)
			assert_int_equal(cell_next(cell.state, CELL_DELIVER),
					 at == CELL_DEAD ? CELL_DEAD : CELL_IMPOSSIBLE);
	}
	/* A run whose jail was killed ends with that jail. */
	assert_int_equal(cell_next(CELL_FAILED, CELL_DELIVER), CELL_IMPOSSIBLE);
	assert_int_equal(cell_next(CELL_DECIDED, CELL_DELIVER), CELL_IMPOSSIBLE);
	assert_int_equal(cell_next(CELL_FAILED, CELL_RUN), CELL_IMPOSSIBLE);
	assert_int_equal(cell_next(CELL_DECIDED, CELL_RUN), CELL_IMPOSSIBLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reached),
		cmocka_unit_test(dead),
		cmocka_unit_test(one_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
