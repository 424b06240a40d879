/* The log: one line an event, which no value can break or forge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"

#define LINE_BYTES_MAX 4096 /* PIPE_BUF: longer lines of two processes could mix */

/* What log_event writes to standard error while `capture` is there; time and a blank cut off. */
static int capture_start(int *ret_saved)
{
	int file = memfd_with("log", "", 0);

	*ret_saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_true(file >= 0 && *ret_saved >= 0);
	assert_int_equal(dup2(file, STDERR_FILENO), STDERR_FILENO);
	return file;
}

static char *capture_end(int file, int saved)
{
	char *text = NULL;
	size_t length;

	dup2(saved, STDERR_FILENO);
	close(saved);
	lseek(file, 0, SEEK_SET);
	assert_int_equal(read_fd(file, 1 << 20, &text, &length, NULL), 0);
	close(file);
	return text;
}

#define CAPTURED(...)                             \
	({                                        \
		int saved_;                       \
		int file_ = capture_start(&saved_); \
		log_event(__VA_ARGS__);           \
		capture_end(file_, saved_);       \
	})

static void test_line(void **state)
{
	auto_free char *line = CAPTURED(LOG_WARN, "run done", "id", "7", "verdict", "OK", "empty", "", "none", NULL,
					"text", "two words", NULL);
	const char time[] = "2026-11-21T08:11:09.123456Z ";

	(void)state;
	assert_true(strlen(line) > sizeof(time));
	assert_int_equal(line[4], '-');
	assert_int_equal(line[sizeof(time) - 3], 'Z');
	assert_string_equal(line + sizeof(time) - 1,
			    "warn tester run done id=7 verdict=OK empty=\"\" none=- text=\"two words\"\n");
}

static void test_no_forging(void **state)
{
	auto_free char *line = CAPTURED(LOG_ERROR, "bad", "name", "x\n2026 info gateway a=b \"q\\\x1b[2J\xff", NULL);

	(void)state;
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	assert_null(strchr(line, '\x1b'));
	assert_non_null(strstr(line, "name=\"x\\\\x0a2026 info gateway a=b \\\"q\\\\\\\\x1b[2J\\\\xff\"\n"));
}

static void test_bounds(void **state)
{
	char value[5000];

	(void)state;
	memset(value, 'v', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	auto_free char *one = CAPTURED(LOG_INFO, "long", "a", value, "b", "after", NULL);

	assert_non_null(strstr(one, "v… b=after\n")); /* one value is cut, the next is there */
	assert_true(strlen(one) < 1200);

	auto_free char *many =
		CAPTURED(LOG_INFO, "long", "a", value, "b", value, "c", value, "d", value, "e", value, NULL);

	assert_int_equal(strlen(many), LINE_BYTES_MAX);
	assert_ptr_equal(strchr(many, '\n'), many + strlen(many) - 1);
}

static void test_level(void **state)
{
	auto_free char *debug = CAPTURED(LOG_DEBUG, "quiet", NULL);
	auto_free char *info = CAPTURED(LOG_INFO, "loud", NULL);

	(void)state;
	assert_string_equal(debug, "");
	assert_non_null(strstr(info, " info tester loud\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_no_forging),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_level),
	};

	log_open("tester", LOG_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
