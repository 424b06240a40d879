/* test_jail_tools.c - the socket of a program with tools: it listens in the jail, is the client's to accept on, belongs
 * to one run, and nothing else gets one. */
#include "gauged.h"
#include "live_try.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define ASK                                                                                                            \
	"import socket\n"                                                                                              \
	"s = socket.socket(socket.AF_UNIX)\n"                                                                          \
	"s.connect('/code/.mcp')\n"                                                                                    \
	"s.sendall(b'ask')\n"                                                                                          \
	"print(s.recv(100).decode())\n"

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

static int fresh(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	return fd;
}

/* A client's loop: the jail's messages and the socket. Until it listens poll says that it hung up, so only changes are
 * waited for. */
static void serve(struct try *try, int listener, const char *answer)
{
	auto_close int loop = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event heard = {.events = EPOLLIN | EPOLLET, .data.fd = listener};
	struct epoll_event jailer = {.events = EPOLLIN, .data.fd = jail_client_fd(client)}, event;
	struct err err = ERR_INIT;
	char asked[4] = "";

	assert_int_equal(epoll_ctl(loop, EPOLL_CTL_ADD, listener, &heard), 0);
	assert_int_equal(epoll_ctl(loop, EPOLL_CTL_ADD, jailer.data.fd, &jailer), 0);
	while (!(try->done && try->collected) && !try->failed) {
		assert_true(epoll_wait(loop, &event, 1, -1) == 1);
		if (event.data.fd == jailer.data.fd && jail_client_dispatch(client, &err) < 0)
			fail_msg("%s", err.text);
		if (event.data.fd != listener)
			continue;
		auto_close int guest = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (guest < 0)
			continue;
		assert_int_equal(recv(guest, asked, 3, MSG_WAITALL), 3);
		assert_string_equal(asked, "ask");
		assert_int_equal(send(guest, answer, strlen(answer), MSG_NOSIGNAL), strlen(answer));
	}
}

static void put(struct try *try, const char *name, const char *text)
{
	auto_close int fd = memfd_with("file", text, strlen(text));
	const struct jail_file file = {.name = name, .mode = 0444, .fd = fd};
	struct err err = ERR_INIT;

	if (jail_fill_code(try->jail, &file, 1, &err))
		fail_msg("%s", err.text);
}

static void ask(struct try *try, const char *code, int listener)
{
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	const struct jail_program program = {.code_fd = code_fd,
					     .stdin_fd = -1,
					     .stdout_fd = try->out_fd,
					     .stderr_fd = try->error_fd,
					     .tools = true,
					     .tools_fd = listener};
	struct err err = ERR_INIT;

	if (jail_run(try->jail, &program, &err) || jail_collect(try->jail, &err))
		fail_msg("%s", err.text);
}

static void once(const char *runner, const char *code, const char *says)
{
	auto_try struct try try = {.jail = NULL};
	auto_close int listener = fresh();
	const struct jail_spec spec = {.runner = runner};

	try_begin(client, &try, &spec);
	put(&try, "tools/_index.py", "SERVERS = []\nDISCOVERED = []\n");
	put(&try, "help.py", "WORD = 'filled'\n");
	put(&try, "help.h", "#define WORD \"filled\"\n");
	ask(&try, code, listener);
	serve(&try, listener, "answer");
	auto_free char *out = try_read(try.out_fd);
	auto_free char *error = try_read(try.error_fd);
	if (!streq(out, says))
		fail_msg("%s printed %s%s: %s", runner, out, error, try.result.message);
	assert_int_equal(try.n_changes, 0); /* nothing of /code is collected */
}

static void interpreted_program_reaches_the_socket(void **state)
{
	(void)state;
	once("python", "import help\nprint(help.WORD)\n" ASK, "filled\nanswer\n");
}

/* /code is read-only when the program runs: the socket was there before. */
static void compiled_program_reaches_the_socket(void **state)
{
	(void)state;
	once("c",
	     "#include <stdio.h>\n#include <string.h>\n#include <sys/socket.h>\n#include <sys/un.h>\n"
	     "#include \"help.h\"\n"
	     "int main(void) {\n"
	     "struct sockaddr_un a = {AF_UNIX, \"/code/.mcp\"};\n"
	     "char b[7] = \"\"; int s = socket(AF_UNIX, SOCK_STREAM, 0);\n"
	     "if (connect(s, (void *)&a, sizeof a) || send(s, \"ask\", 3, 0) != 3 || recv(s, b, 6, MSG_WAITALL) != 6)\n"
	     "return perror(\"socket\"), 1;\n"
	     "printf(\"%s\\n%s\\n\", WORD, b); return 0; }\n",
	     "filled\nanswer\n");
}

static void none_without_asking(void **state)
{
	auto_try struct try try = {.jail = NULL};
	const char *code = "ls -A /code";
	auto_close int code_fd = memfd_with("code", code, strlen(code));
	const struct jail_spec spec = {.runner = "bash"};
	struct err err = ERR_INIT;

	(void)state;
	try_begin(client, &try, &spec);
	const struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try.out_fd, .stderr_fd = try.error_fd};
	if (jail_run(try.jail, &program, &err) || jail_collect(try.jail, &err))
		fail_msg("%s", err.text);
	try_end(client, &try);
	assert_string_equal(try.out, "main.sh\n");
}

static void live_run_with(struct live *live, int listener, const char *code, const char *says)
{
	const struct jail_program program = {.stdin_fd = -1, .tools = listener >= 0, .tools_fd = listener};

	live_ask(live, code, &program);
	if (listener >= 0)
		serve(&live->try, listener, "again");
	else
		live_take(live);
	if (!live->try.out) {
		live->try.out = try_read(live->try.out_fd);
		live->try.error = try_read(live->try.error_fd);
	}
	if (!streq(live->try.out, says))
		fail_msg("printed %s%s", live->try.out, live->try.error);
}

/* Each run of a live sandbox has its own; what an earlier one left leads nowhere. */
static void live_sandboxes(void **state)
{
	struct live live = {0};
	auto_close int first = fresh();
	auto_close int second = fresh();

	(void)state;
	live_begin(&live, client, "python", (struct jail_limits){0});
	live_run_with(&live, first, ASK, "again\n");
	close(steal_fd(&first));
	live_run_with(&live, -1,
		      "try:\n socket.socket(socket.AF_UNIX).connect('/code/.mcp')\n"
		      "except OSError as e: print(type(e).__name__)\n",
		      "ConnectionRefusedError\n");
	put(&live.try, "late.py", "WORD = 'late'\n");
	live_run_with(&live, second, "import late\nprint(late.WORD)\n" ASK, "late\nagain\n");
	live_end(&live);
}

static void refused(int fd)
{
	auto_try struct try try = {.jail = NULL};
	auto_close int given = fd;
	const struct jail_spec spec = {.runner = "bash"};

	try_begin(client, &try, &spec);
	ask(&try, "exit 0", given);
	try_end(client, &try);
	assert_true(try.failed);
	assert_int_equal(try.err.code, ERR_INVALID);
	assert_non_null(strstr(try.err.text, "the tools' socket must be a fresh unix stream socket"));
}

static void other_descriptors(void **state)
{
	struct sockaddr_un none = {.sun_family = AF_UNIX};
	int pair[2];

	(void)state;
	refused(open("/dev/null", O_RDWR | O_CLOEXEC));
	refused(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	refused(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	close(pair[1]);
	refused(pair[0]);
	int bound = fresh(); /* to a name that the kernel chooses */
	assert_int_equal(bind(bound, (struct sockaddr *)&none, sizeof(none.sun_family)), 0);
	refused(bound);
}

static int nothing(void **state)
{
	(void)state;
	return 0;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreted_program_reaches_the_socket),
		cmocka_unit_test(compiled_program_reaches_the_socket),
		cmocka_unit_test(none_without_asking),
		GAUGED(live_sandboxes, nothing, nothing, 2),
		cmocka_unit_test(other_descriptors),
	};

	return try_run(tests, argc, argv, start, stop);
}
