/* test_notify.c - what a service tells its manager, read from a real socket; a jailer under a watchdog. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/notify.h"
#include "lib/base/util.h"

/* A manager's socket, as $NOTIFY_SOCKET names it: in the abstract name space, so that nothing is left behind. */
static int manager(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_free char *name = xasprintf("@sallyport-test-notify-%d", getpid());
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path + 1, name + 1, strlen(name) - 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))),
			 0);
	setenv("NOTIFY_SOCKET", name, 1);
	return fd;
}

static void assert_said(int fd, const char *text)
{
	char said[64] = {0};

	assert_int_equal(recv(fd, said, sizeof(said) - 1, 0), strlen(text));
	assert_string_equal(said, text);
}

static void assert_silent(int fd)
{
	char said[64];

	assert_int_equal(recv(fd, said, sizeof(said), 0), -1);
}

static void nobody_wants_to_know(void **state)
{
	struct notify notify;

	(void)state;
	unsetenv("NOTIFY_SOCKET");
	notify_open(&notify);
	notify_ready(&notify);
	notify_tick(&notify);
	assert_int_equal(notify.fd, -1);
	assert_true(notify.deadline_us == INT64_MAX);
	setenv("NOTIFY_SOCKET", "/nowhere/at/all", 1);
	notify_open(&notify);
	assert_int_equal(notify.fd, -1);
	setenv("NOTIFY_SOCKET", "relative", 1);
	notify_open(&notify);
	assert_int_equal(notify.fd, -1);
	notify_close(&notify);
}

static void life_of_a_service(void **state)
{
	auto_close int fd = manager();
	struct notify notify;

	(void)state;
	setenv("WATCHDOG_USEC", "2000000", 1);
	unsetenv("WATCHDOG_PID");
	notify_open(&notify);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_null(getenv("WATCHDOG_USEC"));
	notify_tick(&notify);
	assert_silent(fd); /* not before it is ready */
	notify_ready(&notify);
	assert_said(fd, "READY=1");
	assert_true(notify.deadline_us - clock_monotonic_us() <= 1000000);
	notify_tick(&notify);
	assert_silent(fd); /* not due */
	notify.deadline_us = clock_monotonic_us();
	notify_tick(&notify);
	assert_said(fd, "WATCHDOG=1");
	assert_true(notify.deadline_us > clock_monotonic_us());
	notify_stopping(&notify);
	assert_said(fd, "STOPPING=1");
	notify_tick(&notify);
	assert_silent(fd);
	notify_close(&notify);
}

static void watchdog_of_another(void **state)
{
	auto_close int fd = manager();
	struct notify notify;

	(void)state;
	setenv("WATCHDOG_USEC", "2000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	notify_open(&notify);
	notify_ready(&notify);
	assert_said(fd, "READY=1");
	assert_true(notify.deadline_us == INT64_MAX);
	notify_close(&notify);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_wants_to_know),
		cmocka_unit_test(life_of_a_service),
		cmocka_unit_test(watchdog_of_another),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
