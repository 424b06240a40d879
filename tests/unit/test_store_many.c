/* test_store_many.c - runs that change very many files: recorded in parts, so that no transaction is long; seen as a
 * whole or not at all, also by who comes after a kill -9. */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "store_fixture.h"

#define FILES 600

struct many {
	struct store_execution execution;
	struct store_execution_file *files;
	size_t done;                /* recorded before the end */
	int64_t longest_us, sum_us; /* of the writer's processor: the longest transaction, all of them */
};

static void note(struct many *many, int64_t took_us)
{
	many->longest_us = MAX(many->longest_us, took_us);
	many->sum_us += took_us;
}

static int64_t processor_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static int timed_begin(struct store_txn *txn, void *arg, struct err *err)
{
	struct many *many = arg;
	const int64_t began = processor_us();
	int failed = store_txn_execution_begin(txn, &many->execution, err);

	note(many, processor_us() - began);
	return failed;
}

static int timed_part(struct store_txn *txn, void *arg, struct err *err)
{
	struct many *many = arg;
	const int64_t began = processor_us();
	int failed =
		store_txn_execution_files(txn, &many->execution, many->files + many->done, STORE_FILES_AT_ONCE, err);

	many->done += STORE_FILES_AT_ONCE;
	note(many, processor_us() - began);
	return failed;
}

static int timed_end(struct store_txn *txn, void *arg, struct err *err)
{
	struct many *many = arg;
	const int64_t began = processor_us();
	int failed =
		store_txn_execution_finish(txn, &many->execution, many->files + many->done, FILES - many->done, err);

	note(many, processor_us() - began);
	return failed;
}

static void make_files(struct store *store, struct many *many, int version)
{
	struct err err = ERR_INIT;

	many->files = xcalloc(FILES, sizeof(*many->files));
	for (int i = 0; i < FILES; i++) {
		auto_free char *content = xasprintf("content %d of %d", i, version);
		struct store_file *file = &many->files[i].file;

		many->files[i].phase = STORE_AFTER;
		snprintf(many->files[i].change, sizeof(many->files[i].change), version == 0 ? "created" : "changed");
		file->name = xasprintf("folder/file-%05d", (i * 1237) % FILES);
		file->name_length = strlen(file->name);
		file->size = (int64_t)strlen(content);
		file->mode = 0644;
		snprintf(file->media_type, sizeof(file->media_type), "text/plain");
		ok(store_blob_put(store, content, strlen(content), file->blob, &err));
	}
}

static void free_files(struct many *many)
{
	for (int i = 0; i < FILES; i++)
		free(unconst(many->files[i].file.name));
	free(many->files);
}

static void begin_many(struct store *store, struct many *many, int64_t conversation)
{
	struct err err = ERR_INIT;

	many->execution = sample("ann");
	many->execution.conversation_row = conversation;
	ok(store_commit(store, timed_begin, many, &err));
}

static void record_parts(struct store *store, struct many *many, size_t until)
{
	struct err err = ERR_INIT;

	while (until - many->done > STORE_FILES_AT_ONCE)
		ok(store_commit(store, timed_part, many, &err));
}

static int count_file(void *arg, const struct store_execution_file *file)
{
	(void)file;
	++*(int *)arg;
	return 0;
}

static int files_after(struct store *store, const char *id)
{
	struct err err = ERR_INIT;
	int n = 0;

	ok(store_execution_files(store, id, STORE_AFTER, count_file, &n, &err));
	return n;
}

static void no_transaction_is_long(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const struct store_conversation talk = put_file(f->store, "ann", "talk", "first", "x");

	for (int version = 0; version < 2; version++) {
		struct many many = {.longest_us = 0};

		make_files(f->store, &many, version);
		begin_many(f->store, &many, talk.row);
		record_parts(f->store, &many, FILES);
		assert_int_equal(files_after(f->store, many.execution.id), 0); /* not yet */
		ok(store_commit(f->store, timed_end, &many, &err));
		assert_int_equal(files_after(f->store, many.execution.id), FILES);
		if (many.longest_us > many.sum_us / 2)
			fail_msg("one transaction took %lld us of the processor, all of them %lld",
				 (long long)many.longest_us, (long long)many.sum_us);
		free_files(&many);
	}
	assert_answer(f, "SELECT count(*) FROM file", "601");
	assert_answer(f, "SELECT count(DISTINCT blob) FROM file WHERE name LIKE 'folder/%'", "600");
	assert_sound(f);
}

/* Begins such a run, records some of its files, says so and waits to be killed. */
static int child(struct fixture *f, int64_t conversation, size_t until, int fd)
{
	struct err err = ERR_INIT;
	struct many many = {.longest_us = 0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (store_open(f->data, STORE_SERVE, &f->store, &err))
		return 1;
	make_files(f->store, &many, 1);
	begin_many(f->store, &many, conversation);
	record_parts(f->store, &many, until);
	if (write(fd, many.execution.id, ID_SIZE) != ID_SIZE)
		return 2;
	for (;;)
		pause();
}

/* Killed between two parts: the run was interrupted, and its conversation is as before. */
static void killed_between_parts(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	const struct store_conversation talk = put_file(f->store, "ann", "talk", "folder/file-00000", "before");
	static const size_t untils[] = {STORE_FILES_AT_ONCE + 1, FILES / 2, FILES};

	for (size_t i = 0; i < ARRAY_SIZE(untils); i++) {
		struct store_execution found;
		char id[ID_SIZE];
		int fds[2], status;

		store_close(f->store);
		f->store = NULL;
		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(child(f, talk.row, untils[i], fds[1]));
		close(fds[1]);
		assert_int_equal(read(fds[0], id, ID_SIZE), ID_SIZE);
		close(fds[0]);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		auto_free char *rows = ask(f, "SELECT count(*) > 0 FROM execution_file WHERE phase = 'after'");

		assert_string_equal(rows, "1");
		ok(store_open(f->data, STORE_SERVE, &f->store, &err));
		ok(store_execution_find(f->store, id, &found, &err));
		assert_int_equal(found.state, STORE_INTERRUPTED);
		store_execution_clear(&found);
		assert_int_equal(files_after(f->store, id), 0);
		assert_answer(f, "SELECT count(*) FROM execution_file WHERE phase = 'after'", "0");
		assert_answer(f, "SELECT group_concat(name) || sum(size) FROM file", "folder/file-000006");
		/* What its files were charged for is doubted, so that the garbage collection frees the owner of it. */
		assert_answer(f, "SELECT count(*) FROM holding WHERE doubt = 0 AND blob NOT IN (SELECT blob FROM file)",
			      "0");
		assert_sound(f);
	}
	assert_answer(f, "SELECT count(*) FROM audit WHERE kind = 'run.end'", "3");
}

static void only_of_a_run_of_ours(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;
	struct many many = {.longest_us = 0};

	make_files(f->store, &many, 0);
	many.execution = sample("ann");
	fails(store_commit(f->store, timed_part, &many, &err), ERR_CONFLICT);
	many.done = 0;
	begin_many(f->store, &many, 0);
	many.done = FILES;
	ok(store_commit(f->store, timed_end, &many, &err));
	many.done = 0;
	fails(store_commit(f->store, timed_part, &many, &err), ERR_CONFLICT);
	assert_answer(f, "SELECT count(*) FROM execution_file", "0");
	free_files(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_transaction_is_long, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_between_parts, setup, teardown),
		cmocka_unit_test_setup_teardown(only_of_a_run_of_ours, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
