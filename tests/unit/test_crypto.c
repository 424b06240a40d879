/* Encodings against published vectors; ids against their promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

static void test_hex(void **state)
{
	uint8_t bytes[] = {0x00, 0x7f, 0xab, 0xff}, back[4];
	char text[9];

	(void)state;
	hex_encode(bytes, 4, text);
	assert_string_equal(text, "007fabff");
	assert_int_equal(hex_decode("007FabFF", 8, back), 0);
	assert_memory_equal(bytes, back, 4);
	assert_int_equal(hex_decode("0", 1, back), -1);
	assert_int_equal(hex_decode("0g", 2, back), -1);
	assert_int_equal(hex_decode(" 0", 2, back), -1);
	assert_int_equal(hex_decode("", 0, back), 0);
}

/* RFC 4648, section 10. */
static void test_base64_vectors(void **state)
{
	static const char *const pairs[][2] = {{"", ""},
					       {"f", "Zg=="},
					       {"fo", "Zm8="},
					       {"foo", "Zm9v"},
					       {"foob", "Zm9vYg=="},
					       {"fooba", "Zm9vYmE="},
					       {"foobar", "Zm9vYmFy"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		auto_buf struct buf out = {0}, back = {0};

		buf_init(&out, 100);
		buf_init(&back, 100);
		base64_encode(&out, pairs[i][0], strlen(pairs[i][0]));
		assert_string_equal(out.data, pairs[i][1]);
		assert_int_equal(base64_decode(out.data, out.length, &back, NULL), 0);
		assert_string_equal(back.data, pairs[i][0]);
	}
}

/* As clients and models send it. */
static void test_base64_meant(void **state)
{
	static const struct {
		const char *text, *bytes;
	} tries[] = {
		{"aGVsbG8=", "hello"},
		{"aGVs\nbG8=\n", "hello"},
		{"  aGVs\r\n\tbG8= \r\n", "hello"},
		{"aGVsbG8", "hello"},
		{"aGVsbA", "hell"},
		{"data:text/plain;base64,aGVsbG8=", "hello"},
		{"DATA:;charset=utf-8;BASE64,aGVsbG8", "hello"},
		{"\n data:text/plain;base64,\naGVsbG8=\n", "hello"},
		{"Pz8/Pj4-", "?""?""?>>>"},
		{"Pz8_Pj4-", "?""?""?>>>"},
		{"", ""},
		{"a", NULL},
		{"aGVsbG8=x", NULL},
		{"aGVs=bG8", NULL},
		{"some words", NULL},
		{"aGVs bG8=", NULL},
		{"data:text/plain,aGVsbG8=", NULL},
		{"{\"a\":1}", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		auto_buf struct buf out = {0};

		buf_init(&out, 1000);
		int result = base64_decode_meant(tries[i].text, strlen(tries[i].text), &out, NULL);

		if (result != (tries[i].bytes ? 0 : -ERR_INVALID))
			fail_msg("%s", tries[i].text);
		assert_string_equal(out.data, tries[i].bytes ? tries[i].bytes : "");
	}
}

static void test_base64_round_trip(void **state)
{
	uint8_t bytes[257], large[10000];

	(void)state;
	for (size_t length = 0; length <= sizeof(bytes); length++) {
		auto_buf struct buf out = {0}, back = {0};

		random_bytes(bytes, length);
		buf_init(&out, 1000);
		buf_init(&back, 1000);
		base64_encode(&out, bytes, length);
		assert_int_equal(base64_decode(out.data, out.length, &back, NULL), 0);
		assert_int_equal(back.length, length);
		assert_memory_equal(back.data, bytes, length);
	}

	/* More than one block, and a wrong character far behind: nothing of it stays. */
	auto_buf struct buf text = {0}, back = {0};

	buf_init(&text, 20000);
	buf_init(&back, 20000);
	random_bytes(large, sizeof(large));
	base64_encode(&text, large, sizeof(large));
	assert_int_equal(base64_decode(text.data, text.length, &back, NULL), 0);
	assert_int_equal(back.length, sizeof(large));
	assert_memory_equal(back.data, large, sizeof(large));
	buf_reset(&back);
	text.data[9000] = '!';
	assert_int_equal(base64_decode(text.data, text.length, &back, NULL), -ERR_INVALID);
	assert_int_equal(back.length, 0);
}

static void test_base64_refused(void **state)
{
	static const struct {
		const char *text;
		const char *place;
	} cases[] = {
		{"Zg", "character 3 is missing"},     {"Zg=", "character 4 is missing"},
		{"Z", "character 2 is missing"},      {"Zm9vZ", "character 6 is missing"},
		{"Zh==", "character 2 is wrong"},     {"Zm9=", "character 3 is wrong"},
		{"====", "character 1 is wrong"},     {"Z===", "character 2 is wrong"},
		{"Zg==Zg==", "character 3 is wrong"}, {"Zm9v\nZm9v", "character 10 is missing"},
		{"Zm9 ", "character 4 is wrong"},     {"Zm9-", "character 4 is wrong"},
		{"Zm9_", "character 4 is wrong"},     {"=m9v", "character 1 is wrong"},
		{"Zm=v", "character 3 is wrong"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = ERR_INIT;
		auto_buf struct buf out = {0};

		buf_init(&out, 100);
		buf_puts(&out, "before");
		assert_int_equal(base64_decode(cases[i].text, strlen(cases[i].text), &out, &err), -ERR_INVALID);
		if (cases[i].place != NULL && strchr(cases[i].text, '\n') == NULL)
			assert_non_null(strstr(err.text, cases[i].place));
		assert_string_equal(out.data, "before"); /* nothing of it stays */
	}
}

static void test_sha256(void **state)
{
	char hex[SHA256_HEX_SIZE];
	struct sha256 *digest = sha256_new();

	(void)state;
	sha256_hex("abc", 3, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha256_hex("", 0, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	for (int i = 0; i < 1000000; i += 1000) {
		char block[1000];

		memset(block, 'a', sizeof(block));
		sha256_add(digest, block, sizeof(block));
	}
	sha256_finish(digest, hex);
	assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	sha256_finish(sha256_new(), NULL);
}

/* RFC 4231, test cases 1, 2 and 6. */
static void test_hmac(void **state)
{
	uint8_t key[131], mac[SHA256_SIZE];
	char hex[SHA256_HEX_SIZE];

	(void)state;
	memset(key, 0x0b, 20);
	hmac_sha256(key, 20, "Hi There", 8, mac);
	hex_encode(mac, sizeof(mac), hex);
	assert_string_equal(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, mac);
	hex_encode(mac, sizeof(mac), hex);
	assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof(key));
	hmac_sha256(key, sizeof(key), "Test Using Larger Than Block-Size Key - Hash Key First", 54, mac);
	hex_encode(mac, sizeof(mac), hex);
	assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void test_equal(void **state)
{
	(void)state;
	assert_true(equal_constant_time("abc", "abc", 3));
	assert_false(equal_constant_time("abc", "abd", 3));
	assert_true(equal_constant_time("abc", "abd", 2));
	assert_true(equal_constant_time("", "", 0));
}

#define IDS 20000
#define THREADS 4

static void *make_ids(void *arg)
{
	char(*ids)[ID_SIZE] = arg;

	for (size_t i = 0; i < IDS; i++)
		id_new(ids[i]);
	return NULL;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Strictly increasing within a thread, all different over all threads, and the time is in front. */
static void test_ids(void **state)
{
	static char ids[THREADS * IDS][ID_SIZE];
	pthread_t threads[THREADS];
	int64_t before = clock_now_us() / 1000;

	(void)state;
	for (size_t t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, make_ids, ids[t * IDS]), 0);
	for (size_t t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	for (size_t t = 0; t < THREADS; t++)
		for (size_t i = t * IDS; i < (t + 1) * IDS; i++) {
			assert_true(id_valid(ids[i]));
			if (i > t * IDS)
				assert_true(strcmp(ids[i - 1], ids[i]) < 0);
		}
	qsort(ids, THREADS * IDS, ID_SIZE, compare_ids);
	for (size_t i = 1; i < (size_t)THREADS * IDS; i++)
		assert_string_not_equal(ids[i - 1], ids[i]);

	auto_free char *time = xasprintf("%.8s%.4s", ids[0], ids[0] + 9);

	assert_in_range(strtoll(time, NULL, 16), before, clock_now_us() / 1000 + 1);
}

static void test_id_valid(void **state)
{
	static const char *const bad[] = {
		"",
		"x",
		"0193f0a0-0000-4000-8000-000000000000",
		"0193f0a0-0000-7000-0000-000000000000",
		"0193F0A0-0000-7000-8000-000000000000",
		"0193f0a0-0000-7000-8000-00000000000",
		"0193f0a0-0000-7000-8000-0000000000000",
		"0193f0a0/0000-7000-8000-000000000000",
	};

	(void)state;
	assert_true(id_valid("0193f0a0-0000-7000-8000-000000000000"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(id_valid(bad[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hex),
		cmocka_unit_test(test_base64_vectors),
		cmocka_unit_test(test_base64_meant),
		cmocka_unit_test(test_base64_round_trip),
		cmocka_unit_test(test_base64_refused),
		cmocka_unit_test(test_sha256),
		cmocka_unit_test(test_hmac),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_id_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
