/*
 * relay_tunnel.c - an open connection: the bytes in both directions. See relay_internal.h.
 *
 * In a tunnel the guest's first bytes are held until it is known whom they name (relay_inside.h), and those behind a
 * ClientHello until the server has said whether it wants another one: the name in that could be another. Bytes are read
 * at one end only when nothing waits for the other: at most RELAY_CHUNK is ever held here for a direction, and a slow
 * reader slows the sender down by its own socket. The end of one direction is passed on as such (half-close).
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/base/util.h"
#include "relay_internal.h"

size_t relay_part_of_request(struct relay_connection *c, size_t n)
{
	if (c->kind != RELAY_FORWARD)
		return n;
	size_t part = (size_t)MIN((int64_t)n, c->body_left);
	c->body_left -= (int64_t)part;
	return part;
}

static void update(struct relay_connection *c);

static bool within_limit(struct relay_connection *c, bool from_guest, size_t n)
{
	struct relay_page *page = c->jail->page;
	int64_t most = c->jail->relay->egress->config->network.mb << 20;

	if (!page)
		return false;
	int64_t in = atomic_fetch_add(&page->bytes_in, from_guest ? 0 : (int64_t)n);
	int64_t out = atomic_fetch_add(&page->bytes_out, from_guest ? (int64_t)n : 0);
	return most == 0 || in + out + (int64_t)n <= most;
}

/* What the guest sends is kept until it names a host, and passed on as far as relay_inside allows. */
static void look_once(struct relay_connection *c)
{
	static const enum relay_reason reasons[] = {
		[RELAY_INSIDE_ANOTHER] = RELAY_ANOTHER,
		[RELAY_INSIDE_NAMELESS] = RELAY_NAMELESS,
		[RELAY_INSIDE_UNREADABLE] = RELAY_UNREADABLE,
	};
	static const enum relay_inside_place places[] = {
		[RELAY_LOOK_FIRST] = RELAY_PLACE_FIRST,
		[RELAY_LOOK_AGAIN] = RELAY_PLACE_AGAIN,
		[RELAY_LOOK_WORD] = RELAY_PLACE_WORD,
		[RELAY_LOOK_SECOND] = RELAY_PLACE_SECOND,
	};
	static const enum relay_look next[] = {
		[RELAY_INSIDE_FINE] = RELAY_LOOK_OFF,
		[RELAY_INSIDE_HELLO] = RELAY_LOOK_REPLY,
		[RELAY_INSIDE_REQUEST] = RELAY_LOOK_AGAIN,
		[RELAY_INSIDE_WORD] = RELAY_LOOK_WORD,
	};
	const struct relay_inside_rule rule = {c->host, c->rule->host.below, places[c->look]};
	auto_buf struct buf forward = {0};
	size_t used = 0;

	buf_init(&forward, 2 * RELAY_INSIDE_MAX);
	enum relay_inside inside = relay_inside(&rule, c->head.data, c->head.length, &forward, &used);
	if (inside > RELAY_INSIDE_WORD) {
		relay_refuse(c, reasons[inside]);
		return;
	}
	relay_send(&c->remote, forward.data + c->passed, forward.length - c->passed);
	c->passed = inside == RELAY_INSIDE_MORE ? forward.length : 0;
	if (inside != RELAY_INSIDE_MORE)
		c->look = next[inside];
	if (used > 0) {
		relay_deadline(c, INT64_MAX); /* the next one has its own */
		c->head.length -= used;
		memmove(c->head.data, c->head.data + used, c->head.length);
	}
}

static void look_inside(struct relay_connection *c, const char *data, size_t length)
{
	size_t before = SIZE_MAX;

	buf_add(&c->head, data, length);
	while (c->state != RELAY_CLOSED && c->look != RELAY_LOOK_OFF && c->look != RELAY_LOOK_REPLY &&
	       c->head.length > 0 && c->head.length < before) {
		before = c->head.length;
		look_once(c);
	}
	if (c->state == RELAY_CLOSED)
		return;
	if (c->look == RELAY_LOOK_OFF)
		buf_clear(&c->head);
	if (c->head.length == c->passed)
		relay_deadline(c, INT64_MAX);
	else if (c->deadline_us == INT64_MAX)
		relay_deadline(c, RELAY_HEAD_US);
	if (relay_flush(&c->remote) < 0)
		relay_connection_close(c);
}

/* Writes as much as goes; what is left waits at that side. Bytes are looked at, if at all, only for the length of a
 * request or a reply. */
static void pass_on(struct relay_connection *c, bool guest, struct relay_side *to, const char *data, size_t n)
{
	if (c->look == RELAY_LOOK_REPLY) {
		buf_add(&c->reply, data, MIN(n, RELAY_REPLY_MAX - c->reply.length));
		enum relay_reply reply = relay_hello_reply(c->reply.data, c->reply.length);

		if (reply != RELAY_REPLY_MORE) {
			c->look = reply == RELAY_REPLY_AGAIN ? RELAY_LOOK_SECOND : RELAY_LOOK_OFF;
			if (c->look == RELAY_LOOK_OFF)
				relay_send(&c->remote, c->head.data, c->head.length);
			look_inside(c, "", 0);
		}
	}
	size_t length = guest ? relay_part_of_request(c, n) : n;
	if (c->state == RELAY_CLOSED || length == 0)
		return;
	ssize_t sent = send(to->fd, data, length, MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN)
		relay_connection_close(c);
	else if (sent < (ssize_t)length)
		relay_send(to, data + MAX(sent, 0), length - (size_t)MAX(sent, 0));
}

/* One read, and as much writing as goes. */
static void pump(struct relay_connection *c, struct relay_side *from, struct relay_side *to)
{
	static char chunk[RELAY_CHUNK];
	bool look = c->look != RELAY_LOOK_OFF && from == &c->guest;
	ssize_t n = recv(from->fd, chunk, look ? RELAY_INSIDE_MAX - c->head.length : sizeof(chunk), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0) {
		relay_connection_close(c);
	} else if (n == 0 && look && c->head.length > c->passed) {
		relay_refuse(c, RELAY_UNREADABLE); /* some servers take the end for the end of the head */
	} else if (n == 0) {
		from->ended = true;
	} else if (!within_limit(c, from == &c->guest, (size_t)n)) {
		relay_refuse(c, RELAY_BYTES);
	} else if (look) {
		look_inside(c, chunk, (size_t)n);
	} else {
		pass_on(c, from == &c->guest, to, chunk, (size_t)n);
	}
}

static void side_ready(struct relay_connection *c, struct relay_side *side, struct relay_side *other, uint32_t events)
{
	if (events & (EPOLLOUT | EPOLLERR) && relay_flush(side) < 0)
		relay_connection_close(c);
	if (c->state != RELAY_CLOSED && side->watch.events & EPOLLIN && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		pump(c, side, other);
	if (c->state != RELAY_CLOSED)
		update(c);
}

static void guest_ready(struct loop_watch *watch, uint32_t events)
{
	struct relay_connection *c = container_of(watch, struct relay_connection, guest.watch);

	side_ready(c, &c->guest, &c->remote, events);
}

static void remote_ready(struct loop_watch *watch, uint32_t events)
{
	struct relay_connection *c = container_of(watch, struct relay_connection, remote.watch);

	side_ready(c, &c->remote, &c->guest, events);
}

static void pass_end_on(struct relay_side *from, struct relay_side *to)
{
	if (from->ended && !to->n_pending && !to->shut) {
		to->shut = true;
		shutdown(to->fd, SHUT_WR);
	}
}

/* Waits at both ends for what can be done next. */
static void update(struct relay_connection *c)
{
	struct relay_side *guest = &c->guest, *remote = &c->remote;

	pass_end_on(guest, remote);
	pass_end_on(remote, guest);
	if (guest->shut && remote->shut) {
		relay_connection_close(c);
		return;
	}
	bool full = c->look != RELAY_LOOK_OFF && c->head.length == RELAY_INSIDE_MAX;
	uint32_t from_guest = !guest->ended && !remote->n_pending && !full ? EPOLLIN : 0;
	uint32_t from_remote = !remote->ended && !guest->n_pending ? EPOLLIN : 0;
	relay_watch(c, guest, from_guest | (guest->n_pending ? EPOLLOUT : 0), guest_ready);
	if (c->state != RELAY_CLOSED)
		relay_watch(c, remote, from_remote | (remote->n_pending ? EPOLLOUT : 0), remote_ready);
}

void relay_tunnel_open(struct relay_connection *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";

	relay_enter(c, RELAY_OPEN);
	relay_deadline(c, INT64_MAX);
	if (c->jail->page)
		atomic_fetch_add(&c->jail->page->connections, 1);
	if (c->kind == RELAY_CONNECT)
		relay_send(&c->guest, established, strlen(established));
	/* In a tunnel. An entry that is an address has no name to compare with. */
	if (c->kind != RELAY_FORWARD && !c->rule->host.address)
		c->look = RELAY_LOOK_FIRST;
	buf_clear(&c->head);
	buf_init(&c->head, RELAY_INSIDE_MAX);
	if (c->forward.length && !within_limit(c, true, c->forward.length)) {
		relay_refuse(c, RELAY_BYTES);
		return;
	}
	if (c->look != RELAY_LOOK_OFF && c->forward.length)
		look_inside(c, c->forward.data, c->forward.length);
	else
		relay_send(&c->remote, c->forward.data, c->forward.length);
	if (c->state == RELAY_CLOSED)
		return;
	buf_clear(&c->forward);
	if (relay_flush(&c->guest) < 0 || relay_flush(&c->remote) < 0)
		relay_connection_close(c);
	else
		update(c);
}
