/* loop.h - the jailer's event loop: epoll over watches that are embedded in their owners. */
#pragma once

#include <stdint.h>

struct loop_watch {
	int fd; /* -1: not watched; the owner's to close */
	uint32_t events;
	void (*ready)(struct loop_watch *watch, uint32_t events);
};
#define LOOP_WATCH_INIT ((struct loop_watch){.fd = -1})

int loop_open(void); /* descriptor of the loop, or -1 with errno */
int loop_add(int loop, struct loop_watch *watch, int fd, uint32_t events, void (*ready)(struct loop_watch *, uint32_t));
int loop_change(int loop, struct loop_watch *watch, uint32_t events);
void loop_remove(int loop, struct loop_watch *watch); /* does not close the descriptor; harmless twice */
/* Waits for one event and handles it; at most until the deadline (monotonic; INT64_MAX: none). One event a call, so
 * that a handler may free any watch. True: there was one. */
int loop_once(int loop, int64_t deadline_us);
