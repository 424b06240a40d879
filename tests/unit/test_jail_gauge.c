/*
 * test_jail_gauge.c - does the gauge of host_gauge.h see what it is there for? This process takes, without any jail,
 * what the probes try to take, and the meter must show it: a gauge that shows nothing would let every probe hold.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
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
	assert_true(gauge->most.of[meter] - gauge->before.of[meter] > gauge_bounds(LIMIT, 1).of[meter]);
	for (size_t i = 0; i < GAUGE_METERS; i++)
		if (i != (size_t)meter)
			gauge->most.of[i] = gauge->before.of[i];
	assert_int_equal(gauge_above(&gauge->before, &gauge->most, LIMIT, 1), meter);
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

static void gauge_sees_asynchronous_requests(void **state)
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

/* Filters of sockets as large as an old kernel takes them: each instruction becomes two (net.core.optmem_max). */
#define FILTERS      1200
#define INSTRUCTIONS 1000
static void socket_filters(void **state)
{
	static struct sock_filter code[INSTRUCTIONS];
	const struct sock_fprog program = {INSTRUCTIONS, code};
	static int fds[FILTERS];
	struct rlimit most;

	if (access("/proc/vmallocinfo", R_OK)) {
		gauge_stop(*state);
		print_message("this account may not read /proc/vmallocinfo: skipped\n");
		skip();
	}
	getrlimit(RLIMIT_NOFILE, &most);
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
	for (size_t i = 0; i < INSTRUCTIONS; i++)
		code[i] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	for (size_t i = 0; i < FILTERS; i++) {
		assert_true((fds[i] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0);
		assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
	}
	assert_seen(*state, GAUGE_BPF);
	for (size_t i = 0; i < FILTERS; i++)
		close(fds[i]);
}

/* One page, of one more that the host reserves meanwhile. */
static void huge_pages(void **state)
{
	static const char path[] = "/proc/sys/vm/nr_hugepages";
	auto_free char *before = gauge_text(path);
	auto_free char *more = xasprintf("%lld", strtoll(before, NULL, 10) + 1);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, more, strlen(more)) < 0) {
		gauge_stop(*state);
		print_message("this account may not reserve huge pages: skipped\n");
		skip();
	}
	void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (page != MAP_FAILED)
		assert_seen(*state, GAUGE_HUGE);
	else
		gauge_stop(*state);
	if (page != MAP_FAILED)
		munmap(page, 2 << 20);
	assert_true(pwrite(fd, before, strlen(before), 0) > 0);
	if (page == MAP_FAILED) {
		print_message("the host has no memory in one piece for a huge page: skipped\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(pending_signals, start),
		cmocka_unit_test_setup(gauge_sees_asynchronous_requests, start),
		cmocka_unit_test_setup(file_locks, start),
		cmocka_unit_test_setup(tcp_buffers, start),
		cmocka_unit_test_setup(unreclaimable_slab, start),
		cmocka_unit_test_setup(socket_filters, start),
		cmocka_unit_test_setup(huge_pages, start),
	};

	gauge_alone = true;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
