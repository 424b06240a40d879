/* What servers say of the progress of calls: a report's form, the newest alone, its bound, a server that floods. */
#include "bridge_try.h"

#include "lib/bridge/bridge_progress.h"

#include "lib/base/utf8.h"

static struct bridge_try with;
static struct bridge_call call;

static int begin(void **state)
{
	(void)state;
	bridge_try_begin(&with, NULL);
	call = (struct bridge_call){.list = &with.list, .tool = &with.list.tools[1]}; /* get-sum */
	*state = bridge_progress_new();
	return 0;
}

static int end(void **state)
{
	bridge_progress_free(*state);
	bridge_try_end(&with);
	return 0;
}

static void takes(struct bridge_progress *progress, const char *text)
{
	struct bridge_progress_text taken;

	assert_true(bridge_progress_take(progress, &taken));
	assert_string_equal(taken.text, text);
	assert_int_equal(taken.length, strlen(text));
	assert_false(taken.cut);
	assert_false(bridge_progress_take(progress, &taken));
}

static void progress_is_one_readable_line(void **state)
{
	struct bridge_progress_text taken;

	assert_false(bridge_progress_take(*state, &taken));
	bridge_progress_put(*state, &call, 3, 10, "reading");
	takes(*state, "fs-1.get-sum: 3 of 10: reading");
	bridge_progress_put(*state, &call, 0.1, -1, "");
	takes(*state, "fs-1.get-sum: 0.1");
	bridge_progress_put(*state, &call, 12345678, 1e300, "");
	takes(*state, "fs-1.get-sum: 12345678 of 1e+300");
	bridge_progress_put(*state, &call, -1, 10, "no number");
	takes(*state, "fs-1.get-sum: no number");
	const struct bridge_call read = {.list = &with.list, .uri = "test://1"};

	bridge_progress_put(*state, &read, 1, 2, "");
	takes(*state, "fs-1.test://1: 1 of 2");
}

static void the_newest_progress_replaces_older(void **state)
{
	bridge_progress_put(*state, &call, 1, 3, "first");
	bridge_progress_put(*state, &call, 2, 3, "a longer second one");
	bridge_progress_put(*state, &call, 3, 3, "third");
	takes(*state, "fs-1.get-sum: 3 of 3: third");
}

/* Names and text count; a character is whole or not there. */
static void a_long_text_is_cut_between_characters(void **state)
{
	static const char head[] = "fs-1.get-sum: 1: ";
	char text[BRIDGE_PROGRESS_MAX + 8];

	for (size_t more = 0; more < 6; more++) {
		struct bridge_progress_text taken;
		const size_t fill = BRIDGE_PROGRESS_MAX - (sizeof(head) - 1) - 4 + more;
		const size_t kept = more == 0 ? BRIDGE_PROGRESS_MAX : BRIDGE_PROGRESS_MAX - 4 + MIN(more, 4);

		memset(text, 'x', fill);
		memcpy(text + fill, "\xf0\x9f\x98\x80", 5);
		bridge_progress_put(*state, &call, 1, -1, text);
		assert_true(bridge_progress_take(*state, &taken));
		assert_int_equal(taken.cut, more > 0);
		assert_int_equal(taken.length, kept);
		assert_int_equal(strlen(taken.text), taken.length);
		assert_true(utf8_valid(taken.text, taken.length));
	}
	auto_free char *uri = xmalloc(1 << 20);
	const struct bridge_call read = {.list = &with.list, .uri = uri};
	struct bridge_progress_text taken;

	memset(uri, 'u', (1 << 20) - 1);
	uri[(1 << 20) - 1] = '\0';
	bridge_progress_put(*state, &read, 1, 2, "never seen");
	assert_true(bridge_progress_take(*state, &taken));
	assert_int_equal(taken.length, BRIDGE_PROGRESS_MAX);
	assert_true(taken.cut);
}

#define FLOOD 100000

static void *flood(void *arg)
{
	struct bridge_progress *progress = arg;

	for (int i = 1; i <= FLOOD; i++)
		bridge_progress_put(progress, &call, i, FLOOD, i % 2 ? "odd" : "even, and longer");
	bridge_progress_free(progress);
	return NULL;
}

/* Each text is whole, numbers only rise, and the last one stays. */
static void a_flood_leaves_whole_texts_in_order(void **state)
{
	struct bridge_progress_text taken;
	pthread_t thread;
	int last = 0;

	assert_int_equal(pthread_create(&thread, NULL, flood, bridge_progress_keep(*state)), 0);
	while (last < FLOOD) {
		if (!bridge_progress_take(*state, &taken))
			continue;
		int number = 0;

		assert_int_equal(sscanf(taken.text, "fs-1.get-sum: %d of", &number), 1);
		assert_true(number > last);
		assert_true(strstr(taken.text, number % 2 ? "100000: odd" : "100000: even, and longer"));
		last = number;
	}
	pthread_join(thread, NULL);
	assert_false(bridge_progress_take(*state, &taken));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(progress_is_one_readable_line, begin, end),
		cmocka_unit_test_setup_teardown(the_newest_progress_replaces_older, begin, end),
		cmocka_unit_test_setup_teardown(a_long_text_is_cut_between_characters, begin, end),
		cmocka_unit_test_setup_teardown(a_flood_leaves_whole_texts_in_order, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
