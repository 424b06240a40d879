/* test_jail_data.c - what goes into /data and what comes out of it: names, links, pipes, deep and wide and sparse
 * things. */
#include "jail_try.h"

#define MEBI (1 << 20)

static struct jail_client *client;

static int start(void **state)
{
	(void)state;
	client = try_client(getenv("TEST_CONFIG"));
	return 0;
}

static int stop(void **state)
{
	(void)state;
	jail_client_free(client);
	return 0;
}

/* Fills the files, runs the code (NULL: nothing), collects. */
static void fill_and_run(struct try *try, const struct jail_spec *spec, const struct jail_file *files, size_t n,
			 const char *code)
{
	struct err err = ERR_INIT;
	auto_close int code_fd = memfd_with("code", code ? code : "", code ? strlen(code) : 0);

	try_begin(client, try, spec);
	if (n && jail_fill(try->jail, files, n, &err))
		fail_msg("%s", err.text);
	struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try->out_fd, .stderr_fd = try->error_fd};
	if ((code && jail_run(try->jail, &program, &err)) || jail_collect(try->jail, &err))
		fail_msg("%s", err.text);
	try_end(client, try);
}

static const struct jail_spec python = {.runner = "python"};

static void assert_ok(const struct try *try)
{
	if (try->failed)
		fail_msg("failed: %s", try->err.text);
	if (try->result.verdict != JAIL_OK)
		fail_msg("%s: %s %s", jail_verdict_text(try->result.verdict), try->result.message, try->error);
}

static void assert_change(const struct try *try, const char *name, enum jail_change_kind kind, const char *content)
{
	const struct try_change *change = try_find(try, name);

	if (!change)
		fail_msg("no word of %s", name);
	if (change->kind != kind)
		fail_msg("%s: kind %d (%s) instead of %d", name, change->kind, change->reason ? change->reason : "",
			 kind);
	if (content && !streq(kind == JAIL_FILE_NOT_KEPT ? change->reason : change->content, content))
		fail_msg("%s: %s", name, kind == JAIL_FILE_NOT_KEPT ? change->reason : change->content);
}

static void in_and_out(void **state)
{
	auto_try struct try try = {.jail = NULL};
	auto_close int fd = memfd_with("a", "content", 7);
	/* One descriptor into several files: it is read by position. */
	const struct jail_file files[] = {
		{"same", 0644, 1000000, fd},          {"changed", 0644, 1000000, fd}, {"gone", 0644, 1000000, fd},
		{"dir/sub/x.sh", 0755, -1500000, fd}, {"mode", 0600, 0, fd},
	};

	(void)state;
	fill_and_run(&try, &python, files, ARRAY_SIZE(files),
		     "import os\n"
		     "for n in ('same', 'dir/sub/x.sh'): s = os.stat(n); print(n, oct(s.st_mode), s.st_mtime, "
		     "s.st_uid, open(n).read())\n"
		     "open('changed', 'r+').write('CONTENT')\n"
		     "os.utime('changed', (1, 1))\n"
		     "os.unlink('gone')\n"
		     "os.chmod('mode', 0o000)\n"
		     "os.makedirs('new/empty'); open('new/file', 'w').write('n')\n"
		     "open('zero', 'w').close()\n");
	assert_ok(&try);
	assert_string_equal(try.out, "same 0o100644 1.0 1000 content\ndir/sub/x.sh 0o100755 -1.5 1000 content\n");
	assert_int_equal(try.n_changes, 6);
	assert_change(&try, "new/empty/" JAIL_FOLDER, JAIL_FILE_CREATED, ""); /* an empty folder */
	assert_change(&try, "changed", JAIL_FILE_CHANGED, "CONTENT");
	assert_change(&try, "gone", JAIL_FILE_DELETED, NULL);
	assert_change(&try, "mode", JAIL_FILE_CHANGED, "content"); /* no permission at all, and still there */
	assert_change(&try, "new/file", JAIL_FILE_CREATED, "n");
	assert_change(&try, "zero", JAIL_FILE_CREATED, "");
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
}

static void odd_names_survive(void **state)
{
	auto_try struct try try = {.jail = NULL};
	static const char *const odd[] = {"with\nnewline",
					  "with\x1b[31m",
					  "q\"uote",
					  "\xff\xfe not utf8",
					  "..foo",
					  "-rf",
					  " space ",
					  "\xe2\x80\xae"
					  "rtl"};
	auto_close int fd = memfd_with("a", "x", 1);
	struct jail_file files[ARRAY_SIZE(odd) + 1];
	char longest[256];

	(void)state;
	memset(longest, 'n', 255);
	longest[255] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		files[i] = (struct jail_file){odd[i], 0644, 0, fd};
	files[ARRAY_SIZE(odd)] = (struct jail_file){longest, 0644, 0, fd};
	fill_and_run(&try, &python, files, ARRAY_SIZE(files),
		     "import os\nfor n in os.listdir(b'.'): os.rename(n, n[:-1] + b'\\xfd')\n");
	assert_ok(&try);
	assert_int_equal(try.n_changes, 2 * ARRAY_SIZE(files));
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		auto_free char *renamed = xstrdup(files[i].name);

		assert_change(&try, files[i].name, JAIL_FILE_DELETED, NULL);
		renamed[strlen(renamed) - 1] = '\xfd';
		assert_change(&try, renamed, JAIL_FILE_CREATED, "x");
	}
}

static void bad_names(void **state)
{
	static const char *const bad[] = {"", "/etc/passwd", "..", "a/../../b", "a//b", "a/", "./a", "a/.", "/"};
	auto_close int fd = memfd_with("a", "x", 1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		auto_try struct try try = {.jail = NULL};
		const struct jail_file file = {bad[i], 0644, 0, fd};

		fill_and_run(&try, &python, &file, 1, "print(1)");
		assert_true(try.failed);
		assert_int_equal(try.err.code, ERR_INVALID);
	}
	/* A file where a directory is needed. */
	const struct jail_file both[] = {{"a", 0644, 0, fd}, {"a/b", 0644, 0, fd}};
	auto_try struct try try = {.jail = NULL};
	fill_and_run(&try, &python, both, 2, "print(1)");
	assert_true(try.failed);
	assert_int_equal(try.err.code, ERR_INVALID);
	/* What is not a regular file would block or tell what it should not. */
	int pipe_fds[2];
	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	const struct jail_file pipe_file = {"p", 0644, 0, pipe_fds[0]};
	try_clear(&try);
	fill_and_run(&try, &python, &pipe_file, 1, "print(1)");
	assert_true(try.failed);
	assert_int_equal(try.err.code, ERR_INVALID);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void thousands_of_files_come_back(void **state)
{
	auto_try struct try try = {.jail = NULL};
	auto_close int fd = memfd_with("a", "x", 1);
	auto_free struct jail_file *files = xcalloc(3000, sizeof(*files));
	static char texts[3000][200];

	(void)state;
	for (size_t i = 0; i < 3000; i++) {
		/* Long names: a batch is bounded by bytes too. */
		snprintf(texts[i], sizeof(texts[i]), "%0180zu", i);
		files[i] = (struct jail_file){texts[i], 0644, 0, fd};
	}
	fill_and_run(&try, &python, files, 3000,
		     "import os\nprint(len(os.listdir()))\nfor n in os.listdir(): open(n, 'a').write('y')");
	assert_ok(&try);
	assert_string_equal(try.out, "3000\n");
	assert_int_equal(try.n_changes, 3000);
	for (size_t i = 0; i < 3000; i++) {
		assert_int_equal(try.changes[i].kind, JAIL_FILE_CHANGED);
		assert_string_equal(try.changes[i].name, texts[i]);
		assert_string_equal(try.changes[i].content, "xy");
	}
}

static void too_large(void **state)
{
	auto_try struct try try = {.jail = NULL};
	auto_close int fd = memfd_create("big", MFD_CLOEXEC);
	struct jail_spec spec = {.runner = "python", .limits = {.data_bytes = MEBI}};
	const struct jail_file file = {"big", 0644, 0, fd};

	(void)state;
	assert_int_equal(ftruncate(fd, 2 * MEBI), 0);
	fill_and_run(&try, &spec, &file, 1, "print(1)");
	assert_true(try.failed);
	assert_int_equal(try.err.code, ERR_LIMIT);
	assert_string_equal(try.err.text, "the files do not fit into /data: at most 1 MiB and 4096 files");
}

static void special_files_are_not_kept(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	fill_and_run(&try, &python, NULL, 0,
		     "import os, socket\n"
		     "os.symlink('/etc/passwd', 'link'); os.symlink('/proc/self/environ', 'environ'); "
		     "os.symlink('nowhere', 'dangling')\n"
		     "os.symlink('/etc', 'directory')\n"
		     "os.mkfifo('fifo')\n"
		     "socket.socket(socket.AF_UNIX).bind('sock')\n"
		     "f = open('sparse', 'w'); f.truncate(64 << 20); f.close()\n"
		     "open('one', 'w').write('1'); os.link('one', 'two')\n"
		     "try: os.mknod('device', 0o20666, os.makedev(1, 3))\n"
		     "except PermissionError: pass\n"
		     "os.chmod('one', 0o6755)\n");
	assert_ok(&try);
	assert_change(&try, "link", JAIL_FILE_NOT_KEPT, "symbolic link");
	assert_change(&try, "environ", JAIL_FILE_NOT_KEPT, "symbolic link");
	assert_change(&try, "dangling", JAIL_FILE_NOT_KEPT, "symbolic link");
	assert_change(&try, "directory", JAIL_FILE_NOT_KEPT, "symbolic link");
	assert_change(&try, "fifo", JAIL_FILE_NOT_KEPT, "named pipe");
	assert_change(&try, "sock", JAIL_FILE_NOT_KEPT, "socket");
	assert_change(&try, "one", JAIL_FILE_CREATED, "1");
	assert_change(&try, "sparse", JAIL_FILE_NOT_KEPT, "larger than the limit of /data");
	assert_change(&try, "two", JAIL_FILE_CREATED, "1");
	assert_null(try_find(&try, "device"));
	/* No setuid bit leaves the jail. */
	assert_int_equal(try_find(&try, "one")->mode, 0755);
}

static void deep_and_wide(void **state)
{
	auto_try struct try try = {.jail = NULL};

	(void)state;
	fill_and_run(&try, &python, NULL, 0,
		     "import os\n"
		     "n = 0\n"
		     "try:\n"
		     " while True: os.mkdir('d'); os.chdir('d'); n += 1\n"
		     "except OSError as e: print(n, e.errno)\n");
	assert_ok(&try);
	assert_string_equal(try.out, "4095 28\n"); /* ENOSPC: inodes */
	assert_int_equal(try.n_changes, 1);
	assert_string_equal(try.changes[0].reason, "too many directories below each other");
	try_clear(&try);
	fill_and_run(&try, &python, NULL, 0,
		     "import os\n"
		     "for i in range(3): os.mkdir('n' * 250); os.chdir('n' * 250)\n"
		     "for i in range(2): os.mkdir('n' * 250); os.chdir('n' * 250)\n"
		     "open('x', 'w'); open('y', 'w')\n");
	assert_ok(&try);
	assert_int_equal(try.n_changes, 1);
	assert_int_equal(try.changes[0].kind, JAIL_FILE_NOT_KEPT);
	assert_string_equal(try.changes[0].reason, "the path is too long");
	try_clear(&try);
	fill_and_run(&try, &python, NULL, 0,
		     "n = 0\n"
		     "try:\n"
		     " while True: open('%d' % n, 'w').close(); n += 1\n"
		     "except OSError as e: print(n, e.errno)\n");
	assert_ok(&try);
	assert_string_equal(try.out, "4095 28\n");
	assert_int_equal(try.n_changes, 4095);
}

/* Somebody else's file where a directory was, and the other way round. */
static void swapped_files_and_directories_are_seen(void **state)
{
	auto_try struct try try = {.jail = NULL};
	auto_close int fd = memfd_with("a", "x", 1);
	const struct jail_file files[] = {{"file", 0644, 0, fd}, {"dir/file", 0644, 0, fd}, {"link", 0644, 0, fd}};

	(void)state;
	fill_and_run(&try, &python, files, 3,
		     "import os, shutil\n"
		     "os.unlink('file'); os.mkdir('file'); open('file/inner', 'w').write('i')\n"
		     "shutil.rmtree('dir'); open('dir', 'w').write('d')\n"
		     "os.unlink('link'); os.symlink('/etc/passwd', 'link')\n");
	assert_ok(&try);
	assert_int_equal(try.n_changes, 5);
	assert_change(&try, "file", JAIL_FILE_DELETED, NULL);
	assert_change(&try, "file/inner", JAIL_FILE_CREATED, "i");
	assert_change(&try, "dir", JAIL_FILE_CREATED, "d");
	assert_change(&try, "dir/file", JAIL_FILE_DELETED, NULL);
	assert_change(&try, "link", JAIL_FILE_NOT_KEPT, "symbolic link");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_and_out),    cmocka_unit_test(odd_names_survive),
		cmocka_unit_test(bad_names),     cmocka_unit_test(thousands_of_files_come_back),
		cmocka_unit_test(too_large),     cmocka_unit_test(special_files_are_not_kept),
		cmocka_unit_test(deep_and_wide), cmocka_unit_test(swapped_files_and_directories_are_seen),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
