/* store_gate.h - for tests of what waits behind the store's writer. */
#pragma once

#include <pthread.h>

#include "lib/store/db/store_txn.h"

/* Holds the writer's thread until it is let go, so that what comes after queues up into one group. */
struct gate {
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool entered, open;
};

static inline int gate_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct gate *gate = arg;

	(void)txn, (void)err;
	pthread_mutex_lock(&gate->lock);
	gate->entered = true;
	pthread_cond_broadcast(&gate->change);
	while (!gate->open)
		pthread_cond_wait(&gate->change, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
	return 0;
}

static inline void gate_ignore(void *arg, int result, const struct err *err)
{
	(void)arg, (void)result, (void)err;
}

static inline void gate_shut(struct gate *gate, struct store *store)
{
	*gate = (struct gate){.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};
	store_commit_async(store, gate_work, gate, gate_ignore);
	pthread_mutex_lock(&gate->lock);
	while (!gate->entered)
		pthread_cond_wait(&gate->change, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static inline void gate_open(struct gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->open = true;
	pthread_cond_broadcast(&gate->change);
	pthread_mutex_unlock(&gate->lock);
}
