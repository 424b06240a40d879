/* test_store_oauth.c - the rows of our own authorization server: what becomes of codes and refresh tokens that are used
 * once, twice, too late or by somebody else; clients that come and go; nothing but hashes is kept. */
#include "store_fixture.h"

#include <fcntl.h>
#include <string.h>

#include "lib/store/record/store_grant.h"
#include "lib/store/record/store_oauth_client.h"
#include "lib/store/record/store_oauth_token.h"
#include "lib/store/retention/store_expire.h"

#define SECOND    INT64_C(1000000)
#define CLIENT    "spd_0123"
#define REDIRECT  "https://a.example/cb"
#define CHALLENGE "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
#define BOTH      (STORE_SCOPE_RUN | STORE_SCOPE_FILES)

static const struct store_oauth_terms terms = {
	.access_us = 3600 * SECOND, .refresh_us = 86400 * SECOND, .grant_us = 7 * 86400 * SECOND};

static struct store_token add_token(const struct fixture *f, const char *owner)
{
	struct err err = ERR_INIT;
	char text[STORE_TOKEN_TEXT];
	struct store_token token;

	ok(store_token_add(f->store, owner, "pasted", text, &token, &err));
	return token;
}

/* Somebody with this token approves; the code is the caller's buffer. */
static void approve(const struct fixture *f, const struct store_token *token, char ret[STORE_OAUTH_CODE_TEXT])
{
	struct err err = ERR_INIT;
	const struct store_oauth_approval approval = {.client = CLIENT,
						      .redirect = REDIRECT,
						      .host = "a.example",
						      .challenge = CHALLENGE,
						      .owner = token->owner,
						      .parent = token->id,
						      .scopes = BOTH,
						      .offline = true};

	ok(store_oauth_code_add(f->store, &approval, ret, &err));
}

static struct store_oauth_redemption redemption(const char *code)
{
	return (struct store_oauth_redemption){.code = code,
					       .client = CLIENT,
					       .client_name = "A client",
					       .redirect = REDIRECT,
					       .challenge = CHALLENGE,
					       .refreshes = true};
}

static struct store_oauth_issued sign_in(const struct fixture *f, const struct store_token *token)
{
	struct err err = ERR_INIT;
	char code[STORE_OAUTH_CODE_TEXT];
	struct store_oauth_issued issued;

	approve(f, token, code);
	const struct store_oauth_redemption what = redemption(code);

	ok(store_oauth_code_redeem(f->store, &what, &terms, &issued, &err));
	return issued;
}

static int try_refresh(const struct fixture *f, const char *text, struct store_oauth_issued *ret, bool *ret_stolen)
{
	const struct store_oauth_renewal renewal = {.refresh = text, .client = CLIENT};
	struct err err = ERR_INIT;

	return store_oauth_token_refresh(f->store, &renewal, &terms, ret, ret_stolen, &err);
}

static struct store_oauth_issued refresh(const struct fixture *f, const char *text)
{
	struct store_oauth_issued issued;
	bool stolen;

	assert_int_equal(try_refresh(f, text, &issued, &stolen), 0);
	return issued;
}

static int nothing_work(struct store_txn *txn, void *arg, struct err *err)
{
	(void)txn, (void)arg, (void)err;
	return 0;
}

static int use(const struct fixture *f, const char *access)
{
	struct err err = ERR_INIT;
	struct store_token token;
	int result = store_oauth_token_check(f->store, access, &token, &err);

	ok(store_commit(f->store, nothing_work, NULL, &err)); /* behind the notes of it */
	return result;
}

/* So much time goes by for what was noted. */
static void later(const struct fixture *f, int seconds)
{
	auto_free char *text = xasprintf("UPDATE oauth_token SET proved_us = proved_us - %d000000", seconds);

	sql(f, text);
}

static void login_codes(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char code[STORE_OAUTH_LOGIN_TEXT], spelled[64], text[STORE_OAUTH_CODE_TEXT];
	struct store_oauth_login login;

	ok(store_oauth_login_add(f->store, "alice", BOTH, 600, code, &err));
	assert_int_equal(strlen(code), 14);
	snprintf(spelled, sizeof(spelled), " %.4s %.4s%.4s ", code, code + 5, code + 10);
	for (char *p = spelled; *p; p++)
		*p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 32) : *p;
	ok(store_oauth_login_check(f->store, spelled, &login, &err));
	ok(store_oauth_login_check(f->store, code, &login, &err)); /* looking does not use it up */
	assert_string_equal(login.owner, "alice");
	assert_int_equal(login.scopes, BOTH);
	static const char *const wrong[] = {"", "BCDF-GHJK-LMN", "BCDF-GHJK-LMNPQ", "ACDF-GHJK-LMNP", "sp_alice_00"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		fails(store_oauth_login_check(f->store, wrong[i], &login, &err), ERR_DENIED);
	fails(store_oauth_login_add(f->store, "ALICE", BOTH, 600, code, &err), ERR_INVALID);
	struct store_oauth_approval approval = {.client = CLIENT,
						.redirect = REDIRECT,
						.host = "a.example",
						.challenge = CHALLENGE,
						.owner = "alice",
						.login = login.hash,
						.scopes = BOTH};

	ok(store_oauth_code_add(f->store, &approval, text, &err));
	fails(store_oauth_code_add(f->store, &approval, text, &err), ERR_DENIED);
	fails(store_oauth_login_check(f->store, spelled, &login, &err), ERR_DENIED);
	assert_answer(f, "SELECT count(*) FROM oauth_code", "1");
	ok(store_oauth_login_add(f->store, "alice", BOTH, 600, code, &err));
	sql(f, "UPDATE oauth_login SET expires_us = expires_us - 601000000 WHERE used_us IS NULL");
	fails(store_oauth_login_check(f->store, code, &login, &err), ERR_DENIED);
}

static void codes_are_good_once(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const struct store_token token = add_token(f, "alice");
	char code[STORE_OAUTH_CODE_TEXT];
	struct store_oauth_issued issued, again;
	struct store_token checked;

	approve(f, &token, code);
	struct store_oauth_redemption right = redemption(code), wrong = right;

	wrong.client = "spd_other";
	fails(store_oauth_code_redeem(f->store, &wrong, &terms, &issued, &err), ERR_DENIED);
	wrong = right;
	wrong.redirect = "https://a.example/cb2";
	fails(store_oauth_code_redeem(f->store, &wrong, &terms, &issued, &err), ERR_DENIED);
	wrong = right;
	wrong.challenge = "X9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
	fails(store_oauth_code_redeem(f->store, &wrong, &terms, &issued, &err), ERR_DENIED);
	wrong.code = "spc_unknown";
	fails(store_oauth_code_redeem(f->store, &wrong, &terms, &issued, &err), ERR_DENIED);
	assert_answer(f, "SELECT count(*) FROM oauth_token", "0");

	ok(store_oauth_code_redeem(f->store, &right, &terms, &issued, &err));
	assert_true(str_starts(issued.access, "spa_alice_") && str_starts(issued.refresh, "spr_alice_"));
	assert_int_equal(issued.access_us, 3600 * SECOND);
	ok(store_oauth_token_check(f->store, issued.access, &checked, &err));
	assert_string_equal(checked.owner, "alice");
	assert_string_equal(checked.name, "A client");
	assert_int_equal(checked.scopes, BOTH);
	assert_true(checked.granted);
	/* None of these is an access token, and an access token is none of `sallyport token add`. */
	fails(store_oauth_token_check(f->store, issued.refresh, &checked, &err), ERR_DENIED);
	fails(store_oauth_token_check(f->store, code, &checked, &err), ERR_DENIED);
	fails(store_token_check(f->store, issued.access, &checked, &err), ERR_DENIED);

	/* Who has only seen the code cannot end what its client has. */
	wrong = right;
	wrong.challenge = "X9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
	fails(store_oauth_code_redeem(f->store, &wrong, &terms, &again, &err), ERR_DENIED);
	ok(store_oauth_token_check(f->store, issued.access, &checked, &err));
	fails(store_oauth_code_redeem(f->store, &right, &terms, &again, &err), ERR_DENIED);
	fails(store_oauth_token_check(f->store, issued.access, &checked, &err), ERR_DENIED);
	assert_answer(f, "SELECT count(*) FROM token WHERE revoked_us IS NOT NULL", "1");

	approve(f, &token, code);
	sql(f, "UPDATE oauth_code SET expires_us = expires_us - 61000000 WHERE used_us IS NULL");
	right = redemption(code);
	fails(store_oauth_code_redeem(f->store, &right, &terms, &issued, &err), ERR_DENIED);
	assert_sound(f);
}

static void refreshing(void **state)
{
	struct fixture *f = *state;
	const struct store_token token = add_token(f, "alice");
	const struct store_oauth_issued first = sign_in(f, &token);
	struct store_oauth_issued unused;
	bool stolen;

	/* Two at once, and an answer that got lost: three lines, all good. */
	const struct store_oauth_issued one = refresh(f, first.refresh), two = refresh(f, first.refresh),
					three = refresh(f, first.refresh);

	assert_int_equal(use(f, one.access), 0);
	assert_int_equal(use(f, two.access), 0);
	assert_int_equal(use(f, three.access), 0);
	refresh(f, first.refresh); /* within the minute */
	/* The first that goes on retires the others. */
	const struct store_oauth_issued next = refresh(f, two.refresh);

	assert_answer(f, "SELECT count(*) FROM oauth_token WHERE kind = 'refresh' AND replaced_us IS NULL", "1");
	refresh(f, one.refresh); /* within the minute */
	assert_int_equal(use(f, next.access), 0);
	later(f, 61);
	refresh(f, next.refresh);
	/* Beyond it somebody else has it. */
	assert_int_equal(try_refresh(f, three.refresh, &unused, &stolen), -ERR_DENIED);
	assert_true(stolen);
	assert_string_equal(unused.grant, first.grant);
	assert_int_equal(use(f, next.access), -ERR_DENIED);
	assert_int_equal(try_refresh(f, next.refresh, &unused, &stolen), -ERR_DENIED);
	assert_false(stolen);
	assert_sound(f);
}

/* A token whose successor nobody used is good as long as it takes: the answer never arrived. */
static void lost_answers(void **state)
{
	struct fixture *f = *state;
	const struct store_token token = add_token(f, "alice");
	const struct store_oauth_issued first = sign_in(f, &token);
	struct store_oauth_issued unused;
	bool stolen;

	refresh(f, first.refresh);
	sql(f, "UPDATE oauth_token SET replaced_us = replaced_us - 3600000000");
	const struct store_oauth_issued second = refresh(f, first.refresh);

	/* At most so many successors: the oldest go. */
	for (int i = 0; i < 2 * STORE_OAUTH_SUCCESSORS; i++)
		refresh(f, first.refresh);
	assert_answer(f, "SELECT count(*) FROM oauth_token WHERE parent IS NOT NULL AND kind = 'refresh'", "8");
	assert_int_equal(try_refresh(f, second.refresh, &unused, &stolen), -ERR_DENIED);
	assert_false(stolen);
	const struct store_oauth_issued last = refresh(f, first.refresh);

	assert_int_equal(use(f, last.access), 0);
	later(f, 61);
	assert_int_equal(try_refresh(f, first.refresh, &unused, &stolen), -ERR_DENIED);
	assert_true(stolen);
}

static void refused_refreshes(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const struct store_token token = add_token(f, "alice");
	const struct store_oauth_issued first = sign_in(f, &token);
	struct store_oauth_renewal renewal = {.refresh = first.refresh, .client = "spd_other"};
	struct store_oauth_issued issued;
	struct store_token checked;
	bool stolen;

	fails(store_oauth_token_refresh(f->store, &renewal, &terms, &issued, &stolen, &err), ERR_DENIED);
	renewal.client = CLIENT;
	renewal.wanted = BOTH | STORE_SCOPE_NETWORK;
	fails(store_oauth_token_refresh(f->store, &renewal, &terms, &issued, &stolen, &err), ERR_INVALID);
	renewal.refresh = first.access;
	renewal.wanted = 0;
	fails(store_oauth_token_refresh(f->store, &renewal, &terms, &issued, &stolen, &err), ERR_DENIED);
	renewal.refresh = first.refresh;
	renewal.wanted = STORE_SCOPE_FILES; /* less, and later all of it again */
	ok(store_oauth_token_refresh(f->store, &renewal, &terms, &issued, &stolen, &err));
	ok(store_oauth_token_check(f->store, issued.access, &checked, &err));
	assert_int_equal(checked.scopes, STORE_SCOPE_FILES);
	assert_int_equal(refresh(f, issued.refresh).scopes, BOTH);
	/* It ends with the token that approved it. */
	ok(store_token_revoke(f->store, token.id, NULL, &err));
	assert_int_equal(use(f, first.access), -ERR_DENIED);
	fails(store_oauth_token_refresh(f->store, &renewal, &terms, &issued, &stolen, &err), ERR_DENIED);
	assert_answer(f, "SELECT count(*) FROM audit WHERE object = 'token:' || (SELECT token FROM oauth_grant)", "2");
	/* And at its end. */
	const struct store_token other = add_token(f, "bob");
	const struct store_oauth_issued second = sign_in(f, &other);

	sql(f, "UPDATE token SET expires_us = 1 WHERE owner = 'bob' AND expires_us IS NOT NULL");
	renewal.refresh = second.refresh;
	fails(store_oauth_token_refresh(f->store, &renewal, &terms, &issued, &stolen, &err), ERR_DENIED);
	assert_int_equal(use(f, second.access), -ERR_DENIED);
}

static void giving_back(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const struct store_token token = add_token(f, "alice");
	const struct store_oauth_issued one = sign_in(f, &token), two = sign_in(f, &token);
	struct store_grant_shown shown;

	ok(store_oauth_token_revoke(f->store, one.refresh, "spd_other", &err));
	ok(store_oauth_token_revoke(f->store, "spr_alice_00", CLIENT, &err));
	ok(store_oauth_token_revoke(f->store, one.access, CLIENT, &err));
	assert_int_equal(use(f, one.access), -ERR_DENIED);
	const struct store_oauth_issued next = refresh(f, one.refresh);

	ok(store_oauth_token_revoke(f->store, one.refresh, CLIENT, &err));
	assert_int_equal(use(f, next.access), -ERR_DENIED);
	assert_int_equal(use(f, two.access), 0); /* another grant */
	ok(store_grant_show(f->store, two.grant, &shown, &err));
	assert_string_equal(shown.client, CLIENT);
	assert_string_equal(shown.host, "a.example");
	assert_string_equal(shown.issuer, "");
	fails(store_grant_show(f->store, token.id, &shown, &err), ERR_NOT_FOUND);
	ok(store_oauth_token_revoke(f->store, token.id, CLIENT, &err));
}

static void grants_have_a_bound(void **state)
{
	struct fixture *f = *state;
	const struct store_token token = add_token(f, "alice"), other = add_token(f, "bob");
	const struct store_oauth_issued kept = sign_in(f, &token), bobs = sign_in(f, &other);

	assert_int_equal(use(f, kept.access), 0);
	sql(f, "UPDATE token SET used_us = 9000000000000000 WHERE used_us IS NOT NULL");
	for (int i = 0; i < STORE_OAUTH_GRANTS_MAX; i++)
		sign_in(f, &token);
	assert_answer(f,
		      "SELECT count(*) FROM token JOIN oauth_grant ON id = token WHERE token.owner = 'alice' AND "
		      "revoked_us IS NULL",
		      "100");
	assert_int_equal(use(f, kept.access), 0); /* those that nobody used go first */
	assert_int_equal(use(f, bobs.access), 0);
	/* And codes that nobody takes. */
	for (int i = 0; i < 2 * STORE_OAUTH_CODES_MAX; i++) {
		char code[STORE_OAUTH_CODE_TEXT];

		approve(f, &token, code);
	}
	assert_answer(f, "SELECT count(*) FROM oauth_code WHERE used_us IS NULL", "10");
}

static struct store_oauth_client client_named(const char *name)
{
	struct store_oauth_client client = {.refreshes = true};

	snprintf(client.name, sizeof(client.name), "%s", name);
	client.redirects = xstrdup("[\"" REDIRECT "\"]");
	return client;
}

static void clients(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	auto_oauth_client struct store_oauth_client a = client_named("a"), b = client_named("b"), c = client_named("c");
	auto_oauth_client struct store_oauth_client same = client_named("a"), hand = client_named("hand");
	struct store_oauth_client found = {.redirects = NULL};
	char secret[STORE_OAUTH_SECRET_SIZE];

	ok(store_oauth_client_register(f->store, &a, 2, &err));
	ok(store_oauth_client_register(f->store, &same, 2, &err));
	assert_string_equal(a.id, same.id);
	ok(store_oauth_client_register(f->store, &b, 2, &err));
	assert_string_not_equal(a.id, b.id);
	sql(f, "UPDATE oauth_client SET used_us = 1 WHERE name = 'a'");
	ok(store_oauth_client_register(f->store, &c, 2, &err)); /* b, which nobody used, makes room */
	assert_answer(f, "SELECT group_concat(name) FROM (SELECT name FROM oauth_client ORDER BY name)", "a,c");
	sql(f, "UPDATE oauth_client SET used_us = 1");
	fails(store_oauth_client_register(f->store, &b, 2, &err), ERR_BUSY);
	ok(store_oauth_client_add(f->store, &hand, true, secret, &err)); /* by hand is no part of the bound */
	assert_int_equal(strlen(secret), 43);
	ok(store_oauth_client_find(f->store, hand.id, &found, &err));
	assert_string_equal(found.kind, "manual");
	assert_string_not_equal(found.secret_hash, secret);
	store_oauth_client_clear(&found);

	/* What nobody uses goes, what was blocked stays. */
	const struct store_token token = add_token(f, "alice");
	auto_free char *adopt = xasprintf("UPDATE oauth_grant SET client = '%s'", c.id);

	sign_in(f, &token);
	sql(f, adopt);
	sql(f, "UPDATE oauth_client SET created_us = 1");
	ok(store_oauth_client_end(f->store, a.id, true, &err));
	fails(store_oauth_client_end(f->store, "spd_none", true, &err), ERR_NOT_FOUND);
	ok(store_oauth_client_register(f->store, &b, 9, &err));
	sql(f, "UPDATE oauth_client SET created_us = 1 WHERE name = 'b'");
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_answer(f, "SELECT group_concat(name) FROM (SELECT name FROM oauth_client ORDER BY name)", "a,c,hand");
	/* A client's grants end with it. */
	ok(store_oauth_client_end(f->store, c.id, false, &err));
	assert_answer(f, "SELECT count(*) FROM token WHERE revoked_us IS NOT NULL", "1");
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_answer(f, "SELECT group_concat(name) FROM (SELECT name FROM oauth_client ORDER BY name)", "a,hand");
}

static void only_hashes(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const struct store_token token = add_token(f, "alice");
	char code[STORE_OAUTH_CODE_TEXT], login[STORE_OAUTH_LOGIN_TEXT];
	const struct store_oauth_issued issued = sign_in(f, &token);

	approve(f, &token, code);
	ok(store_oauth_login_add(f->store, "alice", BOTH, 600, login, &err));
	store_close(f->store);
	f->store = NULL;
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	auto_free char *bytes = NULL;
	const char *const secrets[] = {issued.access, issued.refresh, code, login};
	size_t length = 0;

	ok(read_file_at(AT_FDCWD, path, SIZE_MAX / 2, &bytes, &length, &err));
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		assert_null(memmem(bytes, length, secrets[i], strlen(secrets[i])));
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	sql(f, "UPDATE oauth_token SET expires_us = 1");
	sql(f, "UPDATE oauth_code SET expires_us = 1");
	sql(f, "UPDATE oauth_login SET expires_us = 1");
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_answer(
		f,
		"SELECT (SELECT count(*) FROM oauth_token) + (SELECT count(*) FROM oauth_code) + (SELECT count(*) "
		"FROM oauth_login)",
		"0");
	assert_sound(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(login_codes, setup, teardown),
		cmocka_unit_test_setup_teardown(codes_are_good_once, setup, teardown),
		cmocka_unit_test_setup_teardown(refreshing, setup, teardown),
		cmocka_unit_test_setup_teardown(lost_answers, setup, teardown),
		cmocka_unit_test_setup_teardown(refused_refreshes, setup, teardown),
		cmocka_unit_test_setup_teardown(giving_back, setup, teardown),
		cmocka_unit_test_setup_teardown(grants_have_a_bound, setup, teardown),
		cmocka_unit_test_setup_teardown(clients, setup, teardown),
		cmocka_unit_test_setup_teardown(only_hashes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
