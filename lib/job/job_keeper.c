/* job_keeper.c - work between the threads of the job engine: the keepers' queue for slow disk work, the writer's
 * transactions, and the reactor's inbox, to which every errand returns. */
#include "job_internal.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#define BACKLOG_LEAST 128
#define BACKLOG_MOST  16384

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

/* Each file that waits is a descriptor. */
static size_t backlog(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return BACKLOG_LEAST;
	return MAX(BACKLOG_LEAST, MIN((size_t)BACKLOG_MOST, (size_t)(limit.rlim_cur / 4)));
}

/* Behind the jobs that wait already. */
static void enlist(struct job_engine *engine, struct job *job)
{
	job->run.next_storing = NULL;
	*engine->storing_last = job;
	engine->storing_last = &job->run.next_storing;
}

void job_lend_file(struct job_output *output)
{
	struct job *job = output->job;
	struct job_engine *engine = job->engine;
	bool first;

	output->errand.work = job_store_output;
	pthread_mutex_lock(&engine->lock);
	first = job->run.to_store.head == NULL;
	job_errands_add(&job->run.to_store, &output->errand);
	if (first)
		enlist(engine, job);
	pthread_cond_signal(&engine->keepers_wake);
	pthread_mutex_unlock(&engine->lock);
}

/* A file of the job whose turn it is. Under the lock. */
static struct job_errand *take_file(struct job_engine *engine)
{
	struct job *job = engine->storing_first;

	if (!job || engine->keepers_storing + 1 >= JOB_KEEPERS)
		return NULL;
	engine->storing_first = job->run.next_storing;
	if (!engine->storing_first)
		engine->storing_last = &engine->storing_first;
	struct job_errand *errand = job_errands_take(&job->run.to_store);

	if (job->run.to_store.head)
		enlist(engine, job);
	return errand;
}

static void *keeper(void *arg)
{
	struct job_engine *engine = arg;

	pthread_mutex_lock(&engine->lock);
	for (;;) {
		struct job_errand *errand = job_errands_take(&engine->for_keepers);
		struct job_errand *file = errand ? NULL : take_file(engine);

		if (!errand && !file) {
			if (engine->keepers_stop && !engine->storing_first)
				break;
			pthread_cond_wait(&engine->keepers_wake, &engine->lock);
			continue;
		}
		errand = errand ? errand : file;
		engine->keepers_storing += file != NULL;
		pthread_mutex_unlock(&engine->lock);
		errand->code = errand->work(errand, errand->error);
		job_post(errand);
		pthread_mutex_lock(&engine->lock);
		engine->keepers_storing -= file != NULL;
		if (file && engine->storing_first) /* a place of those for files is free again */
			pthread_cond_signal(&engine->keepers_wake);
	}
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

int job_keepers_start(struct job_engine *engine, struct err *err)
{
	engine->storing_last = &engine->storing_first;
	engine->backlog = backlog();
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
