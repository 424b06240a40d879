/* Memory, numbers, files, clocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string.h>
#include <sys/wait.h>

#include "lib/base/secret.h"
#include "lib/base/util.h"

static void test_parse_u64(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t value;
	} cases[] = {
		{"0", 0, 0},
		{"7", 0, 7},
		{"18446744073709551615", 0, UINT64_MAX},
		{"18446744073709551616", -1, 0},
		{"", -1, 0},
		{"-1", -1, 0},
		{"+1", -1, 0},
		{" 1", -1, 0},
		{"1 ", -1, 0},
		{"01", -1, 0},
		{"0x1", -1, 0},
		{"1.0", -1, 0},
		{"99999999999999999999999", -1, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t value = 42;

		assert_int_equal(parse_u64(cases[i].text, 0, UINT64_MAX, &value), cases[i].result);
		assert_int_equal(value, cases[i].result == 0 ? cases[i].value : 42);
	}
	uint64_t value;

	assert_int_equal(parse_u64("5", 5, 6, &value), 0);
	assert_int_equal(parse_u64("6", 5, 6, &value), 0);
	assert_int_equal(parse_u64("4", 5, 6, &value), -1);
	assert_int_equal(parse_u64("7", 5, 6, &value), -1);
}

static void test_strings(void **state)
{
	(void)state;
	assert_true(str_starts("abc", "ab"));
	assert_true(str_starts("abc", ""));
	assert_false(str_starts("a", "ab"));
	assert_true(str_near("langauge", "language"));
	assert_true(str_near("Timeout", "timeout"));
	assert_true(str_near("limit", "limits"));
	assert_false(str_near("cat", "dog"));
	assert_false(str_near("id", "at"));
	assert_false(str_near("", "a"));

	char longer[66] = {0}, other[66];

	memset(longer, 'x', 65); /* beyond the table only letter case may differ */
	memcpy(other, longer, sizeof(other));
	other[0] = 'X';
	assert_true(str_near(longer, other));
	other[0] = 'y';
	assert_false(str_near(longer, other));
	longer[64] = other[64] = '\0';
	assert_true(str_near(longer, other));

	auto_free char *text = xasprintf("%d-%s", 7, "x");
	auto_free char *cut = xstrndup("abcdef", 3);

	assert_string_equal(text, "7-x");
	assert_string_equal(cut, "abc");
}

static void test_steal(void **state)
{
	char *text = xstrdup("kept");

	(void)state;
	{
		auto_free char *owner = steal(&text);

		assert_null(text);
		text = steal(&owner);
		assert_null(owner);
	}
	assert_string_equal(text, "kept"); /* address sanitizer would see a use after free */
	free(text);
}

static void test_close(void **state)
{
	int kept;

	(void)state;
	{
		auto_close int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		auto_close int none = -1;

		(void)none;
		kept = fd;
		errno = ENOMSG;
	}
	assert_int_equal(errno, ENOMSG);
	assert_int_equal(fcntl(kept, F_GETFD), -1);
	int fd = 5;

	assert_int_equal(steal_fd(&fd), 5);
	assert_int_equal(fd, -1);
}

static void test_files(void **state)
{
	struct err err = ERR_INIT;
	auto_free char *data = NULL;
	size_t length = 99;
	auto_close int fd = memfd_with("test", "hello\0world", 11);

	(void)state;
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(read_fd(fd, 11, &data, &length, &err), 0); /* exactly the maximum */
	assert_int_equal(length, 11);
	assert_memory_equal(data, "hello\0world", 12);

	char *untouched = NULL;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(read_fd(fd, 10, &untouched, &length, &err), -ERR_LIMIT);
	assert_null(untouched);
	assert_int_equal(length, 11);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(read_fd(fd, 10, &untouched, &length, NULL), -ERR_LIMIT);

	assert_int_equal(read_file_at(AT_FDCWD, "/no/such/file", 10, &untouched, &length, &err), -ERR_NOT_FOUND);
	assert_string_equal(err.text, "/no/such/file: No such file or directory");
	assert_int_equal(read_file_at(AT_FDCWD, "/", 10, &untouched, &length, &err), -ERR_SYSTEM);

	/* A file that says its size is 0, as all of /proc. */
	auto_free char *status = NULL;

	assert_int_equal(read_file_at(AT_FDCWD, "/proc/self/status", 1 << 20, &status, &length, &err), 0);
	assert_true(length > 100);
	assert_true(str_starts(status, "Name:"));
}

static void test_large_file(void **state)
{
	size_t size = 300000, length;
	auto_free char *data = xmalloc(size), *back = NULL;

	(void)state;
	for (size_t i = 0; i < size; i++)
		data[i] = (char)(i * 7);
	auto_close int fd = memfd_with("large", data, size);

	assert_int_equal(read_fd(fd, 1 << 20, &back, &length, NULL), 0);
	assert_int_equal(length, size);
	assert_memory_equal(data, back, size);
	assert_int_equal(write_all(-1, "x", 1), -1);
	assert_int_equal(errno, EBADF);
}

static void test_standard_fds(void **state)
{
	struct stat before, after, null;
	int fd = dup(STDERR_FILENO);

	(void)state;
	assert_true(fd > STDERR_FILENO);
	assert_int_equal(fstat(STDOUT_FILENO, &before), 0);
	close(STDERR_FILENO);
	assert_int_equal(fill_standard_fds(), 0);
	assert_int_equal(fstat(STDOUT_FILENO, &after), 0);
	assert_true(before.st_ino == after.st_ino && before.st_dev == after.st_dev);
	assert_int_equal(fstat(STDERR_FILENO, &after), 0);
	assert_int_equal(stat("/dev/null", &null), 0);
	assert_true(after.st_rdev == null.st_rdev);
	assert_int_equal(fcntl(STDERR_FILENO, F_GETFD), 0); /* for children, too */
	assert_int_equal(dup3(fd, STDERR_FILENO, 0), STDERR_FILENO);
	assert_int_equal(fill_standard_fds(), 0); /* nothing is left open */
	assert_int_equal(dup(fd), fd + 1);
	close(fd + 1);
	close(fd);
}

static void test_clock(void **state)
{
	char text[CLOCK_TEXT_SIZE];

	(void)state;
	clock_text(0, text);
	assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
	clock_text(1795248669123456, text);
	assert_string_equal(text, "2026-11-21T08:11:09.123456Z");
	clock_text(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
	clock_text(INT64_MAX, text); /* the year 294247 */
	assert_true(strlen(text) < CLOCK_TEXT_SIZE);
	assert_true(clock_now_us() > 1600000000000000);

	int64_t before = clock_monotonic_us();

	assert_true(clock_monotonic_us() >= before);
}

/* Nothing of it is in a child, and nothing in the next one that is taken. */
static void test_secret(void **state)
{
	char *secret = secret_alloc(32), *large = secret_alloc(1 << 20);
	int status = 0;

	(void)state;
	memset(secret, 'x', 32);
	memset(large, 'x', 1 << 20);
	pid_t pid = fork();
	if (pid == 0)
		_exit(secret[0] || secret[31] || large[0] || large[(1 << 20) - 1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	secret_free(secret);
	secret_free(large);
	for (int i = 0; i < 8; i++) {
		char *next = secret_alloc(32);

		for (int k = 0; k < 32; k++)
			assert_int_equal(next[k], 0);
		memset(next, 'x', 32);
		if (i % 2)
			secret_free(next);
	}
	secret_free(NULL);
	secret_free_unused(secret_alloc(1 << 20));
	char *unused = secret_alloc(32);
	secret_free_unused(unused);
	for (int i = 0; i < 8; i++) {
		char *next = secret_alloc(32);

		assert_int_equal(next[0] | next[31], 0);
		if (next == unused)
			return; /* it was kept as it was */
	}
	fail_msg("what was not used was not kept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_u64), cmocka_unit_test(test_strings),
		cmocka_unit_test(test_steal),     cmocka_unit_test(test_close),
		cmocka_unit_test(test_files),     cmocka_unit_test(test_large_file),
		cmocka_unit_test(test_clock),     cmocka_unit_test(test_standard_fds),
		cmocka_unit_test(test_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
