/*
 * test_jail_gauge.c - does the gauge of host_gauge.h see what it is there for? This process takes, without any jail,
 * what the probes try to take, and the meter must show it: a gauge that shows nothing would let every probe hold.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "host_gauge.h"

#define LIMIT   (INT64_C(16) << 20)
#define BLOCK   (1 << 20)
#define PAIRS   200
#define LOCKS   (INIT_LOCKS_MAX + 2 * GAUGE_OTHERS)
#define SIGNALS (GAUGE_SIGNALS + 2 * GAUGE_OTHERS)

static int start(void **state)
{
	static struct gauge gauge;

	*state = &gauge;
	return gauge_start(&gauge);
}

/* Stops it; the meter is above its bound, and no other is. */
static void assert_seen(struct gauge *gauge, enum gauge_meter meter)
{
	gauge_stop(gauge);
	assert_true(gauge->most.of[meter] - gauge->before.of[meter] > gauge_bounds(LIMIT).of[meter]);
	for (size_t i = 0; i < GAUGE_METERS; i++)
		if (i != (size_t)meter)
			gauge->most.of[i] = gauge->before.of[i];
	assert_int_equal(gauge_above(&gauge->before, &gauge->most, LIMIT), meter);
}

static void pending_signals(void **state)
{
	static timer_t timers[SIGNALS];
	struct sigevent event = {.sigev_notify = SIGEV_NONE};

	for (size_t i = 0; i < SIGNALS; i++)
		assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timers[i]), 0);
	assert_seen(*state, GAUGE_PENDING);
	for (size_t i = 0; i < SIGNALS; i++)
		timer_delete(timers[i]);
}

static void requests(void **state)
{
	aio_context_t context = 0;

	assert_int_equal(syscall(SYS_io_setup, 2 * GAUGE_REQUESTS, &context), 0);
	assert_seen(*state, GAUGE_AIO);
	syscall(SYS_io_destroy, context);
}

static void file_locks(void **state)
{
	auto_close int fd = memfd_with("locks", "", 0);

	for (int i = 0; i < LOCKS; i++) {
		struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 2 * i, .l_len = 1};

		assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	}
	assert_seen(*state, GAUGE_LOCKS);
}

/* Connections of loopback that nobody reads from. */
static void tcp_buffers(void **state)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(own);
	auto_close int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	auto_free char *block = xcalloc(1, BLOCK);
	int size = 4 * BLOCK, fds[PAIRS];

	setsockopt(server, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	assert_int_equal(bind(server, (struct sockaddr *)&own, sizeof(own)) || listen(server, PAIRS), 0);
	getsockname(server, (struct sockaddr *)&own, &length);
	for (size_t i = 0; i < PAIRS; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
		assert_int_equal(connect(fds[i], (struct sockaddr *)&own, sizeof(own)), 0);
		while (send(fds[i], block, BLOCK, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
			;
	}
	assert_seen(*state, GAUGE_TCP);
	for (size_t i = 0; i < PAIRS; i++)
		close(fds[i]);
}

/* Memory of the kernel: epoll's entries, which are not descriptors. They are the last reference to no file: each file
 * is watched by many. */
#define FILES 256
#define POLLS 2048
static void unreclaimable_slab(void **state)
{
	int files[FILES], polls[POLLS];
	struct rlimit most;

	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);

	for (size_t i = 0; i < FILES; i++)
		assert_true((files[i] = eventfd(0, EFD_CLOEXEC)) >= 0);
	for (size_t i = 0; i < POLLS; i++) {
		assert_true((polls[i] = epoll_create1(EPOLL_CLOEXEC)) >= 0);
		for (size_t k = 0; k < FILES; k++) {
			struct epoll_event event = {.events = 0};

			assert_int_equal(epoll_ctl(polls[i], EPOLL_CTL_ADD, files[k], &event), 0);
		}
	}
	assert_seen(*state, GAUGE_UNRECLAIMABLE);
	for (size_t i = 0; i < POLLS; i++)
		close(polls[i]);
	for (size_t i = 0; i < FILES; i++)
		close(files[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(pending_signals, start), cmocka_unit_test_setup(requests, start),
		cmocka_unit_test_setup(file_locks, start),      cmocka_unit_test_setup(tcp_buffers, start),
		cmocka_unit_test_setup(unreclaimable_slab, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
