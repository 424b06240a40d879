/* test_diff.c - unified diffs: what they say, that they turn one text into the other, their bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/util.h"
#include "lib/base/diff.h"

static char *diff(const char *old, const char *now)
{
	struct buf text;

	buf_init(&text, SIZE_MAX / 2);
	diff_unified(old, strlen(old), now, strlen(now), DIFF_LINES, &text);
	buf_putc(&text, '\0');
	return buf_steal(&text, NULL);
}

static const struct {
	const char *old, *now, *diff;
} cases[] = {
	{"", "", ""},
	{"a\nb\n", "a\nb\n", ""},
	{"a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"},
	{"", "a\n", "@@ -0,0 +1,1 @@\n+a\n"},
	{"a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
	{"a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ no newline at the end\n+a\n"},
	{"1\n2\n3\n4\n5\n", "1\n2\n3\n4\n5\n6\n", "@@ -3,3 +3,4 @@\n 3\n 4\n 5\n+6\n"},
	{"\033[1m\n", "\xff\n", "@@ -1,1 +1,1 @@\n-\\x1b[1m\n+\\xff\n"},
};

static void what_it_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		auto_free char *text = diff(cases[i].old, cases[i].now);

		assert_string_equal(text, cases[i].diff);
	}
}

/* Turns `old` into the other text, hunk by hunk. */
static char *apply(const char *old, const char *patch)
{
	struct buf out;
	size_t at = 1;

	buf_init(&out, SIZE_MAX / 2);
	while (*patch) {
		size_t first, count, length = strcspn(patch, "\n");

		if (sscanf(patch, "@@ -%zu,%zu", &first, &count) == 2) {
			for (first += count == 0; at < first; at++) {
				buf_add(&out, old, strcspn(old, "\n") + 1);
				old += strcspn(old, "\n") + 1;
			}
		} else {
			assert_non_null(strchr(" +-", *patch));
			if (*patch != '-')
				buf_add(&out, patch + 1, length);
			if (*patch != '+') {
				assert_memory_equal(old, patch + 1, length - 1);
				old += length;
				at++;
			}
		}
		patch += length + 1;
	}
	buf_puts(&out, old);
	buf_putc(&out, '\0');
	return buf_steal(&out, NULL);
}

static void it_turns_one_into_the_other(void **state)
{
	(void)state;
	srandom(7);
	for (int round = 0; round < 2000; round++) {
		char old[128] = "", now[128] = "";

		for (long i = random() % 24; i > 0; i--)
			snprintf(old + strlen(old), 3, "%c\n", (int)('a' + random() % 3));
		for (long i = random() % 24; i > 0; i--)
			snprintf(now + strlen(now), 3, "%c\n", (int)('a' + random() % 3));
		auto_free char *patch = diff(old, now), *made = apply(old, patch);

		assert_string_equal(made, now);
	}
}

/* Long texts: one line more at the start is all that is said, not what the windows cut off; long lines, many. */
static void bounds(void **state)
{
	struct buf old, now;

	(void)state;
	buf_init(&old, SIZE_MAX / 2);
	buf_init(&now, SIZE_MAX / 2);
	buf_puts(&now, "first\n");
	for (int i = 0; i < 100000; i++) {
		buf_printf(&old, "%d\n", i);
		buf_printf(&now, "%d\n", i);
	}
	buf_putc(&old, '\0');
	buf_putc(&now, '\0');
	auto_free char *one = diff(old.data, now.data);

	assert_string_equal(one, "@@ -1,3 +1,4 @@\n+first\n 0\n 1\n 2\n… and more\n");
	buf_reset(&old);
	buf_reset(&now);
	for (int i = 0; i < 5000; i++) {
		buf_printf(&old, "old %d %400s\n", i, "x");
		buf_printf(&now, "now %d %400s\n", i, "x");
	}
	buf_putc(&old, '\0');
	buf_putc(&now, '\0');
	auto_free char *many = diff(old.data, now.data);

	assert_true(strlen(many) < (DIFF_LINES + 2) * (DIFF_LINE_MAX + 8));
	assert_non_null(strstr(many, "…\n"));
	buf_clear(&old);
	buf_clear(&now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_says),
		cmocka_unit_test(it_turns_one_into_the_other),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
