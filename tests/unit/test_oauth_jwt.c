/* test_oauth_jwt.c - tokens of other issuers: each algorithm, and forgeries with the reason for which each is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/oauth/oauth_jwt.h"
#include "oauth_forge.h"

#define NOW_S          1800000000
#define NOW_US         (NOW_S * INT64_C(1000000))
#define HEAD(alg, kid) "{\"typ\":\"at+jwt\",\"alg\":\"" alg "\",\"kid\":\"" kid "\"}"
#define BODY(more)                                                                                                     \
	"{\"iss\":\"https://issuer.example\",\"aud\":\"https://box.example/"                                           \
	"mcp\",\"exp\":1800000300,\"sub\":\"ann\"" more "}"
/* Without one of them, or with another one. */
#define PLAIN(rest) "{\"sub\":\"ann\"" rest "}"
#define ISS         ",\"iss\":\"https://issuer.example\""
#define AUD         ",\"aud\":\"https://box.example/mcp\""
#define EXP         ",\"exp\":1800000300"

static struct forge forge;
static struct oauth_keys *keys;
static const char *audience = "https://box.example/mcp";
static struct oauth_rules rules = {
	.issuer = "https://issuer.example",
	.algorithms = OAUTH_RS256 | OAUTH_PS256 | OAUTH_ES256 | OAUTH_EDDSA,
};

static int open_all(void **state)
{
	auto_buf struct buf set = {0};
	struct err err = ERR_INIT;

	(void)state;
	rules.audiences = (struct bind_strings){&audience, 1};
	forge_open(&forge);
	forge_set(&set, &forge);
	if (oauth_keys_parse(set.data, set.length, &keys, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(oauth_keys_count(keys), 4);
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	oauth_keys_free(keys);
	forge_close(&forge);
	return 0;
}

/* `reason` NULL: it is good. */
static void expect_rules(const struct oauth_rules *which, const char *token, const char *reason)
{
	auto_json struct json_object *claims = NULL;
	struct err err = ERR_INIT;
	int result = oauth_jwt_check(token, keys, which, NOW_US, &claims, &err);

	if (reason == NULL) {
		if (result < 0)
			fail_msg("%s: %s", token, err.text);
		assert_string_equal(json_get_string(claims, "sub"), "ann");
		return;
	}
	assert_null(claims);
	if (result == 0 || strstr(err.text, reason) == NULL)
		fail_msg("%s: \"%s\" instead of \"%s\"", token, result == 0 ? "good" : err.text, reason);
}
static void expect(const char *token, const char *reason)
{
	expect_rules(&rules, token, reason);
}

static EVP_PKEY *key_of(const char *alg)
{
	return alg[0] == 'E' && alg[1] == 'd' ? forge.ed25519
	       : alg[0] == 'E'                ? (strstr(alg, "384") ? forge.p384 : forge.p256)
					      : forge.rsa;
}

static void algorithms(void **state)
{
	static const char *const names[] = {"RS256", "RS384", "RS512", "PS256", "PS384",
					    "PS512", "ES256", "ES384", "EdDSA"};
	static const char *const ids[] = {"rsa", "rsa", "rsa", "rsa", "rsa", "rsa", "p256", "p384", "ed"};
	struct oauth_rules all = rules;

	(void)state;
	all.algorithms = ~0u;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		auto_free char *head =
			xasprintf("{\"typ\":\"at+jwt\",\"alg\":\"%s\",\"kid\":\"%s\"}", names[i], ids[i]);
		auto_free char *token = forge_token(key_of(names[i]), names[i], head, BODY(""));
		auto_free char *nameless = xasprintf("{\"typ\":\"application/AT+JWT\",\"alg\":\"%s\"}", names[i]);
		auto_free char *without = forge_token(key_of(names[i]), names[i], nameless, BODY(""));
		const bool usual = strstr(names[i], "256") != NULL || names[i][1] == 'd';

		expect_rules(&all, token, NULL);
		expect_rules(&all, without, NULL); /* names no key: those that fit are tried */
		expect(token, usual ? NULL : "the algorithm is not allowed");
		char *place = token + strlen(token) - 20;

		*place = *place == 'A' ? 'B' : 'A';
		expect_rules(&all, token, "the signature is not by a key");
	}
}

/* What a header may not say, whoever signed it. */
static void headers(void **state)
{
	static const struct {
		const char *head, *reason;
	} rows[] = {
		{"{\"typ\":\"at+jwt\",\"alg\":\"none\",\"kid\":\"rsa\"}", "the algorithm is not allowed"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"None\",\"kid\":\"rsa\"}", "the algorithm is not allowed"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"nOnE\",\"kid\":\"rsa\"}", "the algorithm is not allowed"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"HS256\",\"kid\":\"rsa\"}", "the algorithm is not allowed"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"rs256\",\"kid\":\"rsa\"}", "the algorithm is not allowed"},
		{"{\"typ\":\"at+jwt\",\"alg\":256,\"kid\":\"rsa\"}", "the algorithm is not allowed"},
		{"{\"typ\":\"at+jwt\",\"kid\":\"rsa\"}", "the algorithm is not allowed"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"p256\"}",
		 "no key of the issuer is for this algorithm"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"rsa\",\"crit\":[\"b64\"]}", "crit"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"../../x\"}", "no key of this id"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"' OR 1=1 --\"}", "no key of this id"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"\"}", "no key of this id"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":7}", "kid is not a text"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":null}", "kid is not a text"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"rsa\\u0000\"}", "kid is not a text"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"alg\":\"RS256\",\"kid\":\"rsa\"}", "not a JWT"},
		{"{\"typ\":\"JWT\",\"alg\":\"RS256\",\"kid\":\"rsa\"}", "not an access token"},
		{"{\"alg\":\"RS256\",\"kid\":\"rsa\"}", "not an access token"},
		{"{\"typ\":\"dpop+jwt\",\"alg\":\"RS256\",\"kid\":\"rsa\"}", "not an access token"},
		{"{\"typ\":7,\"alg\":\"RS256\",\"kid\":\"rsa\"}", "typ is not a text"},
		{"[\"at+jwt\"]", "not a JWT"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"rsa\"}x", "not a JWT"},
		/* Keys and addresses of the sender's choice change nothing. */
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"other\",\"jwk\":{\"kty\":\"RSA\"},\"jku\":\"http://"
		 "127.0.0.1:1/\","
		 "\"x5u\":\"http://127.0.0.1:1/\"}",
		 "no key of this id"},
		{"{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"rsa\",\"jku\":\"http://127.0.0.1:1/\"}", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *token = forge_token(forge.rsa, "RS256", rows[i].head, BODY(""));

		expect(token, rows[i].reason);
	}
	auto_free char *deep = xcalloc(1, 4096), *long_id = xcalloc(1, 4096);

	memset(deep, '[', 2000);
	memset(long_id, 'a', 4000);
	auto_free char *bomb = xasprintf("{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"rsa\",\"x\":%s}", deep);
	auto_free char *long_head = xasprintf("{\"typ\":\"at+jwt\",\"alg\":\"RS256\",\"kid\":\"%s\"}", long_id);
	auto_free char *first = forge_token(forge.rsa, "RS256", bomb, BODY(""));
	auto_free char *second = forge_token(forge.rsa, "RS256", long_head, BODY(""));

	expect(first, "not a JWT");
	expect(second, "no key of this id");
}

static void claims(void **state)
{
	static const struct {
		const char *claims, *reason;
	} rows[] = {
		{BODY(""), NULL},
		{BODY(",\"nbf\":1800000050,\"iat\":1799999999.5"), NULL},
		{PLAIN(ISS ",\"aud\":[\"x\",\"https://box.example/mcp\"]" EXP), NULL},
		{PLAIN(ISS AUD ",\"exp\":1799999945"), NULL}, /* within the leeway */
		{PLAIN(ISS AUD ",\"exp\":1799999940"), "the token expired"},
		{PLAIN(ISS AUD ",\"exp\":1799999000.25"), "the token expired"},
		{PLAIN(ISS AUD), "exp is missing"},
		{PLAIN(ISS AUD ",\"exp\":\"1800000300\""), "is not a time"},
		{PLAIN(ISS AUD ",\"exp\":1e308"), "is not a time"},
		{PLAIN(ISS AUD ",\"exp\":-1"), "is not a time"},
		{PLAIN(ISS AUD ",\"exp\":null"), "is not a time"},
		{PLAIN(ISS AUD ",\"exp\":true"), "is not a time"},
		{PLAIN(ISS AUD ",\"exp\":[1800000300]"), "is not a time"},
		{PLAIN(ISS AUD ",\"exp\":9007199254740994"), "is not a time"},
		{PLAIN(ISS AUD ",\"exp\":1800000300,\"exp\":1800000300"), "not a JWT"},
		{BODY(",\"nbf\":1800000061"), "not valid yet"},
		{BODY(",\"iat\":1800000061"), "not valid yet"},
		{BODY(",\"nbf\":\"soon\""), "is not a time"},
		{PLAIN(AUD EXP), "another issuer"},
		{PLAIN(AUD EXP ",\"iss\":\"https://issuer.example/\""), "another issuer"},
		{PLAIN(AUD EXP ",\"iss\":\"https://Issuer.example\""), "another issuer"},
		{PLAIN(AUD EXP ",\"iss\":\"https://\\u0456ssuer.example\""), "another issuer"},
		{PLAIN(AUD EXP ",\"iss\":\"https://issuer.example\\u0000\""), "another issuer"},
		{PLAIN(AUD EXP ",\"iss\":[\"https://issuer.example\"]"), "another issuer"},
		{PLAIN(AUD EXP ISS ISS), "not a JWT"},
		{PLAIN(ISS EXP), "another audience"},
		{PLAIN(ISS EXP ",\"aud\":\"https://other.example/mcp\""), "another audience"},
		{PLAIN(ISS EXP ",\"aud\":\"https://box.example\""), "another audience"},
		{PLAIN(ISS EXP ",\"aud\":[]"), "another audience"},
		{PLAIN(ISS EXP ",\"aud\":{\"https://box.example/mcp\":1}"), "another audience"},
		{PLAIN(ISS EXP ",\"aud\":[[\"https://box.example/mcp\"]]"), "another audience"},
		{PLAIN(ISS EXP ",\"aud\":null"), "another audience"},
		{PLAIN(ISS EXP AUD AUD), "not a JWT"},
		{BODY(",\"cnf\":{\"jkt\":\"x\"}"), "bound to a key"},
		{BODY(",\"cnf\":null"), "bound to a key"},
		{"[]", "not a JWT"},
		{"", "not a JWT"},
		{"{\"sub\":\"\xff\"}", "not a JWT"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *token = forge_token(forge.rsa, "RS256", HEAD("RS256", "rsa"), rows[i].claims);

		expect(token, rows[i].reason);
	}
}

/* What Keycloak, Entra and Auth0 give out has the type JWT; then other tokens of theirs are recognised by their claims.
 */
static void any_type(void **state)
{
	static const struct {
		const char *type, *more, *reason;
	} rows[] = {
		{",\"typ\":\"JWT\"", "", NULL},
		{"", "", NULL},
		{",\"typ\":\"JWT\"", ",\"typ\":\"Bearer\"", NULL},
		{",\"typ\":\"JWT\"", ",\"typ\":\"ID\"", "not an access token"},
		{",\"typ\":\"JWT\"", ",\"typ\":\"Refresh\"", "not an access token"},
		{",\"typ\":\"JWT\"", ",\"typ\":null", "not an access token"},
		{",\"typ\":\"JWT\"", ",\"nonce\":\"n\"", "not an access token (nonce)"},
		{",\"typ\":\"JWT\"", ",\"at_hash\":\"n\"", "not an access token (at_hash)"},
		{",\"typ\":\"JWT\"", ",\"c_hash\":\"n\"", "not an access token (c_hash)"},
		{"", ",\"events\":{}", "not an access token (events)"},
		{",\"typ\":\"logout+jwt\"", "", "not an access token"},
		{",\"typ\":\"oauth-id-jag+jwt\"", "", "not an access token"},
		{",\"typ\":\"entity-statement+jwt\"", "", "not an access token"},
	};
	struct oauth_rules any = rules;

	(void)state;
	any.any_type = true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *head = xasprintf("{\"alg\":\"RS256\",\"kid\":\"rsa\"%s}", rows[i].type);
		auto_free char *body = xasprintf("{\"sub\":\"ann\"" ISS AUD EXP "%s}", rows[i].more);
		auto_free char *token = forge_token(forge.rsa, "RS256", head, body);

		expect_rules(&any, token, rows[i].reason);
		expect(token, "not an access token");
	}
}

static void clients(void **state)
{
	static const struct {
		const char *more, *reason;
	} rows[] = {
		{"", "of a client that is not allowed"},
		{",\"azp\":\"app\"", NULL},
		{",\"client_id\":\"app\"", NULL},
		{",\"appid\":\"app\"", NULL},
		{",\"cid\":\"app\"", NULL},
		{",\"azp\":\"other\",\"client_id\":\"app\"", "of a client that is not allowed"},
		{",\"azp\":[\"app\"]", "of a client that is not allowed"},
	};
	const char *app = "app";
	struct oauth_rules some = rules;

	(void)state;
	some.clients = (struct bind_strings){&app, 1};
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *body = xasprintf("{\"sub\":\"ann\"" ISS AUD EXP "%s}", rows[i].more);
		auto_free char *token = forge_token(forge.rsa, "RS256", HEAD("RS256", "rsa"), body);

		expect_rules(&some, token, rows[i].reason);
	}
}

static char *with_signature(const char *head, const void *bytes, size_t length)
{
	auto_free char *text = forge_unsigned(head, BODY(""));
	struct buf out;

	buf_init(&out, SIZE_MAX / 2);
	buf_printf(&out, "%s.", text);
	base64url_encode(&out, bytes, length);
	return buf_steal(&out, NULL);
}

static void signatures(void **state)
{
	static const unsigned char zeros[64];
	static const char head[] = HEAD("ES256", "p256");
	auto_free char *text = forge_unsigned(head, BODY(""));
	unsigned char raw[1024], der[1024];
	const size_t length = forge_sign(forge.p256, "ES256", text, raw, false);
	const size_t n_der = forge_sign(forge.p256, "ES256", text, der, true);

	(void)state;
	assert_int_equal(length, 64);
	const struct {
		const void *bytes;
		size_t length;
		const char *reason;
	} rows[] = {
		{raw, 64, NULL},           {raw, 63, "not by a key"},   {raw, 65, "not by a key"},
		{raw, 32, "not by a key"}, {zeros, 64, "not by a key"}, {der, n_der, "not by a key"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_free char *token = with_signature(head, rows[i].bytes, rows[i].length);

		expect(token, rows[i].reason);
	}
	/* HS256 with the public key as its secret, and a key of another kind behind the same id. */
	auto_free char *hmac = with_signature(HEAD("HS256", "rsa"), zeros, 32);
	auto_free char *other = forge_token(forge.p256, "ES256", HEAD("ES256", "rsa"), BODY(""));
	auto_free char *stranger_text = forge_token(forge.p384, "ES384", HEAD("ES256", "p256"), BODY(""));

	expect(hmac, "the algorithm is not allowed");
	expect(other, "no key of the issuer is for this algorithm");
	expect(stranger_text, "not by a key");
}

static void shapes(void **state)
{
	auto_free char *good = forge_token(forge.rsa, "RS256", HEAD("RS256", "rsa"), BODY(""));
	auto_free char *large = xcalloc(1, OAUTH_TOKEN_MAX + 2), *spoilt = xstrdup(good);
	static const char *const bad[] = {"",        ".",         "..",      "a.b",     "a..b",   "a.b.",   ".a.b",
					  "a.b.c.d", "a.b.c.d.e", "a b.c.d", "a.b.c\n", "a=.b.c", "a+.b.c", "a/.b.c"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(oauth_jwt_shaped(bad[i]));
		expect(bad[i], "not a JWT");
	}
	assert_true(oauth_jwt_shaped(good));
	auto_free char *padded = xasprintf("%s=", good), *blank = xasprintf(" %s", good),
		       *four = xasprintf("%s.x", good);

	expect(padded, "not a JWT");
	expect(blank, "not a JWT");
	expect(four, "not a JWT");
	/* Bits behind the last byte: 256 bytes of an RSA signature leave two of them. */
	spoilt[strlen(spoilt) - 1]++;
	expect(spoilt, "not a JWT");
	memset(large, 'a', OAUTH_TOKEN_MAX + 1);
	large[10] = large[20] = '.';
	expect(large, "not a JWT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(algorithms), cmocka_unit_test(headers), cmocka_unit_test(claims),
		cmocka_unit_test(any_type),   cmocka_unit_test(clients), cmocka_unit_test(signatures),
		cmocka_unit_test(shapes),
	};

	return cmocka_run_group_tests_name("oauth_jwt", tests, open_all, close_all);
}
