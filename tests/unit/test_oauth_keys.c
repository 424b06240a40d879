/* test_oauth_keys.c - key sets of issuers: which entries are keys, and which are passed over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/oauth/oauth_keys.h"
#include "oauth_forge.h"

static struct forge forge;

static int open_all(void **state)
{
	(void)state;
	forge_open(&forge);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	forge_close(&forge);
	return 0;
}

static int parse_keys(const char *members)
{
	auto_free char *set = xasprintf("{\"keys\":[%s]}", members);
	struct oauth_keys *parsed = NULL;
	int result = oauth_keys_parse(set, strlen(set), &parsed, NULL);

	result = result < 0 ? 0 : (int)oauth_keys_count(parsed);
	oauth_keys_free(parsed);
	return result;
}

/* One entry of a kind of key; `bits` 0: that of the test. */
static int parse_rsa(int bits, const char *exponent, bool even)
{
	EVP_PKEY *key = EVP_RSA_gen(bits ? (unsigned)bits : 2048);
	auto_free char *n = forge_number(key, OSSL_PKEY_PARAM_RSA_N, 0);
	auto_buf struct buf entry = {0};

	if (even)
		n[strlen(n) - 1] = 'A'; /* its low bits */
	buf_init(&entry, SIZE_MAX / 2);
	buf_printf(&entry, "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"}", n, exponent);
	EVP_PKEY_free(key);
	return parse_keys(entry.data);
}

static void key_sets(void **state)
{
	static const char *const bad[] = {"",
					  "{}",
					  "[]",
					  "{\"keys\":{}}",
					  "{\"keys\":[]}",
					  "{\"keys\":[7,null,\"x\",[]]}",
					  "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}",
					  "{\"keys\":[],\"keys\":[]}"};
	auto_buf struct buf one = {0}, off_curve = {0}, many = {0};
	struct oauth_keys *parsed;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(oauth_keys_parse(bad[i], strlen(bad[i]), &parsed, NULL), -ERR_INVALID);
	assert_int_equal(parse_rsa(0, "AQAB", false), 1);
	assert_int_equal(parse_rsa(1024, "AQAB", false), 0);
	assert_int_equal(parse_rsa(0, "AQ", false), 0);           /* 1 */
	assert_int_equal(parse_rsa(0, "AQAA", false), 0);         /* 65536 */
	assert_int_equal(parse_rsa(0, "AQAAAAAAAAAB", false), 0); /* of 65 bits */
	assert_int_equal(parse_rsa(0, "AQAB", true), 0);
	buf_init(&one, SIZE_MAX / 2);
	forge_jwk(&one, forge.p256, ",\"use\":\"enc\"");
	assert_int_equal(parse_keys(one.data), 0);
	buf_reset(&one);
	forge_jwk(&one, forge.ed25519, ",\"key_ops\":[\"sign\"]");
	assert_int_equal(parse_keys(one.data), 0);
	buf_reset(&one);
	forge_jwk(&one, forge.p256, ",\"alg\":\"ES384\"");
	assert_int_equal(parse_keys(one.data), 0);
	buf_reset(&one);
	forge_jwk(&one, forge.p256, "");
	assert_int_equal(parse_keys(one.data), 1);
	/* A point that is not on the curve. */
	buf_init(&off_curve, SIZE_MAX / 2);
	buf_puts(&off_curve, one.data);
	char *x = strstr(off_curve.data, "\"x\":\"") + strlen("\"x\":\"");

	x[5] = x[5] == 'A' ? 'B' : 'A';
	assert_int_equal(parse_keys(off_curve.data), 0);
	buf_init(&many, SIZE_MAX / 2);
	for (int i = 0; i <= OAUTH_KEYS_MAX; i++)
		buf_printf(&many, "%s%s", i ? "," : "", "{}");
	assert_int_equal(parse_keys(many.data), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(key_sets)};

	return cmocka_run_group_tests_name("oauth_keys", tests, open_all, close_all);
}
