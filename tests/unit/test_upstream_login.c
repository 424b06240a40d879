/* test_upstream_login.c - challenges of servers, answers of issuers, and what a sign-in leaves in a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "lib/upstream/upstream_discover.h"
#include "lib/upstream/upstream_login.h"
#include "lib/upstream/upstream_redirected.h"

static bool same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && streq(a, b));
}

static void challenges(void **state)
{
	static const struct {
		const char *header, *metadata, *scope, *error;
	} rows[] = {
		{"Bearer", NULL, NULL, NULL},
		{"", NULL, NULL, NULL},
		{"Basic realm=\"x\", scope=\"no\"", NULL, NULL, NULL},
		{"Bearer resource_metadata=\"https://a.example/x\", scope=\"run files\"", "https://a.example/x",
		 "run files", NULL},
		{"bearer SCOPE=run,error=invalid_token", NULL, "run", "invalid_token"},
		{"Basic realm=\"Bearer scope=no\", Bearer scope=\"yes\"", NULL, "yes", NULL},
		{"Bearer scope=\"one\", DPoP scope=\"two\", resource_metadata=\"no\"", NULL, "one", NULL},
		{"Bearer scope=\"a\\\"b\\\\c\"", NULL, "a\"b\\c", NULL},
		{"Bearer scope=\"first\", scope=\"second\"", NULL, "first", NULL},
		{"Bearer realm=\"a, scope=\\\"no\\\"\", error=\"e\"", NULL, NULL, "e"},
		{"Bearer scope=\"without an end", NULL, "without an end", NULL},
		{"Bearer =\"x\", ,,, =, error=\"e\"", NULL, NULL, "e"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_challenge struct upstream_challenge challenge = {0};

		upstream_challenge_parse(rows[i].header, &challenge);
		if (!same(challenge.resource_metadata, rows[i].metadata) || !same(challenge.scope, rows[i].scope) ||
		    !same(challenge.error, rows[i].error))
			fail_msg("%s: %s %s %s", rows[i].header, challenge.resource_metadata, challenge.scope,
				 challenge.error);
	}
}

static void answers(void **state)
{
	static const struct {
		const char *text, *code, *state, *iss; /* code NULL: no answer */
	} rows[] = {
		{"http://127.0.0.1:1/callback?code=a%2Fb&state=x+y&iss=https%3A%2F%2Fa.example", "a/b", "x y",
		 "https://a.example"},
		{"code=1&state=2", "1", "2", NULL},
		{"?state=2&other=3&code=1#code=9", "1", "2", NULL},
		{"?code=1&code=1", NULL, NULL, NULL},
		{"?code=%zz", NULL, NULL, NULL},
		{"?code=%4", NULL, NULL, NULL},
		{"?code=a%00b", NULL, NULL, NULL},
		{"?code", NULL, NULL, NULL},
		{"?codes=1&code=2", "2", NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		auto_redirected struct upstream_redirected answer = {0};

		if (upstream_redirected_read(rows[i].text, &answer) < 0)
			assert_null(rows[i].code);
		else if (!same(answer.code, rows[i].code) || !same(answer.state, rows[i].state) ||
			 !same(answer.iss, rows[i].iss))
			fail_msg("%s: %s %s %s", rows[i].text, answer.code, answer.state, answer.iss);
	}
}

/* What is written is read back, by the entry that it was written for and by no other. */
static void files(void **state)
{
	char folder[] = "/tmp/sallyport-login-XXXXXX";
	struct upstream_server server = {.name = "box", .alias = "box", .url = "https://a.example/mcp"};
	struct upstream_server moved = {.name = "box", .alias = "box", .url = "https://a.example/mcp2"};
	auto_login struct upstream_login login = {0}, back = {0};
	struct err err = ERR_INIT;
	struct stat status;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(upstream_login_version(folder, &server), 0);
	assert_int_equal(upstream_login_read(folder, &server, &back, &err), -ERR_NOT_FOUND);
	upstream_login_set(&login.url, server.url);
	upstream_login_set(&login.access_token, "a\"b");
	login.got_us = 5;
	login.expires_us = 1000000005;
	assert_int_equal(upstream_login_write(folder, &server, &login, &err), 0);
	assert_int_equal(upstream_login_read(folder, &server, &back, &err), 0);
	assert_string_equal(back.access_token, "a\"b");
	assert_null(back.refresh_token);
	assert_int_equal(back.expires_us, 1000000005);
	assert_int_equal(upstream_login_read(folder, &moved, &back, &err), -ERR_NOT_FOUND);

	const uint64_t first = upstream_login_version(folder, &server);

	assert_int_not_equal(first, 0);
	assert_int_equal(upstream_login_write(folder, &server, &login, &err), 0);
	assert_int_not_equal(upstream_login_version(folder, &server), first);

	auto_free char *path = xasprintf("%s/logins/box.json", folder), *lock = xasprintf("%s/logins/box.lock", folder),
		       *logins = xasprintf("%s/logins", folder);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);

	/* Who waits for the lock stops waiting when it is told to. */
	const atomic_bool stop = true;
	int held = upstream_login_lock(folder, &server, NULL, &err);

	assert_true(held >= 0);
	assert_int_equal(upstream_login_lock(folder, &server, &stop, &err), -ERR_CANCELLED);
	fd_close(&held);
	held = upstream_login_lock(folder, &server, &stop, &err);
	assert_true(held >= 0);
	fd_close(&held);

	auto_close int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_int_equal(write_all(fd, "{\"url\":", 7), 0);
	assert_int_equal(upstream_login_read(folder, &server, &back, &err), -ERR_CORRUPT);
	assert_int_equal(upstream_login_remove(folder, &server, &err), 0);
	assert_int_equal(upstream_login_remove(folder, &server, &err), 0);
	unlink(lock);
	rmdir(logins);
	assert_int_equal(rmdir(folder), 0);
}

static void due(void **state)
{
	const int64_t second = 1000000;
	const struct upstream_login hour = {.got_us = 0, .expires_us = 3600 * second},
				    brief = {.got_us = 0, .expires_us = 10 * second}, unsaid = {.got_us = 0};

	(void)state;
	assert_false(upstream_login_due(&hour, 3569 * second));
	assert_true(upstream_login_due(&hour, 3570 * second));
	assert_false(upstream_login_due(&brief, 8 * second));
	assert_true(upstream_login_due(&brief, 9 * second));
	assert_false(upstream_login_due(&unsaid, INT64_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(challenges), cmocka_unit_test(answers),
					   cmocka_unit_test(files), cmocka_unit_test(due)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
