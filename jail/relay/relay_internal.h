/*
 * relay_internal.h - what the files of the relay share. Each calls only those before it: relay_connection.c (what every
 * connection has), relay_tunnel.c (an open one), relay_dial.c (its way there), relay_resolve.c (names), relay.c
 * (processes, jails).
 *
 * The states of a connection. "Refused" is ANSWERING where the proxy was asked, CLOSED (a reset) for a tunnel or once
 * it was OPEN; any state becomes CLOSED when an end or the jail is gone. relay_enter() is the only function that
 * changes it.
 *
 *     state      event                             next
 *     READING    the request is allowed            RESOLVING
 *                it is not, malformed, late        refused
 *     RESOLVING  addresses                         DIALLING (RESOLVING once more: the operator's proxy)
 *                none                              refused
 *     DIALLING   connected                         OPEN (GREETING: to the operator's proxy)
 *                not, or late                      DIALLING the next address; refused after the last one
 *     GREETING   the proxy's answer is 2xx         OPEN
 *                another answer, or late           refused
 *     OPEN       both directions ended             CLOSED
 *                too many bytes, wrong name, late  refused
 *     ANSWERING  the guest closed, or late         CLOSED
 *
 * While it is OPEN, the guest's bytes are looked at (relay_inside.h) before they are passed on:
 *
 *     look       what was found there              next
 *     FIRST      REQUEST                           AGAIN
 *     AGAIN      REQUEST                           AGAIN
 *     FIRST      WORD                              WORD
 *     WORD       WORD                              WORD
 *     FIRST      HELLO                             REPLY
 *     REPLY      the server asks for another one   SECOND
 *                any other answer                  OFF
 *     all        MORE                              the same
 *     all        FINE                              OFF
 */
#pragma once

#include <stdbool.h>

#include "jail/base/loop.h"
#include "relay.h"
#include "relay_hello.h"
#include "relay_http.h"
#include "relay_inside.h"

#define RELAY_RESOLVERS        8
#define RELAY_LOOKUPS_PER_JAIL 2 /* so that one jail's slow names do not stop the others */
#define RELAY_ADDRESSES_MAX    8
#define RELAY_CHUNK            65536        /* read at once */
#define RELAY_SOCKET_BYTES     (128 * 1024) /* the kernel's buffers, each way and side: bounds a connection's memory */
#define RELAY_DIAL_US          (10 * 1000000) /* for one address */
#define RELAY_HEAD_US          (30 * 1000000) /* for a guest's request or the proxy's answer */
#define RELAY_ANSWER_US        (2 * 1000000)  /* until a guest has read a refusal */

enum relay_state {
	RELAY_READING,   /* the head of a proxy request */
	RELAY_RESOLVING, /* waits for a resolver, or for its answer */
	RELAY_DIALLING,
	RELAY_GREETING, /* asked the operator's proxy for a tunnel */
	RELAY_OPEN,
	RELAY_ANSWERING, /* a refusal is on its way to the guest */
	RELAY_CLOSED,    /* freed by relay_tick */
};
enum relay_kind {
	RELAY_FORWARD, /* the proxy was asked for a URL; also before it was asked */
	RELAY_CONNECT, /* the proxy was asked for a tunnel */
	RELAY_TUNNEL,  /* a listener of its own */
};
enum relay_look {
	RELAY_LOOK_OFF,   /* all bytes are passed on */
	RELAY_LOOK_FIRST, /* the guest has named no host yet */
	RELAY_LOOK_AGAIN, /* … it has sent a request, and may send another one */
	RELAY_LOOK_WORD,  /* … it is in the middle of one word */
	RELAY_LOOK_REPLY, /* … it has sent a ClientHello: what comes behind waits in `head` until the server answers */
	RELAY_LOOK_SECOND, /* … the server has asked for another one */
};

/* One end of a connection. What could not be written waits in `pending`, and until it is gone nothing is read at the
 * other end. */
struct relay_side {
	int fd; /* -1: none */
	struct loop_watch watch;
	char *pending;
	size_t n_pending, sent;
	bool ended; /* nothing more will be read here */
	bool shut;  /* the other side's end was passed on */
};

struct relay_jail;
struct relay_connection {
	struct relay_connection *next;
	struct relay_jail *jail;
	enum relay_state state;
	const struct egress_rule *rule; /* NULL: the proxy was not asked yet */
	struct relay_side guest, remote;
	char host[HOST_SIZE];
	uint16_t port;
	enum relay_kind kind;
	enum relay_look look;
	struct buf head;    /* READING: from the guest; GREETING: from the proxy; looked at: from the guest */
	size_t passed;      /* of `head` this much went on already */
	struct buf reply;   /* LOOK_REPLY: from the remote */
	int64_t body_left;  /* FORWARD: how many of the guest's bytes may be passed on; the rest is another request */
	struct buf forward; /* for the remote, as soon as there is one */
	bool to_proxy;      /* what is resolved and dialled is the operator's proxy */
	struct sockaddr_storage addresses[RELAY_ADDRESSES_MAX];
	size_t n_addresses, next_address;
	struct sockaddr_storage checked; /* the target's address that a proxy gets */
	enum relay_reason last;          /* what the addresses before failed for */
	int resolver;                    /* that works for it, -1 */
	int64_t deadline_us;             /* INT64_MAX: none */
};

struct relay_listener {
	struct loop_watch watch;
	struct relay_jail *jail;
	int fd;
	uint16_t rule;
};

struct relay;
struct relay_jail {
	struct relay_jail *next;
	struct relay *relay;
	struct loop_watch liveness;
	int liveness_fd;
	struct relay_listener **listeners;
	size_t n_listeners;
	struct relay_connection *connections;
	int64_t n_connections;
	unsigned lookups;
	bool paused; /* as many connections as it may have: its listeners are not watched */
	bool gone;
	struct relay_page *page; /* NULL: no run is under way */
};

struct relay_resolver {
	struct relay *relay;
	struct loop_watch watch;
	int fd;
	struct relay_connection *connection; /* NULL: idle, or the asker is gone */
	struct relay_jail *jail;             /* in whose share it works; NULL: idle, or the jail is gone */
	bool busy;
};

struct relay {
	int loop;
	const struct egress *egress;
	struct loop_watch control;
	int control_fd;
	struct relay_jail *jails;
	struct relay_resolver resolvers[RELAY_RESOLVERS];
	bool waiting;             /* perhaps a resolver has something to do */
	bool garbage;             /* perhaps something is to be freed */
	int64_t next_deadline_us; /* no connection's is earlier */
	bool starved;             /* out of descriptors or memory: nothing is accepted until something was closed */
	bool stop;
};

/* --- relay_connection.c */
void relay_enter(struct relay_connection *c, enum relay_state state); /* CLOSED stays */
void relay_deadline(struct relay_connection *c, int64_t us_from_now); /* INT64_MAX: none */
/* Changes what is waited for; wanted 0: nothing, not even a hang-up. */
void relay_watch(struct relay_connection *c, struct relay_side *side, uint32_t wanted,
		 void (*ready)(struct loop_watch *, uint32_t));
/* Queues bytes for a side. */
void relay_send(struct relay_side *side, const char *data, size_t length);
/* Writes what is pending: 0 all gone, 1 the rest waits, -1 the peer is gone. */
int relay_flush(struct relay_side *side);
void relay_refuse(struct relay_connection *c, enum relay_reason reason); /* reports it to page and guest, ends it */
void relay_connection_close(struct relay_connection *c);                 /* at once; freed later */
void relay_connection_free(struct relay_connection *c);
/* --- relay_tunnel.c */
void relay_tunnel_open(struct relay_connection *c); /* the way out is open */
/* How many of the guest's next `n` bytes are passed on: of a request for a URL its body, because what is behind it
 * would reach a server that keeps the connection as a second request, for any Host. */
size_t relay_part_of_request(struct relay_connection *c, size_t n);
/* --- relay_dial.c */
/* A guest has connected to the listener of `rule` (RELAY_IS_PROXY: to the proxy); takes the descriptor over. */
struct relay_connection *relay_connection_new(struct relay_jail *jail, int fd, uint16_t rule);
void relay_connection_late(struct relay_connection *c); /* its deadline is over */
void relay_dial_resolved(struct relay_connection *c, const struct sockaddr_storage *addresses, size_t n);
/* --- relay_resolve.c */
struct relay_question {
	char name[HOST_SIZE + 1]; /* perhaps with a dot at the end */
	uint16_t port;
};
struct relay_answer {
	uint32_t n;
	struct sockaddr_storage addresses[RELAY_ADDRESSES_MAX];
};
int relay_resolvers_start(struct relay *relay); /* forks them: before the relay's own filter */
void relay_resolvers_feed(struct relay *relay); /* gives work to idle ones */
void relay_resolvers_leave(const struct relay_jail *jail); /* it is gone */
/* --- seccomp_relay.c: from here on this process can do what its part needs and nothing more. 0 or -1. */
int relay_seccomp(bool resolver);
