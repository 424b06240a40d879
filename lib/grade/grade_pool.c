/* grade_pool.c - see grade_pool.h. */
#include "grade_pool.h"

#include <signal.h>

#include "lib/base/util.h"

struct seat {
	struct grade_pool *pool;
	int index;
};

static int jobs_of(const struct grade_pool *pool)
{
	return MIN(MAX(pool->jobs, 1), GRADE_JOBS_MAX);
}

static void fail(struct grade_pool *pool, const struct err *err)
{
	pthread_mutex_lock(&pool->lock);
	if (!pool->failure.code)
		pool->failure = *err;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
}

/* A thread a seat, until all have ended. */
static int fill_seats(struct grade_pool *pool, void *(*thread_main)(void *), struct err *err)
{
	pthread_t threads[GRADE_JOBS_MAX];
	struct seat seats[GRADE_JOBS_MAX];
	int started = 0;

	for (; started < jobs_of(pool); started++) {
		struct err failure = ERR_INIT;

		seats[started] = (struct seat){pool, started};
		if (pthread_create(&threads[started], NULL, thread_main, &seats[started])) {
			err_set(&failure, ERR_SYSTEM, "cannot start a thread");
			fail(pool, &failure);
			break;
		}
	}
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	if (pool->failure.code) {
		*err = pool->failure;
		return -(int)err->code;
	}
	return 0;
}

static void *dial_main(void *arg)
{
	const struct seat *seat = arg;
	struct grade_pool *pool = seat->pool;
	struct err err = ERR_INIT;

	struct jail_client **client = &pool->clients[seat->index];
	int count = MIN(jobs_of(pool) - seat->index, GRADE_POOL_SHARES);

	if (seat->index % GRADE_POOL_SHARES == 0 && !*client &&
	    pool->dial->connect(pool->dial->arg, client, (size_t)count, &err) < 0)
		fail(pool, &err);
	return NULL;
}

int grade_pool_dial(struct grade_pool *pool, struct err *err)
{
	return fill_seats(pool, dial_main, err);
}

static void *work_main(void *arg)
{
	const struct seat *seat = arg;
	struct grade_pool *pool = seat->pool;
	_Alignas(max_align_t) char step[GRADE_STEP_MAX];
	enum grade_choice choice;
	void *own = NULL;
	sigset_t pipes;

	/* A write to a program that has ended fails, and the call reports it. */
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipes, NULL);
	pthread_mutex_lock(&pool->lock);
	while (!pool->failure.code && !pool->over && (choice = pool->choose(pool->arg, step)) != GRADE_FINISHED) {
		if (choice == GRADE_WAIT) {
			pthread_cond_wait(&pool->changed, &pool->lock);
			continue;
		}
		pthread_mutex_unlock(&pool->lock);
		pool->act(pool->arg, pool->clients[seat->index], &own, step);
		pthread_mutex_lock(&pool->lock);
		pthread_cond_broadcast(&pool->changed);
	}
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);
	if (pool->leave && own)
		pool->leave(own);
	return NULL;
}

int grade_pool_run(struct grade_pool *pool, struct err *err)
{
	int result = grade_pool_dial(pool, err);

	return result < 0 ? result : fill_seats(pool, work_main, err);
}

static void *hang_up_main(void *arg)
{
	const struct seat *seat = arg;

	jail_client_free(steal(&seat->pool->clients[seat->index]));
	return NULL;
}

void grade_pool_clear(struct grade_pool *pool)
{
	struct err err = ERR_INIT;

	fill_seats(pool, hang_up_main, &err);
}
