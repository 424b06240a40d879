/*
 * bridge_connection.c - a program's connections: frames in, frames out.
 *
 * A frame's memory is taken only as its bytes arrive in blocks, so that a length that is never followed by its bytes
 * costs nothing. While a program leaves answers unread, its connection is not read either: what it asks for then waits
 * in the kernel, at its own cost. Descriptors that come with bytes are dropped by the kernel, because nothing here
 * receives them.
 *
 * Several small frames come by one read and leave by one write: answers of a turn are gathered until its end
 * (bridge_settle).
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bridge_internal.h"

#define BLOCK   (64 * 1024)
#define AT_ONCE 16 /* frames that one write takes */

void bridge_connection_free(struct bridge_connection *connection)
{
	bridge_connection_close(connection);
	while (connection->first) {
		struct bridge_output *output = connection->first;

		connection->first = output->next;
		free(output->bytes);
		free(output);
	}
	free(connection->frame);
	free(connection);
}

void bridge_connection_close(struct bridge_connection *connection)
{
	struct bridge_run *run = connection->run;
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = &run->watch};

	if (connection->fd < 0)
		return;
	fd_close(&connection->fd);
	run->n_connections--;
	bridge_cancel(run, connection);
	/* The listener is looked at again: one more may come. */
	if (run->full && !run->closed && run->listener >= 0)
		epoll_ctl(run->bridge->loop, EPOLL_CTL_MOD, run->listener, &event);
	run->full = false;
}

static bool may_read(const struct bridge_connection *connection)
{
	const struct bridge_run *run = connection->run;

	return connection->n_outputs < BRIDGE_UNREAD && run->held < BRIDGE_HELD_MAX && !run->share.rests_until_us;
}

void bridge_rested(struct bridge_run *run, int64_t now_us)
{
	if (!run->share.rests_until_us || share_rests(&run->share, now_us))
		return;
	for (struct bridge_connection *connection = run->connections; connection; connection = connection->next)
		bridge_connection_watch(connection);
}

/* Reads, unless enough is unread on the other side; writes while something is left. What was read ahead and may be
 * taken now is, at the end of the turn. */
void bridge_connection_watch(struct bridge_connection *connection)
{
	bool reads = !connection->ends && may_read(connection);
	uint32_t wanted = (reads ? (uint32_t)EPOLLIN : 0) | (connection->first ? (uint32_t)EPOLLOUT : 0);
	struct epoll_event event = {.events = wanted, .data.ptr = &connection->watch};

	if (connection->fd < 0 || connection->unsettled)
		return;
	if (connection->ends && !connection->first) {
		bridge_connection_close(connection);
		return;
	}
	if (reads && connection->ahead_at < connection->ahead_end)
		bridge_unsettled(connection);
	if (wanted != connection->watched)
		epoll_ctl(connection->run->bridge->loop, EPOLL_CTL_MOD, connection->fd, &event);
	connection->watched = wanted;
}

/* False: the other side is gone. */
static bool flush(struct bridge_connection *connection)
{
	while (connection->first) {
		struct iovec parts[AT_ONCE];
		struct msghdr message = {.msg_iov = parts};

		for (struct bridge_output *output = connection->first; output && message.msg_iovlen < AT_ONCE;
		     output = output->next)
			parts[message.msg_iovlen++] =
				(struct iovec){output->bytes + output->sent, output->length - output->sent};
		const ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		for (size_t n = (size_t)sent; n > 0;) {
			struct bridge_output *output = connection->first;
			const size_t part = MIN(n, output->length - output->sent);

			n -= part;
			output->sent += part;
			if (output->sent < output->length)
				break;
			connection->first = output->next;
			if (!connection->first)
				connection->last = &connection->first;
			connection->n_outputs--;
			free(output->bytes);
			free(output);
		}
	}
	return true;
}

void bridge_send(struct bridge_connection *connection, struct buf *frame)
{
	struct bridge_output *output;

	if (connection->fd < 0) {
		buf_clear(frame);
		return;
	}
	output = xcalloc(1, sizeof(*output));
	output->bytes = buf_steal(frame, &output->length);
	*connection->last = output;
	connection->last = &output->next;
	connection->n_outputs++;
	bridge_unsettled(connection);
}

void bridge_unsettled(struct bridge_connection *connection)
{
	connection->unsettled = true;
	connection->run->bridge->unsettled = true;
}

/* The last frame. */
static void end(struct bridge_connection *connection, const char *text)
{
	bridge_fail(connection, -1, &(struct bridge_failure){.kind = "protocol", .text = text});
	connection->ends = true;
}

/* A whole frame is there. */
static void take(struct bridge_connection *connection)
{
	const int64_t began_us = share_clock();
	auto_free char *bytes = steal(&connection->frame);
	struct bridge_frame frame = {.id = -1};
	struct err err = ERR_INIT;
	int result = bridge_frame_parse(bytes, connection->length, &frame, &err);

	connection->got = 0;
	connection->length = 0;
	if (frame.id < 0) {
		end(connection, result < 0 ? err.text : "the frame has no id");
	} else if (frame.id <= connection->last_id) {
		end(connection, "the id was used before: each id of a connection must be larger than the last");
	} else {
		connection->last_id = frame.id;
		if (result < 0)
			bridge_fail(connection, frame.id,
				    &(struct bridge_failure){.kind = "protocol", .text = err.text});
		else
			bridge_asked(connection, &frame);
	}
	bridge_frame_clear(&frame);
	connection->run->report.rests += share_charge(&connection->run->share, began_us);
}

/* Where the next bytes go, and how many at most. */
static char *room_for(struct bridge_connection *connection, size_t *ret_room)
{
	if (connection->got < BRIDGE_HEAD) {
		*ret_room = BRIDGE_HEAD - connection->got;
		return (char *)connection->head + connection->got;
	}
	size_t at = connection->got - BRIDGE_HEAD, room = MIN(connection->length - at, BLOCK - at % BLOCK);

	if (at % BLOCK == 0)
		connection->frame = xrealloc(connection->frame, at + room, 1);
	*ret_room = room;
	return connection->frame + at;
}

static bool reads_on(const struct bridge_connection *connection)
{
	return connection->fd >= 0 && !connection->ends && may_read(connection);
}

/* So many bytes are where room_for said. */
static void took(struct bridge_connection *connection, size_t n)
{
	const int64_t most = connection->run->spec.caps.argument_bytes + BRIDGE_FRAME_EXTRA;
	const bool in_head = connection->got < BRIDGE_HEAD;

	connection->got += n;
	if (connection->got < BRIDGE_HEAD)
		return;
	if (in_head)
		connection->length = bridge_frame_length(connection->head);
	if (connection->length == 0)
		return end(connection, "the frame is empty");
	if (connection->length > most)
		return end(connection, "the frame is larger than the limit");
	if (connection->got == BRIDGE_HEAD + connection->length)
		take(connection);
}

/* What was read ahead, as far as it may be taken now. */
static void consume(struct bridge_connection *connection)
{
	while (connection->ahead_at < connection->ahead_end && reads_on(connection)) {
		size_t room, rest = connection->ahead_end - connection->ahead_at;
		char *to = room_for(connection, &room);

		room = MIN(room, rest);
		memcpy(to, connection->ahead + connection->ahead_at, room);
		connection->ahead_at += room;
		took(connection, room);
	}
}

/* As many bytes as one read has; false: nothing more for now. Large frames are read to where they stay. */
static bool receive(struct bridge_connection *connection)
{
	const bool large = connection->got >= BRIDGE_HEAD &&
			   connection->length - (connection->got - BRIDGE_HEAD) > sizeof(connection->ahead);
	size_t room = sizeof(connection->ahead);
	char *to = large ? room_for(connection, &room) : connection->ahead;
	ssize_t n = recv(connection->fd, to, room, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		bridge_connection_close(connection);
		return false;
	}
	if (large) {
		took(connection, (size_t)n);
	} else {
		connection->ahead_at = 0;
		connection->ahead_end = (size_t)n;
		consume(connection);
	}
	return (size_t)n == room && reads_on(connection);
}

void bridge_settle(struct bridge *bridge)
{
	bridge->unsettled = false;
	for (struct bridge_run *run = bridge->runs; run; run = run->next)
		for (struct bridge_connection *one = run->connections; one; one = one->next) {
			const bool unsettled = one->unsettled && one->fd >= 0;

			one->unsettled = false;
			if (!unsettled)
				continue;
			const int64_t began_us = share_clock();
			const bool there = flush(one);

			share_charge_large(&run->share, began_us);
			if (!there) {
				bridge_connection_close(one);
				continue;
			}
			consume(one);
			bridge_begin_waiting(run);
			bridge_connection_watch(one);
		}
}

static void ready(struct bridge_watch *watch_, uint32_t events)
{
	struct bridge_connection *connection = container_of(watch_, struct bridge_connection, watch);

	if (connection->fd < 0)
		return;
	if ((events & (EPOLLERR | EPOLLHUP)) && !(events & EPOLLIN)) {
		bridge_connection_close(connection);
		return;
	}
	bridge_unsettled(connection); /* what waits to be written, or was not to begin while answers were unread */
	consume(connection);
	/* A few reads, then it is somebody else's turn. */
	for (int i = 0; (events & EPOLLIN) && reads_on(connection) && i < 64 && receive(connection); i++)
		;
}

void bridge_accept(struct bridge_watch *watch_, uint32_t events)
{
	struct bridge_run *run = container_of(watch_, struct bridge_run, watch);

	(void)events; /* before it listens: accept says so */
	while (!run->closed) {
		if (run->n_connections == BRIDGE_CONNECTIONS) {
			run->full = true;
			return;
		}
		int fd = accept4(run->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		struct bridge_connection *connection = xcalloc(1, sizeof(*connection));
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connection->watch};

		*connection = (struct bridge_connection){
			.watch = {.ready = ready},
			.next = run->connections,
			.run = run,
			.fd = fd,
			.number = ++run->connected,
			.last_id = -1,
			.watched = EPOLLIN,
		};
		connection->last = &connection->first;
		run->connections = connection;
		run->n_connections++;
		if (epoll_ctl(run->bridge->loop, EPOLL_CTL_ADD, fd, &event))
			bridge_connection_close(connection);
	}
}
