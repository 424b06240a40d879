/*
 * upstream_jail.h - starts upstream servers in jails of their own.
 *
 * Other people's programs get what their entry says and nothing else: their arguments and environment, the folders of
 * upstream.binds that it names read-only (all, where it names none), a /data of its own, and of the network the hosts
 * that it names. The upstream thread is
 * a client of the jailer like the job engine, over a connection of its own; a jail ends with its program or its
 * connection.
 */
#pragma once

#include "upstream_pipe.h"

extern const struct launcher jail_launcher;
void jails_open(struct connection_loop *loop); /* connects at the first start */
void jails_close(struct connection_loop *loop);
void jails_turn(struct connection_loop *loop);
size_t jails_poll(const struct connection_loop *loop, struct pollfd *ret); /* 0 or 1 */
int64_t jails_wake(const struct connection_loop *loop);
/* Has a server files that are to be kept, and are not yet? No longer, when it should have ended a while ago. */
bool jails_storing(const struct connection_loop *loop);
