/* test_jail_clients.c - several clients of one private jailer: each has its own jails, none sees the others', and the
 * jailer ends with the last of them. */
#include "gauged.h"
#include "jail_try.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "lib/base/config.h"

#define COUNT 3

static char path[] = "/tmp/jail_clients.XXXXXX";

static int load(struct config *ret, const char *socket)
{
	auto_free char *program = try_jailer();
	auto_close int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	dprintf(fd, "{\"jailer\":{%s,\"program\":\"%s\",\"socket\":\"%s\"}," TRY_LIMITS "}", try_jailer_members(),
		program, socket);
	return config_load(path, ret, NULL);
}

static void dial(struct jail_client *clients[COUNT])
{
	auto_config struct config config = {.path = NULL};
	auto_json struct json_object *info = NULL;
	struct err err = ERR_INIT;

	assert_int_equal(load(&config, ""), 0);
	if (jail_client_dial(&config, clients, COUNT, &err) < 0 || jail_client_info(clients[0], &info, &err) < 0)
		fail_msg("%s", err.text);
}

static void hang_up(struct jail_client *clients[COUNT])
{
	for (size_t i = 0; i < COUNT; i++)
		jail_client_free(clients[i]);
	/* One jailer for all, and its end was waited for. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void prints(struct jail_client *client, const char *word)
{
	auto_try struct try try = {.jail = NULL};
	auto_free char *code = xasprintf("echo %s", word), *line = xasprintf("%s\n", word);

	try_program(client, &try, &(struct jail_spec){.runner = "bash"}, code);
	assert_int_equal(try.result.verdict, JAIL_OK);
	assert_string_equal(try.out, line);
}

static void sleeps(struct jail_client *client, struct try *try)
{
	const char *code = "echo here; sleep 1000";
	auto_close int code_fd = memfd_with("code", code, strlen(code));

	try_begin(client, try, &(struct jail_spec){.runner = "bash"});
	const struct jail_program program = {
		.code_fd = code_fd, .stdin_fd = -1, .stdout_fd = try->out_fd, .stderr_fd = try->error_fd};
	assert_int_equal(jail_run(try->jail, &program, NULL), 0);
	while (!try->outputs)
		assert_true(try_hear(client, PATIENCE_MS) && !try->done && !try->failed);
}

static void each_has_its_own(void **state)
{
	struct jail_client *clients[COUNT] = {NULL};

	(void)state;
	dial(clients);
	prints(clients[0], "zero");
	prints(clients[2], "two");
	prints(clients[1], "one");
	hang_up(clients);
}

/* What it has running ends with it; the others' runs go on. */
static void one_goes(void **state)
{
	struct jail_client *clients[COUNT] = {NULL};
	auto_try struct try first = {.jail = NULL}, second = {.jail = NULL};

	(void)state;
	dial(clients);
	sleeps(clients[0], &first);
	sleeps(clients[1], &second);
	jail_client_free(steal(&clients[0]));
	close(first.out_fd);
	close(first.error_fd);
	prints(clients[2], "after");
	assert_false(second.done || second.failed);
	jail_cancel(second.jail);
	try_end(clients[1], &second);
	assert_int_equal(second.result.verdict, JAIL_CX);
	hang_up(clients);
}

static void one_sends_rubbish(void **state)
{
	struct jail_client *clients[COUNT] = {NULL};
	struct err err = ERR_INIT;

	(void)state;
	dial(clients);
	assert_int_equal(send(jail_client_fd(clients[1]), "rubbish", 7, 0), 7);
	struct pollfd poller = {.fd = jail_client_fd(clients[1]), .events = POLLIN};
	assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
	assert_true(jail_client_dispatch(clients[1], &err) < 0);
	prints(clients[0], "zero");
	prints(clients[2], "two");
	hang_up(clients);
}

static void a_service_that_is_not_there(void **state)
{
	struct jail_client *clients[COUNT] = {NULL};
	auto_config struct config config = {.path = NULL};
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(load(&config, "/nonexistent/socket"), 0);
	assert_int_equal(jail_client_dial(&config, clients, COUNT, &err), -ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "/nonexistent/socket"));
	for (size_t i = 0; i < COUNT; i++)
		assert_null(clients[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_has_its_own),
		cmocka_unit_test(one_goes),
		cmocka_unit_test(one_sends_rubbish),
		cmocka_unit_test(a_service_that_is_not_there),
	};

	close(mkostemp(path, O_CLOEXEC));
	int failures = cmocka_run_group_tests_name("clients of a private jailer", tests, NULL, NULL);
	unlink(path);
	return failures;
}
