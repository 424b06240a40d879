/* test_cli_meta.c - the meta file of `sallyport run`: each verdict in isolate's keys and words, to the letter. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/run.h"
#include "lib/base/util.h"

static const struct jail_usage usage = {
	.wall_us = 1500999,
	.cpu_user_us = 1200000,
	.cpu_system_us = 34567,
	.memory_peak_bytes = 8 << 20,
	.rss_peak_bytes = 5 << 20,
	.switches_voluntary = 3,
	.switches_forced = 4,
};
#define HEAD "time:1.234\ntime-wall:1.500\nmax-rss:5120\ncg-enabled:1\ncg-mem:8192\ncsw-voluntary:3\ncsw-forced:4\n"

static void verdicts(void **state)
{
	static const struct {
		struct jail_result result;
		const char *text;
	} cases[] = {
		{{.verdict = JAIL_OK, .message = "fine"},
		 HEAD "exitcode:0\nsallyport-verdict:OK\nsallyport-message:fine\n"},
		{{.verdict = JAIL_RE, .exit_code = 7, .message = "m"},
		 HEAD "exitcode:7\nstatus:RE\nmessage:Exited with error status "
		      "7\nsallyport-verdict:RE\nsallyport-message:m\n"},
		{{.verdict = JAIL_SG, .exit_code = -1, .signal = 11, .message = "m"},
		 HEAD
		 "exitsig:11\nstatus:SG\nmessage:Caught fatal signal 11\nsallyport-verdict:SG\nsallyport-message:m\n"},
		{{.verdict = JAIL_TO, .exit_code = -1, .limit = "cpu", .message = "m"},
		 HEAD "killed:1\nstatus:TO\nmessage:Time limit exceeded\nsallyport-verdict:TO\nsallyport-message:m\n"},
		{{.verdict = JAIL_TO, .exit_code = -1, .limit = "wall", .message = "m"},
		 HEAD "killed:1\nstatus:TO\nmessage:Time limit exceeded (wall "
		      "clock)\nsallyport-verdict:TO\nsallyport-message:m\n"},
		{{.verdict = JAIL_ML, .exit_code = -1, .oom_killed = true, .message = "m"},
		 HEAD "cg-oom-killed:1\nkilled:1\nexitsig:9\nstatus:SG\nmessage:Caught fatal signal "
		      "9\nsallyport-verdict:ML\n"
		      "sallyport-message:m\n"},
		{{.verdict = JAIL_OL, .exit_code = -1, .message = "m"},
		 HEAD "killed:1\nexitsig:9\nstatus:SG\nmessage:Caught fatal signal "
		      "9\nsallyport-verdict:OL\nsallyport-message:m\n"},
		{{.verdict = JAIL_CE, .exit_code = 1, .message = "m"},
		 HEAD "exitcode:1\nstatus:RE\nmessage:Exited with error status "
		      "1\nsallyport-verdict:CE\nsallyport-message:m\n"},
		{{.verdict = JAIL_CX, .exit_code = -1, .message = "m"},
		 HEAD "killed:1\nstatus:XX\nmessage:m\nsallyport-verdict:CX\nsallyport-message:m\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct run_outcome outcome = {.once = {.done = true, .result = cases[i].result}, .grouped = true};
		auto_close int fd = memfd_create("meta", MFD_CLOEXEC);
		auto_free char *text = NULL;
		size_t length;

		struct jail_result *result = &outcome.once.result;

		*(result->verdict == JAIL_CE ? &result->compile : &result->run) = usage;
		assert_int_equal(run_meta_write(fd, &outcome, NULL), 0);
		assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
		assert_int_equal(read_fd(fd, 4096, &text, &length, NULL), 0);
		assert_string_equal(text, cases[i].text);
	}
}

/* As isolate without --cg: neither of the group's keys. */
static void no_cgroup(void **state)
{
	struct run_outcome outcome = {
		.once = {.done = true, .result = {.verdict = JAIL_OK, .message = "fine", .run = usage}}};
	auto_close int fd = memfd_create("meta", MFD_CLOEXEC);
	auto_free char *text = NULL;
	size_t length;

	(void)state;
	assert_int_equal(run_meta_write(fd, &outcome, NULL), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(read_fd(fd, 4096, &text, &length, NULL), 0);
	assert_string_equal(text,
			    "time:1.234\ntime-wall:1.500\nmax-rss:5120\ncsw-voluntary:3\ncsw-forced:4\nexitcode:0\n"
			    "sallyport-verdict:OK\nsallyport-message:fine\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts), cmocka_unit_test(no_cgroup)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
