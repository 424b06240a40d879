/* What a conversation's files must fit: the size of /data, and each other. */
#include "job_fixture.h"

#include <sys/resource.h>

#include "lib/job/job_edit.h"

static void data_has_a_size(void **state)
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
static void file_or_folder(void **state)
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
static void restores(void **state)
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
		cmocka_unit_test_teardown(data_has_a_size, end),
		cmocka_unit_test_teardown(file_or_folder, end),
		cmocka_unit_test_teardown(many_files_hold_nobody, end),
		cmocka_unit_test_teardown(many_files_and_few_descriptors, end),
		cmocka_unit_test_teardown(restores, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
