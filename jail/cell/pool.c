/* pool.c - see pool.h. */
#include "pool.h"

#include "lib/base/util.h"

void pool_init(struct pool *pool, size_t least, size_t most, int64_t bytes)
{
	*pool = (struct pool){.least = least, .most = most, .bytes = bytes, .free_bytes = INT64_MAX};
}

void pool_opened(struct pool *pool, int64_t now_us)
{
	if (now_us - pool->slot_us >= POOL_SLOT_US) {
		pool->slot_us = now_us;
		pool->slot = 0;
	}
	pool->slot++;
	pool->owed++;
	pool->peak = MAX(pool->peak, pool->slot);
}

void pool_made(struct pool *pool)
{
	pool->owed = 0;
}

int64_t pool_deadline(const struct pool *pool)
{
	return pool->most ? pool->window_us + POOL_WINDOW_US : INT64_MAX;
}

void pool_turn(struct pool *pool, int64_t now_us, int64_t free_bytes)
{
	pool->before = pool->peak;
	pool->peak = 0;
	pool->window_us = now_us;
	pool->free_bytes = free_bytes < 0 ? INT64_MAX : free_bytes;
}

size_t pool_target(const struct pool *pool)
{
	const int64_t room = MIN(pool->bytes, pool->free_bytes / POOL_SHARE) / POOL_JAIL_BYTES;
	const size_t wanted = MAX(MAX(pool->peak, pool->before), pool->least);

	return pool->most ? MIN(MIN(wanted, pool->most), (size_t)room) : pool->least;
}

bool pool_owes(const struct pool *pool)
{
	return pool->most && pool->owed >= POOL_OWED;
}
