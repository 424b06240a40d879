/* What a conversation's files must fit: the size of /data, and each other. */
#include "job_fixture.h"

#include <sys/resource.h>

#include "lib/job/job_edit.h"
#include "lib/store/db/store_txn.h"

static void files_beyond_the_size_of_data_are_refused(void **state)
{
	auto_free char *big = xcalloc(1, 700 << 10);
	const struct job_request who = {.owner = "alice", .token_id = "", .conversation = "talk"};
	struct job_file file = {.name = "a", .data = big, .length = 700 << 10};
	char hash[SHA256_HEX_SIZE];
	struct store_file ret;

	(void)state;
	begin(", \"limits\": {\"data_mb\": 1}");
	assert_ok(job_upload(f.engine, &who, &file, &ret, hash, &fixture_err));
	file.name = "b";
	assert_int_equal(job_upload(f.engine, &who, &file, &ret, hash, &fixture_err), -ERR_LIMIT);
	file.name = "a"; /* replacing it is fine */
	assert_ok(job_upload(f.engine, &who, &file, &ret, hash, &fixture_err));
}

/* /data cannot have both, so every later run would fail: whoever puts the file is told. */
static void a_file_in_the_place_of_a_folder_is_refused(void **state)
{
	const struct job_request who = {.owner = "alice", .token_id = "", .conversation = "talk"};
	struct job_file file = {.name = "d", .data = "x", .length = 1};
	static const char *const made[] = {"open('d/x', 'w')", "open(b'd/\\xff', 'w')"};
	char hash[SHA256_HEX_SIZE];
	struct store_file ret;

	(void)state;
	begin("");
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		auto_free char *code =
			xasprintf("import os, shutil; shutil.rmtree('d', True); os.mkdir('d'); %s", made[i]);
		struct job_request request = fixture_request(&f, "talk", code);

		job_release(fixture_run(&f, &request, JAIL_OK));
		assert_int_equal(job_upload(f.engine, &who, &file, &ret, hash, &fixture_err), -ERR_CONFLICT);
		assert_non_null(strstr(fixture_err.text, "\"d\" is a folder of this conversation"));
	}
	for (const char *const *name = (const char *const[]){"d.", "d0", "D", NULL}; *name; name++) {
		file.name = *name;
		assert_ok(job_upload(f.engine, &who, &file, &ret, hash, &fixture_err));
	}
	struct job_request request =
		fixture_request(&f, "talk", "import os, shutil; print(sorted(os.listdir())); shutil.rmtree('d')");
	struct job *job = fixture_run(&f, &request, JAIL_OK);

	assert_string_equal(fixture_wait(job)->stdout_text.data, "['D', 'd', 'd.', 'd0']\n");
	job_release(job);
	file.name = "d";
	assert_ok(job_upload(f.engine, &who, &file, &ret, hash, &fixture_err));
}

#define MADE        1500
#define DESCRIPTORS 512 /* the engine lets a quarter of them wait */

static int n_contents;

static int count_content(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	(void)path, (void)status;
	n_contents += type == FTW_F && walk->level == 2;
	return 0;
}

/* How many contents are in the blob folder. */
static int contents(void)
{
	auto_free char *folder = xasprintf("%s/blobs", f.config.data_dir);

	n_contents = 0;
	nftw(folder, count_content, 16, FTW_PHYS);
	return n_contents;
}

/* While the files of one owner's run are stored, another owner's runs begin and end. */
static void many_files_hold_nobody(void **state)
{
	auto_free char *code = xasprintf(
		"for i in range(%d):\n    with open(str(i), 'w') as file: file.write('content %%d' %% i)", MADE);
	struct job_request many, other;

	(void)state;
	begin("");
	many = fixture_request(&f, "many", code);
	other = fixture_request(&f, "other", "print('through')");
	other.owner = "bob";
	struct job *job = fixture_submit(&f, &many);

	while (contents() < 20)
		;
	for (int i = 0; i < 2; i++) {
		struct job *beside = fixture_run(&f, &other, JAIL_OK);

		assert_string_equal(fixture_wait(beside)->stdout_text.data, "through\n");
		job_release(beside);
		assert_true(i > 0 || contents() < MADE); /* on a busy machine the second one may come later */
	}
	assert_int_equal(fixture_wait(job)->n_changes, MADE);
	assert_true(contents() >= MADE);
	job_release(job);
}

#define RESTORES 10000

/* However often: what is kept is what is there, and each of them is in the audit log. */
static void restoring_often_keeps_only_what_is_there(void **state)
{
	struct job_request request;
	char id[ID_SIZE];
	struct job_edited done;

	(void)state;
	begin("");
	request = fixture_request(&f, "talk", "open('kept', 'w').write('1'); open('changed', 'w').write('1')");
	job_release(fixture_run(&f, &request, JAIL_OK));
	request = fixture_request(&f, "talk", "import os; os.mkdir('d'); os.rename('changed', 'd/changed')");
	job_release(fixture_run(&f, &request, JAIL_OK));
	assert_ok(job_edit_last(f.store, "alice", "talk", id, &fixture_err));
	for (int i = 0; i < RESTORES; i++) {
		const struct job_state wanted = {id, i % 2 == 1};

		assert_ok(job_edit_restore(f.engine, &request, &wanted, &done, &fixture_err));
		assert_int_equal(done.put, 1);
		assert_int_equal(done.removed, 1);
	}
	const struct job_state same = {id, true};

	assert_ok(job_edit_restore(f.engine, &request, &same, &done, &fixture_err));
	assert_int_equal(done.put + done.removed, 0);
	assert_int_equal(contents(), 1);
}

#define MANY  4000
#define TIMES 3 /* as long as the end of a run that changes as many; with a statement for each file 4 (going back), 9 */

/* The processor's time of the longest transaction since the last call. */
static int64_t held_us(void)
{
	return atomic_exchange(&f.store->longest_us, 0);
}

/* All calls wait for the writer: going back, and removing a folder, hold it about as long as the end of a run. */
static void many_files_are_one_statement(void **state)
{
	static const struct bind_text folder = {.data = "d", .length = 1};
	static const struct job_names names = {&folder, 1, "filenames"};
	struct job_request request;
	char id[ID_SIZE];
	int64_t end_us = 0, least_us = INT64_MAX;
	struct job_edited done;

	(void)state;
	begin("");
	for (int version = 0; version < 2; version++) {
		auto_free char *code = xasprintf("import os\nos.makedirs('d', exist_ok=True)\nfor i in range(%d):\n    "
						 "with open('d/%%d' %% i, 'w') as file: file.write('%d of %%d' %% i)",
						 MANY, version);

		request = fixture_request(&f, "talk", code);
		held_us();
		job_release(fixture_run(&f, &request, JAIL_OK));
		end_us = held_us();
	}
	assert_ok(job_edit_last(f.store, "alice", "talk", id, &fixture_err));
	for (int i = 0; i < 4; i++) { /* the least: another program may have had the processor's caches */
		const struct job_state wanted = {id, i % 2 == 1};

		assert_ok(job_edit_restore(f.engine, &request, &wanted, &done, &fixture_err));
		assert_int_equal(done.put, MANY);
		assert_int_equal(done.removed, 0);
		const int64_t us = held_us();

		least_us = MIN(least_us, us);
	}
	assert_in_range(least_us, 1, TIMES * end_us);
	assert_ok(job_edit_remove(f.engine, &request, &names, &done, &fixture_err));
	assert_int_equal(done.removed, MANY);
	assert_in_range(held_us(), 1, TIMES * end_us);
}

/* Nor where descriptors are few: then small files wait in memory, and the jailer is read on. */
static void many_files_and_few_descriptors(void **state)
{
	struct rlimit before, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = DESCRIPTORS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	many_files_hold_nobody(state);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(files_beyond_the_size_of_data_are_refused, end),
		cmocka_unit_test_teardown(a_file_in_the_place_of_a_folder_is_refused, end),
		cmocka_unit_test_teardown(many_files_hold_nobody, end),
		cmocka_unit_test_teardown(many_files_and_few_descriptors, end),
		cmocka_unit_test_teardown(restoring_often_keeps_only_what_is_there, end),
		cmocka_unit_test_teardown(many_files_are_one_statement, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
