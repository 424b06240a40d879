/*
 * relay_dial.c - a connection until it is open: what the guest asks of the proxy, is it allowed, what is its address,
 * may that be dialled, who answers there. See relay_internal.h.
 *
 * What is dialled is the address that was checked: the name is resolved once. The operator's own proxy gets that
 * address, too (unless network.proxy_resolves says that it wants names); the proxy's own address is the operator's
 * business and is not checked.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "lib/base/util.h"
#include "relay_internal.h"

#define PROXY_OK 2 /* status 2xx */

static const struct egress *egress_of(const struct relay_connection *c)
{
	return c->jail->relay->egress;
}

static socklen_t length_of(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static void resolve(struct relay_connection *c, bool to_proxy)
{
	relay_enter(c, RELAY_RESOLVING);
	c->to_proxy = to_proxy;
	c->jail->relay->waiting = true;
	relay_deadline(c, INT64_MAX); /* the resolver has its own */
}

/* Its rule, host and port are set. */
static void begin(struct relay_connection *c)
{
	const struct egress *egress = egress_of(c);

	relay_watch(c, &c->guest, 0, NULL);
	resolve(c, egress->proxy.port && egress->config->network.proxy_resolves);
}

/* An address that this host itself has: the kernel would speak to it from the same. Connecting a datagram socket sends
 * nothing. */
static bool is_own(const struct sockaddr_storage *address)
{
	auto_close int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage here = {.ss_family = 0};
	socklen_t length = sizeof(here);
	char own[HOST_SIZE], peer[HOST_SIZE];

	/* No way there: dialling will find out. */
	if (fd < 0 || connect(fd, (const struct sockaddr *)address, length_of(address)))
		return false;
	if (getsockname(fd, (struct sockaddr *)&here, &length))
		return true;
	host_print((struct sockaddr *)&here, own);
	host_print((const struct sockaddr *)address, peer);
	return streq(own, peer);
}

static void greet_proxy(struct relay_connection *c)
{
	const struct egress *egress = egress_of(c);
	auto_buf struct buf text = {0};
	char host[HOST_SIZE];

	snprintf(host, sizeof(host), "%s", c->host);
	if (!egress->config->network.proxy_resolves)
		host_print((struct sockaddr *)&c->checked, host);
	bool brackets = strchr(host, ':') != NULL;
	auto_free char *target = xasprintf("%s%s%s:%u", brackets ? "[" : "", host, brackets ? "]" : "", c->port);
	buf_init(&text, RELAY_HEAD_MAX);
	buf_printf(&text, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", target, target);
	if (egress->proxy.credentials) {
		buf_puts(&text, "Proxy-Authorization: Basic ");
		base64_encode(&text, egress->proxy.credentials, egress->proxy.n_credentials);
		buf_puts(&text, "\r\n");
	}
	buf_puts(&text, "\r\n");
	relay_send(&c->remote, text.data, text.length);
}

static void proxy_ready(struct loop_watch *watch, uint32_t events)
{
	struct relay_connection *c = container_of(watch, struct relay_connection, remote.watch);
	char data[RELAY_HEAD_MAX];

	(void)events;
	/* No more than the head: what comes behind it is the guest's, and read when the tunnel is open. */
	ssize_t n = recv(c->remote.fd, data, sizeof(data) - c->head.length, MSG_PEEK);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0) {
		size_t before = c->head.length;

		buf_add(&c->head, data, (size_t)n);
		size_t length = relay_http_head(c->head.data, c->head.length);
		size_t used = length ? length - before : (size_t)n;

		if (recv(c->remote.fd, data, used, 0) != (ssize_t)used)
			n = -1;
		else if (length && relay_http_status(c->head.data, length) / 100 == PROXY_OK)
			return relay_tunnel_open(c);
		else if (!length && c->head.length < RELAY_HEAD_MAX)
			return;
	}
	relay_refuse(c, RELAY_PROXY);
}

static void close_remote(struct relay_connection *c)
{
	relay_watch(c, &c->remote, 0, NULL);
	close(c->remote.fd);
	c->remote.fd = -1;
}

static void dial_next(struct relay_connection *c);

static void dialled(struct loop_watch *watch, uint32_t events)
{
	struct relay_connection *c = container_of(watch, struct relay_connection, remote.watch);
	int error = 0;
	socklen_t size = sizeof(error);

	(void)events;
	if (getsockopt(c->remote.fd, SOL_SOCKET, SO_ERROR, &error, &size) || error) {
		c->last = c->to_proxy ? RELAY_PROXY : RELAY_UNREACHABLE;
		close_remote(c);
		dial_next(c);
		return;
	}
	if (!c->to_proxy) {
		relay_tunnel_open(c);
		return;
	}
	relay_enter(c, RELAY_GREETING);
	buf_reset(&c->head);
	relay_deadline(c, RELAY_HEAD_US);
	greet_proxy(c);
	if (relay_flush(&c->remote) != 0) /* a new connection takes a few hundred bytes */
		relay_refuse(c, RELAY_PROXY);
	else
		relay_watch(c, &c->remote, EPOLLIN, proxy_ready);
}

/* 0: under way or done; -1: not this one. */
static int dial(struct relay_connection *c, const struct sockaddr_storage *address)
{
	const int one = 1, bytes = RELAY_SOCKET_BYTES;
	int family = address->ss_family;

	c->remote.fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->remote.fd < 0)
		return -1;
	setsockopt(c->remote.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(c->remote.fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(c->remote.fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (connect(c->remote.fd, (const struct sockaddr *)address, length_of(address)) == 0 || errno == EINPROGRESS) {
		relay_watch(c, &c->remote, EPOLLOUT, dialled);
		return 0;
	}
	close(c->remote.fd);
	c->remote.fd = -1;
	return -1;
}

static void dial_next(struct relay_connection *c)
{
	while (c->next_address < c->n_addresses) {
		const struct sockaddr_storage *address = &c->addresses[c->next_address++];

		if (!c->to_proxy && !c->rule->host.is_private) {
			const bool public = host_public((const struct sockaddr *)address);

			c->last = public ? RELAY_OWN : RELAY_PRIVATE;
			if (!public || is_own(address))
				continue;
		}
		if (!c->to_proxy && egress_of(c)->proxy.port) {
			c->checked = *address;
			resolve(c, true);
			return;
		}
		relay_enter(c, RELAY_DIALLING);
		relay_deadline(c, RELAY_DIAL_US);
		if (dial(c, address) == 0)
			return;
		c->last = c->to_proxy ? RELAY_PROXY : RELAY_UNREACHABLE;
	}
	relay_refuse(c, c->last);
}

void relay_dial_resolved(struct relay_connection *c, const struct sockaddr_storage *addresses, size_t n)
{
	c->n_addresses = n;
	c->next_address = 0;
	c->last = c->to_proxy ? RELAY_PROXY : RELAY_UNKNOWN;
	memcpy(c->addresses, addresses, n * sizeof(*addresses));
	dial_next(c);
}

/* -------- from the guest ------------------------------------------------------------------------------- */
static void head_ready(struct loop_watch *watch, uint32_t events)
{
	struct relay_connection *c = container_of(watch, struct relay_connection, guest.watch);
	struct relay_request request;
	char data[RELAY_HEAD_MAX];
	ssize_t n = recv(c->guest.fd, data, sizeof(data) - c->head.length, 0);

	(void)events;
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		relay_connection_close(c);
		return;
	}
	buf_add(&c->head, data, (size_t)n);
	size_t head = relay_http_head(c->head.data, c->head.length);
	if (!head && c->head.length < RELAY_HEAD_MAX)
		return;
	if (!head || relay_http_parse(c->head.data, head, &request, &c->forward) < 0) {
		relay_refuse(c, RELAY_MALFORMED);
		return;
	}
	memcpy(c->host, request.host, HOST_SIZE);
	c->port = request.port;
	c->kind = request.connect ? RELAY_CONNECT : RELAY_FORWARD;
	c->rule = egress_match(c->jail->relay->egress, c->host, request.kind, c->port);
	c->body_left = request.body;
	/* What came behind the head, as far as it is of this request. */
	buf_add(&c->forward, c->head.data + head, relay_part_of_request(c, c->head.length - head));
	if (c->rule)
		begin(c);
	else
		relay_refuse(c, RELAY_NOT_ALLOWED);
}

struct relay_connection *relay_connection_new(struct relay_jail *jail, int fd, uint16_t rule)
{
	const struct egress *egress = jail->relay->egress;
	struct relay_connection *c = xcalloc(1, sizeof(*c));
	const int bytes = RELAY_SOCKET_BYTES;

	*c = (struct relay_connection){
		.next = jail->connections,
		.jail = jail,
		.guest = {.fd = fd, .watch = LOOP_WATCH_INIT},
		.remote = {.fd = -1, .watch = LOOP_WATCH_INIT},
		.resolver = -1,
		.deadline_us = INT64_MAX,
	};
	jail->connections = c;
	jail->n_connections++;
	buf_init(&c->head, RELAY_HEAD_MAX);
	buf_init(&c->forward, 2 * RELAY_HEAD_MAX);
	buf_init(&c->reply, RELAY_REPLY_MAX);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (rule < egress->n_rules) {
		c->kind = RELAY_TUNNEL;
		c->rule = &egress->rules[rule];
		c->port = c->rule->host.port;
		memcpy(c->host, c->rule->host.host, HOST_SIZE);
		begin(c);
	} else {
		relay_deadline(c, RELAY_HEAD_US);
		relay_watch(c, &c->guest, EPOLLIN, head_ready);
	}
	return c;
}

void relay_connection_late(struct relay_connection *c)
{
	relay_deadline(c, INT64_MAX);
	if (c->state == RELAY_DIALLING) {
		c->last = c->to_proxy ? RELAY_PROXY : RELAY_UNREACHABLE;
		close_remote(c);
		dial_next(c);
	} else if (c->state == RELAY_READING) {
		relay_refuse(c, RELAY_MALFORMED);
	} else if (c->state == RELAY_GREETING) {
		relay_refuse(c, RELAY_PROXY);
	} else if (c->state == RELAY_OPEN) {
		relay_refuse(c, RELAY_UNREADABLE);
	} else {
		relay_connection_close(c);
	}
}
