/*
 * net.h - the jailer's side of jails with network: starts the relay, makes the listeners in a jail's namespace, reads
 * the run's page.
 *
 *     net_init, net_start        before the jailer leaves the host's namespaces
 *     net_watch                  when there is a loop
 *     net_attach                 a jail's init exists and waits: its namespace gets the listeners
 *     net_begin, net_report      around each run; the report is what the result says of the network
 *     net_end                    nothing runs any more: all connections are closed
 *     net_detach                 everything of the jail is closed
 *
 * When the relay dies, its jails learn it through `lost`: their runs end as XX, because the network that was promised
 * is gone. New ones are refused until the monitor has started another relay. The jailer serves all others meanwhile.
 */
#pragma once

#include "egress.h"
#include "jail/base/identity.h"
#include "jail/base/loop.h"

#define NET_REFUSED "network: not allowed on this server: network.allow in its configuration is empty"

struct net {
	struct egress egress;
	int loop;
	int monitor; /* -1: the configuration allows no network */
	struct loop_watch monitor_watch;
	int relay; /* -1: it died, the next one is on its way */
	int own_namespace;
};
#define NET_INIT ((struct net){.monitor = -1, .monitor_watch = LOOP_WATCH_INIT, .relay = -1, .own_namespace = -1})

int net_init(struct net *net, const struct config *config, struct err *err);
int net_start(struct net *net, const struct identity *identity, struct err *err);
int net_watch(struct net *net, int loop, struct err *err);
void net_clear(struct net *net);
bool net_allowed(const struct net *net);

struct net_jail;
/* `pidfd`: of a process in the jail's network namespace that has not changed its ids yet.
 * `hosts`: entries of network.allow that it gets listeners for, exact ones, and no proxy; NULL, none: everything. */
int net_attach(struct net *net, int pidfd, const struct bind_strings *hosts, struct net_jail **ret, struct err *err);
/* Called once, when the relay is gone. */
void net_on_lost(struct net_jail *jail, void (*lost)(void *arg), void *arg);
int net_begin(struct net_jail *jail, struct err *err);
/* {"connections","bytes_in","bytes_out","unrouted","denied":[{"host","port","reason"}]}; the caller's. NULL: no run had
 * begun. unrouted: connections and packets to addresses that nothing of the jail's has; the kernel counts them, and
 * does not say which. */
struct json_object *net_report(struct net_jail *jail);
void net_end(struct net_jail *jail); /* every connection is closed; not called where a live jail keeps its programs */
void net_detach(struct net_jail *jail); /* NULL is fine */
