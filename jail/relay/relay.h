/*
 * relay.h - the egress relay: the one process through which jails with network reach anything, and how the jailer
 * speaks to it.
 *
 * Processes, all outside of the jailer's namespaces, in the host's network, as an id of their own (root: one that
 * neither the jailer nor a guest has; else: the user):
 *
 *     jailer --- monitor            starts a relay, and another one when it died; hands its socket to the jailer;
 *                                  touches nothing else
 *                  +-- relay       one epoll loop; may do nothing but read, write, accept and connect
 *                       |          (seccomp_relay.c): no file can be opened, no process made; knows allowlist and
 *                       |          limits, trusts neither guest nor server
 *                       +-- resolvers   getaddrinfo, one name at a time; no part of a guest's traffic is ever here
 *
 * A jail's listeners are sockets of the jail's own network namespace, made by the jailer and handed over, so a guest
 * reaches the relay without any interface between the two. For each jail there is a liveness socket, a socket pair:
 * what the jailer says about the jail goes over it, and when either end closes, everything of the jail is closed, or
 * the jailer knows that the relay is gone.
 *
 * Counters are in memory that the two share, one page a run: the jailer reads it at the end without asking anybody. The
 * jailer never waits for the relay, and believes nothing that it reads there beyond its type.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "egress.h"
#include "jail/base/identity.h"
#include "jail/client/wire_fd.h"

#define RELAY_DENIED_MAX  32 /* different refusals of one run that are reported */
#define RELAY_LISTENS_MAX WIRE_FD_LIMIT

/* Why a guest was refused. The texts are shown: relay_reason_text. */
enum relay_reason {
	RELAY_NOT_ALLOWED, /* no entry of network.allow */
	RELAY_PRIVATE,     /* the name means an address that is not public */
	RELAY_OWN,         /* … that is this host's own */
	RELAY_UNKNOWN,     /* the name does not resolve */
	RELAY_UNREACHABLE, /* no answer from there */
	RELAY_PROXY,       /* the operator's proxy did not connect */
	RELAY_BYTES,       /* the limit of bytes is used up */
	RELAY_MALFORMED,   /* no request that the proxy serves */
	RELAY_ANOTHER,     /* inside the connection another host is named (relay_inside.h) */
	RELAY_NAMELESS,    /* … none, by TLS */
	RELAY_UNREADABLE,  /* … none that can be read */
	RELAY_REASONS
};
const char *relay_reason_text(unsigned reason);

struct relay_denied {
	char host[HOST_SIZE]; /* as the guest named it, normalised; "" where it could not be read */
	uint16_t port;
	uint16_t reason;
};
struct relay_page {
	_Atomic int64_t connections;         /* that were made */
	_Atomic int64_t bytes_in, bytes_out; /* to the guest, from the guest */
	_Atomic uint32_t n_denied;           /* above RELAY_DENIED_MAX: the rest is not reported */
	struct relay_denied denied[RELAY_DENIED_MAX];
};

/* Over the relay's socket: a new jail, with its liveness socket as descriptor. Over a liveness socket: the rest. */
enum relay_verb {
	RELAY_JAIL = 1,
	RELAY_LISTEN, /* n listeners as descriptors; rule[i]: the entry it is for, RELAY_IS_PROXY: the proxy */
	RELAY_RUN,    /* a run begins: its page as descriptor, for what happens from now on */
	RELAY_END,    /* nothing runs any more: what is open is closed at once */
};
#define RELAY_IS_PROXY UINT16_MAX
struct relay_order {
	enum relay_verb verb;
	uint32_t n;
	uint16_t rule[RELAY_LISTENS_MAX];
};

/* Forks the monitor, which has a copy of `egress`. *ret_monitor: later relays come from there as descriptors
 * (relay_receive), and its closing ends them all; *ret_relay: the first relay's socket. Call it before the jailer
 * leaves the host's namespaces. */
int relay_start(const struct egress *egress, const struct identity *identity, int *ret_monitor, int *ret_relay,
		struct err *err);
/* The socket of the relay that replaced one; -1: nothing there (EAGAIN) or the monitor is gone. */
int relay_receive(int monitor);
