/* loop.c - see loop.h. */
#include "loop.h"

#include <errno.h>
#include <sys/epoll.h>

#include "lib/base/util.h"

#define LONGEST_WAIT_MS (60 * 1000)

int loop_open(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

int loop_add(int loop, struct loop_watch *watch, int fd, uint32_t events, void (*ready)(struct loop_watch *, uint32_t))
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event))
		return -1;
	*watch = (struct loop_watch){.fd = fd, .events = events, .ready = ready};
	return 0;
}

int loop_change(int loop, struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (watch->fd < 0 || watch->events == events)
		return 0;
	watch->events = events;
	return epoll_ctl(loop, EPOLL_CTL_MOD, watch->fd, &event);
}

void loop_remove(int loop, struct loop_watch *watch)
{
	if (watch->fd >= 0)
		epoll_ctl(loop, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->fd = -1;
}

int loop_once(int loop, int64_t deadline_us)
{
	struct epoll_event event;
	int64_t wait_ms = LONGEST_WAIT_MS;

	if (deadline_us != INT64_MAX) {
		int64_t left_us = deadline_us - clock_monotonic_us();

		/* Rounded up: waking before the deadline would spin. */
		wait_ms = left_us <= 0 ? 0 : MIN((left_us + 999) / 1000, LONGEST_WAIT_MS);
	}
	int n = epoll_wait(loop, &event, 1, (int)wait_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -1;
	if (n == 1) {
		struct loop_watch *watch = event.data.ptr;

		watch->ready(watch, event.events);
	}
	return n;
}
