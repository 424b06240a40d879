/* The hub: who may listen, what reaches whom, what is cut off; and events that were sent, kept for their session. */
#include "gateway.h"

#include <inttypes.h>
#include <sqlite3.h>

#include "cgi/http/hub.h"
#include "lib/job/job_news.h"
#include "lib/store/record/store_event.h"
#include "lib/store/record/store_file.h"
#include "lib/store/record/store_session.h"
#include "lib/store/record/store_subscription.h"
#include "lib/store/retention/store_expire.h"

static struct hub *hub;

static int begin(void **state)
{
	(void)state;
	hub = hub_new(NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	hub_free(hub);
	return 0;
}

/* Opens as many as an owner may have. */
static size_t open_all(struct hub_listener *many, size_t *open, const char *owner)
{
	struct err err = ERR_INIT;
	size_t count = 0;

	for (;; count++) {
		many[*open] = (struct hub_listener){.owner = owner};
		if (hub_listen(hub, &many[*open], &err) != 0)
			break;
		++*open;
	}
	assert_int_equal(err.code, ERR_BUSY);
	return count;
}

static void an_owner_leaves_as_many_streams_as_it_has(void **state)
{
	static struct hub_listener many[HUB_LISTENERS_MAX + 1];
	static const char *const owners[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9"};
	size_t open = 0, before = HUB_LISTENERS_OWNER_MAX;

	(void)state;
	assert_int_equal(open_all(many, &open, "first"), HUB_LISTENERS_OWNER_MAX);
	for (size_t i = 0; i < 4; i++) {
		const size_t own = open_all(many, &open, owners[i]);

		assert_true(own > 0 && own <= before && HUB_LISTENERS_MAX - open >= own - 1);
		before = own;
	}
	for (size_t i = 4; i < ARRAY_SIZE(owners) && open < HUB_LISTENERS_MAX; i++)
		assert_true(open_all(many, &open, owners[i]) > 0);
	assert_int_equal(open, HUB_LISTENERS_MAX);
	hub_leave(hub, &many[--open]);
	assert_int_equal(open_all(many, &open, "last"), 1);
	while (open > 0)
		hub_leave(hub, &many[--open]);
}

static void topics(void **state)
{
	static const char *const uris[] = {"x://1", NULL};
	struct hub_listener tools = {.owner = "a", .topics = HUB_TOOLS_CHANGED};
	struct hub_listener files = {.owner = "a", .topics = HUB_RESOURCE_UPDATED, .uris = uris};
	struct hub_message *message = NULL;

	(void)state;
	assert_int_equal(hub_listen(hub, &tools, NULL), 0);
	assert_int_equal(hub_listen(hub, &files, NULL), 0);
	hub_publish(hub, "b", HUB_TOOLS_CHANGED, NULL);
	hub_publish(hub, "a", HUB_RESOURCE_UPDATED, "x://2");
	assert_int_equal(hub_wait(hub, &tools, -1, 0, &message), HUB_TIME);
	assert_int_equal(hub_wait(hub, &files, -1, 0, &message), HUB_TIME);
	hub_publish(hub, NULL, HUB_TOOLS_CHANGED, NULL);
	hub_publish(hub, "a", HUB_RESOURCE_UPDATED, "x://1");
	assert_int_equal(hub_wait(hub, &tools, -1, -1, &message), HUB_MESSAGE);
	assert_int_equal(message->topic, HUB_TOOLS_CHANGED);
	hub_message_free(message);
	assert_int_equal(hub_wait(hub, &files, -1, -1, &message), HUB_MESSAGE);
	assert_int_equal(message->topic, HUB_RESOURCE_UPDATED);
	assert_string_equal(message->uri, "x://1");
	hub_message_free(message);
	hub_leave(hub, &tools);
	hub_leave(hub, &files);
}

/* There is no message; it may have been woken for one that it took already. */
static void assert_quiet(struct hub_listener *listener)
{
	struct hub_message *message = NULL;

	assert_int_not_equal(hub_wait(hub, listener, -1, 0, &message), HUB_GONE);
	assert_null(message);
}

/* What a session subscribed to counts for its own listener, and news that waits already is not told twice. */
static void followed_resources(void **state)
{
	struct hub_listener own = {.owner = "a", .session = "s", .exclusive = true, .topics = HUB_RESOURCE_UPDATED};
	struct hub_listener other = {.owner = "a", .session = "t", .exclusive = true, .topics = HUB_RESOURCE_UPDATED};
	struct hub_message *message = NULL;

	(void)state;
	assert_int_equal(hub_listen(hub, &own, NULL), 0);
	assert_int_equal(hub_listen(hub, &other, NULL), 0);
	for (int i = 0; i < HUB_FOLLOWED_MAX + 1; i++) {
		auto_free char *one = xasprintf("x://%d", i);

		hub_follow_uri(hub, "s", one, true);
		hub_follow_uri(hub, "s", one, true);
	}
	for (int i = 0; i < 2 * HUB_QUEUE_MAX; i++) {
		hub_publish(hub, "a", HUB_RESOURCE_UPDATED, "x://1");
		hub_publish(hub, "a", HUB_RESOURCE_UPDATED, "x://32"); /* one too many */
	}
	assert_quiet(&other);
	assert_int_equal(hub_wait(hub, &own, -1, -1, &message), HUB_MESSAGE);
	assert_int_equal(message->topic, HUB_RESOURCE_UPDATED);
	assert_string_equal(message->uri, "x://1");
	hub_message_free(message);
	assert_quiet(&own);
	hub_follow_uri(hub, "s", "x://1", false);
	hub_follow_uri(hub, "s", "x://none", false);
	hub_publish(hub, "a", HUB_RESOURCE_UPDATED, "x://1");
	assert_quiet(&own);
	hub_leave(hub, &own);
	hub_leave(hub, &other);
}

static void slow_ones_are_cut_off(void **state)
{
	struct hub_listener slow = {.owner = "a", .session = "s", .exclusive = true}, second = slow;
	struct hub_message *message = NULL;

	(void)state;
	assert_int_equal(hub_listen(hub, &slow, NULL), 0);
	assert_int_equal(hub_listen(hub, &second, NULL), -ERR_CONFLICT);
	for (int i = 0; i < HUB_QUEUE_MAX; i++)
		assert_true(hub_tell(hub, "s", "text"));
	assert_int_equal(hub_wait(hub, &slow, -1, -1, &message), HUB_MESSAGE);
	assert_int_equal(message->topic, 0);
	assert_string_equal(message->text, "text");
	hub_message_free(message);
	assert_true(hub_tell(hub, "s", "text"));
	assert_true(hub_tell(hub, "s", "one too many"));
	assert_int_equal(hub_wait(hub, &slow, -1, -1, &message), HUB_GONE);
	hub_leave(hub, &slow);
	assert_false(hub_tell(hub, "s", "text"));
}

static void inflight(void **state)
{
	struct hub_inflight inflight = {.session = "s", .id = "7", .stream = ""};
	char *text = NULL;

	(void)state;
	assert_int_equal(hub_inflight_begin(hub, &inflight, NULL), 0);
	assert_false(hub_cancel(hub, "other", "7"));
	assert_false(hub_cancel(hub, "s", "\"7\""));
	assert_false(hub_cancelled(hub, &inflight));
	assert_false(hub_answer(hub, "s", "\"s-1\"", "{}"));
	hub_question_begin(hub, &inflight, "\"s-1\"");
	assert_false(hub_answer(hub, "other", "\"s-1\"", "{}"));
	assert_true(hub_answer(hub, "s", "\"s-1\"", "{}"));
	assert_false(hub_answer(hub, "s", "\"s-1\"", "{}"));
	assert_int_equal(hub_question_wait(hub, &inflight, -1, &text, NULL), 0);
	assert_string_equal(text, "{}");
	free(text);
	hub_question_begin(hub, &inflight, "\"s-2\"");
	assert_true(hub_cancel(hub, "s", "7"));
	assert_int_equal(hub_question_wait(hub, &inflight, -1, &text, NULL), -ERR_CANCELLED);
	assert_true(hub_cancelled(hub, &inflight));
	hub_inflight_end(hub, &inflight);
	assert_false(hub_cancel(hub, "s", "7"));
}

static void stopping(void **state)
{
	struct hub_listener listener = {.owner = "a", .topics = HUB_TOOLS_CHANGED}, late = listener;
	struct hub_message *message = NULL;

	(void)state;
	assert_int_equal(hub_listen(hub, &listener, NULL), 0);
	hub_publish(hub, "a", HUB_TOOLS_CHANGED, NULL);
	hub_stop(hub);
	assert_int_equal(hub_wait(hub, &listener, -1, -1, &message), HUB_MESSAGE); /* it was told before */
	hub_message_free(message);
	assert_int_equal(hub_wait(hub, &listener, -1, -1, &message), HUB_GONE);
	assert_int_equal(hub_listen(hub, &late, NULL), -ERR_UNAVAILABLE);
	hub_leave(hub, &listener);
}

/* -------- events -------------------------------------------------------------------------------------- */

static int count_event(void *arg, const struct store_event *event)
{
	(void)event;
	++*(int *)arg;
	return 0;
}

static int count(struct store *store, const char *session, const char *stream, int64_t from)
{
	const struct store_event_filter filter = {session, stream, from};
	int found = 0;

	assert_int_equal(store_event_list(store, &filter, count_event, &found, NULL), 0);
	return found;
}

static int count_uri(void *arg, const char *uri)
{
	(void)uri;
	++*(int *)arg;
	return 0;
}

static int subscriptions(struct store *store, const char *session)
{
	int found = 0;

	assert_int_equal(store_subscription_list(store, session, count_uri, &found, NULL), 0);
	return found;
}

/* What has a time to live counts the time for which gateways served. */
static void serve_for(struct server *server, int64_t us)
{
	auto_free char *path = xasprintf("%s/sallyport.db", server->config->data_dir);
	auto_free char *sql = xasprintf("UPDATE uptime SET served_us = served_us + %" PRId64, us);
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void events_and_subscriptions_live_with_their_session(void **state)
{
	struct store_session one = {.owner = "alice", .protocol = "2025-11-25", .client_offers = STORE_ROOTS},
			     two = one, read;
	struct store_event event = {.message = "{}", .length = 2};

	(void)state;
	fixture_open(&fixture);
	struct store *store = fixture.server.store;

	assert_int_equal(store_session_add(store, &one, NULL), 0);
	assert_int_equal(store_session_add(store, &two, NULL), 0);
	for (int i = 0; i < STORE_SUBSCRIPTIONS_MAX; i++) {
		auto_free char *uri = xasprintf("x://%d", i);

		assert_int_equal(store_subscription_add(store, one.id, uri, NULL), 0);
	}
	assert_int_equal(store_subscription_add(store, one.id, "x://0", NULL), 0); /* is there */
	assert_int_equal(store_subscription_add(store, one.id, "x://one-too-many", NULL), -ERR_LIMIT);
	assert_int_equal(store_subscription_remove(store, one.id, "x://0", NULL), 0);
	assert_int_equal(store_subscription_remove(store, one.id, "x://0", NULL), 0);
	assert_int_equal(store_subscription_add(store, one.id, "x://in-its-place", NULL), 0);
	assert_int_equal(subscriptions(store, one.id), STORE_SUBSCRIPTIONS_MAX);
	assert_int_equal(subscriptions(store, two.id), 0);
	assert_int_equal(store_session_find(store, one.id, "alice", &read, NULL), 0);
	assert_int_equal(read.client_offers, STORE_ROOTS);
	id_new(event.stream);
	for (event.number = 0; event.number < 3; event.number++)
		assert_int_equal(store_event_add(store, one.id, &event, NULL), 0);
	assert_int_equal(count(store, one.id, event.stream, 0), 3);
	assert_int_equal(count(store, one.id, event.stream, 2), 1);
	assert_int_equal(count(store, two.id, event.stream, 0), 0);
	event.number = 1;
	assert_true(store_event_add(store, one.id, &event, NULL) < 0); /* a number is given once */
	serve_for(&fixture.server, STORE_EVENT_TTL_US / 2);
	assert_int_equal(store_expire(store, clock_now_us(), NULL, NULL, NULL), 0);
	assert_int_equal(count(store, one.id, event.stream, 0), 3);
	serve_for(&fixture.server, STORE_EVENT_TTL_US);
	assert_int_equal(store_expire(store, clock_now_us(), NULL, NULL, NULL), 0);
	assert_int_equal(count(store, one.id, event.stream, 0), 0);
	assert_int_equal(store_event_add(store, one.id, &event, NULL), 0);
	assert_int_equal(store_session_end(store, one.id, "alice", NULL), 0);
	assert_int_equal(store_expire(store, clock_now_us(), NULL, NULL, NULL), 0);
	assert_int_equal(count(store, one.id, event.stream, 0), 0);
	assert_int_equal(subscriptions(store, one.id), 0);
	fixture_close(&fixture);
}

static int add_conversation(struct store_txn *txn, void *arg, struct err *err)
{
	struct store_conversation made;

	return store_txn_conversation(txn, arg, "talk", &made, err);
}

/* What goes because its time is up is told to those who follow that owner's list, here and in other processes, and only
 * then. */
static void expiry_is_told(void **state)
{
	struct server *server = &fixture.server;
	struct hub_listener listener = {.owner = "alice", .topics = HUB_RESOURCES_CHANGED};
	struct hub_listener other = {.owner = "bob", .topics = HUB_RESOURCES_CHANGED};
	const int64_t day_us = 86400 * INT64_C(1000000);
	static struct job_news_room room;
	char owner[] = "alice", name[ID_SIZE];
	auto_close int elsewhere = -1;
	struct job_news news;
	struct hub_message *message = NULL;

	(void)state;
	assert_int_equal(store_commit(server->store, add_conversation, owner, NULL), 0);
	assert_int_equal(hub_listen(server->hub, &listener, NULL), 0);
	assert_int_equal(hub_listen(server->hub, &other, NULL), 0);
	assert_int_equal(job_news_listen(server->config->data_dir, name, &elsewhere, NULL), 0);
	assert_int_equal(server_expire(server, clock_now_us(), NULL), 0);
	assert_int_equal(hub_wait(server->hub, &listener, -1, 0, &message), HUB_TIME);
	serve_for(server, 2 * day_us);
	assert_int_equal(server_expire(server, clock_now_us(), NULL), 0);
	assert_int_equal(hub_wait(server->hub, &listener, -1, 0, &message), HUB_MESSAGE);
	assert_int_equal(message->topic, HUB_RESOURCES_CHANGED);
	hub_message_free(message);
	assert_int_equal(hub_wait(server->hub, &other, -1, 0, &message), HUB_TIME);
	assert_true(job_news_receive(elsewhere, &room, &news));
	assert_string_equal(news.owner, "alice");
	assert_true(!news.name && !news.execution);
	job_news_leave(server->config->data_dir, name);
	hub_leave(server->hub, &listener);
	hub_leave(server->hub, &other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_owner_leaves_as_many_streams_as_it_has, begin, end),
		cmocka_unit_test_setup_teardown(topics, begin, end),
		cmocka_unit_test_setup_teardown(followed_resources, begin, end),
		cmocka_unit_test_setup_teardown(slow_ones_are_cut_off, begin, end),
		cmocka_unit_test_setup_teardown(inflight, begin, end),
		cmocka_unit_test_setup_teardown(stopping, begin, end),
		cmocka_unit_test(events_and_subscriptions_live_with_their_session),
		cmocka_unit_test_setup_teardown(expiry_is_told, open_fixture, close_fixture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
