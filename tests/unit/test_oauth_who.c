/* test_oauth_who.c - from claims to owner and scopes by the configuration's rules, and what of them is refused at the
 * start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/base/util.h"
#include "lib/oauth/oauth_who.h"

static struct config plain(void)
{
	struct config config = {0};

	config.oauth.scope_claim = config.oauth.owner = config.oauth.owner_claim = config.oauth.owner_prefix = "";
	config.oauth.scopes_max = "run files network";
	config.oauth.default_scopes = "run files";
	return config;
}

/* What the claims become: "OWNER SCOPES", or the error. The caller's. */
static char *read_who(const struct config *config, const char *text)
{
	auto_json struct json_object *claims = NULL;
	struct err err = ERR_INIT;
	struct oauth_who who;
	char scopes[STORE_SCOPES_TEXT];

	assert_int_equal(json_parse(text, strlen(text), &claims, &err), 0);
	int result = oauth_who_read(config, claims, &who, &err);

	if (result < 0)
		return xasprintf("%s: %s", err_info(err.code)->name, err.text);
	store_scopes_print(who.scopes, scopes);
	return xasprintf("%s %s", who.owner, scopes);
}

static void expect(const struct config *config, const char *claims, const char *expected)
{
	auto_free char *got = read_who(config, claims);

	if (!str_starts(got, expected))
		fail_msg("%s: %s instead of %s", claims, got, expected);
}

#define NOBODY "not-found: "

static void owners_by_claim(void **state)
{
	static const struct {
		const char *claims, *expected;
	} rows[] = {
		{"{\"sub\":\"1\",\"name\":\"ann\",\"scope\":\"run\"}", "co-ann run"},
		{"{\"sub\":\"1\",\"name\":\"ann\"}", "co-ann "},
		{"{\"sub\":\"1\"}", NOBODY},
		{"{\"sub\":\"1\",\"name\":\"\"}", NOBODY},
		{"{\"sub\":\"1\",\"name\":\"ANN\"}", NOBODY},
		{"{\"sub\":\"1\",\"name\":\"ann/../bob\"}", NOBODY},
		{"{\"sub\":\"1\",\"name\":\"a.b\"}", NOBODY},
		{"{\"sub\":\"1\",\"name\":\"ann\\u0000\"}", NOBODY},
		{"{\"sub\":\"1\",\"name\":\"123456789012345678901234567890\"}", NOBODY}, /* 33 with the prefix */
		{"{\"sub\":\"1\",\"name\":[\"ann\"]}", NOBODY},
		{"{\"sub\":\"1\",\"name\":7}", NOBODY},
		{"{\"name\":\"ann\"}", "denied: "},
		{"{\"sub\":7,\"name\":\"ann\"}", "denied: "},
		{"{\"client_id\":\"robot\",\"name\":\"ann\",\"scope\":\"files\"}", "co-ann files"},
	};
	struct config config = plain();

	(void)state;
	config.oauth.owner_claim = "name";
	config.oauth.owner_prefix = "co-";
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		expect(&config, rows[i].claims, rows[i].expected);
	config.oauth.owner_claim = "email";
	expect(&config, "{\"sub\":\"1\",\"email\":\"ann\"}", NOBODY);
	expect(&config, "{\"sub\":\"1\",\"email\":\"ann\",\"email_verified\":\"true\"}", NOBODY);
	expect(&config, "{\"sub\":\"1\",\"email\":\"ann\",\"email_verified\":true}", "co-ann");
}

static void owners_by_list(void **state)
{
	const char *owners[] = {"email=ann@example.org -> ann", "realm.groups=a -> b -> team", "sub=42 -> bob",
				"https://example.org/role=chief -> chief"};
	struct config config = plain();

	(void)state;
	config.oauth.owners = (struct bind_strings){owners, ARRAY_SIZE(owners)};
	assert_int_equal(oauth_who_check(&config, NULL), 0);
	expect(&config, "{\"sub\":\"42\"}", "bob ");
	expect(&config, "{\"sub\":\"42 \"}", NOBODY);
	expect(&config, "{\"sub\":\"1\",\"email\":\"ann@example.org\",\"email_verified\":true}", "ann ");
	expect(&config, "{\"sub\":\"1\",\"email\":\"ann@example.org\"}", NOBODY);
	expect(&config, "{\"sub\":\"42\",\"email\":\"ann@example.org\",\"email_verified\":true}",
	       "ann "); /* the first */
	expect(&config, "{\"sub\":\"1\",\"realm\":{\"groups\":[\"x\",\"a -> b\"]}}", "team ");
	expect(&config, "{\"sub\":\"1\",\"realm\":{\"groups\":\"x\"}}", NOBODY);
	expect(&config, "{\"sub\":\"1\",\"realm\":[\"groups\"]}", NOBODY);
	expect(&config, "{\"sub\":\"1\",\"https://example.org/role\":\"chief\"}", "chief ");
}

static void scopes(void **state)
{
	const char *map[] = {"api/run -> run", "api/boss -> admin", "all -> files", "all -> network"};
	struct config config = plain();
	char text[OAUTH_SCOPES_SIZE];

	(void)state;
	config.oauth.owner = "all";
	expect(&config, "{\"sub\":\"1\",\"scope\":\" run  files openid run,files admin RUN\"}", "all run files");
	expect(&config, "{\"sub\":\"1\",\"scope\":\"run,files\"}", "all ");
	expect(&config, "{\"sub\":\"1\",\"scp\":[\"files\",7,\"network\"]}", "all files network");
	expect(&config, "{\"sub\":\"1\",\"scope\":\"run\",\"scp\":\"files\"}", "all run");
	expect(&config, "{\"sub\":\"1\",\"scope\":\"admin\"}", "all ");
	config.oauth.scopes_max = "run admin";
	expect(&config, "{\"sub\":\"1\",\"scope\":\"admin files\"}", "all admin");
	config.oauth.scopes_max = "run files network";
	config.oauth.scope_claim = "realm_access.roles";
	expect(&config, "{\"sub\":\"1\",\"scope\":\"files\",\"realm_access\":{\"roles\":[\"run\"]}}", "all run");
	config.oauth.scope_map = (struct bind_strings){map, ARRAY_SIZE(map)};
	expect(&config, "{\"sub\":\"1\",\"realm_access\":{\"roles\":[\"run\",\"api/boss\"]}}", "all ");
	expect(&config, "{\"sub\":\"1\",\"realm_access\":{\"roles\":[\"api/run\",\"all\"]}}", "all run files network");
	oauth_who_scopes(&config, STORE_SCOPE_RUN | STORE_SCOPE_FILES, text);
	assert_string_equal(text, "api/run all");
	assert_int_equal(oauth_who_usual(&config), STORE_SCOPE_RUN | STORE_SCOPE_FILES);
}

static void refused_at_the_start(void **state)
{
	static const char *bad_owners[] = {"ann", "sub=1 -> ANN", "sub=1 -> ", "sub -> ann", "=1 -> ann", " -> a=b"};
	static const char *bad_maps[] = {"run", "x -> root", " -> run", "x -> run,files"};
	struct config config = plain();
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(oauth_who_check(&config, &err), -ERR_INVALID);
	assert_string_equal(err.member, "oauth.owners");
	config.oauth.owner = config.oauth.owner_claim = "ann";
	assert_int_equal(oauth_who_check(&config, &err), -ERR_INVALID);
	config.oauth.owner_claim = "";
	assert_int_equal(oauth_who_check(&config, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad_maps); i++) {
		config.oauth.scope_map = (struct bind_strings){&bad_maps[i], 1};
		assert_int_equal(oauth_who_check(&config, &err), -ERR_INVALID);
		assert_string_equal(err.member, "oauth.scope_map");
	}
	config.oauth.scope_map = (struct bind_strings){0};
	config.oauth.owner = "";
	for (size_t i = 0; i < ARRAY_SIZE(bad_owners); i++) {
		config.oauth.owners = (struct bind_strings){&bad_owners[i], 1};
		if (oauth_who_check(&config, &err) != -ERR_INVALID)
			fail_msg("%s", bad_owners[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners_by_claim),
		cmocka_unit_test(owners_by_list),
		cmocka_unit_test(scopes),
		cmocka_unit_test(refused_at_the_start),
	};

	return cmocka_run_group_tests_name("oauth_who", tests, NULL, NULL);
}
