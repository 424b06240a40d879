/*
 * test_jail_groups.c - when the groups of dead jails are removed: in an idle moment (cgroup_prepare), and without one
 * as soon as CGROUP_GIVEN_MAX of them wait.
 *
 * The groups are folders of a temporary directory: to the part of cgroup.c that makes and removes them they are all the
 * same, and here nobody but the test decides which of them is still busy (a folder that is not empty).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host_count.h"
#include "jail/cgroup/cgroup_internal.h"

#define ALONE 2 /* entries of an empty folder, as count_entries counts */

struct place {
	char dir[64];
	struct cgroup *cgroup;
};

/* An instance in one hierarchy, without limits and counters. */
static int place_make(void **state)
{
	struct place *place = xcalloc(1, sizeof(*place));

	snprintf(place->dir, sizeof(place->dir), "/tmp/test_jail_groups.XXXXXX");
	assert_non_null(mkdtemp(place->dir));
	auto_free char *instance = xasprintf("%s/1", place->dir);
	assert_int_equal(mkdir(instance, 0755), 0);
	place->cgroup = xcalloc(1, sizeof(*place->cgroup));
	*place->cgroup = (struct cgroup){.n_trees = 1, .freezer = -1, .instance = "1"};
	place->cgroup->parents[0] = open(place->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	place->cgroup->trees[0] = open(instance, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(place->cgroup->parents[0] >= 0 && place->cgroup->trees[0] >= 0);
	*state = place;
	return 0;
}

/* What is closed leaves nothing: neither the groups that were made ahead nor those that wait. */
static int place_clear(void **state)
{
	struct place *place = *state;

	cgroup_close(place->cgroup);
	assert_int_equal(count_entries(place->dir), ALONE);
	assert_int_equal(rmdir(place->dir), 0);
	free(place);
	return 0;
}

static size_t groups_of(const struct place *place)
{
	auto_free char *instance = xasprintf("%s/1", place->dir);

	return count_entries(instance) - ALONE;
}

static size_t descriptors(void)
{
	return count_entries("/proc/self/fd");
}

static struct cgroup_group *take(const struct place *place)
{
	struct cgroup_group *group;

	assert_int_equal(cgroup_take(place->cgroup, &group, NULL), 0);
	return group;
}

/* The kernel is still taking its last process down. */
static void set_busy(const struct cgroup_group *group, bool busy)
{
	assert_int_equal(
		busy ? mkdirat(group->dirs[0], "process", 0755) : unlinkat(group->dirs[0], "process", AT_REMOVEDIR), 0);
}

static void in_an_idle_moment(void **state)
{
	const struct place *place = *state;

	cgroup_give(place->cgroup, take(place));
	assert_int_equal(groups_of(place),
			 1); /* nobody waits for it to be removed: a jail that ends has other things to do */
	assert_false(cgroup_prepared(place->cgroup));
	assert_true(cgroup_prepare(place->cgroup));
	assert_int_equal(groups_of(place), CGROUP_READY);
	assert_true(cgroup_prepared(place->cgroup));
	struct cgroup_group *group = take(place);
	assert_int_equal(groups_of(place), CGROUP_READY); /* one of those made ahead */
	set_busy(group, true);
	cgroup_give(place->cgroup, group);
	assert_false(cgroup_prepare(place->cgroup));
	assert_int_equal(groups_of(place), CGROUP_READY + 1);
	set_busy(group, false);
	assert_true(cgroup_prepare(place->cgroup));
	assert_int_equal(groups_of(place), CGROUP_READY);
}

/* Jail after jail, and never an idle moment. */
static void without_one(void **state)
{
	const struct place *place = *state;
	const size_t before = descriptors();

	for (size_t i = 0; i < 3 * CGROUP_GIVEN_MAX; i++) {
		cgroup_give(place->cgroup, take(place));
		const size_t waiting = (i + 1) % CGROUP_GIVEN_MAX;

		assert_int_equal(groups_of(place), waiting);
		assert_int_equal(descriptors(), before + waiting);
	}
}

/* One that stays busy holds up no other, and is tried again with the next ones. */
static void busy_for_long(void **state)
{
	const struct place *place = *state;
	struct cgroup_group *busy = take(place);

	set_busy(busy, true);
	cgroup_give(place->cgroup, busy);
	for (size_t i = 1; i < CGROUP_GIVEN_MAX; i++)
		cgroup_give(place->cgroup, take(place));
	assert_int_equal(groups_of(place), 1);
	for (size_t i = 1; i < CGROUP_GIVEN_MAX; i++)
		cgroup_give(place->cgroup, take(place));
	set_busy(busy, false);
	assert_int_equal(groups_of(place), CGROUP_GIVEN_MAX);
	cgroup_give(place->cgroup, take(place));
	assert_int_equal(groups_of(place), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(in_an_idle_moment, place_make, place_clear),
		cmocka_unit_test_setup_teardown(without_one, place_make, place_clear),
		cmocka_unit_test_setup_teardown(busy_for_long, place_make, place_clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
