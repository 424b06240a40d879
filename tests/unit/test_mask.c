/* Secrets taken out of bytes: forms, pieces of any size, against a search of every form at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "lib/base/mask.h"
#include "lib/base/text.h"
#include "lib/base/util.h"

static struct mask *mask_of(const char *value)
{
	return mask_new(&(struct mask_value){value, strlen(value)}, 1);
}

static char *masked(const struct mask *mask, const char *text, size_t length, size_t piece)
{
	auto_mask_stream struct mask_stream stream;
	auto_buf struct buf to = {0};

	buf_init(&to, SIZE_MAX);
	mask_stream_init(&stream, mask);
	for (size_t at = 0; at < length; at += piece)
		mask_stream_add(&stream, text + at, MIN(piece, length - at), &to);
	mask_stream_end(&stream, &to);
	return buf_steal(&to, NULL);
}

static void assert_masked(const struct mask *mask, const char *text, const char *wanted)
{
	for (size_t piece = 1; piece <= strlen(text); piece++) {
		auto_free char *is = masked(mask, text, strlen(text), piece);

		assert_string_equal(is, wanted);
	}
}

static void test_values(void **state)
{
	auto_mask struct mask *mask = mask_of("hunter2");
	auto_mask struct mask *periodic = mask_of("abab");
	auto_mask struct mask *lines = mask_of("one\ntwo three\r\n");

	(void)state;
	assert_masked(mask, "it is hunter2, hunter2hunter2 and hunter 2", "it is ***, *** and hunter 2");
	assert_masked(mask, "hunhunter2ter2", "hun***ter2");
	assert_masked(mask, "hun\nter2 hunt\r\ner2 hunt\n\r\ner2 hunter", "*** *** hunt\n\r\ner2 hunter");
	assert_masked(periodic, "xababababay abaab", "x***ay abaab");
	assert_masked(lines, "onetwo three. one\ntwo\nthree, one\ntwo three\n", "***. one\ntwo\nthree, ***\n");
	assert_null(mask_of("abc"));
	assert_null(mask_of(""));
	assert_masked(NULL, "abc", "abc");
}

static void test_several(void **state)
{
	const struct mask_value values[] = {{"second", 6}, {"condor", 6}, {"seconds and more", 16}, {"x", 1}};
	auto_mask struct mask *mask = mask_new(values, ARRAY_SIZE(values));

	(void)state;
	assert_masked(mask, "a secondor, seconds and less, seconds and more", "a ***, ***s and less, ***");
	assert_masked(mask, "secondcondor x", "*** x");
}

static void test_base64(void **state)
{
	const char secret[] = "k\xc3\xb6nig~?>/+pass";
	auto_mask struct mask *mask = mask_of(secret);

	(void)state;
	for (size_t before = 0; before < 8; before++)
		for (size_t after = 0; after < 8; after++) {
			auto_free char *text =
				xasprintf("%.*s%s%.*s", (int)before, "-------", secret, (int)after, "-------");
			auto_buf struct buf encoded = {0};

			buf_init(&encoded, 1000);
			base64_encode(&encoded, text, strlen(text));
			auto_free char *is = masked(mask, encoded.data, encoded.length, 3);
			/* At most one digit on each side holds bits of the secret besides others. */
			size_t first = 8 * before / 6, end = (8 * (before + strlen(secret)) + 5) / 6;

			assert_non_null(strstr(is, MASK_MARK));
			assert_true(strlen(is) <= strlen(encoded.data) - (end - first) + 2 + 3);
			for (char *c = encoded.data; *c; c++)
				*c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
			auto_free char *url = masked(mask, encoded.data, encoded.length, 5);

			assert_int_equal(strlen(url), strlen(is));
		}
	/* At the end of what is encoded the last digit goes, too, although some of its bits are nobody's. */
	auto_mask struct mask *seven = mask_of("hunter2");

	assert_masked(seven, "aHVudGVyMg== eGh1bnRlcjI=", "***== eG***=");
	assert_masked(seven, "aHVudGVyMg", "***");
	/* What base64 and xxd make of it, in lines. */
	assert_masked(mask, "a8O2bmln\nfj8+Lytw\nYXNz\n", "***\n");
	assert_masked(mask, "6bc3b66e 6bc3b66e69677e3f\n3e2f2b70617373", "6bc3b66e ***");
	assert_masked(mask, "6BC3B66E69677E3F3E2F2B70617373", "***");
}

static void test_url_json(void **state)
{
	auto_mask struct mask *mask = mask_of("a b/c'd\"~!\n\\");

	(void)state;
	assert_masked(mask, "a%20b%2Fc%27d%22~%21%0A%5C", "***");
	assert_masked(mask, "a%20b%2fc%27d%22~%21%0a%5c", "***");
	assert_masked(mask, "a+b%2Fc%27d%22%7E%21%0A%5C", "***");
	assert_masked(mask, "a+b%2Fc%27d%22~%21%0A%5C a+b%2fc%27d%22~%21%0a%5c", "*** ***");
	assert_masked(mask, "a%20b/c%27d%22~%21%0A%5C a%20b%2Fc'd%22~!%0A%5C a%20b/c'd%22~!%0A%5C", "*** *** ***");
	assert_masked(mask, "{\"K\":\"a b/c'd\\\"~!\\n\\\\\"}", "{\"K\":\"***\"}");
	auto_mask struct mask *other = mask_of("p\xc3\xa4\xe2\x82\xac\n\xf0\x9f\x98\x80\x7f");

	assert_masked(other, "\"p\xc3\xa4\xe2\x82\xac\\n\xf0\x9f\x98\x80\x7f\"", "\"***\"");
	assert_masked(other, "\"p\\u00e4\\u20ac\\n\\ud83d\\ude00\\u007f\"", "\"***\""); /* json.dumps */
	assert_masked(other, "\"p\\u00E4\\u20AC\\n\\uD83D\\uDE00\\u007F\"", "\"***\"");
	auto_mask struct mask *bytes = mask_of("\xff\xc3p\xc3\xa4\xe2\x82");

	assert_masked(bytes, "\xff\xc3p\\u00e4\xe2\x82", "***");
}

/* -------- against the obvious ------------------------------------------------------------------------- */

struct search {
	const char *text; /* without line ends */
	size_t length;
	bool *hidden;
};

static void search_form(void *arg, const char *form, size_t length)
{
	struct search *search = arg;

	for (size_t at = 0; length >= MASK_LEAST && at + length <= search->length; at++)
		if (memcmp(search->text + at, form, length) == 0)
			memset(search->hidden + at, true, length);
}

static char *masked_plainly(const struct mask_value *values, size_t count, const char *text, size_t length)
{
	auto_free bool *hidden = xcalloc(length + 1, 1);
	auto_buf struct buf to = {0};

	buf_init(&to, SIZE_MAX);
	for (size_t i = 0; i < count; i++)
		mask_forms(&values[i], search_form, &(struct search){text, length, hidden});
	for (size_t i = 0; i < length; i++)
		if (!hidden[i])
			buf_putc(&to, text[i]);
		else if (i == 0 || !hidden[i - 1])
			buf_puts(&to, MASK_MARK);
	return buf_steal(&to, NULL);
}

static void test_random(void **state)
{
	uint64_t seed = 12345;
	char text[400], secret[2][8];

	(void)state;
	for (size_t round = 0; round < 3000; round++) {
		struct mask_value values[2];

		for (size_t i = 0; i < sizeof(text); i++) {
			seed = seed * 6364136223846793005U + 1442695040888963407U;
			text[i] = "abcd"[seed >> 62];
		}
		for (size_t i = 0; i < 2; i++) {
			size_t length = 4 + (seed >> (20 + i)) % 4;

			memcpy(secret[i], text + 100 * (i + 1), length);
			values[i] = (struct mask_value){secret[i], length};
		}
		auto_mask struct mask *mask = mask_new(values, 2);
		auto_free char *is = masked(mask, text, sizeof(text), 1 + round % 400);
		auto_free char *wanted = masked_plainly(values, 2, text, sizeof(text));

		assert_string_equal(is, wanted);
	}
}

static void test_long(void **state)
{
	auto_buf struct buf secret = {0}, text = {0};

	(void)state;
	buf_init(&secret, SIZE_MAX);
	buf_init(&text, SIZE_MAX);
	for (size_t i = 0; i < 5000; i++)
		buf_printf(&secret, "%05zu", i * 7919 % 100000);
	auto_mask struct mask *mask = mask_new(&(struct mask_value){secret.data, secret.length}, 1);

	for (size_t i = 0; i < 40; i++) {
		buf_puts(&text, "-");
		buf_add(&text, secret.data, secret.length - i % 2);
	}
	auto_free char *is = masked(mask, text.data, text.length, 4096);
	size_t length = strlen(is), marks = 0;

	for (const char *at = is; (at = strstr(at, MASK_MARK)); at++)
		marks++;
	assert_int_equal(marks, 20);
	assert_int_equal(length, 40 + 20 * 3 + 20 * (secret.length - 1));
	/* A secret that never ends holds nothing back for ever. */
	auto_mask struct mask *same = mask_of("aaaa");
	auto_mask_stream struct mask_stream stream;
	auto_buf struct buf to = {0};

	buf_init(&to, SIZE_MAX);
	mask_stream_init(&stream, same);
	for (size_t i = 0; i < 1000; i++)
		mask_stream_add(&stream, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 33, &to);
	assert_true(stream.held.length < 8);
	mask_stream_end(&stream, &to);
	assert_string_equal(to.data, MASK_MARK);
}

static void test_text(void **state)
{
	auto_mask struct mask *mask = mask_of("abcd");
	char text[8] = "xabcdef", none[8] = "xyz";

	(void)state;
	mask_text(mask, text, sizeof(text));
	assert_string_equal(text, "x***ef");
	mask_text(mask, none, sizeof(none));
	assert_string_equal(none, "xyz");
	mask_text(NULL, none, sizeof(none));
	assert_string_equal(none, "xyz");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),   cmocka_unit_test(test_several), cmocka_unit_test(test_base64),
		cmocka_unit_test(test_url_json), cmocka_unit_test(test_random),  cmocka_unit_test(test_long),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
