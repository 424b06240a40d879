/*
 * doors_line.h - the requests that wait for one of a few places, without a thread each.
 *
 * Owners have their turns one after the other, each with its oldest request: one that has ten thousand delays another
 * by one program, not by ten thousand. A request that has not begun when its time is up, or when the server stops, is
 * answered so. Each request ends on a thread of the line, in exactly one of the ways below.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOORS_WAITING_MAX 4096        /* requests */
#define DOORS_BYTES_MAX   (64 << 20)  /* of all that wait, */
#define DOORS_OWNER_BYTES (32 << 20)  /* of one owner's */

enum doors_turn {
	DOORS_BEGIN, /* it has a place until `take` returns */
	DOORS_LATE,  /* its time is up, or there is no room for it */
	DOORS_STOP,  /* the server stops */
};
struct doors_waiter {
	struct doors_waiter *next;
	const char *owner;
	size_t bytes;
	int64_t until_us; /* clock_monotonic_us: it is late then */
	int gone_fd;      /* reports POLLRDHUP: nobody waits any more, and it never begins; -1: cannot be told */
	void (*take)(struct doors_waiter *waiter, enum doors_turn turn); /* frees it */
	void (*drop)(struct doors_waiter *waiter);                       /* frees it: nobody waits any more */
};

bool doors_waiter_gone(const struct doors_waiter *waiter); /* nobody waits for it */

struct doors_line;
struct doors_line *doors_line_new(size_t places); /* NULL: there are no threads for it */
/* Takes it over. Where there is no room it is late at once, on this thread. */
void doors_line_put(struct doors_line *line, struct doors_waiter *waiter);
/* Nothing begins any more; what waits is answered so. What has begun goes on. */
void doors_line_stop(struct doors_line *line);
/* Waits until no place is taken, at most until then (clock_monotonic_us). */
void doors_line_settle(struct doors_line *line, int64_t until_us);
void doors_line_free(struct doors_line *line); /* stops, and waits for what has begun; NULL is fine */
