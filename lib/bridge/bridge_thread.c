/*
 * bridge_thread.c - what the bridge's thread does: runs, their sockets, and the clock. See bridge.h.
 *
 * The thread is that of the upstream servers, so that a call and its answer wake one thread each on their way through;
 * a bridge without upstream servers has one of its own. Either calls turn() in its loop.
 *
 * One epoll descriptor holds every listener and connection. A listener is watched for changes only: before its jail has
 * made it listen, the kernel would report it as hung up all the time. Answers of providers come through a list and an
 * eventfd, so that a provider may answer from wherever it is and needs none of our locks.
 *
 * A run that was closed stays until the providers have answered all of its calls; it is freed at the end of a turn,
 * when no event can name it any more.
 */
#include "bridge_internal.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/config.h"

#define EVENTS 32 /* of one turn */

static void woken(struct bridge_watch *watch, uint32_t events)
{
	struct bridge *bridge = container_of(watch, struct bridge, wake);
	uint64_t count;

	(void)events;
	if (read(bridge->wake_fd, &count, sizeof(count)) < 0)
		return; /* it was read before */
}

void bridge_report_clear(struct bridge_report *report)
{
	for (size_t i = 0; i < report->count; i++)
		store_tool_call_clear(&report->records[i]);
	free(report->records);
	*report = (struct bridge_report){0};
}

/* Answers that came, and what they allow to be read and begun, which may be answered at once. */
static void settle(struct bridge *bridge)
{
	for (bridge_take_answers(bridge); bridge->unsettled; bridge_take_answers(bridge))
		bridge_settle(bridge);
}

/* What is over. Connections of a run that goes on, too. */
static void collect_ended(struct bridge *bridge)
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
		if (!run->closed || run->owed > 0) {
			link = &run->next;
			continue;
		}
		*link = run->next;
		for (size_t i = 0; i < run->spec.count; i++)
			upstream_list_free(run->lists[i]);
		free(run->lists);
		bridge_report_clear(&run->report);
		if (run->spec.provider->release)
			run->spec.provider->release(run->spec.arg);
		fd_close(&run->listener);
		free(run);
	}
}

/* As struct upstream_source has it. */
static bool turn(struct upstream_source *source, bool ready, int64_t *ret_due_us)
{
	struct bridge *bridge = container_of(source, struct bridge, source);
	struct epoll_event events[EVENTS];
	int n = ready ? epoll_wait(bridge->loop, events, EVENTS, 0) : 0;

	bridge_take_turn(bridge);
	pthread_mutex_lock(&bridge->lock);
	for (int i = 0; i < n; i++) {
		struct bridge_watch *watch = events[i].data.ptr;

		watch->ready(watch, events[i].events);
	}
	settle(bridge);
	const int64_t now = clock_monotonic_us();
	for (struct bridge_run *run = bridge->runs; run; run = run->next)
		if (!run->closed)
			bridge_tick(run, now);
	settle(bridge); /* of calls that were given up */
	collect_ended(bridge);
	*ret_due_us = INT64_MAX;
	for (const struct bridge_run *run = bridge->runs; run; run = run->next)
		if (!run->closed)
			*ret_due_us = MIN(*ret_due_us, bridge_deadline(run));
	bool goes_on = !bridge->stop || bridge->runs;
	pthread_mutex_unlock(&bridge->lock);
	return goes_on;
}

static void left(struct upstream_source *source)
{
	struct bridge *bridge = container_of(source, struct bridge, source);

	pthread_mutex_lock(&bridge->lock);
	bridge->over = true;
	pthread_cond_signal(&bridge->left);
	pthread_mutex_unlock(&bridge->lock);
}

static void *serve(void *arg)
{
	struct bridge *bridge = arg;
	int64_t due;

	while (turn(&bridge->source, true, &due)) {
		int64_t wait = MIN((MAX(due - clock_monotonic_us(), 0) + 999) / 1000, INT64_C(3600000));

		poll(&(struct pollfd){.fd = bridge->loop, .events = POLLIN}, 1, due == INT64_MAX ? -1 : (int)wait);
	}
	left(&bridge->source);
	return NULL;
}

static void bridge_free(struct bridge *bridge)
{
	fd_close(&bridge->loop);
	fd_close(&bridge->wake_fd);
	pthread_mutex_destroy(&bridge->lock);
	pthread_mutex_destroy(&bridge->answers_lock);
	pthread_cond_destroy(&bridge->left);
	free(bridge);
}

int bridge_start(struct upstream *upstream, struct bridge **ret, struct err *err)
{
	struct bridge *bridge = xcalloc(1, sizeof(*bridge));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &bridge->wake};
	int error;

	bridge->upstream = upstream;
	bridge->wake.ready = woken;
	bridge->answers_last = &bridge->answers;
	pthread_mutex_init(&bridge->lock, NULL);
	pthread_mutex_init(&bridge->answers_lock, NULL);
	pthread_cond_init(&bridge->left, NULL);
	bridge->loop = epoll_create1(EPOLL_CLOEXEC);
	bridge->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	bridge->source = (struct upstream_source){.fd = bridge->loop, .turn = turn, .left = left};
	error = bridge->loop < 0 || bridge->wake_fd < 0 ||
				epoll_ctl(bridge->loop, EPOLL_CTL_ADD, bridge->wake_fd, &event)
			? errno
			: 0;
	if (error == 0 && upstream)
		upstream_serve(upstream, &bridge->source);
	else if (error == 0)
		error = pthread_create(&bridge->thread, NULL, serve, bridge);
	if (error == 0) {
		*ret = bridge;
		return 0;
	}
	bridge_free(bridge);
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
	pthread_mutex_lock(&bridge->lock);
	while (!bridge->over)
		pthread_cond_wait(&bridge->left, &bridge->lock);
	pthread_mutex_unlock(&bridge->lock);
	if (!bridge->upstream)
		pthread_join(bridge->thread, NULL);
	bridge_free(bridge);
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
	share_init(&run->share, spec->caps.work_us);
	run->watch.ready = bridge_accept;
	run->inflight_last = &run->inflight;
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
	bridge_wake(bridge); /* to free it */
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
		.work_us = BRIDGE_WORK_US,
		.call_us = limits->tool_seconds * 1000000,
		.call_most_us = limits->tool_seconds_max * 1000000,
		.wait_us = limits->tool_wait_seconds * 1000000,
		.ask_us = limits->tool_ask_seconds * 1000000,
	};
}
