/*
 * pool.h - how many jails are made ahead where interpreters wait in them (cell_join.c).
 *
 * Of two things there have to be enough: of jails, for as many programs as come at once, and of memory for programs.
 * So the pool is as large as the largest number of jails that were opened within a tenth of a second, in the last two
 * windows of five seconds; at least two; at most what jailer.warm_mb has room for, or an eighth of the memory that is
 * free, whichever is less. Where memory is short it is empty, and programs get jails that are made for them.
 *
 * Jails are made ahead in idle moments. A jailer that has none all the same makes one after each POOL_OWED that it gave
 * away, else all programs of a busy time would wait for theirs.
 *
 * It only counts: times come from the caller, in us of clock_monotonic_us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_SLOT_US    100000
#define POOL_WINDOW_US  5000000
#define POOL_JAIL_BYTES (INT64_C(2) << 20) /* what one holds with its interpreter, all processes */
#define POOL_SHARE      8                  /* of the free memory, one part */
#define POOL_OWED       3

struct pool {
	size_t least, most; /* jails; most 0: always as many as `least` */
	int64_t bytes;      /* for all of them */
	int64_t free_bytes; /* as of the last turn */
	int64_t slot_us, window_us;
	size_t slot, peak, before; /* opened in this slot; the most in a slot of this window, and of the last one */
	size_t owed;               /* given since one was made */
};

/* Memory counts as free until the first turn. */
void pool_init(struct pool *pool, size_t least, size_t most, int64_t bytes);
void pool_opened(struct pool *pool, int64_t now_us); /* a jail, by a client */
void pool_made(struct pool *pool);                   /* one is made ahead */
int64_t pool_deadline(const struct pool *pool);      /* of the next turn */
/* Once a window: what was before the last one counts no more. `free_bytes`: of the machine; < 0: not known. */
void pool_turn(struct pool *pool, int64_t now_us, int64_t free_bytes);
size_t pool_target(const struct pool *pool);
bool pool_owes(const struct pool *pool); /* one is to be made although the moment is not idle */
