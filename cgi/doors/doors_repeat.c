/* doors_repeat.c - see doors_repeat.h. Lost requests are few: a list, the newest first. */
#include "doors_repeat.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/metrics.h"
#include "lib/base/util.h"

struct lost {
	struct lost *next;
	const void *door;
	char digest[SHA256_HEX_SIZE];
	bool runs;        /* it has no answer yet */
	bool wanted;      /* and was asked for again */
	int64_t until_us; /* its answer is kept */
	int status;
	struct buf headers, body;
	char outcome[32];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the rest */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct lost *all;

static void lost_free(struct lost *lost)
{
	buf_clear(&lost->headers);
	buf_clear(&lost->body);
	free(lost);
}

static struct lost **find(const struct doors_repeat *repeat, bool runs)
{
	struct lost **at = &all;

	while (*at && ((*at)->runs != runs || (*at)->door != repeat->door || !streq((*at)->digest, repeat->digest)))
		at = &(*at)->next;
	return at;
}

static struct lost *take_out(struct lost **at)
{
	struct lost *lost = *at;

	*at = lost->next;
	return lost;
}

/* Answers that are old, or too many. */
static void expire(void)
{
	const int64_t now_us = clock_monotonic_us();
	size_t count = 0, bytes = 0;

	for (struct lost **at = &all; *at;) {
		struct lost *lost = *at;

		bytes += lost->headers.length + lost->body.length;
		if (!lost->runs &&
		    (now_us >= lost->until_us || ++count > DOORS_REPEAT_MAX || bytes > DOORS_REPEAT_BYTES))
			lost_free(take_out(at));
		else
			at = &lost->next;
	}
}

void doors_repeat_came(const struct doors_repeat *repeat)
{
	pthread_mutex_lock(&lock);
	struct lost *lost = *find(repeat, true);

	if (lost)
		lost->wanted = true;
	pthread_mutex_unlock(&lock);
}

bool doors_repeat_take(const struct doors_repeat *repeat, struct reply *reply)
{
	pthread_mutex_lock(&lock);
	expire();
	for (struct lost *running; !*find(repeat, false) && (running = *find(repeat, true));) {
		running->wanted = true;
		pthread_cond_wait(&changed, &lock);
	}
	struct lost **at = find(repeat, false), *lost = *at ? take_out(at) : NULL;

	pthread_mutex_unlock(&lock);
	if (!lost)
		return false;
	reply->status = lost->status;
	buf_reset(&reply->headers);
	buf_add(&reply->headers, lost->headers.data, lost->headers.length);
	buf_add(&reply->body, lost->body.data, lost->body.length);
	memcpy(reply->outcome, lost->outcome, sizeof(reply->outcome));
	lost_free(lost);
	metrics_add(METRIC_DOOR_REPEATED, repeat->name, NULL, 1);
	return true;
}

static struct lost *lost_new(const struct doors_repeat *repeat)
{
	struct lost *lost = xcalloc(1, sizeof(*lost));

	lost->door = repeat->door;
	memcpy(lost->digest, repeat->digest, sizeof(lost->digest));
	lost->runs = true;
	return lost;
}

void doors_repeat_lost(struct doors_repeat *repeat)
{
	struct lost *lost = lost_new(repeat);

	pthread_mutex_lock(&lock);
	lost->next = all;
	all = repeat->lost = lost;
	pthread_mutex_unlock(&lock);
}

bool doors_repeat_over(struct doors_repeat *repeat)
{
	pthread_mutex_lock(&lock);
	const bool wanted = repeat->lost->wanted;

	/* Who comes now has come too late: it is not found any more. */
	for (struct lost **at = &all; !wanted && *at; at = &(*at)->next)
		if (*at == repeat->lost) {
			take_out(at);
			break;
		}
	pthread_mutex_unlock(&lock);
	if (!wanted) {
		lost_free(repeat->lost);
		repeat->lost = NULL;
	}
	return !wanted;
}

void doors_repeat_keep(struct doors_repeat *repeat, const struct reply *reply)
{
	if (!repeat->lost)
		doors_repeat_lost(repeat);
	struct lost *lost = repeat->lost;

	pthread_mutex_lock(&lock);
	repeat->lost = NULL;
	lost->status = reply->status;
	buf_init(&lost->headers, reply->headers.max);
	buf_init(&lost->body, reply->body.max);
	buf_add(&lost->headers, reply->headers.data, reply->headers.length);
	buf_add(&lost->body, reply->body.data, reply->body.length);
	memcpy(lost->outcome, reply->outcome, sizeof(lost->outcome));
	lost->until_us = clock_monotonic_us() + DOORS_REPEAT_KEPT_US;
	lost->runs = false;
	expire();
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void doors_repeat_drop(struct doors_repeat *repeat)
{
	pthread_mutex_lock(&lock);
	struct lost **at = &all;

	while (*at && *at != repeat->lost)
		at = &(*at)->next;
	if (*at)
		lost_free(take_out(at));
	repeat->lost = NULL;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void doors_repeat_clear(void)
{
	while (all)
		lost_free(take_out(&all));
}
