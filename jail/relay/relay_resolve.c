/*
 * relay_resolve.c - names become addresses, by getaddrinfo in processes of their own: it blocks, and it reads files and
 * answers of name servers with code that the relay must not have inside. See relay_internal.h.
 *
 * A name that a guest chose (below "*.domain") is asked for with a dot at the end: no search domain of this host is
 * tried on it, and no line of /etc/hosts means it. Names that are not on the list are never asked for: a query would be
 * a way out.
 */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/util.h"
#include "relay_internal.h"

#define RESOLVER_OPTIONS "timeout:3 attempts:2" /* a guest waits */

static void resolver_main(int socket)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	struct relay_question question;

	prctl(PR_SET_NAME, "relay-resolver", 0, 0, 0);
	if (setenv("RES_OPTIONS", RESOLVER_OPTIONS, 0) || relay_seccomp(true))
		return;
	while (recv(socket, &question, sizeof(question), 0) == (ssize_t)sizeof(question)) {
		struct relay_answer answer = {.n = 0};
		struct addrinfo *list = NULL;
		char port[8];

		question.name[sizeof(question.name) - 1] = '\0';
		snprintf(port, sizeof(port), "%u", question.port);
		if (getaddrinfo(question.name, port, &hints, &list))
			list = NULL;
		for (const struct addrinfo *one = list; one && answer.n < RELAY_ADDRESSES_MAX; one = one->ai_next)
			if (one->ai_addrlen <= sizeof(answer.addresses[0]))
				memcpy(&answer.addresses[answer.n++], one->ai_addr, one->ai_addrlen);
		if (list)
			freeaddrinfo(list);
		if (send(socket, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			return;
	}
}

static void answer_ready(struct loop_watch *watch, uint32_t events)
{
	struct relay_resolver *resolver = container_of(watch, struct relay_resolver, watch);
	struct relay_connection *c = resolver->connection;
	struct relay_answer answer;

	(void)events;
	if (recv(resolver->fd, &answer, sizeof(answer), MSG_DONTWAIT) != (ssize_t)sizeof(answer) ||
	    answer.n > RELAY_ADDRESSES_MAX)
		_exit(1); /* without names there is no relay: the monitor starts another */
	resolver->busy = false;
	resolver->connection = NULL;
	if (resolver->jail)
		resolver->jail->lookups--;
	resolver->jail = NULL;
	resolver->relay->waiting = true;
	if (!c)
		return;
	c->resolver = -1;
	relay_dial_resolved(c, answer.addresses, answer.n);
}

int relay_resolvers_start(struct relay *relay)
{
	for (int i = 0; i < RELAY_RESOLVERS; i++) {
		struct relay_resolver *resolver = &relay->resolvers[i];
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
			return -1;
		pid_t pid = fork();
		if (pid < 0)
			return -1;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
			close(pair[0]);
			close(relay->loop);
			close(relay->control_fd);
			for (int k = 0; k < i; k++)
				close(relay->resolvers[k].fd);
			resolver_main(pair[1]);
			_exit(1);
		}
		close(pair[1]);
		*resolver = (struct relay_resolver){.relay = relay, .watch = LOOP_WATCH_INIT, .fd = pair[0]};
		if (loop_add(relay->loop, &resolver->watch, pair[0], EPOLLIN, answer_ready))
			return -1;
	}
	return 0;
}

/* The first that waits, of the jail that has the fewest lookups under way. */
static struct relay_connection *next_waiting(const struct relay *relay)
{
	struct relay_connection *next = NULL;

	for (const struct relay_jail *jail = relay->jails; jail; jail = jail->next) {
		struct relay_connection *c = jail->lookups < RELAY_LOOKUPS_PER_JAIL ? jail->connections : NULL;

		while (c && (c->state != RELAY_RESOLVING || c->resolver >= 0))
			c = c->next;
		if (c && (!next || jail->lookups < next->jail->lookups))
			next = c;
	}
	return next;
}

void relay_resolvers_feed(struct relay *relay)
{
	const struct config_proxy *proxy = &relay->egress->proxy;

	for (int i = 0; i < RELAY_RESOLVERS && relay->waiting; i++) {
		struct relay_resolver *resolver = &relay->resolvers[i];
		struct relay_connection *c = resolver->busy ? NULL : next_waiting(relay);

		if (!c)
			continue;
		struct relay_question question = {.port = c->to_proxy ? proxy->port : c->port};
		snprintf(question.name, sizeof(question.name), "%s%s", c->to_proxy ? proxy->host : c->host,
			 !c->to_proxy && c->rule->host.below ? "." : "");
		if (send(resolver->fd, &question, sizeof(question), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			_exit(1);
		resolver->busy = true;
		resolver->connection = c;
		resolver->jail = c->jail;
		c->resolver = i;
		c->jail->lookups++;
	}
	relay->waiting = false; /* until another connection waits, or a resolver or its jail's share is free again */
}

void relay_resolvers_leave(const struct relay_jail *jail)
{
	for (int i = 0; i < RELAY_RESOLVERS; i++)
		if (jail->relay->resolvers[i].jail == jail)
			jail->relay->resolvers[i].jail = NULL;
}
