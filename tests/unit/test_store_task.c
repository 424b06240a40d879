/* Tasks in the store: whose they are, how many, how long, how they end, and what becomes of those whose process is
 * gone. */
#include <fcntl.h>

#include "store_fixture.h"

#include "lib/base/metrics.h"
#include "lib/store/db/crypto.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_event.h"
#include "lib/store/record/store_request.h"
#include "lib/store/record/store_session.h"
#include "lib/store/record/store_task.h"
#include "lib/store/retention/store_expire.h"

#define TTL_MS 60000
#define MOST   3

static struct store_task task_of(const char *owner, const char *execution)
{
	struct store_task task = {.ttl_ms = TTL_MS};

	snprintf(task.owner, sizeof(task.owner), "%s", owner);
	snprintf(task.tool, sizeof(task.tool), "run_code");
	snprintf(task.execution, sizeof(task.execution), "%s", execution);
	return task;
}

static struct store_task add(struct store *store, const char *owner, const char *execution)
{
	struct store_task task = task_of(owner, execution);
	struct err err = ERR_INIT;

	ok(store_task_add(store, &task, MOST, &err));
	return task;
}

static void end(struct store *store, struct store_task *task, enum store_task_state state)
{
	struct err err = ERR_INIT;

	task->state = state;
	ok(store_task_end(store, task, &err));
}

static void life(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_task task = add(f->store, "alice", ""), found, again;
	char result[] = "{\"content\":[]}";

	assert_int_equal(task.state, STORE_TASK_WORKING);
	assert_int_equal(task.created_us, task.updated_us);
	ok(store_task_find(f->store, task.id, "alice", &found, &err));
	assert_int_equal(found.state, STORE_TASK_WORKING);
	assert_int_equal(found.ttl_ms, TTL_MS);
	assert_string_equal(found.tool, "run_code");
	assert_null(found.result);

	task.result = result;
	task.is_error = true;
	snprintf(task.message, sizeof(task.message), "it came to nothing");
	end(f->store, &task, STORE_TASK_COMPLETED);
	ok(store_task_find(f->store, task.id, "alice", &found, &err));
	assert_int_equal(found.state, STORE_TASK_COMPLETED);
	assert_true(found.is_error);
	assert_true(found.updated_us > found.created_us);
	assert_string_equal(found.message, "it came to nothing");
	assert_string_equal(found.result, result);
	store_task_clear(&found);

	/* Final: whoever comes second changes nothing. */
	again = task;
	again.state = STORE_TASK_CANCELLED;
	fails(store_task_end(f->store, &again, &err), ERR_CONFLICT);
	ok(store_task_find(f->store, task.id, "alice", &found, &err));
	assert_int_equal(found.state, STORE_TASK_COMPLETED);
	store_task_clear(&found);
	assert_sound(f);
}

static void another_owners_is_unknown(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT, unknown = ERR_INIT;
	struct store_task task = add(f->store, "alice", ""), found;

	assert_int_equal(store_task_find(f->store, task.id, "bob", &found, &err), -ERR_NOT_FOUND);
	assert_int_equal(store_task_find(f->store, "no-such-id", "bob", &found, &unknown), -ERR_NOT_FOUND);
	assert_string_equal(err.text, unknown.text);
}

static void bounded_by_owner(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_task task = task_of("alice", ""), first = add(f->store, "alice", "");

	for (int i = 1; i < MOST; i++)
		add(f->store, "alice", "");
	fails(store_task_add(f->store, &task, MOST, &err), ERR_BUSY);
	assert_non_null(strstr(err.text, "3 tasks of yours"));
	add(f->store, "bob", "");
	/* One that has expired makes room at once. */
	end(f->store, &first, STORE_TASK_COMPLETED);
	free(ask(f, "UPDATE task SET until_us = 0 WHERE state = 'completed'"));
	add(f->store, "alice", "");
	assert_answer(f, "SELECT count(*) FROM task WHERE owner = 'alice'", "3");
}

static void expiry(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_task over = add(f->store, "alice", ""), working = add(f->store, "alice", ""), found;

	end(f->store, &over, STORE_TASK_COMPLETED);
	free(ask(f, "UPDATE task SET until_us = 0"));
	assert_int_equal(store_task_find(f->store, over.id, "alice", &found, &err), -ERR_NOT_FOUND);
	ok(store_task_find(f->store, working.id, "alice", &found, &err)); /* nobody waits for nothing */
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_answer(f, "SELECT group_concat(state) FROM task", "working");
}

#define DAY_US (24 * 3600 * 1000000ll)
#define KEPT                                                                                                           \
	"SELECT (SELECT count(*) FROM task) || ' ' || (SELECT count(*) FROM request) || ' ' || (SELECT count(*) FROM " \
	"session) || ' ' || (SELECT count(*) FROM event)"

static int claim_work(struct store_txn *txn, void *arg, struct err *err)
{
	return store_txn_request_put(txn, arg, err);
}

/* Tasks, keys, sessions and events live while gateways serve: a clock that jumps ends none. */
static void time_that_was_served(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_task over = add(f->store, "alice", ""), found;
	struct store_session session = {.owner = "alice", .protocol = "2025-06-18"}, idle = session;
	struct store_event event = {.message = "1", .length = 1};
	char hash[SHA256_HEX_SIZE];
	struct store_request key = {.owner = "alice", .key = "k", .hash = hash};

	sha256_hex("", 0, hash);
	f->store->retention.conversation_ttl_us = 30 * DAY_US;
	end(f->store, &over, STORE_TASK_COMPLETED);
	ok(store_session_add(f->store, &session, &err));
	ok(store_session_add(f->store, &idle, &err));
	id_new(event.stream);
	ok(store_event_add(f->store, session.id, &event, &err));
	ok(store_commit(f->store, claim_work, &key, &err));

	ok(store_expire(f->store, clock_now_us() + 1000 * DAY_US, NULL, NULL, &err));
	assert_answer(f, KEPT, "1 1 2 1");
	ok(store_task_find(f->store, over.id, "alice", &found, &err));
	assert_int_equal(found.ttl_ms, TTL_MS);
	store_task_clear(&found);

	f->store->served_us += TTL_MS * 1000;
	ok(store_expire(f->store, 0, NULL, NULL, &err));
	assert_answer(f, KEPT, "0 1 2 1");
	f->store->served_us += 2 * DAY_US;
	ok(store_expire(f->store, 0, NULL, NULL, &err));
	assert_answer(f, KEPT, "0 0 2 0");

	/* A session that is used goes on, also where the clock is set back and its date of use is in the future. */
	f->store->served_us += 20 * DAY_US;
	free(ask(f, "UPDATE session SET seen_us = seen_us + 86400000000"));
	ok(store_session_find(f->store, session.id, "alice", &session, &err));
	f->store->served_us += 20 * DAY_US;
	ok(store_expire(f->store, 0, NULL, NULL, &err));
	assert_answer(f, KEPT, "0 0 1 0");
	ok(store_session_find(f->store, session.id, "alice", &session, &err));
	assert_sound(f);
}

struct seen {
	char ids[8][ID_SIZE];
	size_t count;
};

static int note(void *arg, const struct store_task *task)
{
	struct seen *seen = arg;

	memcpy(seen->ids[seen->count++], task->id, ID_SIZE);
	return 0;
}

static void listed_newest_first(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_task one = add(f->store, "alice", ""), two = add(f->store, "alice", ""),
			  three = add(f->store, "alice", "");
	struct seen seen = {0};

	add(f->store, "bob", "");
	ok(store_task_list(f->store, &(struct store_task_page){"alice", STORE_ID_ABOVE, 2}, note, &seen, &err));
	assert_int_equal(seen.count, 2);
	assert_string_equal(seen.ids[0], three.id);
	assert_string_equal(seen.ids[1], two.id);
	ok(store_task_list(f->store, &(struct store_task_page){"alice", two.id, 2}, note, &seen, &err));
	assert_int_equal(seen.count, 3);
	assert_string_equal(seen.ids[2], one.id);
}

/* Begins three tasks, one of whose runs is recorded, and disappears. */
static int victim(const struct fixture *f, int fd)
{
	struct err err = ERR_INIT;
	struct store_execution done = sample("alice"), running = sample("alice");
	struct store *store;

	if (store_open(f->data, STORE_SERVE, &store, &err) != 0)
		return 1;
	begin(store, &done);
	begin(store, &running);
	char ids[3][ID_SIZE];
	struct store_task tasks[] = {add(store, "alice", done.id), add(store, "alice", running.id),
				     add(store, "alice", "")};

	finish(store, &done, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		memcpy(ids[i], tasks[i].id, ID_SIZE);
	return write_all(fd, ids, sizeof(ids)) < 0;
}

static void gone_with_the_process(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char ids[3][ID_SIZE];
	struct store_task found;
	int fds[2], status;

	store_close(f->store);
	f->store = NULL;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(victim(f, fds[1]));
	close(fds[1]);
	assert_int_equal(read(fds[0], ids, sizeof(ids)), sizeof(ids));
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	ok(store_task_find(f->store, ids[0], "alice", &found, &err));
	assert_int_equal(found.state, STORE_TASK_COMPLETED);
	assert_string_equal(found.message, "exit status 0");
	for (int i = 1; i < 3; i++) {
		ok(store_task_find(f->store, ids[i], "alice", &found, &err));
		assert_int_equal(found.state, STORE_TASK_FAILED);
		assert_true(str_starts(found.message, "the gateway ended before this task did"));
		assert_int_equal(strstr(found.message, found.execution) != NULL,
				 1); /* where its output is; "" for the one without a run */
	}
	assert_sound(f);
}

/* An instance that ends in order leaves nothing working either. */
static void abandoned_in_order(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_task task = add(f->store, "alice", ""), found;

	reopen(f, STORE_SERVE);
	ok(store_task_find(f->store, task.id, "alice", &found, &err));
	assert_int_equal(found.state, STORE_TASK_FAILED);
	assert_sound(f);
}

#define ROWS_TEXT_(n) #n
#define ROWS_TEXT(n)  ROWS_TEXT_(n)
#define MANY_ROWS     1000 /* more than four slices */
#define MANY                                                                                                           \
	"WITH RECURSIVE many (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM many WHERE i < " ROWS_TEXT(MANY_ROWS) ") "
_Static_assert(MANY_ROWS > 4 * STORE_SLICE_ROWS, "each table needs five transactions");

#define ENDED "01900000-0000-7000-8000-0000000000bb"
#define OPEN  "01900000-0000-7000-8000-0000000000cc"

static int64_t transactions(void)
{
	static const char name[] = "sallyport_store_hold_seconds_count ";
	auto_buf struct buf text = {0};

	buf_init(&text, SIZE_MAX);
	metrics_print(&text, false);
	const char *at = strstr(text.data, name);

	assert_non_null(at);
	return strtoll(at + sizeof(name) - 1, NULL, 10);
}

/* However much has expired, a transaction removes few rows: events, those of ended sessions, keys; a conversation of
 * many runs. */
static void fill_tables(const struct fixture *f)
{
	static const char *const statements[] = {
		"INSERT INTO session (id, owner, protocol, client_name, client_version, client_offers, created_us, "
		"seen_us, ended_us, idle_from_us) VALUES ('" ENDED "', 'ann', '', '', '', 0, 1, 1, 1, 0), ('" OPEN
		"', 'ann', '', '', '', 0, 1, 1, NULL, 9999999999999)",
		MANY "INSERT INTO event (stream, number, session, last, created_us, served_us, message) SELECT '" ENDED
		     "', i, '" ENDED "', 0, 1, 9999999999999, '{}' FROM many",
		MANY "INSERT INTO event (stream, number, session, last, created_us, served_us, message) SELECT '" OPEN
		     "', i, '" OPEN "', 0, 1, 0, '{}' FROM many",
		MANY "INSERT INTO request (owner, key, hash, expires_us, until_us) SELECT 'ann', 'k' || i, "
		     "printf('%064d', i), 1, 0 FROM many",
		MANY "INSERT INTO execution (id, instance, state, owner, conversation, conversation_name, created_us, "
		     "language, fingerprint, network, args, limits, code_bytes, stdin_bytes, finished_us, verdict, "
		     "recorded) SELECT printf('01900000-0000-7000-8000-%012d', i), instance, 'finished', 'ann', "
		     "conversation, 'talk', 1, 'bash', '', 0, '[]', '{}', 0, 0, 1, 'OK', 1000 + i FROM many, execution "
		     "WHERE id > '01a'"};

	for (size_t i = 0; i < ARRAY_SIZE(statements); i++)
		assert_null(ask(f, statements[i]));
}

static void in_slices(void **state)
{
	struct fixture *f = *state;
	struct store_execution run = sample("ann");
	struct err err = ERR_INIT;

	retain(f->store, 0, DAY_US);
	run.conversation_row = put_file(f->store, "ann", "talk", "input", "x").row;
	begin(f->store, &run);
	finish(f->store, &run, NULL, 0);
	fill_tables(f);
	f->store->served_us += 2 * DAY_US;
	const int64_t before = transactions();

	ok(store_expire(f->store, 0, NULL, NULL, &err));
	assert_true(transactions() - before >= 4 * (MANY_ROWS / STORE_SLICE_ROWS));
	assert_answer(f,
		      "SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM request) + (SELECT count(*) FROM "
		      "session) + (SELECT count(*) FROM conversation) + (SELECT count(conversation) FROM execution)",
		      "1"); /* the session that goes on */
	assert_answer(f, "SELECT count(*) FROM execution WHERE conversation_name = 'talk'", "1001");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(life, setup, teardown),
		cmocka_unit_test_setup_teardown(another_owners_is_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded_by_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(expiry, setup, teardown),
		cmocka_unit_test_setup_teardown(time_that_was_served, setup, teardown),
		cmocka_unit_test_setup_teardown(listed_newest_first, setup, teardown),
		cmocka_unit_test_setup_teardown(gone_with_the_process, setup, teardown),
		cmocka_unit_test_setup_teardown(abandoned_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(in_slices, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_task", tests, NULL, NULL);
}
