/*
 * relay_connection.c - what every connection has, in all of its states: its two ends and the bytes that wait there, its
 * deadline, its end and the refusal before it. See relay_internal.h.
 *
 * A connection that is closed stays in its jail's list until the event is over: callers further up may still look at
 * it. A refusal is an answer where the proxy was asked and no tunnel is open yet, else a reset.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "relay_internal.h"

#define ANSWER_MAX  1024
#define FORBIDDEN   "403 Forbidden"
#define BAD_REQUEST "400 Bad Request"
#define BAD_GATEWAY "502 Bad Gateway"

static void answer_ready(struct loop_watch *watch, uint32_t events);

void relay_deadline(struct relay_connection *c, int64_t us_from_now)
{
	struct relay *relay = c->jail->relay;

	c->deadline_us = us_from_now == INT64_MAX ? INT64_MAX : clock_monotonic_us() + us_from_now;
	relay->next_deadline_us = MIN(relay->next_deadline_us, c->deadline_us);
}

void relay_watch(struct relay_connection *c, struct relay_side *side, uint32_t wanted,
		 void (*ready)(struct loop_watch *, uint32_t))
{
	int loop = c->jail->relay->loop;

	if (wanted && side->watch.fd >= 0 && side->watch.ready == ready) {
		loop_change(loop, &side->watch, wanted);
		return;
	}
	loop_remove(loop, &side->watch);
	if (wanted && side->fd >= 0 && loop_add(loop, &side->watch, side->fd, wanted, ready))
		relay_connection_close(c);
}

void relay_send(struct relay_side *side, const char *data, size_t length)
{
	if (!length)
		return;
	side->pending = xrealloc(side->pending, side->n_pending + length, 1);
	memcpy(side->pending + side->n_pending, data, length);
	side->n_pending += length;
}

int relay_flush(struct relay_side *side)
{
	while (side->sent < side->n_pending) {
		ssize_t n = send(side->fd, side->pending + side->sent, side->n_pending - side->sent, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			return 1;
		if (n < 0)
			return -1;
		side->sent += (size_t)n;
	}
	free(side->pending);
	side->pending = NULL;
	side->n_pending = side->sent = 0;
	return 0;
}

/* -------- its end ------------------------------------------------------------------------------------- */
static void close_side(struct relay_connection *c, struct relay_side *side)
{
	const struct linger now = {.l_onoff = 1, .l_linger = 0};

	loop_remove(c->jail->relay->loop, &side->watch);
	if (side->fd < 0)
		return;
	/* Closed at once, or cut off in the middle: the peer must not take it for the end. */
	if (!side->ended || !side->shut)
		setsockopt(side->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(steal_fd(&side->fd));
}

void relay_enter(struct relay_connection *c, enum relay_state state)
{
	if (c->state != RELAY_CLOSED)
		c->state = state;
}

void relay_connection_close(struct relay_connection *c)
{
	if (c->state == RELAY_CLOSED)
		return;
	relay_enter(c, RELAY_CLOSED);
	c->deadline_us = INT64_MAX;
	c->jail->relay->garbage = true;
	if (c->resolver >= 0) {
		/* The resolver still works on the name, and the lookup counts for the jail's share: else a guest that
		 * closes and asks again would have all resolvers. */
		c->jail->relay->resolvers[c->resolver].connection = NULL;
		c->resolver = -1;
	}
	close_side(c, &c->guest);
	close_side(c, &c->remote);
}

void relay_connection_free(struct relay_connection *c)
{
	relay_connection_close(c);
	buf_clear(&c->head);
	buf_clear(&c->forward);
	buf_clear(&c->reply);
	free(c->guest.pending);
	free(c->remote.pending);
	free(c);
}

/* -------- refusals ------------------------------------------------------------------------------------ */
const char *relay_reason_text(unsigned reason)
{
	static const char *const texts[RELAY_REASONS] = {
		[RELAY_NOT_ALLOWED] = "not in network.allow",
		[RELAY_PRIVATE] = "not a public address",
		[RELAY_OWN] = "an address of this host",
		[RELAY_UNKNOWN] = "the name does not resolve",
		[RELAY_UNREACHABLE] = "no answer from the host",
		[RELAY_PROXY] = "the operator's proxy did not connect",
		[RELAY_BYTES] = "the limit of bytes is used up",
		[RELAY_MALFORMED] = "not a request that the proxy serves",
		[RELAY_ANOTHER] = "another host was named inside the connection (TLS server name or HTTP Host)",
		[RELAY_NAMELESS] = "TLS without a server name",
		[RELAY_UNREADABLE] = "TLS or HTTP that names no host which the relay can read",
	};

	return reason < RELAY_REASONS ? texts[reason] : "refused";
}

/* Writes it into the page of the run, once. */
static void deny(struct relay_connection *c, enum relay_reason reason)
{
	struct relay_page *page = c->jail->page;
	uint32_t n = page ? atomic_load(&page->n_denied) : RELAY_DENIED_MAX + 1;

	if (n > RELAY_DENIED_MAX)
		return;
	for (uint32_t i = 0; i < n && i < RELAY_DENIED_MAX; i++)
		if (page->denied[i].reason == reason && page->denied[i].port == c->port &&
		    streq(page->denied[i].host, c->host))
			return;
	if (n < RELAY_DENIED_MAX) {
		page->denied[n].port = c->port;
		page->denied[n].reason = (uint16_t)reason;
		memcpy(page->denied[n].host, c->host, HOST_SIZE);
	}
	atomic_store(&page->n_denied, n + 1);
}

void relay_refuse(struct relay_connection *c, enum relay_reason reason)
{
	const bool unreached = reason == RELAY_UNKNOWN || reason == RELAY_UNREACHABLE || reason == RELAY_PROXY;
	auto_buf struct buf answer = {0};

	deny(c, reason);
	if (c->kind == RELAY_TUNNEL || c->state == RELAY_OPEN || c->state == RELAY_CLOSED) {
		relay_connection_close(c);
		return;
	}
	auto_free char *text = xasprintf("sallyport: %s:%u: %s\n", c->host, c->port, relay_reason_text(reason));
	buf_init(&answer, ANSWER_MAX);
	buf_printf(&answer,
		   "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
		   reason == RELAY_MALFORMED ? BAD_REQUEST : unreached ? BAD_GATEWAY : FORBIDDEN, strlen(text), text);
	relay_send(&c->guest, answer.data, answer.length);
	loop_remove(c->jail->relay->loop, &c->remote.watch);
	fd_close(&c->remote.fd);
	relay_enter(c, RELAY_ANSWERING);
	relay_deadline(c, RELAY_ANSWER_US);
	relay_watch(c, &c->guest, EPOLLOUT, answer_ready);
}

/* What the guest still sends is read and forgotten until it closes: closing with unread bytes would take the answer
 * back. */
static void answer_ready(struct loop_watch *watch, uint32_t events)
{
	struct relay_connection *c = container_of(watch, struct relay_connection, guest.watch);
	char data[4096];
	int left = relay_flush(&c->guest);

	(void)events;
	if (left > 0)
		return;
	if (!left && !c->guest.shut) {
		c->guest.shut = true;
		left = shutdown(c->guest.fd, SHUT_WR);
	}
	ssize_t n = left ? 0 : recv(c->guest.fd, data, sizeof(data), 0);
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		c->guest.ended = true;
		relay_connection_close(c);
		return;
	}
	relay_watch(c, &c->guest, EPOLLIN, answer_ready);
}
