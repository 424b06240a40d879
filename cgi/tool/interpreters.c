/* interpreters.c - see interpreters.h. */
#include "interpreters.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/util.h"

struct interpreters *interpreters_new(void)
{
	struct interpreters *interpreters = xcalloc(1, sizeof(*interpreters));

	pthread_mutex_init(&interpreters->lock, NULL);
	return interpreters;
}

void interpreters_free(struct interpreters *interpreters)
{
	if (!interpreters)
		return;
	free(interpreters->items);
	pthread_mutex_destroy(&interpreters->lock);
	free(interpreters);
}

/* The client's, or the number of items. */
static size_t place_of(const struct interpreters *interpreters, const char *owner, const char *client)
{
	size_t i = 0;

	while (i < interpreters->count &&
	       !(streq(interpreters->items[i].owner, owner) && streq(interpreters->items[i].client, client)))
		i++;
	return i;
}

static void remove_at(struct interpreters *interpreters, size_t i)
{
	interpreters->count--;
	memmove(&interpreters->items[i], &interpreters->items[i + 1],
		(interpreters->count - i) * sizeof(*interpreters->items));
}

static void add(struct interpreters *interpreters, const struct interpreter *interpreter)
{
	interpreters->items = xrealloc(interpreters->items, interpreters->count + 1, sizeof(*interpreters->items));
	interpreters->items[interpreters->count++] = *interpreter;
}

void interpreters_put(struct interpreters *interpreters, const struct interpreter *interpreter)
{
	pthread_mutex_lock(&interpreters->lock);
	size_t i = place_of(interpreters, interpreter->owner, interpreter->client);

	if (i < interpreters->count)
		remove_at(interpreters, i);
	size_t own = 0, first = 0; /* of the owner, who may have so many */

	for (size_t k = interpreters->count; k-- > 0;)
		if (streq(interpreters->items[k].owner, interpreter->owner)) {
			own++;
			first = k;
		}
	if (own >= INTERPRETERS_PER_OWNER)
		remove_at(interpreters, first);
	add(interpreters, interpreter);
	pthread_mutex_unlock(&interpreters->lock);
}

int interpreters_find(struct interpreters *interpreters, const char *owner, const char *client, bool take,
		      struct interpreter *ret, struct err *err)
{
	pthread_mutex_lock(&interpreters->lock);
	size_t i = place_of(interpreters, owner, client);
	bool found = i < interpreters->count;

	if (found) {
		*ret = interpreters->items[i];
		remove_at(interpreters, i);
	}
	if (found && !take)
		add(interpreters, ret);
	pthread_mutex_unlock(&interpreters->lock);
	return found ? 0 : err_set(err, ERR_NOT_FOUND, "the sandbox is not initialized: call initialize_sandbox first");
}
