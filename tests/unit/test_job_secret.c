/* Secrets of runs: they reach the program, and nothing of them is stored, shown or sent. */
#include "job_fixture.h"

#include "lib/job/job_secret.h"

static const char secret[] = "hunter2-never~on disk";

static int find_secret(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
	auto_free char *text = NULL;
	size_t length;

	(void)status;
	(void)ftw;
	if (type == FTW_F && !strstr(path, "/secrets/") &&
	    read_file_at(AT_FDCWD, path, 1 << 26, &text, &length, NULL) == 0) {
		auto_mask struct mask *mask = mask_new(&(struct mask_value){secret, strlen(secret)}, 1);
		auto_buf struct buf masked = {0};

		buf_init(&masked, SIZE_MAX);
		if (mask_bytes(mask, text, length, &masked) > 0)
			fail_msg("the secret stands in %s", path);
	}
	return 0;
}

static struct job *run(const char *conversation, const char *code, bool given)
{
	static const char *name = "KEY", *value = secret;
	struct job_request request = fixture_request(&f, conversation, code);

	if (given)
		request.secrets = (struct bind_map){&name, &value, 1};
	return fixture_run(&f, &request, JAIL_OK);
}

static const struct job_change *change_of(const struct job_result *result, const char *name)
{
	for (size_t i = 0; i < result->n_changes; i++)
		if (streq(result->changes[i].name, name))
			return &result->changes[i];
	fail_msg("no file \"%s\" among %zu", name, result->n_changes);
	return NULL;
}

static void secrets_leave_no_trace_on_the_disk(void **state)
{
	struct job_request request;
	struct store_execution row = {0};
	struct job *job;

	(void)state;
	begin("");
	request = fixture_request(&f, "talk", "import os; print(len(os.environ['KEY']), os.environ['PLAIN'])");
	request.secrets = (struct bind_map){(const char *[]){"KEY"}, (const char *[]){secret}, 1};
	request.environment = (struct bind_map){(const char *[]){"PLAIN"}, (const char *[]){"yes"}, 1};
	job = fixture_run(&f, &request, JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "21 yes\n");
	assert_ok(store_execution_find(f.store, job_id(job), &row, &fixture_err));
	assert_non_null(strstr(row.env_json, "\"KEY\":null"));
	assert_int_equal(nftw(f.dir, find_secret, 16, FTW_PHYS), 0);
	store_execution_clear(&row);
	job_release(job);
}

static void output_is_masked(void **state)
{
	(void)state;
	begin("");
	struct job *job = run(NULL,
			      "import os, sys, base64, json, urllib.parse, time\n"
			      "k = os.environ['KEY']\n"
			      "print('plain', k, 'hex', k.encode().hex(), k.encode().hex().upper())\n"
			      "for i in range(3): print(base64.b64encode(b'x' * i + k.encode() + b'y').decode())\n"
			      "print(urllib.parse.quote(k), urllib.parse.quote_plus(k), json.dumps({'k': k}))\n"
			      "for c in 'slowly ' + k: sys.stderr.write(c); sys.stderr.flush(); time.sleep(0.002)\n",
			      true);
	const struct job_result *result = fixture_wait(job);

	assert_string_equal(result->stderr_text.data, "slowly ***");
	assert_ptr_equal(strstr(result->stdout_text.data, "plain *** hex *** ***\n"), result->stdout_text.data);
	assert_non_null(strstr(result->stdout_text.data, "*** *** {\"k\": \"***\"}\n"));
	assert_int_equal(nftw(f.dir, find_secret, 16, FTW_PHYS), 0);
	job_release(job);
	/* More than a row holds: masked by an I/O worker into a blob. */
	job = run(NULL, "import os\nfor i in range(5000): print(os.environ['KEY'], i, end=' ')", true);
	result = fixture_wait(job);
	assert_ptr_equal(strstr(result->stdout_text.data, "*** 0 *** 1 *** 2 "), result->stdout_text.data);
	assert_int_equal(nftw(f.dir, find_secret, 16, FTW_PHYS), 0);
	job_release(job);
}

static void partial_output_is_masked(void **state)
{
	struct job_request request;
	char text[100];
	int64_t until = 0;
	size_t length;

	(void)state;
	begin("");
	request = fixture_request(&f, NULL,
				  "import os, sys, time; k = os.environ['KEY']\n"
				  "print('a', k, 'b', k[:9], end='', flush=True); time.sleep(60)");
	request.secrets = (struct bind_map){(const char *[]){"KEY"}, (const char *[]){secret}, 1};
	struct job *job = fixture_submit(&f, &request);

	while ((length = job_output_read(job, 1, 0, text, sizeof(text) - 1)) < 8)
		if (!patience_left(&until))
			fail_msg("nothing was printed");
	text[length] = '\0';
	assert_string_equal(text, "a *** b ");
	assert_int_equal(nftw(f.dir, find_secret, 16, FTW_PHYS), 0);
	job_cancel(job);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "a *** b hunter2-n");
	job_release(job);
}

static void files_are_masked(void **state)
{
	(void)state;
	begin("");
	struct job *job = run("talk",
			      "import os; k = os.environ['KEY']\n"
			      "open('/data/note.txt', 'w').write('it is ' + k + '.\\n')\n"
			      "open('/data/plain.txt', 'w').write('nothing')\n"
			      "open('/data/binary', 'wb').write(b'\\0' + k.encode())\n"
			      "open('/data/' + k, 'w').write('1'); open('/data/' + k + 'x', 'w').write('2')",
			      true);
	const struct job_result *result = fixture_wait(job);

	assert_int_equal(result->n_changes, 5);
	assert_int_equal(change_of(result, "note.txt")->kind, JAIL_FILE_CREATED);
	assert_int_equal(change_of(result, "note.txt")->file.size, strlen("it is ***.\n"));
	assert_int_equal(change_of(result, "plain.txt")->kind, JAIL_FILE_CREATED);
	assert_int_equal(change_of(result, "binary")->kind, JAIL_FILE_NOT_KEPT);
	assert_string_equal(change_of(result, "binary")->reason, "it holds a secret and is not text");
	assert_int_equal(change_of(result, "*** (1)")->kind, JAIL_FILE_NOT_KEPT);
	assert_string_equal(change_of(result, "***x (2)")->reason, "its name holds a secret");
	assert_int_equal(nftw(f.dir, find_secret, 16, FTW_PHYS), 0);
	job_release(job);
	job = run("talk", "print(open('/data/note.txt').read(), end='')", false);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "it is ***.\n");
	job_release(job);
}

static struct job *live(const char *code, bool given)
{
	struct job_request request = fixture_request(&f, "talk", code);

	request.live = true;
	const char *names[] = {"KEY"}, *values[] = {secret};

	if (given)
		request.secrets = (struct bind_map){names, values, 1};
	return fixture_run(&f, &request, JAIL_OK);
}

static void a_sandbox_masks_secrets_of_earlier_runs(void **state)
{
	(void)state;
	begin("");
	job_release(live("import os; k = os.environ['KEY']; open('/data/k.txt', 'w').write(k)", true));
	struct job *job = live("print(k, open('/data/k.txt').read())", false);

	/* The file is the record's by now, as it would be in a fresh sandbox. */
	assert_string_equal(fixture_wait(job)->stdout_text.data, "*** ***\n");
	job_release(job);
	job = live("print(len(k), len(open('/data/k.txt').read()))", false);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "21 3\n");
	job_release(job);
	assert_int_equal(nftw(f.dir, find_secret, 16, FTW_PHYS), 0);
}

static void put(const char *name, const char *text)
{
	auto_free char *path = xasprintf("%s/secrets/%s", f.dir, name);
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, text, strlen(text)), 0);
}

static void secrets_of_the_folder_reach_their_owners_runs(void **state)
{
	struct job_request request;

	(void)state;
	begin(", \"tools\": {\"secrets_dir\": \"secrets\"}");
	auto_free char *folder = xasprintf("%s/secrets", f.dir), *own = xasprintf("%s/secrets/alice", f.dir);
	auto_free char *others = xasprintf("%s/secrets/bob", f.dir);

	struct job *job = run(NULL, "print('no folder')", false);
	job_release(job);
	assert_int_equal(mkdir(folder, 0700) | mkdir(own, 0700) | mkdir(others, 0700), 0);
	put("alice/DB_PASSWORD", "hunter2-never~on disk\n");
	put("alice/OVER", "from the folder");
	put("alice/not-a-name", "ignored");
	put("bob/OTHERS", "not alice's");
	request = fixture_request(&f, NULL,
				  "import os; print(len(os.environ['DB_PASSWORD']), os.environ['DB_PASSWORD'], "
				  "os.environ['OVER'], 'OTHERS' in os.environ)");
	request.environment = (struct bind_map){(const char *[]){"OVER"}, (const char *[]){"from the call"}, 1};
	job = fixture_run(&f, &request, JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "21 *** from the call False\n");
	job_release(job);
	assert_int_equal(nftw(f.dir, find_secret, 16, FTW_PHYS), 0);
	put("alice/SHORT", "abc\n");
	assert_int_equal(job_submit(f.engine, &request, &job, &fixture_err), -ERR_UNAVAILABLE);
	assert_non_null(strstr(fixture_err.text, "SHORT"));
}

static void a_secret_that_is_too_short_is_refused(void **state)
{
	struct job_request request;
	struct job *job;

	(void)state;
	begin("");
	request = fixture_request(&f, NULL, "import os; print(repr(os.environ['PIN']))");
	request.secrets = (struct bind_map){(const char *[]){"PIN"}, (const char *[]){"123"}, 1};
	assert_int_equal(job_submit(f.engine, &request, &job, &fixture_err), -ERR_INVALID);
	assert_non_null(strstr(fixture_err.text, "PIN"));
	assert_null(strstr(fixture_err.text, "123"));
	request.secrets.values = (const char *[]){""};
	job = fixture_run(&f, &request, JAIL_OK);
	assert_string_equal(fixture_wait(job)->stdout_text.data, "''\n");
	job_release(job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(secrets_leave_no_trace_on_the_disk, end),
		cmocka_unit_test_teardown(output_is_masked, end),
		cmocka_unit_test_teardown(partial_output_is_masked, end),
		cmocka_unit_test_teardown(files_are_masked, end),
		cmocka_unit_test_teardown(a_sandbox_masks_secrets_of_earlier_runs, end),
		cmocka_unit_test_teardown(secrets_of_the_folder_reach_their_owners_runs, end),
		cmocka_unit_test_teardown(a_secret_that_is_too_short_is_refused, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
