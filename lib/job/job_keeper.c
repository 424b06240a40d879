/* job_keeper.c - work between the threads of the job engine: the keepers' queue for slow disk work, the writer's
 * transactions, and the reactor's inbox, to which every errand returns. */
#include "job_internal.h"

#include <errno.h>
#include <unistd.h>

void job_errands_add(struct job_errands *errands, struct job_errand *errand)
{
	errand->next = NULL;
	if (errands->tail)
		errands->tail->next = errand;
	else
		errands->head = errand;
	errands->tail = errand;
}

struct job_errand *job_errands_take(struct job_errands *errands)
{
	struct job_errand *errand = errands->head;

	if (errand)
		errands->head = errand->next;
	if (!errands->head)
		errands->tail = NULL;
	return errand;
}

void job_wake_reactor(struct job_engine *engine)
{
	const uint64_t one = 1;

	/* Fails only when the counter is full, and then the reactor is awake anyway. */
	if (write(engine->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void job_post(struct job_errand *errand)
{
	struct job_engine *engine = errand->engine;

	pthread_mutex_lock(&engine->lock);
	job_errands_add(&engine->inbox, errand);
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
}

void job_lend_keeper(struct job_errand *errand, int (*work)(struct job_errand *errand, struct err *err))
{
	struct job_engine *engine = errand->engine;

	errand->work = work;
	pthread_mutex_lock(&engine->lock);
	job_errands_add(&engine->for_keepers, errand);
	pthread_cond_signal(&engine->keepers_wake);
	pthread_mutex_unlock(&engine->lock);
}

/* On the writer's thread. */
static void committed(void *arg, int result, const struct err *err)
{
	struct job_errand *errand = arg;

	errand->code = result;
	if (result < 0 && errand->error)
		*errand->error = *err;
	job_post(errand);
}

void job_lend_writer(struct job_errand *errand, store_work work)
{
	store_commit_async(errand->engine->store, work, errand, committed);
}

static void *keeper(void *arg)
{
	struct job_engine *engine = arg;
	struct job_errand *errand;

	pthread_mutex_lock(&engine->lock);
	for (;;) {
		while (!(errand = job_errands_take(&engine->for_keepers)) && !engine->keepers_stop)
			pthread_cond_wait(&engine->keepers_wake, &engine->lock);
		if (!errand)
			break;
		pthread_mutex_unlock(&engine->lock);
		errand->code = errand->work(errand, errand->error);
		job_post(errand);
		pthread_mutex_lock(&engine->lock);
	}
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

int job_keepers_start(struct job_engine *engine, struct err *err)
{
	for (size_t i = 0; i < JOB_KEEPERS; i++) {
		int error = pthread_create(&engine->keepers[i], NULL, keeper, engine);

		if (error) {
			errno = error;
			return err_errno(err, "cannot start a thread for the job engine");
		}
		engine->n_keepers++;
	}
	return 0;
}

void job_keepers_stop(struct job_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->keepers_stop = true;
	pthread_cond_broadcast(&engine->keepers_wake);
	pthread_mutex_unlock(&engine->lock);
	for (size_t i = 0; i < engine->n_keepers; i++)
		pthread_join(engine->keepers[i], NULL);
}
