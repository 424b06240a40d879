/*
 * notify.h - what a service tells its manager, by the protocol of sd_notify(3): datagrams to the socket that
 * $NOTIFY_SOCKET names. Without that variable every call does nothing.
 *
 * The socket is opened once, early: a process that leaves the host's namespaces later still reaches it. The variables
 * are removed from the environment, so that no child speaks in our name.
 */
#pragma once

#include <stdint.h>

struct notify {
	int fd;              /* -1: nobody wants to know */
	int64_t every_us;    /* WATCHDOG=1 is due this often: half of $WATCHDOG_USEC; 0: no watchdog */
	int64_t deadline_us; /* monotonic: when the next one is due; INT64_MAX: never */
};
#define NOTIFY_NONE ((struct notify){.fd = -1, .deadline_us = INT64_MAX})

void notify_open(struct notify *ret); /* a socket that cannot be reached is logged, and then nobody wants to know */
void notify_close(struct notify *notify);
void notify_ready(struct notify *notify);    /* READY=1; the watchdog runs from here on */
void notify_stopping(struct notify *notify); /* STOPPING=1 */
/* Call it in each turn of a loop that waits until notify->deadline_us at most. */
void notify_tick(struct notify *notify);
