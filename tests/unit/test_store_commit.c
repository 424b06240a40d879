/* test_store_commit.c - the writing thread: groups, failures in a group, order, many writers at once, small stacks,
 * misuse. */
#include "store_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "lib/store/blob/store_blob.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_file.h"
#include "lib/store/record/store_token.h"
#include "lib/store/retention/store_expire.h"
#include "store_gate.h"

#define THREADS     16
#define EACH        100
#define SMALL_STACK (128 * 1024) /* what the gateway's workers have */

/* One operation: a conversation by that number, then success or failure. */
struct op {
	int number;
	bool bad;
	int result;
	char text[ERR_TEXT_SIZE];
	int *done_count, done_place;
};

static int op_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct op *op = arg;
	struct store_conversation made;
	char name[32];

	snprintf(name, sizeof(name), "talk-%d", op->number);
	int failed = store_txn_conversation(txn, "ann", name, &made, err);

	return failed != 0 || !op->bad ? failed : err_set(err, ERR_INVALID, "number %d is bad", op->number);
}

static void op_done(void *arg, int result, const struct err *err)
{
	struct op *op = arg;

	op->result = result;
	snprintf(op->text, sizeof(op->text), "%s", result != 0 ? err->text : "");
	op->done_place = (*op->done_count)++;
}

static int nothing_work(struct store_txn *txn, void *arg, struct err *err)
{
	(void)txn, (void)arg, (void)err;
	return 0;
}

static void one_bad_in_a_group(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct gate gate;
	struct op ops[20] = {0};
	int done = 0;

	gate_shut(&gate, f->store);
	for (int i = 0; i < 20; i++) {
		ops[i] = (struct op){.number = i, .bad = i % 7 == 3, .done_count = &done, .done_place = -1};
		store_commit_async(f->store, op_work, &ops[i], op_done);
	}
	gate_open(&gate);
	ok(store_commit(f->store, nothing_work, NULL, &err)); /* behind all of them */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(ops[i].result, ops[i].bad ? -ERR_INVALID : 0);
		assert_int_equal(ops[i].done_place, i); /* told in their order */
	}
	assert_string_equal(ops[3].text, "number 3 is bad");
	assert_answer(f, "SELECT count(*) FROM conversation", "17");
	assert_answer(f, "SELECT count(*) FROM conversation WHERE name IN ('talk-3', 'talk-10', 'talk-17')", "0");
}

/* All of a group share one commit: other connections see none of it, then all of it. The callback looks while the group
 * is told. */
struct look {
	struct fixture *f;
	char *seen;
};

static void look_done(void *arg, int result, const struct err *err)
{
	struct look *look = arg;

	(void)err;
	assert_int_equal(result, 0);
	look->seen = ask(look->f, "SELECT count(*) FROM conversation");
}

static void a_group_is_one_commit(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct gate gate;
	struct op ops[10];
	int done = 0;
	struct look look = {f, NULL};

	gate_shut(&gate, f->store);
	store_commit_async(f->store, nothing_work, &look, look_done);
	for (int i = 0; i < 10; i++) {
		ops[i] = (struct op){.number = i, .done_count = &done};
		store_commit_async(f->store, op_work, &ops[i], op_done);
	}
	gate_open(&gate);
	ok(store_commit(f->store, nothing_work, NULL, &err));
	assert_string_equal(look.seen, "10"); /* the first of the group is told when the last is committed */
	free(look.seen);
}

/* More than fit into one commit: two or more, in order, and nobody is forgotten. */
static void more_than_a_group(void **state)
{
	static struct op ops[2 * STORE_BATCH_MAX + 10];
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct gate gate;
	int done = 0;
	char wanted[16];
	struct look look = {f, NULL};

	gate_shut(&gate, f->store);
	store_commit_async(f->store, nothing_work, &look, look_done);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		ops[i] = (struct op){.number = (int)i, .done_count = &done};
		store_commit_async(f->store, op_work, &ops[i], op_done);
	}
	gate_open(&gate);
	ok(store_commit(f->store, nothing_work, NULL, &err));
	snprintf(wanted, sizeof(wanted), "%d", STORE_BATCH_MAX - 1);
	assert_string_equal(look.seen, wanted);
	free(look.seen);
	assert_int_equal(done, ARRAY_SIZE(ops));
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		assert_true(ops[i].result == 0 && ops[i].done_place == (int)i);
}

static void readers_are_kept_and_bounded(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_reader readers[STORE_READERS_IDLE + 4];

	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		ok(store_reader_take(f->store, &readers[i], &err)); /* as many as there are who read at once */
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		store_reader_return(&readers[i]);
	assert_int_equal(f->store->n_readers, STORE_READERS_IDLE);
}

/* Another process that does not end its transaction: an error in words after the time-out, and no harm done. */
static void locked_by_another(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	auto_free char *path = xasprintf("%s/sallyport.db", f->data);
	struct op op = {.number = 1};
	sqlite3 *other;

	assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
	assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_busy_timeout(f->store->writer->db, 1); /* instead of STORE_BUSY_MS */
	fails(store_commit(f->store, op_work, &op, &err), ERR_BUSY);
	assert_int_equal(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(other);
	ok(store_commit(f->store, op_work, &op, &err));
	assert_answer(f, "SELECT count(*) FROM conversation", "1");
}

/* -------- many writers -------------------------------------------------------------------------------- */

struct writer {
	struct store *store;
	int number;
	atomic_int *failures;
};

static void *write_many(void *arg)
{
	struct writer *writer = arg;
	struct err err = ERR_INIT;

	for (int i = 0; i < EACH; i++) {
		char name[32], content[32];
		struct put_file put = {.owner = "ann", .conversation = "talk", .name = name, .content = content};
		struct op op = {.number = writer->number * EACH + i, .bad = i % 10 == 9};

		snprintf(name, sizeof(name), "%d-%d", writer->number, i);
		snprintf(content, sizeof(content), "%d", i);
		if (try_put_file(writer->store, &put, &err) != 0)
			atomic_fetch_add(writer->failures, 1);
		if (store_commit(writer->store, op_work, &op, &err) != (op.bad ? -ERR_INVALID : 0))
			atomic_fetch_add(writer->failures, 1);
	}
	return NULL;
}

static void *read_many(void *arg)
{
	struct writer *reader = arg;
	struct err err = ERR_INIT;
	struct store_conversation talk;
	char list[32];

	for (int i = 0; i < EACH; i++) {
		int failed = store_conversation_find(reader->store, "ann", "talk", &talk, &err);

		snprintf(list, sizeof(list), "%d-%d", i % THREADS, i);
		struct store_file file;

		if (failed == 0)
			failed = store_file_find(reader->store, talk.row, list, strlen(list), &file, &err);
		if (failed != 0 && failed != -ERR_NOT_FOUND)
			atomic_fetch_add(reader->failures, 1);
	}
	return NULL;
}

static void many_writers(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[2 * THREADS];
	struct writer writers[2 * THREADS];
	atomic_int failures = 0;
	pthread_attr_t attr;
	char wanted[16];

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, SMALL_STACK);
	for (int i = 0; i < 2 * THREADS; i++) {
		writers[i] = (struct writer){f->store, i / 2, &failures};
		assert_int_equal(pthread_create(&threads[i], &attr, i % 2 == 0 ? write_many : read_many, &writers[i]),
				 0);
	}
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attr);
	assert_int_equal(failures, 0);
	snprintf(wanted, sizeof(wanted), "%d", THREADS * EACH);
	assert_answer(f, "SELECT count(*) FROM file", wanted);
	snprintf(wanted, sizeof(wanted), "%d", THREADS * EACH * 9 / 10 + 1);
	assert_answer(f, "SELECT count(*) FROM conversation", wanted);
	assert_answer(f, "SELECT count(*) FROM blob", "100"); /* the same content is kept once */
	assert_sound(f);
}

/* A CLI writes beside the gateway: another process's transaction only makes it wait. */
static int write_beside(const struct fixture *f, int start_fd)
{
	struct err err = ERR_INIT;
	struct store *store;
	int done = 0;
	char byte;

	if (read(start_fd, &byte, 1) != 1)
		return 4;
	if (store_open(f->data, STORE_WRITE, &store, &err) != 0)
		return 1;
	for (int i = 0; i < EACH; i++) {
		struct op op = {.number = i};

		if (store_commit(store, op_work, &op, &err) != 0)
			return 2;
		done++;
	}
	store_close(store);
	return done == EACH ? 0 : 3;
}

static void two_processes(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	int status, start[2];

	/* SQLite must not be open across a fork. */
	store_close(f->store);
	f->store = NULL;
	assert_int_equal(pipe2(start, O_CLOEXEC), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(write_beside(f, start[0]));
	ok(store_open(f->data, STORE_SERVE, &f->store, &err));
	assert_int_equal(write(start[1], "", 1), 1);
	for (int i = 0; i < EACH; i++) {
		struct op op = {.number = EACH + i};

		ok(store_commit(f->store, op_work, &op, &err));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_answer(f, "SELECT count(*) FROM conversation", "200");
	close(start[0]);
	close(start[1]);
	assert_answer(f, "SELECT group_concat(kind) FROM instance",
		      "gateway"); /* the other one ended in order and named nothing */
	assert_sound(f);
}

/* -------- misuse -------------------------------------------------------------------------------------- */

static int commit_inside(struct store_txn *txn, void *arg, struct err *err)
{
	(void)arg;
	return store_commit(txn->store, nothing_work, NULL, err);
}

struct idler {
	struct fixture *f;
	int *done_count, place;
};

static void *idle_main(void *arg)
{
	struct idler *idler = arg;
	struct err err = ERR_INIT;

	ok(store_commit_gently(idler->f->store, nothing_work, NULL, &err));
	idler->place = *idler->done_count;
	return NULL;
}

/* What is between its work and its answer: those of one transaction. */
struct together {
	int count;
	bool large; /* there is a large one */
	atomic_int answered;
};
struct member {
	struct together *group;
	bool large;
	int place;
};

static int member_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct member *member = arg;

	(void)txn, (void)err;
	assert_false(member->group->large);
	assert_true(!member->large || member->group->count == 0);
	member->group->count++;
	member->group->large = member->large;
	return 0;
}

static void member_done(void *arg, int result, const struct err *err)
{
	struct member *member = arg;

	(void)err;
	assert_int_equal(result, 0);
	member->place = atomic_load(&member->group->answered);
	member->group->count--;
	member->group->large = false;
	atomic_fetch_add(&member->group->answered, 1);
}

/* A large operation has a transaction of its own, and behind it those come first who waited. */
static void large_work_is_alone(void **state)
{
	struct fixture *f = *state;
	struct together group = {0};
	struct member large[3], small[5];
	struct gate gate;

	gate_shut(&gate, f->store);
	for (size_t i = 0; i < ARRAY_SIZE(large); i++) {
		large[i] = (struct member){.group = &group, .large = true};
		store_commit_large(f->store, member_work, &large[i], member_done);
	}
	for (size_t i = 0; i < ARRAY_SIZE(small); i++) {
		small[i] = (struct member){.group = &group};
		store_commit_async(f->store, member_work, &small[i], member_done);
	}
	gate_open(&gate);
	while (atomic_load(&group.answered) < (int)(ARRAY_SIZE(large) + ARRAY_SIZE(small)))
		sched_yield();
	for (size_t i = 0; i < ARRAY_SIZE(small); i++)
		assert_true(small[i].place < large[1].place);
	assert_true(large[0].place < large[1].place && large[1].place < large[2].place);
}

/* An operation at idle priority that came first begins after those that came later. */
static void idle_work_lets_others_go_first(void **state)
{
	struct fixture *f = *state;
	struct gate gate;
	struct op ops[5] = {0};
	int done = 0;
	struct idler idler = {f, &done, -1};
	bool waits = false;
	pthread_t thread;

	gate_shut(&gate, f->store);
	assert_int_equal(pthread_create(&thread, NULL, idle_main, &idler), 0);
	while (!waits) {
		pthread_mutex_lock(&f->store->queue_lock);
		waits = f->store->idle.first != NULL;
		pthread_mutex_unlock(&f->store->queue_lock);
		sched_yield();
	}
	for (int i = 0; i < 5; i++) {
		ops[i] = (struct op){.number = i, .done_count = &done, .done_place = -1};
		store_commit_async(f->store, op_work, &ops[i], op_done);
	}
	gate_open(&gate);
	pthread_join(thread, NULL);
	assert_int_equal(idler.place, 5);
}

static void never_waits_for_itself(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	fails(store_commit(f->store, commit_inside, NULL, &err), ERR_INTERNAL);
	ok(store_commit(f->store, nothing_work, NULL, &err));
}

static void async_told(void *arg, int result, const struct err *err)
{
	*(int *)arg = result;
	assert_non_null(strstr(err->text, "reading only"));
}

static void reading_only(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	char text[STORE_TOKEN_TEXT], sha256[SHA256_HEX_SIZE];
	struct store_token token;
	int told = 0;

	ok(store_token_add(f->store, "ann", "x", text, &token, &err));
	reopen(f, STORE_READ);
	fails(store_commit(f->store, nothing_work, NULL, &err), ERR_DENIED);
	fails(store_token_add(f->store, "ann", "x", text, NULL, &err), ERR_DENIED);
	fails(store_expire(f->store, 1, NULL, NULL, &err), ERR_DENIED);
	fails(store_blob_put(f->store, "x", 1, sha256, &err), ERR_DENIED);
	store_commit_async(f->store, nothing_work, &told, async_told);
	assert_int_equal(told, -ERR_DENIED);
	ok(store_token_check(f->store, text, &token, &err));
}

static int forgets_a_parameter(struct store_txn *txn, void *arg, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_TOKEN_REVOKE);

	(void)arg;
	query_bind_text(&q, ":id", "x");
	return query_run(&q, NULL, err);
}

static int invents_a_parameter(struct store_txn *txn, void *arg, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_TOKEN_LIST);

	(void)arg;
	query_bind_text(&q, ":nonsense", "x");
	return query_next(&q, err);
}

static int uses_one_twice(struct store_txn *txn, void *arg, struct err *err)
{
	auto_query struct query outer = query_begin(txn->conn, SQL_INSTANCE_LIST);

	(void)arg;
	query_bind_text(&outer, ":self", "x");
	assert_int_equal(query_next(&outer, err), 1);
	auto_query struct query inner = query_begin(txn->conn, SQL_INSTANCE_LIST);

	query_bind_text(&inner, ":self", "x");
	return query_next(&inner, err);
}

static void queries_are_checked(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	fails(store_commit(f->store, forgets_a_parameter, NULL, &err), ERR_INTERNAL);
	assert_string_equal(err.text, "statement TOKEN_REVOKE: 1 of 2 parameters are bound");
	fails(store_commit(f->store, invents_a_parameter, NULL, &err), ERR_INTERNAL);
	assert_string_equal(err.text, "statement TOKEN_LIST has no parameter :nonsense");
	fails(store_commit(f->store, uses_one_twice, NULL, &err), ERR_INTERNAL);
	ok(store_commit(f->store, nothing_work, NULL, &err));
}

/* Readers cannot write, even if a statement slipped through. */
static void readers_cannot_write(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	auto_reader struct store_reader reader = {0};

	ok(store_reader_take(f->store, &reader, &err));
	auto_query struct query q = query_begin(reader.conn, SQL_SESSION_EXPIRE);

	query_bind_int(&q, ":limit", 0);
	assert_true(query_run(&q, NULL, &err) < 0);
	assert_non_null(strstr(err.text, "not authorized"));
	char *problem = NULL;

	assert_int_equal(sqlite3_set_authorizer(reader.conn->db, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader.conn->db, "DELETE FROM session", NULL, NULL, &problem), SQLITE_READONLY);
	sqlite3_free(problem);
	assert_int_equal(sqlite3_exec(reader.conn->db, "SELECT \"nothing\"", NULL, NULL, NULL),
			 SQLITE_ERROR); /* no string, no column */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_bad_in_a_group, setup, teardown),
		cmocka_unit_test_setup_teardown(a_group_is_one_commit, setup, teardown),
		cmocka_unit_test_setup_teardown(more_than_a_group, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_are_kept_and_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(locked_by_another, setup, teardown),
		cmocka_unit_test_setup_teardown(many_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(two_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(idle_work_lets_others_go_first, setup, teardown),
		cmocka_unit_test_setup_teardown(large_work_is_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(never_waits_for_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(reading_only, setup, teardown),
		cmocka_unit_test_setup_teardown(queries_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(readers_cannot_write, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_commit", tests, NULL, NULL);
}
