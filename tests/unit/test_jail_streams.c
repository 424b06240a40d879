/* test_jail_streams.c - what a client may give as a program's standard descriptors, and what it is told about the rest.
 */
#include "jail_try.h"

#include <string.h>
#include <sys/socket.h>

static struct jail_client *client;

static int start(void **state)
{
	(void)state;
	client = try_client(NULL);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	jail_client_free(client);
	return 0;
}

enum { INPUT, OUTPUT, ERROR };

/* `says`: of the refusal; NULL: it runs. The descriptor is closed here. */
static void give(int which, int fd, const char *says)
{
	auto_try struct try try = {.jail = NULL};
	auto_close int code_fd = memfd_with("code", "exit 0", 6);
	auto_close int given = fd;
	struct jail_spec spec = {.runner = "bash"};
	struct err err = ERR_INIT;

	assert_true(given >= 0);
	try_begin(client, &try, &spec);
	struct jail_program program = {
		.code_fd = code_fd,
		.stdin_fd = which == INPUT ? given : -1,
		.stdout_fd = which == OUTPUT ? given : try.out_fd,
		.stderr_fd = which == ERROR ? given : try.error_fd,
	};
	if (jail_run(try.jail, &program, &err))
		fail_msg("%s", err.text);
	try_end(client, &try);
	assert_int_equal(try.failed, says != NULL);
	if (says) {
		assert_int_equal(try.err.code, ERR_INVALID);
		assert_non_null(strstr(try.err.text, says));
	} else {
		assert_int_equal(try.result.verdict, JAIL_OK);
	}
}

static int file_open(int flags)
{
	char path[] = "/tmp/jail_streams.XXXXXX";
	auto_close int made = mkostemp(path, O_CLOEXEC);
	int fd = open(path, flags | O_CLOEXEC);

	unlink(path);
	return made < 0 ? -1 : fd;
}

static int pipe_end(int which)
{
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	close(ends[!which]);
	return ends[which];
}

static int socket_end(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void input_must_be_readable(void **state)
{
	(void)state;
	give(INPUT, file_open(O_RDONLY), NULL);
	give(INPUT, open("/dev/null", O_RDONLY | O_CLOEXEC), NULL);
	give(INPUT, pipe_end(0), NULL); /* who writes there decides when it ends; the wall time at the latest */
	give(INPUT, pipe_end(1), "standard input must be open for reading");
	give(INPUT, file_open(O_WRONLY), "standard input must be open for reading");
	give(INPUT, file_open(O_PATH), "standard input must be open for reading");
	give(INPUT, socket_end(), "standard input must be a file or a pipe, not a terminal or socket");
	give(INPUT, open("/dev/zero", O_RDONLY | O_CLOEXEC), "standard input must be a file or a pipe");
}

static void output_must_be_writable(void **state)
{
	(void)state;
	for (int which = OUTPUT; which <= ERROR; which++) {
		give(which, file_open(O_WRONLY), NULL);
		give(which, open("/dev/null", O_WRONLY | O_CLOEXEC), NULL);
		give(which, file_open(O_RDONLY), "standard output and error must be open for writing");
		give(which, file_open(O_PATH), "standard output and error must be open for writing");
		give(which, pipe_end(1), NULL); /* nobody reads it, and python says so only when it writes */
		give(which, pipe_end(0), "standard output and error must be open for writing");
		give(which, socket_end(), "standard output and error must be files or pipes, not terminals or sockets");
	}
}

#define BY_NAME                                                                                                        \
	"echo one >/dev/stdout; echo two | tee /dev/stderr; cat /dev/stdin; (cat </dev/stdout) 2>/dev/null || echo no"

/* Shell scripts open them by name; what was written there is not for reading. */
static void by_name(void **state)
{
	auto_try struct try try = {.jail = NULL};
	struct jail_spec spec = {.runner = "bash"};
	auto_close int code_fd = memfd_with("code", BY_NAME, strlen(BY_NAME));
	auto_close int input = memfd_with("input", "three\n", 6);

	(void)state;
	try_begin(client, &try, &spec);
	struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = input, .stdout_fd = try.out_fd, .stderr_fd = try.error_fd};
	assert_int_equal(jail_run(try.jail, &program, &try.err), 0);
	try_end(client, &try);
	assert_string_equal(try.out, "one\ntwo\nthree\nno\n");
	assert_string_equal(try.error, "two\n");
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {cmocka_unit_test(input_must_be_readable),
				     cmocka_unit_test(output_must_be_writable), cmocka_unit_test(by_name)};

	return try_run(tests, argc, argv, start, stop);
}
