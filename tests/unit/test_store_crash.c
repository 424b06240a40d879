/*
 * test_store_crash.c - what was acknowledged is there: after kill -9 in mid-write, after a full disk; and what a dead
 * process left running is marked interrupted, what a live one runs is not.
 */
#include "lib/store/blob/store_blob.h"
#include "lib/store/record/store_execution.h"
#include "lib/store/record/store_task.h"
#include "lib/store/record/store_token.h"
#include "lib/store/retention/store_expire.h"
#include "patience.h"
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#define KILLS           50
#define WRITERS         4
#define ACKS_MAX        24 /* the child is killed after 1 to so many acknowledgements */
#define FULL_DISK_BYTES "2000k"

/* What the child tells through the pipe when a run is recorded. */
struct ack {
	char id[ID_SIZE];
};

struct child {
	struct store *store;
	int fd;
};

/* One run with a file in a conversation of its own: blobs, two transactions, then the word. */
static int record_one(struct store *store, struct ack *ret)
{
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann");
	struct put_file put = {.owner = "ann", .conversation = run.id, .name = run.id, .content = run.id};
	struct store_execution_file made = {
		.phase = STORE_AFTER, .change = "created", .file = {.name = "out", .name_length = 3}};
	struct run work = {&run, &made, 1};

	made.file.size = (int64_t)strlen(run.id);
	if (try_put_file(store, &put, &err) != 0)
		return -1;
	run.conversation_row = put.made.row;
	memcpy(made.file.blob, put.file.blob, sizeof(made.file.blob));
	if (store_commit(store, begin_work, &work, &err) != 0 ||
	    store_commit(store, finish_work, &work, &err) != 0)
		return -1;
	memcpy(ret->id, run.id, sizeof(ret->id));
	return 0;
}

static void *write_without_end(void *arg)
{
	struct child *child = arg;
	struct ack ack;

	while (record_one(child->store, &ack) == 0)
		if (write(child->fd, &ack, sizeof(ack)) != sizeof(ack))
			break;
	return NULL;
}

static int victim(const struct fixture *f, int fd)
{
	pthread_t threads[WRITERS];
	struct child child = {NULL, fd};
	struct err err = ERR_INIT;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (store_open(f->data, STORE_SERVE, &child.store, &err) != 0)
		return 1;
	for (int i = 0; i < WRITERS; i++)
		if (pthread_create(&threads[i], NULL, write_without_end, &child) != 0)
			return 2;
	pthread_join(threads[0], NULL);
	return 3;
}

static void acknowledged_is_there(struct fixture *f, const struct ack *acks, int n)
{
	struct err err = ERR_INIT;

	for (int i = 0; i < n; i++) {
		struct store_execution found;
		struct store_file file;
		auto_close int fd = -1;

		ok(store_execution_find(f->store, acks[i].id, &found, &err));
		assert_int_equal(found.state, STORE_FINISHED);
		assert_string_equal(found.stdout_text.data, "1\n");
		ok(store_file_find(f->store, found.conversation_row, found.id, ID_SIZE - 1, &file, &err));
		ok(store_blob_open(f->store, file.blob, &fd, NULL, &err));
		store_execution_clear(&found);
	}
}

static void kill_in_mid_write(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	unsigned seed = 1;

	for (int round = 0; round < KILLS; round++) {
		struct ack acks[1024];
		int n = 0, status, fds[2];

		store_close(f->store);
		f->store = NULL;
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(victim(f, fds[1]));
		close(fds[1]);
		for (int wanted = 1 + rand_r(&seed) % ACKS_MAX; n < wanted; n++)
			assert_int_equal(read(fds[0], &acks[n], sizeof(acks[n])), sizeof(acks[n]));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		while (n < 1024 && read(fds[0], &acks[n], sizeof(acks[n])) == sizeof(acks[n]))
			n++;
		close(fds[0]);
		ok(store_open(f->data, STORE_SERVE, &f->store, &err));
		acknowledged_is_there(f, acks, n);
		assert_answer(f, "SELECT count(*) FROM execution WHERE state = 'running'", "0");
	}
	assert_sound(f);
}

/* -------- interrupted --------------------------------------------------------------------------------- */

/* Serves or writes, begins a run with some output, tells its id and waits to be killed. */
static int interrupted_child(const struct fixture *f, enum store_mode mode, int fd)
{
	struct err err = ERR_INIT;
	struct store *store;
	struct store_execution run = sample("ann");
	int out, errs;
	auto_free char *big = xmalloc(STORE_INLINE_MAX + 1);

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
	memset(big, 'b', STORE_INLINE_MAX + 1);
	if (store_open(f->data, mode, &store, &err) != 0)
		return 1;
	if (store_commit(store, begin_work, &(struct run){&run, NULL, 0}, &err) != 0)
		return 2;
	if (store_running_open(store, run.id, "out", &out, &err) != 0 ||
	    store_running_open(store, run.id, "err", &errs, &err) != 0)
		return 3;
	if (write(out, "so far", 6) != 6 || write_all(errs, big, STORE_INLINE_MAX + 1) < 0)
		return 4;
	if (write(fd, run.id, ID_SIZE) != ID_SIZE)
		return 5;
	for (;;)
		pause();
}

/* Starts such a child while the store is closed; it has begun when this returns. */
static pid_t start_child(struct fixture *f, enum store_mode mode, char ret_id[ID_SIZE])
{
	int fds[2];

	store_close(f->store);
	f->store = NULL;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(interrupted_child(f, mode, fds[1]));
	close(fds[1]);
	assert_int_equal(read(fds[0], ret_id, ID_SIZE), ID_SIZE);
	close(fds[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void assert_interrupted(struct fixture *f, const char *id, const char *message)
{
	struct err err = ERR_INIT;
	struct store_execution found;
	auto_free char *errs = NULL;
	size_t length;

	ok(store_execution_find(f->store, id, &found, &err));
	assert_int_equal(found.state, STORE_INTERRUPTED);
	assert_string_equal(found.verdict, "XX");
	assert_string_equal(found.message, message);
	assert_true(found.finished_us > found.created_us);
	assert_string_equal(found.stdout_text.data, "so far");
	assert_int_equal(found.stderr_text.length, STORE_INLINE_MAX + 1); /* in a blob */
	ok(store_text_read(f->store, &found.stderr_text, &errs, &length, &err));
	assert_int_equal(length, STORE_INLINE_MAX + 1);
	store_execution_clear(&found);
	auto_free char *running = xasprintf("%s/running/%s.out", f->data, id);

	assert_int_equal(access(running, F_OK), -1);
}

static void gateway_killed(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store *second;
	char id[ID_SIZE];
	pid_t pid = start_child(f, STORE_SERVE, id);

	fails(store_open(f->data, STORE_SERVE, &second, &err), ERR_CONFLICT);
	auto_free char *wanted = xasprintf("another gateway (process %d) serves", (int)pid);

	assert_non_null(strstr(err.text, wanted));
	end_child(pid);
	ok(store_open(f->data, STORE_SERVE, &f->store, &err)); /* a stale lock is none */
	assert_interrupted(f, id, "the gateway ended before this run did");
	assert_answer(f, "SELECT count(*) FROM instance WHERE ended_us IS NOT NULL", "1");
	reopen(f, STORE_SERVE); /* nothing more to do, nothing undone */
	assert_interrupted(f, id, "the gateway ended before this run did");
	assert_sound(f);
}

static void live_ones_are_left_alone(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct store_execution found;
	char id[ID_SIZE];
	pid_t pid = start_child(f, STORE_WRITE, id);

	ok(store_open(f->data, STORE_SERVE, &f->store, &err)); /* a CLI is no second gateway */
	ok(store_reap(f->store, &err));
	ok(store_expire(f->store, clock_now_us(), NULL, NULL, &err));
	ok(store_execution_find(f->store, id, &found, &err));
	assert_int_equal(found.state, STORE_RUNNING);
	store_execution_clear(&found);
	auto_free char *running = xasprintf("%s/running/%s.out", f->data, id);

	assert_int_equal(access(running, F_OK), 0);
	struct run work = {&found, NULL, 0}; /* another instance's run cannot be finished here */

	found = sample("ann");
	memcpy(found.id, id, ID_SIZE);
	fails(store_commit(f->store, finish_work, &work, &err), ERR_CONFLICT);
	end_child(pid);
	ok(store_reap(f->store, &err)); /* the living gateway notices */
	assert_interrupted(f, id, "the command ended before this run did");
	assert_sound(f);
}

/* -------- disks --------------------------------------------------------------------------------------- */

/* A small file system of its own over the data folder's place, in a mount namespace of its own. Exit codes: 77 not
 * permitted. */
static int small_disk(struct fixture *f, const char *options)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", f->base, "tmpfs", 0, options) < 0)
		return 77;
	return 0;
}

static int report(int where, const struct err *err)
{
	print_error("step %d: %s\n", where, err->text);
	return where;
}

static int full_disk(struct fixture *f)
{
	static char ballast[800 * 1024];
	struct err err = ERR_INIT;
	struct ack acks[1024];
	int n = 0, failed = small_disk(f, "size=" FULL_DISK_BYTES);
	auto_free char *path = xasprintf("%s/ballast", f->base);

	if (failed != 0)
		return failed;
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (write_all(fd, ballast, sizeof(ballast)) < 0)
		return 1;
	if (store_open(f->data, STORE_SERVE, &f->store, &err) != 0)
		return report(2, &err);
	while (n < 1000 && record_one(f->store, &acks[n]) == 0)
		n++;
	if (n == 0 || n == 1000)
		return report(3, &err);
	/* Reading goes on, and says nothing of rows that were refused. */
	acknowledged_is_there(f, acks, n);
	struct store_token token;
	char text[STORE_TOKEN_TEXT];
	int full = 0;

	for (int i = 0; i < 100 && full == 0; i++)
		full = store_token_add(f->store, "ann", "x", text, &token, &err);
	if (full != -ERR_SYSTEM || strstr(err.text, "space") == NULL)
		return report(4, &err);
	/* With room again it works on without being opened anew. */
	if (ftruncate(fd, 0) < 0)
		return 5;
	if (record_one(f->store, &acks[n]) != 0)
		return report(6, &err);
	acknowledged_is_there(f, acks, n + 1);
	store_close(f->store);
	if (store_open(f->data, STORE_SERVE, &f->store, &err) != 0)
		return report(7, &err);
	acknowledged_is_there(f, acks, n + 1);
	assert_sound(f);
	store_close(f->store);
	return 0;
}

static int read_only_disk(struct fixture *f)
{
	struct err err = ERR_INIT;
	struct store *store;
	int failed = small_disk(f, "size=" FULL_DISK_BYTES);

	if (failed != 0)
		return failed;
	if (store_open(f->data, STORE_SERVE, &f->store, &err) != 0)
		return report(1, &err);
	store_close(f->store);
	if (mount(NULL, f->base, NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
		return 2;
	if (store_open(f->data, STORE_SERVE, &store, &err) != -ERR_SYSTEM || strstr(err.text, strerror(EROFS)) == NULL)
		return report(3, &err);
	if (store_open(f->data, STORE_WRITE, &store, &err) != -ERR_SYSTEM || strstr(err.text, f->data) == NULL)
		return report(4, &err);
	return 0;
}

static void assert_disk(void **state, int (*work)(struct fixture *f))
{
	int status = in_child(*state, work);

	if (status == 77) {
		print_message("skipped: mounting a small file system needs root\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* A run ends while the disk is full: as soon as there is room it is recorded, by the process that runs. */
static int end_on_full_disk(struct fixture *f)
{
	static char ballast[600 * 1024];
	struct err err = ERR_INIT;
	struct store_execution run = sample("ann"), found = {0};
	struct store_task task = {.owner = "ann", .tool = "run_code", .ttl_ms = 3600000};
	int failed = small_disk(f, "size=" FULL_DISK_BYTES), out;
	auto_free char *path = xasprintf("%s/ballast", f->base);
	int64_t until = 0;

	if (failed != 0)
		return failed;
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || store_open(f->data, STORE_SERVE, &f->store, &err) != 0)
		return report(1, &err);
	memcpy(task.execution, run.id, ID_SIZE);
	memcpy(run.task_id, run.id, ID_SIZE);
	if (store_task_add(f->store, &task, 10, &err) < 0 ||
	    store_commit(f->store, begin_work, &(struct run){&run, NULL, 0}, &err) != 0 ||
	    store_running_open(f->store, run.id, "out", &out, &err) != 0 || write(out, "so far", 6) != 6)
		return report(2, &err);
	for (size_t step = sizeof(ballast); step > 0; step /= 2) /* to the last byte */
		while (write(fd, ballast, step) > 0)
			;
	/* The log may have room of its own: more is recorded until it has none. */
	int ended = 0;

	for (int i = 0; i < 1000 && ended == 0; i++) {
		struct store_execution other = sample("ann");

		ended = store_commit(f->store, begin_work, &(struct run){&other, NULL, 0}, &err);
	}
	if (ended != -ERR_SYSTEM ||
	    store_commit(f->store, finish_work, &(struct run){&run, NULL, 0}, &err) != -ERR_SYSTEM)
		return report(3, &err);
	store_execution_abandon(f->store, run.id);
	if (store_execution_find(f->store, run.id, &found, &err) < 0 || found.state != STORE_RUNNING)
		return report(4, &err);
	store_execution_clear(&found);
	if (ftruncate(fd, 0) < 0)
		return 5;
	do {
		store_execution_clear(&found);
		if (store_execution_find(f->store, run.id, &found, &err) < 0)
			return report(6, &err);
	} while (found.state == STORE_RUNNING && patience_left(&until));
	if (found.state != STORE_INTERRUPTED || strstr(found.message, "could not be recorded") == NULL ||
	    !streq(found.stdout_text.data, "so far"))
		return 7;
	store_execution_clear(&found);
	auto_free char *partial = xasprintf("%s/running/%s.out", f->data, run.id);

	while (access(partial, F_OK) == 0 && patience_left(&until))
		;
	do {
		store_task_clear(&task);
		if (store_task_find(f->store, task.id, "ann", &task, &err) < 0)
			return report(8, &err);
	} while (task.state == STORE_TASK_WORKING && patience_left(&until));
	if (task.state != STORE_TASK_FAILED || access(partial, F_OK) == 0)
		return 9;
	close(out);
	assert_sound(f);
	store_close(f->store);
	return 0;
}

static void abandoned_runs(void **state)
{
	assert_disk(state, end_on_full_disk);
}

static void disk_full(void **state)
{
	assert_disk(state, full_disk);
}

static void disk_read_only(void **state)
{
	assert_disk(state, read_only_disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kill_in_mid_write, setup, teardown),
		cmocka_unit_test_setup_teardown(gateway_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(live_ones_are_left_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(abandoned_runs, setup, teardown),
		cmocka_unit_test_setup_teardown(disk_full, setup, teardown),
		cmocka_unit_test_setup_teardown(disk_read_only, setup, teardown),
	};

	return cmocka_run_group_tests_name("store_crash", tests, NULL, NULL);
}
