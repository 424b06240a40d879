/* test_crypto_seal.c - sealed texts open with their key and context only, and not when a single bit was turned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/util.h"
#include "lib/store/db/crypto.h"

static const uint8_t key[SEAL_KEY_SIZE] = "0123456789abcdef0123456789abcde";

static void round_trip(void **state)
{
	static const size_t lengths[] = {0, 1, 15, 16, 17, 100000};
	auto_free char *text = xcalloc(1, 100000);

	(void)state;
	memset(text, 'x', 100000);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct err err = ERR_INIT;
		auto_buf struct buf sealed, again, opened;

		buf_init(&sealed, SIZE_MAX);
		buf_init(&again, SIZE_MAX);
		buf_init(&opened, SIZE_MAX);
		seal(key, "row 1", text, lengths[i], &sealed);
		seal(key, "row 1", text, lengths[i], &again);
		assert_int_equal(sealed.length, lengths[i] + SEAL_OVERHEAD);
		assert_memory_not_equal(sealed.data, again.data, sealed.length); /* a nonce of its own each time */
		buf_puts(&opened, "before");
		assert_int_equal(unseal(key, "row 1", sealed.data, sealed.length, &opened, &err), 0);
		assert_int_equal(opened.length, lengths[i] + 6); /* appended */
		assert_memory_equal(opened.data + 6, text, lengths[i]);
	}
}

static void assert_shut(const uint8_t *with, const char *context, const struct buf *sealed, size_t length)
{
	struct err err = ERR_INIT;
	auto_buf struct buf opened;

	buf_init(&opened, SIZE_MAX);
	assert_int_equal(unseal(with, context, sealed->data, length, &opened, &err), -ERR_CORRUPT);
	assert_int_equal(opened.length, 0);
}

static void nothing_else_opens(void **state)
{
	auto_buf struct buf sealed;
	uint8_t other[SEAL_KEY_SIZE];

	(void)state;
	buf_init(&sealed, SIZE_MAX);
	seal(key, "row 1", "secret", 6, &sealed);
	assert_shut(key, "row 2", &sealed, sealed.length);
	assert_shut(key, "", &sealed, sealed.length);
	memcpy(other, key, sizeof(other));
	other[31] ^= 1;
	assert_shut(other, "row 1", &sealed, sealed.length);
	for (size_t length = 0; length < sealed.length; length++)
		assert_shut(key, "row 1", &sealed, length);
	for (size_t bit = 0; bit < 8 * sealed.length; bit++) {
		sealed.data[bit / 8] = (char)(sealed.data[bit / 8] ^ 1 << bit % 8);
		assert_shut(key, "row 1", &sealed, sealed.length);
		sealed.data[bit / 8] = (char)(sealed.data[bit / 8] ^ 1 << bit % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(nothing_else_opens),
	};

	return cmocka_run_group_tests_name("crypto_seal", tests, NULL, NULL);
}
