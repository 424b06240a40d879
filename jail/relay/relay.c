/*
 * relay.c - the relay's processes and its jails; see relay.h. What happens to one connection: relay_dial.c and
 * relay_tunnel.c.
 *
 * The relay closes everything of a jail when its liveness socket closes, and ends itself when the jailer's socket does.
 * It answers nothing: what the jailer wants to know is in the run's page. Connections are freed between events only.
 */
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "relay_internal.h"

#define RESTART_MS 1000 /* between two relays, so that one that cannot live costs little */
#define ACCEPT_MAX 64   /* of one listener at a time */

/* -------- jails --------------------------------------------------------------------------------------- */
static void watch_listeners(struct relay_jail *jail);

static void drop_page(struct relay_jail *jail)
{
	if (jail->page)
		munmap(jail->page, sizeof(*jail->page));
	jail->page = NULL;
}

/* A connection that waits at a listener is left there: it may be the next run's, whose orders were not read yet. What
 * is the last one's is dead. */
static void end_run(struct relay_jail *jail)
{
	for (struct relay_connection *c = jail->connections; c; c = c->next)
		relay_connection_close(c);
	drop_page(jail);
	watch_listeners(jail);
}

static void begin_run(struct relay_jail *jail, int fd)
{
	drop_page(jail);
	/* The jailer sealed its size: it stays as large as it is. */
	void *page = mmap(NULL, sizeof(*jail->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED)
		jail->page = page;
	watch_listeners(jail);
}

static void listener_ready(struct loop_watch *watch, uint32_t events);

static void watch_listener(struct relay_listener *listener)
{
	struct relay_jail *jail = listener->jail;

	if (jail->paused || jail->relay->starved || !jail->page)
		loop_remove(jail->relay->loop, &listener->watch);
	else if (listener->watch.fd < 0)
		loop_add(jail->relay->loop, &listener->watch, listener->fd, EPOLLIN, listener_ready);
}

static void watch_listeners(struct relay_jail *jail)
{
	for (size_t i = 0; i < jail->n_listeners; i++)
		watch_listener(jail->listeners[i]);
}

static void add_listeners(struct relay_jail *jail, const struct relay_order *order, struct wire_fds *fds)
{
	for (size_t i = 0; i < fds->count && i < order->n; i++) {
		struct relay_listener *listener = xcalloc(1, sizeof(*listener));

		*listener = (struct relay_listener){LOOP_WATCH_INIT, jail, steal_fd(&fds->fds[i]), order->rule[i]};
		jail->listeners = xrealloc(jail->listeners, jail->n_listeners + 1, sizeof(*jail->listeners));
		jail->listeners[jail->n_listeners++] = listener;
		watch_listener(listener);
	}
}

/* All that the jailer has said so far. */
static void read_liveness(struct relay_jail *jail)
{
	struct relay_order order;
	int room[WIRE_FD_LIMIT];

	while (!jail->gone) {
		struct wire_fds fds = {.fds = room, .room = WIRE_FD_LIMIT};
		ssize_t n = wire_fd_receive(jail->liveness_fd, &order, sizeof(order), MSG_DONTWAIT, &fds);

		if (n < 0 && errno == EAGAIN)
			return;
		jail->gone = n != (ssize_t)sizeof(order);
		jail->relay->garbage |= jail->gone;
		if (!jail->gone && order.verb == RELAY_LISTEN)
			add_listeners(jail, &order, &fds);
		else if (!jail->gone && order.verb == RELAY_RUN && fds.count == 1)
			begin_run(jail, fds.fds[0]);
		else if (!jail->gone && order.verb == RELAY_END)
			end_run(jail);
		for (size_t i = 0; i < fds.count; i++)
			close_pointer(&fds.fds[i]);
	}
}

static void liveness_ready(struct loop_watch *watch, uint32_t events)
{
	(void)events;
	read_liveness(container_of(watch, struct relay_jail, liveness));
}

/* The jailer speaks before it starts a program: what the program does is about what was said last. */
static void listener_ready(struct loop_watch *watch, uint32_t events)
{
	struct relay_listener *listener = container_of(watch, struct relay_listener, watch);
	struct relay_jail *jail = listener->jail;

	(void)events;
	read_liveness(jail);
	for (int i = 0; i < ACCEPT_MAX && !jail->gone && jail->page && !jail->paused; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM))
			jail->relay->starved = true;
		if (fd < 0)
			break;
		relay_connection_new(jail, fd, listener->rule);
		jail->paused = jail->n_connections >= jail->relay->egress->config->network.connections;
	}
	watch_listeners(jail);
}

static void jail_free(struct relay_jail *jail)
{
	relay_resolvers_leave(jail);
	end_run(jail);
	for (struct relay_connection *c = jail->connections, *next; c; c = next) {
		next = c->next;
		relay_connection_free(c);
	}
	for (size_t i = 0; i < jail->n_listeners; i++) {
		loop_remove(jail->relay->loop, &jail->listeners[i]->watch);
		close(jail->listeners[i]->fd);
		free(jail->listeners[i]);
	}
	free(jail->listeners);
	loop_remove(jail->relay->loop, &jail->liveness);
	close(jail->liveness_fd);
	free(jail);
}

static void control_ready(struct loop_watch *watch, uint32_t events)
{
	struct relay *relay = container_of(watch, struct relay, control);
	struct relay_order order;
	int fd = -1;
	struct wire_fds fds = {.fds = &fd, .room = 1};
	ssize_t n = wire_fd_receive(watch->fd, &order, sizeof(order), MSG_DONTWAIT, &fds);

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	relay->stop = n != (ssize_t)sizeof(order);
	if (relay->stop || fd < 0)
		return;
	struct relay_jail *jail = xcalloc(1, sizeof(*jail));
	*jail = (struct relay_jail){
		.next = relay->jails, .relay = relay, .liveness = LOOP_WATCH_INIT, .liveness_fd = fd};
	relay->jails = jail;
	jail->gone = loop_add(relay->loop, &jail->liveness, fd, EPOLLIN, liveness_ready) != 0;
	relay->garbage |= jail->gone;
}

/* -------- between events ------------------------------------------------------------------------------ */
static bool free_closed(struct relay_jail *jail)
{
	bool freed = false;

	for (struct relay_connection **link = &jail->connections, *c; (c = *link);) {
		if (c->state != RELAY_CLOSED) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		relay_connection_free(c);
		jail->n_connections--;
		freed = true;
	}
	jail->paused = jail->n_connections >= jail->relay->egress->config->network.connections;
	return freed;
}

static void collect_garbage(struct relay *relay)
{
	for (struct relay_jail **link = &relay->jails, *jail; (jail = *link);) {
		if (free_closed(jail) || jail->gone)
			relay->starved = false;
		if (jail->gone) {
			*link = jail->next;
			jail_free(jail);
		} else {
			link = &jail->next;
		}
	}
	for (struct relay_jail *jail = relay->jails; jail; jail = jail->next)
		watch_listeners(jail);
	relay->garbage = false;
}

static void end_late(struct relay *relay)
{
	int64_t now = clock_monotonic_us();

	if (now < relay->next_deadline_us)
		return;
	relay->next_deadline_us = INT64_MAX;
	for (struct relay_jail *jail = relay->jails; jail; jail = jail->next)
		for (struct relay_connection *c = jail->connections; c; c = c->next) {
			if (c->state != RELAY_CLOSED && now >= c->deadline_us)
				relay_connection_late(c);
			if (c->state != RELAY_CLOSED)
				relay->next_deadline_us = MIN(relay->next_deadline_us, c->deadline_us);
		}
}

/* -------- processes ----------------------------------------------------------------------------------- */
static void relay_main(const struct egress *egress, int control)
{
	struct relay relay = {.loop = loop_open(),
			      .egress = egress,
			      .control = LOOP_WATCH_INIT,
			      .control_fd = control,
			      .next_deadline_us = INT64_MAX};

	prctl(PR_SET_NAME, "jailer-relay", 0, 0, 0);
	if (relay.loop < 0 || loop_add(relay.loop, &relay.control, control, EPOLLIN, control_ready) ||
	    relay_resolvers_start(&relay) || relay_seccomp(false)) {
		log_event(LOG_ERROR, "the relay cannot start", "why", strerror(errno), NULL);
		return;
	}
	while (!relay.stop && loop_once(relay.loop, relay.next_deadline_us) >= 0) {
		end_late(&relay);
		if (relay.garbage)
			collect_garbage(&relay);
		if (relay.waiting)
			relay_resolvers_feed(&relay);
	}
}

static void monitor_main(const struct egress *egress, int monitor, int first)
{
	int control = first;

	while (control >= 0) {
		struct pollfd wait = {.fd = monitor};
		int pair[2];
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			close(monitor);
			relay_main(egress, control);
			_exit(1);
		}
		close(control);
		if (pid < 0)
			return;
		/* Until the relay has died or the jailer has. */
		auto_close int pidfd = pidfd_open(pid, 0);
		struct pollfd ends[] = {{.fd = monitor}, {.fd = pidfd, .events = POLLIN}};
		while (poll(ends, ARRAY_SIZE(ends), -1) < 0 && errno == EINTR)
			;
		if (ends[0].revents)
			kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		if (ends[0].revents)
			return;
		log_event(LOG_ERROR, "the relay died: starting another", NULL);
		if (poll(&wait, 1, RESTART_MS) != 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
			return;
		control = pair[1];
		if (wire_fd_send(monitor, "r", 1, &pair[0], 1))
			return;
		close(pair[0]);
	}
}

/* Of the ids that the instance has, the last but one; a user has no other than its own here. */
static int drop(const struct identity *identity)
{
	uid_t uid = identity->host_uid + identity->ids - 2;
	gid_t gid = identity->host_gid + identity->ids - 2;
	const struct rlimit none = {0, 0};

	if (identity->mode == IDENTITY_ROOT &&
	    (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid)))
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ||
	    setrlimit(RLIMIT_CORE, &none))
		return -1;
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* the change of ids cleared it */
}

int relay_start(const struct egress *egress, const struct identity *identity, int *ret_monitor, int *ret_relay,
		struct err *err)
{
	int monitor[2] = {-1, -1}, relay[2] = {-1, -1};

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, monitor))
		return err_errno(err, "making a socket for the relay");
	auto_close int ours = monitor[0];
	auto_close int theirs = monitor[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, relay))
		return err_errno(err, "making a socket for the relay");
	auto_close int our_relay = relay[0];
	auto_close int first = relay[1];
	pid_t pid = fork();
	if (pid < 0)
		return err_errno(err, "starting the relay");
	if (pid == 0) {
		/* Nothing of the jailer's may be held open here. Standard error stays for the log. */
		int low = MIN(theirs, first), high = MAX(theirs, first);

		if ((low > 3 && close_range(3, (unsigned)low - 1, 0)) ||
		    (high > low + 1 && close_range((unsigned)low + 1, (unsigned)high - 1, 0)) ||
		    close_range((unsigned)high + 1, ~0U, 0))
			_exit(1);
		prctl(PR_SET_NAME, "relay-monitor", 0, 0, 0);
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_IGN);
		signal(SIGPIPE, SIG_IGN);
		if (drop(identity) == 0)
			monitor_main(egress, theirs, first);
		_exit(1);
	}
	*ret_monitor = steal_fd(&ours);
	*ret_relay = steal_fd(&our_relay);
	return 0;
}

int relay_receive(int monitor)
{
	char mark;
	int fd = -1;
	struct wire_fds fds = {.fds = &fd, .room = 1};
	ssize_t n = wire_fd_receive(monitor, &mark, 1, MSG_DONTWAIT, &fds);

	if (n == 1 && fd >= 0)
		return fd;
	errno = n < 0 ? errno : EPIPE;
	return -1;
}
