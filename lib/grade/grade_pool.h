/*
 * grade_pool.h - threads that work on one list, each with a client of the jailer of its own.
 *
 * One lock (`lock`) over everything but what a thread works on. `choose` is called with it and takes the next thing
 * that can be done; `act` is called without it, does that, and takes the lock itself to write down what came of it.
 * After each step all threads look again.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "jail/client/jail.h"
#include "lib/base/err.h"

#define GRADE_JOBS_MAX 64
#define GRADE_TRIES    3 /* of a run whose sandbox failed */

enum grade_choice { GRADE_STEP, GRADE_WAIT, GRADE_FINISHED };

#define GRADE_POOL_SHARES 2 /* threads, at most, that share a private jailer: one of them keeps it half busy */

/* How `count` threads get clients of one jailer. */
struct grade_dial {
	int (*connect)(void *arg, struct jail_client **ret, size_t count, struct err *err);
	void *arg;
};

struct grade_pool {
	const struct grade_dial *dial;
	struct jail_client *clients[GRADE_JOBS_MAX]; /* each thread's, from grade_pool_dial to grade_pool_clear */
	int jobs;
	enum grade_choice (*choose)(void *arg, void *ret_step);
	void (*act)(void *arg, struct jail_client *client, void **own, const void *step);
	void (*leave)(void *own); /* gives back what act put into *own for its thread; may be NULL */
	void *arg;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct err failure; /* of a thread that cannot go on */
	bool over;          /* no thread begins anything more */
};
#define GRADE_STEP_MAX 64 /* bytes of a step */

/* Clients for all threads, those that are not there yet at the same time: the start of a private jailer is mostly
 * waiting for the kernel. A failure is the pool's, too. */
int grade_pool_dial(struct grade_pool *pool, struct err *err);
/* Runs until `choose` says GRADE_FINISHED or `over` is set, and what was begun has ended. lock and changed are
 * initialised by the caller (PTHREAD_…_INITIALIZER). Dials where nobody has. */
int grade_pool_run(struct grade_pool *pool, struct err *err);
void grade_pool_clear(struct grade_pool *pool);
