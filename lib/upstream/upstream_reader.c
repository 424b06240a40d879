/* upstream_reader.c - see upstream_reader.h. */
#include "upstream_reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/share.h"
#include "lib/base/util.h"

struct reader {
	pthread_t thread;
	pthread_mutex_t lock; /* guards the rest, and the state of each reading */
	pthread_cond_t more;
	struct reading *first, **last;
	bool closing;
	void (*wake)(void *arg);
	void *arg;
};

static void take_apart(struct raw message, struct mask *mask, bool large, struct incoming *ret)
{
	static const char *const parts[PARTS] = {[PART_METHOD] = "method",
						 [PART_ID] = "id",
						 [PART_PARAMETERS] = "params",
						 [PART_RESULT] = "result",
						 [PART_ERROR] = "error"};
	static const char *const members[RESULT_PARTS] = {
		[RESULT_TYPE] = "resultType",	      [RESULT_TASK] = "task",	  [RESULT_IS_ERROR] = "isError",
		[RESULT_STATE] = "requestState",      [RESULT_STATUS] = "status", [RESULT_NESTED] = "result",
		[RESULT_REQUESTS] = "inputRequests", [RESULT_TOOLS] = "tools",	  [RESULT_CURSOR] = "nextCursor"};

	raw_members(message, parts, PARTS, ret->parts);
	const struct raw result = ret->parts[PART_RESULT];

	raw_members(result, members, RESULT_PARTS, ret->result);
	if (large && result.text != NULL) {
		buf_init(&ret->masked, SIZE_MAX);
		mask_bytes(mask, result.text, result.length, &ret->masked);
	}
}

static void read_text(struct reading *reading)
{
	const bool large = reading->reader != NULL;
	struct raw value, item;
	size_t at = 0;

	reading->result = raw_check(reading->text, reading->length, &reading->clean, &reading->err);
	if (reading->result < 0)
		return;
	value = raw_value(reading->clean.data, reading->clean.length);
	const bool batch = value.length > 0 && value.text[0] == '[';

	reading->messages = xcalloc(batch ? READING_BATCH : 1, sizeof(*reading->messages));
	if (raw_is_object(value))
		take_apart(value, reading->mask, large, &reading->messages[reading->count++]);
	while (batch && raw_item(value, &at, &item)) {
		if (reading->count == READING_BATCH) {
			reading->result = err_set(&reading->err, ERR_LIMIT, "more than %d messages at once",
						  READING_BATCH);
			return;
		}
		if (raw_is_object(item))
			take_apart(item, reading->mask, large, &reading->messages[reading->count++]);
	}
}

static void let_go(struct reading *reading)
{
	for (size_t i = 0; i < reading->count; i++)
		buf_clear(&reading->messages[i].masked);
	free(reading->messages);
	buf_clear(&reading->clean);
	mask_free(reading->mask);
	free(reading->text);
	free(reading);
}

static void *serve(void *arg)
{
	struct reader *reader = arg;
	struct reading *reading;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_mutex_lock(&reader->lock);
	for (;;) {
		while ((reading = reader->first) == NULL && !reader->closing)
			pthread_cond_wait(&reader->more, &reader->lock);
		if (reading == NULL)
			break;
		if ((reader->first = reading->next) == NULL)
			reader->last = &reader->first;
		const bool wanted = reading->state == READING_WAITS;

		pthread_mutex_unlock(&reader->lock);
		const int64_t began_us = share_clock();

		if (wanted)
			read_text(reading);
		reading->took_us = share_clock() - began_us;
		pthread_mutex_lock(&reader->lock);
		const bool forgotten = reading->state == READING_FORGOTTEN;

		reading->state = READING_READ;
		if (forgotten)
			let_go(reading);
		else
			reader->wake(reader->arg);
	}
	pthread_mutex_unlock(&reader->lock);
	return NULL;
}

struct reader *reader_open(void (*wake)(void *arg), void *arg)
{
	struct reader *reader = xcalloc(1, sizeof(*reader));

	reader->last = &reader->first;
	reader->wake = wake;
	reader->arg = arg;
	pthread_mutex_init(&reader->lock, NULL);
	pthread_cond_init(&reader->more, NULL);
	if (pthread_create(&reader->thread, NULL, serve, reader) != 0)
		abort();
	return reader;
}

void reader_close(struct reader *reader)
{
	pthread_mutex_lock(&reader->lock);
	reader->closing = true;
	pthread_cond_signal(&reader->more);
	pthread_mutex_unlock(&reader->lock);
	pthread_join(reader->thread, NULL);
	pthread_cond_destroy(&reader->more);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
}

struct reading *reader_read(struct reader *reader, char *text, size_t length, size_t max, struct mask *mask)
{
	struct reading *reading = xcalloc(1, sizeof(*reading));

	reading->text = text;
	reading->length = length;
	reading->mask = mask_keep(mask);
	buf_init(&reading->clean, max);
	if (length < READING_LARGE) {
		read_text(reading);
		reading->state = READING_READ;
		return reading;
	}
	reading->reader = reader;
	pthread_mutex_lock(&reader->lock);
	*reader->last = reading;
	reader->last = &reading->next;
	pthread_cond_signal(&reader->more);
	pthread_mutex_unlock(&reader->lock);
	return reading;
}

bool reader_done(const struct reading *reading)
{
	if (reading->reader == NULL)
		return true;
	pthread_mutex_lock(&reading->reader->lock);
	const bool done = reading->state == READING_READ;

	pthread_mutex_unlock(&reading->reader->lock);
	return done;
}

void reader_free(struct reading *reading)
{
	if (reading == NULL)
		return;
	if (reading->reader != NULL) {
		struct reader *reader = reading->reader;

		pthread_mutex_lock(&reader->lock);
		const bool waits = reading->state == READING_WAITS;

		if (waits)
			reading->state = READING_FORGOTTEN; /* the reader lets it go */
		pthread_mutex_unlock(&reader->lock);
		if (waits)
			return;
	}
	let_go(reading);
}

void reader_free_pointer(struct reading **reading)
{
	reader_free(*reading);
}
