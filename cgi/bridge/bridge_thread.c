/*
 * bridge_thread.c - the bridge's thread: runs, their sockets, and the clock. See bridge.h.
 *
 * One epoll descriptor holds every listener and connection. A listener is watched for changes only: before its jail has
 * made it listen, the kernel would report it as hung up all the time. Answers of providers come through a list and an
 * eventfd, so that a provider may answer from wherever it is and needs none of our locks.
 *
 * A run that was closed stays until the providers have answered all of its calls; it is freed at the top of the
 * thread's loop, when no event can name it any more.
 */
#include "bridge_internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/config.h"

void bridge_wake(struct bridge *bridge)
{
	const uint64_t one = 1;

	if (write(bridge->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: it will wake */
}

static void woken(struct bridge_watch *watch, uint32_t events)
{
	struct bridge *bridge = container_of(watch, struct bridge, wake);
	uint64_t count;

	(void)events;
	if (read(bridge->wake_fd, &count, sizeof(count)) < 0)
		return;
	for (;;) {
		pthread_mutex_lock(&bridge->answers_lock);
		struct bridge_flight *flight = bridge->answers;
		if (flight && !(bridge->answers = steal(&flight->next_answer)))
			bridge->answers_last = &bridge->answers;
		pthread_mutex_unlock(&bridge->answers_lock);
		if (!flight)
			return;
		bridge_answered(flight);
	}
}

void bridge_report_clear(struct bridge_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		struct bridge_record *record = &report->records[i];

		free(record->server);
		free(record->tool);
		free(record->arguments);
		free(record->result);
		free(record->decision);
		free(record->rule);
		free(record->decided_by);
	}
	free(report->records);
	*report = (struct bridge_report){0};
}

static void run_free(struct bridge_run *run)
{
	while (run->connections) {
		struct bridge_connection *connection = run->connections;

		run->connections = connection->next;
		bridge_connection_free(connection);
	}
	for (size_t i = 0; i < run->spec.count; i++)
		upstream_list_free(run->lists[i]);
	free(run->lists);
	bridge_report_clear(&run->report);
	if (run->spec.provider->release)
		run->spec.provider->release(run->spec.arg);
	fd_close(&run->listener);
	free(run);
}

/* What is over. Connections of a run that goes on, too. */
static void sweep(struct bridge *bridge)
{
	for (struct bridge_run **link = &bridge->runs; *link;) {
		struct bridge_run *run = *link;

		for (struct bridge_connection **at = &run->connections; *at;) {
			struct bridge_connection *connection = *at;

			if (connection->fd >= 0) {
				at = &connection->next;
				continue;
			}
			*at = connection->next;
			bridge_connection_free(connection);
		}
		if (run->closed && run->owed == 0) {
			*link = run->next;
			run_free(run);
		} else {
			link = &run->next;
		}
	}
}

static int until_next(struct bridge *bridge)
{
	int64_t until = INT64_MAX;

	for (struct bridge_run *run = bridge->runs; run; run = run->next)
		if (!run->closed)
			until = MIN(until, bridge_deadline(run));
	if (until == INT64_MAX)
		return -1;
	return (int)MIN((MAX(until - clock_monotonic_us(), 0) + 999) / 1000, INT64_C(3600000));
}

static void *serve(void *arg)
{
	struct bridge *bridge = arg;
	struct epoll_event event;

	pthread_mutex_lock(&bridge->lock);
	for (;;) {
		sweep(bridge);
		if (bridge->stop && !bridge->runs)
			break;
		int timeout = until_next(bridge);
		pthread_mutex_unlock(&bridge->lock);
		int n = epoll_wait(bridge->loop, &event, 1, timeout);
		pthread_mutex_lock(&bridge->lock);
		if (n == 1) {
			struct bridge_watch *watch = event.data.ptr;

			watch->ready(watch, event.events);
		}
		const int64_t now = clock_monotonic_us();
		for (struct bridge_run *run = bridge->runs; run; run = run->next)
			if (!run->closed)
				bridge_tick(run, now);
	}
	pthread_mutex_unlock(&bridge->lock);
	return NULL;
}

int bridge_start(struct bridge **ret, struct err *err)
{
	struct bridge *bridge = xcalloc(1, sizeof(*bridge));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &bridge->wake};
	int error;

	bridge->wake.ready = woken;
	bridge->answers_last = &bridge->answers;
	pthread_mutex_init(&bridge->lock, NULL);
	pthread_mutex_init(&bridge->answers_lock, NULL);
	bridge->loop = epoll_create1(EPOLL_CLOEXEC);
	bridge->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = bridge->loop < 0 || bridge->wake_fd < 0 ||
				epoll_ctl(bridge->loop, EPOLL_CTL_ADD, bridge->wake_fd, &event)
			? errno
			: pthread_create(&bridge->thread, NULL, serve, bridge);
	if (error == 0) {
		*ret = bridge;
		return 0;
	}
	fd_close(&bridge->loop);
	fd_close(&bridge->wake_fd);
	free(bridge);
	errno = error;
	return err_errno(err, "starting the thread that serves programs' calls");
}

void bridge_stop(struct bridge *bridge)
{
	if (!bridge)
		return;
	pthread_mutex_lock(&bridge->lock);
	bridge->stop = true;
	pthread_mutex_unlock(&bridge->lock);
	bridge_wake(bridge);
	pthread_join(bridge->thread, NULL);
	close(bridge->loop);
	close(bridge->wake_fd);
	pthread_mutex_destroy(&bridge->lock);
	pthread_mutex_destroy(&bridge->answers_lock);
	free(bridge);
}

int bridge_open(struct bridge *bridge, const struct bridge_spec *spec, struct bridge_run **ret, struct err *err)
{
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct bridge_run *run = xcalloc(1, sizeof(*run));
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = &run->watch};

	if (listener < 0) {
		int result = err_errno(err, "making a socket for a program's calls");

		free(run);
		if (spec->provider->release)
			spec->provider->release(spec->arg);
		return result;
	}
	run->bridge = bridge;
	run->spec = *spec;
	run->lists = xcalloc(spec->count + 1, sizeof(struct upstream_list *));
	for (size_t i = 0; i < spec->count; i++)
		run->lists[i] = upstream_list_keep(spec->lists[i]);
	run->spec.lists = run->lists;
	run->watch.ready = bridge_accept;
	run->flights_last = &run->flights;
	run->listener = steal_fd(&listener);
	pthread_mutex_lock(&bridge->lock);
	run->next = bridge->runs;
	bridge->runs = run;
	bool watched = epoll_ctl(bridge->loop, EPOLL_CTL_ADD, run->listener, &event) == 0;
	pthread_mutex_unlock(&bridge->lock);
	if (!watched) {
		err_errno(err, "watching a socket for a program's calls");
		bridge_close(run, NULL); /* which releases the provider */
		return -ERR_SYSTEM;
	}
	*ret = run;
	return 0;
}

int bridge_run_socket(const struct bridge_run *run)
{
	return run->listener;
}

void bridge_close(struct bridge_run *run, struct bridge_report *ret)
{
	struct bridge *bridge = run->bridge;

	pthread_mutex_lock(&bridge->lock);
	bridge_cancel(run, NULL);
	for (struct bridge_connection *connection = run->connections; connection; connection = connection->next)
		bridge_connection_close(connection);
	/* By name: others may still have a descriptor of it. */
	epoll_ctl(bridge->loop, EPOLL_CTL_DEL, run->listener, NULL);
	fd_close(&run->listener);
	run->report.waited_us = run->waited_us;
	if (ret) {
		*ret = run->report;
		run->report = (struct bridge_report){0};
	}
	run->closed = true;
	pthread_mutex_unlock(&bridge->lock);
	bridge_wake(bridge); /* to sweep it */
}

void bridge_caps(const struct config *config, struct bridge_caps *ret)
{
	const struct config_limits *limits = &config->limits;

	*ret = (struct bridge_caps){
		.calls = limits->tool_calls,
		.in_flight = limits->tool_calls_at_once,
		.argument_bytes = limits->tool_argument_kb * 1024,
		.result_bytes = limits->tool_result_kb * 1024,
		.total_bytes = limits->tool_results_mb << 20,
		.call_us = limits->tool_seconds * 1000000,
		.call_most_us = limits->tool_seconds_max * 1000000,
		.wait_us = limits->tool_wait_seconds * 1000000,
		.ask_us = limits->tool_ask_seconds * 1000000,
	};
}
