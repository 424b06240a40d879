/* The log: one line an event, which no value can break or forge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/base/json.h"
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

/* Each line is one object, whatever is in the values. */
static void test_json(void **state)
{
	char value[3000];
	auto_json struct json_object *object = NULL, *cut = NULL;
	struct err err = ERR_INIT;

	(void)state;
	log_configure(true, "info");
	auto_free char *line =
		CAPTURED(LOG_WARN, "run done", "id", "7", "bad", "x\n{\"\\ \x1b\xff", "none", NULL, "empty", "", NULL);
	memset(value, '\\', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	auto_free char *full = CAPTURED(LOG_ERROR, "long", "a", value, "b", value, "c", "left out", NULL);
	auto_free char *quiet = CAPTURED(LOG_DEBUG, "quiet", NULL);

	log_configure(false, "info");
	assert_int_equal(json_parse(line, strlen(line) - 1, &object, &err), 0);
	assert_int_equal(line[strlen(line) - 1], '\n');
	assert_string_equal(json_get_string(object, "level"), "warn");
	assert_string_equal(json_get_string(object, "program"), "tester");
	assert_string_equal(json_get_string(object, "event"), "run done");
	assert_string_equal(json_get_string(object, "id"), "7");
	assert_string_equal(json_get_string(object, "bad"), "x\\x0a{\"\\ \\x1b\\xff");
	assert_string_equal(json_get_string(object, "empty"), "");
	assert_null(json_get_string(object, "none"));
	assert_int_equal(strlen(json_get_string(object, "ts")), strlen("2026-11-21T08:11:09.123456Z"));
	assert_int_equal(json_parse(full, strlen(full) - 1, &cut, &err), 0);
	assert_in_range(strlen(full), 2000, LINE_BYTES_MAX);
	assert_string_equal(json_get_string(cut, "c"), "left out");
	assert_string_equal(quiet, "");
}

static void test_configured(void **state)
{
	(void)state;
	log_configure(false, "error");
	auto_free char *warned = CAPTURED(LOG_WARN, "quiet", NULL);
	auto_free char *failed = CAPTURED(LOG_ERROR, "loud", NULL);

	log_open("tester", LOG_INFO);
	log_configure(false, "debug");
	auto_free char *debug = CAPTURED(LOG_DEBUG, "loud", NULL);

	log_open("tester", LOG_INFO);
	assert_string_equal(warned, "");
	assert_true(strlen(failed) > 0 && strlen(debug) > 0);
	assert_true(log_level_valid("warn"));
	assert_false(log_level_valid("loud"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_no_forging),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_level),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_configured),
	};

	log_open("tester", LOG_INFO);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
