/* Which sandbox a client of the set "interpreter" has: by owner and client, one each, the least recently used one goes
 * first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgi/tool/interpreters.h"
#include "lib/base/util.h"

static struct interpreters *interpreters;

static int make(void **state)
{
	(void)state;
	interpreters = interpreters_new();
	return 0;
}

static int clear(void **state)
{
	(void)state;
	interpreters_free(interpreters);
	return 0;
}

static void put(const char *owner, int client, const char *conversation)
{
	struct interpreter interpreter = {.language = "python"};

	snprintf(interpreter.owner, sizeof(interpreter.owner), "%s", owner);
	snprintf(interpreter.client, sizeof(interpreter.client), "%d", client);
	snprintf(interpreter.conversation, sizeof(interpreter.conversation), "%s", conversation);
	interpreters_put(interpreters, &interpreter);
}

/* The conversation that the client has; "" none. */
static const char *has(const char *owner, int client, bool take)
{
	static struct interpreter found;
	char name[16];
	struct err err = ERR_INIT;

	snprintf(name, sizeof(name), "%d", client);
	if (interpreters_find(interpreters, owner, name, take, &found, &err) == 0)
		return found.conversation;
	assert_int_equal(err.code, ERR_NOT_FOUND);
	return "";
}

static void by_owner_and_client(void **state)
{
	(void)state;
	assert_string_equal(has("alice", 1, false), "");
	put("alice", 1, "a");
	put("alice", 2, "b");
	put("bob", 1, "c");
	assert_string_equal(has("alice", 1, false), "a");
	assert_string_equal(has("alice", 2, false), "b");
	assert_string_equal(has("bob", 1, false), "c");
	assert_string_equal(has("bob", 2, false), "");
	put("alice", 1, "d");
	assert_string_equal(has("alice", 1, false), "d");
	assert_int_equal(interpreters->count, 3);
	assert_string_equal(has("alice", 1, true), "d");
	assert_string_equal(has("alice", 1, true), "");
	assert_string_equal(has("alice", 2, false), "b");
}

static void one_owner_cannot_grow_without_bound(void **state)
{
	(void)state;
	put("bob", 0, "theirs");
	for (int i = 0; i < INTERPRETERS_PER_OWNER; i++)
		put("alice", i, "own");
	assert_string_equal(has("alice", 0, false), "own"); /* now 1 is the one that was used least lately */
	put("alice", 1000, "new");
	assert_int_equal(interpreters->count, INTERPRETERS_PER_OWNER + 1);
	assert_string_equal(has("alice", 0, false), "own");
	assert_string_equal(has("alice", 1, false), "");
	assert_string_equal(has("alice", 1000, false), "new");
	assert_string_equal(has("bob", 0, false), "theirs");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_owner_and_client, make, clear),
		cmocka_unit_test_setup_teardown(one_owner_cannot_grow_without_bound, make, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
