/* Tasks in the store: whose they are, how many, how long, how they end, and what becomes of those whose process is
 * gone. */
#include <fcntl.h>

#include "store_fixture.h"

#include "lib/store/store_expire.h"
#include "lib/store/store_task.h"

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
	free(ask(f, "UPDATE task SET expires_us = 1 WHERE state = 'completed'"));
	add(f->store, "alice", "");
	assert_answer(f, "SELECT count(*) FROM task WHERE owner = 'alice'", "3");
}

static void expiry(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_task over = add(f->store, "alice", ""), working = add(f->store, "alice", ""), found;

	end(f->store, &over, STORE_TASK_COMPLETED);
	free(ask(f, "UPDATE task SET expires_us = 1"));
	assert_int_equal(store_task_find(f->store, over.id, "alice", &found, &err), -ERR_NOT_FOUND);
	ok(store_task_find(f->store, working.id, "alice", &found, &err)); /* nobody waits for nothing */
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	assert_answer(f, "SELECT group_concat(state) FROM task", "working");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(life, setup, teardown),
		cmocka_unit_test_setup_teardown(another_owners_is_unknown, setup, teardown),
		cmocka_unit_test_setup_teardown(bounded_by_owner, setup, teardown),
		cmocka_unit_test_setup_teardown(expiry, setup, teardown),
		cmocka_unit_test_setup_teardown(listed_newest_first, setup, teardown),
		cmocka_unit_test_setup_teardown(gone_with_the_process, setup, teardown),
		cmocka_unit_test_setup_teardown(abandoned_in_order, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_task", tests, NULL, NULL);
}
