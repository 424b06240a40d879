/* The admin page: sign-in, cookies, forms, downloads; what its store lists, and for how long. */
#include <sqlite3.h>

#include "cgi/admin/admin_page.h"
#include "cgi/admin/admin_session.h"
#include "gateway.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_view.h"

#define ATTACK "\"><script>alert('1')</script>&amp;\xe2\x80\xae\xff\x01"

static char admin_token[STORE_TOKEN_TEXT];
static struct store_token admin_row;

static int set_up(void **state)
{
	struct err err = ERR_INIT;

	open_fixture(state);
	fixture.config.admin.enabled = true;
	fixture.config.admin.hours = 12;
	fixture.config.admin.idle_minutes = 60;
	fixture.server.admin = admin_session_table_new();
	admin_row = (struct store_token){.scopes = STORE_SCOPE_ADMIN, .owner = "root"};
	assert_int_equal(store_token_add_scoped(fixture.server.store, &admin_row, admin_token, &err), 0);
	return 0;
}

static int tear_down(void **state)
{
	return close_fixture(state);
}

/* -------- requests ------------------------------------------------------------------------------------ */

#define FROM_PAGE "HTTP_SEC_FETCH_SITE=same-origin"
#define FORM      "CONTENT_TYPE=application/x-www-form-urlencoded"

static struct answer sign_in_as(const char *token, const char *address)
{
	auto_free char *form = xasprintf("token=%s&next=%%2Fadmin%%2Fruns%%3Fowner%%3Da", token);
	auto_free char *remote = xasprintf("REMOTE_ADDR=%s", address);

	return ask(&fixture, "POST", "/admin/sign-in", form, FROM_PAGE, FORM, remote, NULL);
}

/* "NAME=VALUE" of the cookie as a request's variable; the caller's. */
static char *cookie(void)
{
	auto_answer struct answer answer = sign_in_as(admin_token, "192.0.2.1");

	assert_int_equal(answer.status, 303);
	assert_string_equal(header_of(&answer, "Location"), "/admin/runs?owner=a");
	const char *set = header_of(&answer, "Set-Cookie");

	assert_non_null(set);
	return xasprintf("HTTP_COOKIE=other=1; %.*s", (int)strcspn(set, ";"), set);
}

static int get_status(const char *uri, const char *variable)
{
	auto_answer struct answer answer = ask(&fixture, "GET", uri, NULL, variable, NULL);

	return answer.status;
}

static void signs_in(void **state)
{
	(void)state;
	auto_answer struct answer door = ask(&fixture, "GET", "/admin/runs?a=%22%3E", NULL, NULL);

	assert_int_equal(door.status, 401);
	assert_non_null(strstr(door.body, "value=\"/admin/runs?a=%22%3E\""));
	assert_non_null(strstr(header_of(&door, "Content-Security-Policy"), "default-src 'none'; script-src 'self'"));
	assert_string_equal(header_of(&door, "Cache-Control"), "no-store");
	auto_answer struct answer answer = sign_in_as(admin_token, "192.0.2.1");
	const char *set = header_of(&answer, "Set-Cookie");

	/* public_base_url of the fixture is https */
	assert_true(str_starts(set, "__Host-sallyport_admin="));
	assert_non_null(strstr(set, "; Path=/; HttpOnly; SameSite=Lax; Max-Age=43200; Secure"));
	auto_free char *mine = cookie();

	assert_int_equal(get_status("/admin", mine), 200);
	assert_int_equal(get_status("/admin/", mine), 200);
	assert_int_equal(get_status("/admin/nothing", mine), 404);
	assert_int_equal(get_status("/admin/run/nothing", mine), 404);
	assert_int_equal(get_status("/admin/asset/000000000000-page.js", mine), 404);
	assert_int_equal(get_status("/admin/", "HTTP_COOKIE=__Host-sallyport_admin=0123"), 401);
	fixture.config.admin.enabled = false;
	assert_int_equal(get_status("/admin/", mine), 404);
}

static void other_scopes(void **state)
{
	(void)state;
	auto_answer struct answer answer = sign_in_as(fixture.token, "192.0.2.1");

	assert_int_equal(answer.status, 401);
	assert_null(header_of(&answer, "Set-Cookie"));
	assert_null(strstr(answer.body, fixture.token));
}

static void next_is_ours(void **state)
{
	static const char *const bad[] = {"https%3A%2F%2Fevil.example", "%2F%2Fevil.example", "%2Fadmin%5C..",
					  "%2Fadminx", "%2Fadmin%0D%0AX%3A1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_free char *form = xasprintf("token=%s&next=%s", admin_token, bad[i]);
		auto_answer struct answer answer = ask(&fixture, "POST", "/admin/sign-in", form, FROM_PAGE, FORM, NULL);

		assert_int_equal(answer.status, 303);
		assert_string_equal(header_of(&answer, "Location"), "/admin/");
	}
}

static void count_entry(void *arg, const struct store_view_entry *entry)
{
	(void)entry;
	++*(int *)arg;
}

static void attempts(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	for (int i = 0; i < ADMIN_FAILURES_MINUTE; i++) {
		auto_answer struct answer answer = sign_in_as("sp_root_wrong", "2001:db8:1:2::5");

		assert_int_equal(answer.status, 401);
	}
	auto_answer struct answer late = sign_in_as(admin_token, "2001:db8:1:2::6"); /* the same /64 */

	assert_int_equal(late.status, 429);
	assert_non_null(header_of(&late, "Retry-After"));
	auto_answer struct answer other = sign_in_as(admin_token, "192.0.2.77");

	assert_int_equal(other.status, 303);
	/* One entry for all of them. The writer works in order: behind another entry it is there. */
	const struct store_view_log log = {.kind = "admin.failed", .limit = 10};
	struct store_audit entry;
	int entries = 0;

	store_audit_init(&entry, STORE_AUDIT_ADMIN_ACT, "log", "admin");
	assert_int_equal(store_audit_add(fixture.server.store, &entry, &err), 0);
	assert_int_equal(store_view_entries(fixture.server.store, &log, count_entry, &entries, &err), 0);
	assert_int_equal(entries, 1);
}

/* FORM_MAX, ADMIN_VALUE_MAX: what is larger is refused, or is not there. */
static void large_forms(void **state)
{
	auto_free char *many = xcalloc(1, 20000), *value = xcalloc(1, ADMIN_VALUE_MAX + 1),
		       *ret = xmalloc(ADMIN_VALUE_MAX);

	(void)state;
	memset(many, 'a', 19999);
	auto_answer struct answer answer = ask(&fixture, "POST", "/admin/sign-in", many, FROM_PAGE, FORM, NULL);

	assert_int_equal(answer.status, 400);
	memset(value, 'a', ADMIN_VALUE_MAX);
	auto_free char *form = xasprintf("a=1&b=%s&c=%%zz&d=%%ff&e=x+y%%20z&a=2", value);

	assert_true(admin_page_value(form, "a", ret, ADMIN_VALUE_MAX));
	assert_string_equal(ret, "1");
	assert_false(admin_page_value(form, "b", ret, ADMIN_VALUE_MAX));
	assert_false(admin_page_value(form, "c", ret, ADMIN_VALUE_MAX));
	assert_false(admin_page_value(form, "d", ret, ADMIN_VALUE_MAX));
	assert_true(admin_page_value(form, "e", ret, ADMIN_VALUE_MAX));
	assert_string_equal(ret, "x y z");
	assert_false(admin_page_value(form, "e", ret, 5));
	assert_false(admin_page_value(form, "f", ret, ADMIN_VALUE_MAX));
}

static void pages_of_others(void **state)
{
	static const char *const bad[][2] = {
		{"HTTP_SEC_FETCH_SITE=cross-site", "X=1"},
		{"HTTP_SEC_FETCH_SITE=same-site", "HTTP_ORIGIN=https://box.example:8443"},
		{"HTTP_SEC_FETCH_SITE=none", "X=1"},
		{"HTTP_ORIGIN=http://localhost:3000", "HTTP_HOST=localhost"},
		{"HTTP_ORIGIN=http://box.example:8443", "HTTP_HOST=box.example:8443"},
		{"HTTP_ORIGIN=null", "X=1"},
		{"HTTP_ORIGIN=https://evil.example", "X=1"},
		{"X=1", "X=1"},
	};
	auto_free char *form = xasprintf("token=%s", admin_token);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_answer struct answer answer =
			ask(&fixture, "POST", "/admin/sign-in", form, bad[i][0], bad[i][1], FORM, NULL);

		if (answer.status != 403 || header_of(&answer, "Set-Cookie"))
			fail_msg("%s: %d", bad[i][0], answer.status);
	}
	auto_answer struct answer good =
		ask(&fixture, "POST", "/admin/sign-in", form, FORM, "HTTP_ORIGIN=https://box.example:8443",
		    "HTTP_HOST=box.example:8443", NULL);

	assert_int_equal(good.status, 303);
}

/* The value of the key in the sign-out form. */
static char *key_of(const char *mine)
{
	auto_answer struct answer answer = ask(&fixture, "GET", "/admin/runs", NULL, mine, NULL);
	const char *at = strstr(answer.body, "name=\"key\" value=\"");

	assert_non_null(at);
	return xstrndup(at + strlen("name=\"key\" value=\""), ADMIN_KEY_SIZE - 1);
}

static int post_sign_out(const char *mine, const char *key)
{
	auto_free char *form = xasprintf("key=%s", key);
	auto_answer struct answer answer = ask(&fixture, "POST", "/admin/sign-out", form, mine, FROM_PAGE, FORM, NULL);

	return answer.status;
}

static void signs_out(void **state)
{
	auto_free char *mine = cookie(), *another = cookie();
	auto_free char *key = key_of(mine), *wrong = key_of(another);

	(void)state;
	assert_string_not_equal(key, wrong);
	assert_int_equal(post_sign_out(mine, wrong), 403);
	assert_int_equal(post_sign_out(mine, ""), 403);
	assert_int_equal(get_status("/admin/runs", mine), 200);
	assert_int_equal(post_sign_out(mine, key), 303);
	assert_int_equal(get_status("/admin/runs", mine), 401); /* the same cookie again */
	assert_int_equal(post_sign_out(mine, key), 401);
	assert_int_equal(get_status("/admin/runs", another), 200);
}

/* Another application of the host may set a cookie of the same name. */
static void a_planted_cookie_signs_nobody_out(void **state)
{
	auto_free char *mine = cookie();
	const char *ours = strstr(mine, "; ") + 2;
	auto_free char *name = xstrndup(ours, strcspn(ours, "="));
	auto_free char *planted = xasprintf("HTTP_COOKIE=%s=%064d; %s=nonsense; other=1; %s", name, 0, name, ours);
	auto_free char *alone = xasprintf("HTTP_COOKIE=%s=%064d", name, 0);

	(void)state;
	assert_int_equal(get_status("/admin/runs", planted), 200);
	assert_int_equal(get_status("/admin/runs", alone), 401);
}

static void revoked(void **state)
{
	auto_free char *mine = cookie();
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(get_status("/admin/runs", mine), 200);
	assert_int_equal(store_token_revoke(fixture.server.store, admin_row.id, NULL, &err), 0);
	assert_int_equal(get_status("/admin/runs", mine), 401);
}

/* A token that has expired since one signed in. */
static void token_expires(void **state)
{
	auto_free char *mine = cookie();
	auto_free char *path = xasprintf("%s/sallyport.db", fixture.folder);
	sqlite3 *db;

	(void)state;
	assert_int_equal(get_status("/admin/runs", mine), 200);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "UPDATE token SET expires_us = created_us + 1 WHERE owner = 'root'", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(get_status("/admin/runs", mine), 401);
	auto_answer struct answer again = sign_in_as(admin_token, "192.0.2.1");

	assert_int_equal(again.status, 401);
}

static void expires(void **state)
{
	auto_free char *mine = cookie();

	(void)state;
	fixture.config.admin.idle_minutes = 0; /* less than the configuration allows: it is idle at once */
	assert_int_equal(get_status("/admin/runs", mine), 401);
	fixture.config.admin.idle_minutes = 60;
	assert_int_equal(get_status("/admin/runs", mine), 401); /* it was removed */
	auto_free char *old = cookie();

	fixture.config.admin.hours = 0;
	assert_int_equal(get_status("/admin/runs", old), 401);
}

static void many_sessions(void **state)
{
	auto_free char *first = cookie();

	(void)state;
	for (int i = 0; i < ADMIN_SESSIONS_MAX; i++)
		free(cookie());
	assert_int_equal(get_status("/admin/runs", first), 401);
}

/* The browser brings the cookie (SameSite=Lax), and nobody is asked to sign in again. */
static void from_a_chat(void **state)
{
	static const char site[] = "HTTP_SEC_FETCH_SITE=cross-site", mode[] = "HTTP_SEC_FETCH_MODE=navigate";
	auto_free char *mine = cookie();

	(void)state;
	auto_answer struct answer answer = ask(&fixture, "GET", "/admin/runs", NULL, mine, site, mode, NULL);
	assert_int_equal(answer.status, 200);
	assert_null(strstr(answer.body, "type=\"password\""));
	auto_answer struct answer without = ask(&fixture, "GET", "/admin/runs", NULL, site, mode, NULL);
	assert_int_equal(without.status, 401);
}

/* -------- what guests and clients wrote --------------------------------------------------------------- */

static int add_run(struct store_txn *txn, void *arg, struct err *err)
{
	struct store_execution run = {.owner = "alice", .language = "python", .fingerprint = ATTACK, .exit_code = -1};
	struct store_conversation conversation;
	const char *id = arg;

	memcpy(run.id, id, sizeof(run.id));
	run.created_us = clock_now_us();
	run.code.data = unconst(ATTACK "\nsecond");
	run.code.length = strlen(run.code.data);
	run.args_json = unconst("[\"<b>\"]");
	run.env_json = unconst("{}");
	run.limits_json = unconst("{\"wall_us\":1000}");
	int result = store_txn_conversation(txn, "alice", "\"><img src=x>", &conversation, err);

	run.conversation_row = conversation.row;
	return result < 0 ? result : store_txn_execution_begin(txn, &run, err);
}

static void headers_of_refusals(void **state)
{
	static const char *const names[] = {"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy",
					    "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy"};
	static const struct {
		const char *method, *uri, *variable;
		int status;
	} refused[] = {
		{"PUT", "/admin/run/x", "HTTP_HOST=localhost", 405},
		{"GET", "/admin/runs", "HTTP_ORIGIN=https://evil.example", 403},
		{"GET", "/admin", "HTTP_HOST=evil.example", 403},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		auto_answer struct answer answer =
			ask(&fixture, refused[i].method, refused[i].uri, NULL, refused[i].variable, NULL);

		assert_int_equal(answer.status, refused[i].status);
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			assert_non_null(header_of(&answer, names[k]));
	}
}

static void shows_text(void **state)
{
	static const char *const parts[] = {"", "/code", "/stdout"};
	auto_free char *mine = cookie();
	struct err err = ERR_INIT;
	char id[ID_SIZE];

	(void)state;
	id_new(id);
	if (store_commit(fixture.server.store, add_run, id, &err) < 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		auto_free char *uri = xasprintf("/admin/run/%s%s", id, parts[i]);
		auto_answer struct answer answer = ask(&fixture, "GET", uri, NULL, mine, NULL);

		assert_int_equal(answer.status, 200);
		assert_string_equal(header_of(&answer, "X-Content-Type-Options"), "nosniff");
		if (i > 0) {
			assert_string_equal(header_of(&answer, "Content-Type"), "application/octet-stream");
			assert_true(str_starts(header_of(&answer, "Content-Disposition"), "attachment;"));
			assert_string_equal(header_of(&answer, "Content-Security-Policy"),
					    "sandbox; default-src 'none'");
			continue;
		}
		assert_null(strstr(answer.body, "<script>"));
		assert_null(strstr(answer.body, "<img src=x"));
		assert_null(strstr(answer.body, "<i>"));
		assert_null(strstr(answer.body, "<b>"));
		assert_non_null(strstr(answer.body, "&lt;script&gt;alert(&#39;1&#39;)"));
	}
	auto_answer struct answer list =
		ask(&fixture, "GET",
		    "/admin/runs?text=%22%3E%3Cscript%3E&owner=alice&conversation=%22%3E%3Cimg%20src%3Dx%3E", NULL,
		    mine, NULL);

	assert_non_null(strstr(list.body, id));
	assert_null(strstr(list.body, "<script>"));
	assert_null(strstr(list.body, "<img"));
	assert_non_null(strstr(list.body, "name=\"text\" value=\"&quot;&gt;&lt;script&gt;\""));
	auto_answer struct answer none = ask(&fixture, "GET", "/admin/runs?text=not+there", NULL, mine, NULL);

	assert_null(strstr(none.body, id));
}

/* Who looked at a run is in the audit log; a page that reads itself again is not somebody who looks. */
static void views_are_logged(void **state)
{
	auto_free char *mine = cookie();
	struct err err = ERR_INIT;
	char id[ID_SIZE];
	int entries = 0;

	(void)state;
	id_new(id);
	assert_int_equal(store_commit(fixture.server.store, add_run, id, &err), 0);
	auto_free char *uri = xasprintf("/admin/run/%s", id), *object = xasprintf("execution:%s", id);
	auto_answer struct answer once = ask(&fixture, "GET", uri, NULL, mine, NULL);
	auto_answer struct answer again = ask(&fixture, "GET", uri, NULL, mine, "HTTP_X_SALLYPORT_REFRESH=1", NULL);
	const struct store_view_log log = {.object = object, .kind = "admin.view", .limit = 10};

	assert_int_equal(store_token_revoke(fixture.server.store, fixture.alice.id, NULL, &err), 0); /* behind them */
	assert_int_equal(store_view_entries(fixture.server.store, &log, count_entry, &entries, &err), 0);
	assert_int_equal(entries, 1);
}

#define MANY 1200

static int add_many(struct store_txn *txn, void *arg, struct err *err)
{
	char id[ID_SIZE];
	int result = 0;

	(void)arg;
	for (int i = 0; result == 0 && i < MANY; i++) {
		id_new(id);
		result = add_run(txn, id, err);
	}
	return result;
}

struct listed {
	int64_t rows;
	char last[ID_SIZE];
};

static void count_run(void *arg, const struct store_view_run *run)
{
	struct listed *listed = arg;

	if (listed->rows)
		assert_true(strcmp(run->id, listed->last) < 0); /* newest first */
	memcpy(listed->last, run->id, sizeof(listed->last));
	listed->rows++;
}

/* Pages have at most STORE_VIEW_PAGE_MAX rows and follow each other without a gap; a question that takes too long ends,
 * and the connection has no bound afterwards. */
static void bounded_questions(void **state)
{
	struct store *store = fixture.server.store;
	struct store_view_filter filter = {.limit = MANY, .owner = "alice"};
	struct listed listed = {0}, next = {0};
	struct err err = ERR_INIT;

	(void)state;
	if (store_commit(store, add_many, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(store_view_runs(store, &filter, count_run, &listed, &err), 0);
	assert_int_equal(listed.rows, STORE_VIEW_PAGE_MAX);
	filter.before = listed.last;
	assert_int_equal(store_view_runs(store, &filter, count_run, &next, &err), 0);
	assert_int_equal(next.rows, STORE_VIEW_PAGE_MAX);
	assert_true(strcmp(next.last, listed.last) < 0);
	filter = (struct store_view_filter){.limit = 10, .since_us = clock_now_us() + 1000000};
	listed = (struct listed){0};
	assert_int_equal(store_view_runs(store, &filter, count_run, &listed, &err), 0);
	assert_int_equal(listed.rows, 0);

	for (int bounded = 1; bounded >= 0; bounded--) {
		auto_reader struct store_reader reader = {0};

		assert_int_equal(store_reader_take(store, &reader, &err), 0);
		if (bounded)
			store_conn_limit(reader.conn, 1);
		auto_query struct query q = query_begin(reader.conn, SQL_VIEW_VERDICTS);

		query_bind_text(&q, ":from", "");
		assert_int_equal(query_run(&q, NULL, &err), bounded ? -ERR_LIMIT : 0);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(signs_in),        TEST(other_scopes),      TEST(next_is_ours), TEST(attempts),
		TEST(a_planted_cookie_signs_nobody_out),
		TEST(pages_of_others), TEST(signs_out),         TEST(revoked),      TEST(expires),
		TEST(many_sessions),   TEST(from_a_chat),       TEST(shows_text),   TEST(views_are_logged),
		TEST(large_forms),     TEST(bounded_questions), TEST(token_expires),
		TEST(headers_of_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
