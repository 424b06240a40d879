/*
 * follow.c - what --follow of `log` and `audit log` waits for: the database's files change (inotify on their folder).
 *
 * It looks at most four times a second, so that a busy server does not keep it busy, and once a second anyhow: inotify
 * reports the write, but the commit becomes visible slightly later.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "cli.h"
#include "lib/base/util.h"

#define FOLLOW_EVERY_US 250000
#define FOLLOW_LEAST_MS 1000

/* Waits until the database was written to, for FOLLOW_LEAST_MS at most; 1: our reader is gone. */
static int follow_wait(int watch, struct err *err)
{
	char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));

	for (;;) {
		struct pollfd polled[] = {{.fd = watch, .events = POLLIN}, {.fd = STDOUT_FILENO}};

		int ready = poll(polled, ARRAY_SIZE(polled), FOLLOW_LEAST_MS);

		if (ready == 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return err_errno(err, "poll");
		if (polled[1].revents & (POLLERR | POLLHUP))
			return 1;
		if (!(polled[0].revents & POLLIN))
			continue;
		ssize_t length = read(watch, events, sizeof(events));

		for (ssize_t at = 0; at < length;) {
			const struct inotify_event *event = (const void *)(events + at);

			/* the database and its log, not the index that readers touch too */
			if (event->len && str_starts(event->name, "sallyport.db") && !strstr(event->name, "-shm"))
				return 0;
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	}
}

int cli_follow_open(const struct config *config, struct err *err)
{
	auto_close int watch = inotify_init1(IN_CLOEXEC);

	if (watch < 0 || inotify_add_watch(watch, config->data_dir, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
		return err_errno(err, "watching %s", config->data_dir);
	return steal_fd(&watch);
}

int cli_follow(int watch, int (*look)(void *arg, struct err *err), void *arg, struct err *err)
{
	int result;

	while ((result = look(arg, err)) == 0) {
		const int64_t looked_us = clock_monotonic_us();

		result = follow_wait(watch, err);
		if (result != 0)
			return MIN(result, CLI_OK);
		const int64_t early_us = looked_us + FOLLOW_EVERY_US - clock_monotonic_us();

		if (early_us > 0)
			poll(NULL, 0, (int)(early_us / 1000) + 1);
	}
	return result;
}
