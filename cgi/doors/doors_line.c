/*
 * doors_line.c - see doors_line.h.
 *
 * Each place is a thread that takes the oldest request of the next owner. One more thread, the keeper, sleeps until the
 * first request is late. Owners are a circle that holds only those who wait; `turn` is the one before the next.
 */
#include "doors_line.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "cgi/http/server.h"
#include "lib/base/metrics.h"
#include "lib/base/util.h"

/* One that has a request in the line, at least; in a circle. */
struct line_owner {
	struct line_owner *next;
	char *name;
	struct doors_waiter *first, **last;
	size_t bytes;
};

struct doors_line {
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t more, changed;
	struct line_owner *turn; /* the owner before the one whose turn it is; NULL: nobody waits */
	size_t count, bytes, places;
	size_t busy; /* places */
	int64_t wakes_us; /* when the keeper looks next */
	bool stopping;
	pthread_t keeper, workers[];
};

static struct line_owner *find(const struct doors_line *line, const char *name)
{
	struct line_owner *owner = line->turn;

	if (owner)
		do {
			if (streq(owner->name, name))
				return owner;
		} while ((owner = owner->next) != line->turn);
	return NULL;
}

/* Takes the request that `at` points to out of the owner's line; `before` is the owner before it, which stays. */
static struct doors_waiter *take_out(struct doors_line *line, struct line_owner *before, struct doors_waiter **at)
{
	struct line_owner *owner = before->next;
	struct doors_waiter *waiter = *at;

	if (!(*at = waiter->next))
		owner->last = at;
	owner->bytes -= waiter->bytes;
	line->bytes -= waiter->bytes;
	metrics_set(METRIC_DOOR_WAITING, NULL, (int64_t)--line->count);
	if (!owner->first) {
		before->next = owner->next;
		if (line->turn == owner)
			line->turn = before == owner ? NULL : before;
		free(owner->name);
		free(owner);
	}
	return waiter;
}

bool doors_waiter_gone(const struct doors_waiter *waiter)
{
	struct pollfd wait = {.fd = waiter->gone_fd, .events = POLLRDHUP};

	return poll(&wait, 1, 0) == 1;
}

static void *work(void *arg)
{
	struct doors_line *line = arg;

	pthread_mutex_lock(&line->lock);
	for (;;) {
		while (!line->turn && !line->stopping)
			pthread_cond_wait(&line->more, &line->lock);
		if (line->stopping)
			break;
		struct line_owner *before = line->turn, *owner = before->next;

		line->turn = owner; /* the next one's turn is the next owner's */
		struct doors_waiter *waiter = take_out(line, before, &owner->first);

		line->busy++;
		pthread_mutex_unlock(&line->lock);
		if (doors_waiter_gone(waiter))
			waiter->drop(waiter);
		else
			waiter->take(waiter, DOORS_BEGIN);
		pthread_mutex_lock(&line->lock);
		line->busy--;
		pthread_cond_broadcast(&line->changed);
	}
	pthread_mutex_unlock(&line->lock);
	return NULL;
}

/* All whose time is up (`all`: everybody), out of the line; and when the next one's is. */
static struct doors_waiter *take_late(struct doors_line *line, int64_t now_us, bool all)
{
	struct doors_waiter *late = NULL, **last = &late;
	struct line_owner *before = line->turn;
	size_t owners = 0;

	line->wakes_us = INT64_MAX;
	if (before)
		do
			owners++;
		while ((before = before->next) != line->turn);
	for (; owners > 0 && line->turn; owners--) {
		struct line_owner *owner = before->next;
		bool empty = false;

		for (struct doors_waiter **at = &owner->first; !empty && *at;) {
			if (!all && (*at)->until_us > now_us) {
				line->wakes_us = MIN(line->wakes_us, (*at)->until_us);
				at = &(*at)->next;
				continue;
			}
			empty = at == &owner->first && !(*at)->next; /* the owner goes with it */
			*last = take_out(line, before, at);
			last = &(*last)->next;
			*last = NULL;
		}
		if (!empty)
			before = owner;
	}
	return late;
}

static void tell(struct doors_waiter *waiters, enum doors_turn turn)
{
	for (struct doors_waiter *waiter; (waiter = waiters);) {
		waiters = waiter->next;
		waiter->take(waiter, turn);
	}
}

static void *keep(void *arg)
{
	struct doors_line *line = arg;

	pthread_mutex_lock(&line->lock);
	while (!line->stopping) {
		struct doors_waiter *late = take_late(line, clock_monotonic_us(), false);

		if (late) {
			pthread_mutex_unlock(&line->lock);
			tell(late, DOORS_LATE);
			pthread_mutex_lock(&line->lock);
			continue;
		}
		if (line->wakes_us == INT64_MAX) {
			pthread_cond_wait(&line->changed, &line->lock);
		} else {
			const struct timespec until = {.tv_sec = line->wakes_us / 1000000,
						       .tv_nsec = line->wakes_us % 1000000 * 1000};

			pthread_cond_timedwait(&line->changed, &line->lock, &until);
		}
	}
	pthread_mutex_unlock(&line->lock);
	return NULL;
}

void doors_line_put(struct doors_line *line, struct doors_waiter *waiter)
{
	pthread_mutex_lock(&line->lock);
	struct line_owner *owner = find(line, waiter->owner);
	const bool room = !line->stopping && line->count < DOORS_WAITING_MAX &&
			  line->bytes + waiter->bytes <= DOORS_BYTES_MAX &&
			  (owner ? owner->bytes : 0) + waiter->bytes <= DOORS_OWNER_BYTES;
	const bool stopping = line->stopping;

	if (room && !owner) {
		owner = xcalloc(1, sizeof(*owner));
		owner->name = xstrdup(waiter->owner);
		owner->last = &owner->first;
		owner->next = line->turn ? line->turn->next : owner;
		if (line->turn)
			line->turn->next = owner;
		line->turn = owner; /* the last one in the circle */
	}
	if (room) {
		waiter->next = NULL;
		*owner->last = waiter;
		owner->last = &waiter->next;
		owner->bytes += waiter->bytes;
		line->bytes += waiter->bytes;
		metrics_set(METRIC_DOOR_WAITING, NULL, (int64_t)++line->count);
		pthread_cond_signal(&line->more);
		if (waiter->until_us < line->wakes_us)
			pthread_cond_signal(&line->changed);
	}
	pthread_mutex_unlock(&line->lock);
	if (!room)
		waiter->take(waiter, stopping ? DOORS_STOP : DOORS_LATE);
}

struct doors_line *doors_line_new(size_t places)
{
	struct doors_line *line = xcalloc(1, sizeof(*line) + places * sizeof(*line->workers));
	pthread_condattr_t monotonic;

	pthread_mutex_init(&line->lock, NULL);
	pthread_cond_init(&line->more, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&line->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	line->wakes_us = INT64_MAX;
	if (server_thread(&line->keeper, false, keep, line) != 0)
		abort();
	while (line->places < places && server_thread(&line->workers[line->places], false, work, line) == 0)
		line->places++;
	if (line->places > 0)
		return line;
	doors_line_free(line);
	return NULL;
}

void doors_line_stop(struct doors_line *line)
{
	pthread_mutex_lock(&line->lock);
	line->stopping = true;
	struct doors_waiter *rest = take_late(line, 0, true);

	pthread_cond_broadcast(&line->more);
	pthread_cond_broadcast(&line->changed);
	pthread_mutex_unlock(&line->lock);
	tell(rest, DOORS_STOP);
}

void doors_line_settle(struct doors_line *line, int64_t until_us)
{
	const struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};

	pthread_mutex_lock(&line->lock);
	while (line->busy > 0 && pthread_cond_timedwait(&line->changed, &line->lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&line->lock);
}

void doors_line_free(struct doors_line *line)
{
	if (!line)
		return;
	doors_line_stop(line);
	pthread_join(line->keeper, NULL);
	for (size_t i = 0; i < line->places; i++)
		pthread_join(line->workers[i], NULL);
	pthread_cond_destroy(&line->more);
	pthread_cond_destroy(&line->changed);
	pthread_mutex_destroy(&line->lock);
	free(line);
}
