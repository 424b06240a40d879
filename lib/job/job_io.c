/* job_io.c - work between the threads of the job engine: the I/O workers' queue for slow disk work, the writer's
 * transactions, and the reactor's inbox, to which every work item returns. */
#include "job_internal.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#define BACKLOG_LEAST 128
#define BACKLOG_MOST  16384

void job_work_items_add(struct job_work_items *work_items, struct job_work_item *work_item)
{
	work_item->next = NULL;
	if (work_items->tail)
		work_items->tail->next = work_item;
	else
		work_items->head = work_item;
	work_items->tail = work_item;
}

struct job_work_item *job_work_items_take(struct job_work_items *work_items)
{
	struct job_work_item *work_item = work_items->head;

	if (work_item)
		work_items->head = work_item->next;
	if (!work_items->head)
		work_items->tail = NULL;
	return work_item;
}

void job_wake_reactor(struct job_engine *engine)
{
	const uint64_t one = 1;

	/* Fails only when the counter is full, and then the reactor is awake anyway. */
	if (write(engine->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void job_post(struct job_work_item *work_item)
{
	struct job_engine *engine = work_item->engine;

	pthread_mutex_lock(&engine->lock);
	job_work_items_add(&engine->inbox, work_item);
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
}

void job_lend_io(struct job_work_item *work_item, int (*work)(struct job_work_item *work_item, struct err *err))
{
	struct job_engine *engine = work_item->engine;

	work_item->work = work;
	pthread_mutex_lock(&engine->lock);
	job_work_items_add(&engine->for_io, work_item);
	pthread_cond_signal(&engine->io_wake);
	pthread_mutex_unlock(&engine->lock);
}

/* On the writer's thread. */
static void committed(void *arg, int result, const struct err *err)
{
	struct job_work_item *work_item = arg;

	work_item->code = result;
	if (result < 0 && work_item->error)
		*work_item->error = *err;
	job_post(work_item);
}

void job_lend_writer(struct job_work_item *work_item, store_work work)
{
	store_commit_async(work_item->engine->store, work, work_item, committed);
}

void job_lend_writer_large(struct job_work_item *work_item, store_work work)
{
	store_commit_large(work_item->engine->store, work, work_item, committed);
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

	pthread_mutex_lock(&engine->lock);
	first = job->run.to_store.head == NULL;
	job_work_items_add(&job->run.to_store, &output->work_item);
	if (first)
		enlist(engine, job);
	pthread_cond_signal(&engine->io_wake);
	pthread_mutex_unlock(&engine->lock);
}

/* A file of the job whose turn it is. Under the lock. */
static struct job_work_item *take_file(struct job_engine *engine)
{
	struct job *job = engine->storing_first;

	if (!job || engine->io_storing + 1 >= JOB_IO_WORKERS)
		return NULL;
	engine->storing_first = job->run.next_storing;
	if (!engine->storing_first)
		engine->storing_last = &engine->storing_first;
	struct job_work_item *work_item = job_work_items_take(&job->run.to_store);

	if (job->run.to_store.head)
		enlist(engine, job);
	return work_item;
}

static void *io_worker(void *arg)
{
	struct job_engine *engine = arg;

	pthread_mutex_lock(&engine->lock);
	for (;;) {
		struct job_work_item *work_item = job_work_items_take(&engine->for_io);
		struct job_work_item *file = work_item ? NULL : take_file(engine);

		if (!work_item && !file) {
			if (engine->io_stop && !engine->storing_first)
				break;
			pthread_cond_wait(&engine->io_wake, &engine->lock);
			continue;
		}
		work_item = work_item ? work_item : file;
		engine->io_storing += file != NULL;
		pthread_mutex_unlock(&engine->lock);
		work_item->code = work_item->work(work_item, work_item->error);
		job_post(work_item);
		pthread_mutex_lock(&engine->lock);
		engine->io_storing -= file != NULL;
		if (file && engine->storing_first) /* a place of those for files is free again */
			pthread_cond_signal(&engine->io_wake);
	}
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}

int job_io_start(struct job_engine *engine, struct err *err)
{
	struct rlimit limit;

	engine->storing_last = &engine->storing_first;
	engine->backlog = BACKLOG_LEAST; /* each file that waits is a descriptor */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		engine->backlog = MAX(BACKLOG_LEAST, MIN((size_t)BACKLOG_MOST, (size_t)(limit.rlim_cur / 4)));
	for (size_t i = 0; i < JOB_IO_WORKERS; i++) {
		int error = pthread_create(&engine->io_workers[i], NULL, io_worker, engine);

		if (error) {
			errno = error;
			return err_errno(err, "cannot start a thread for the job engine");
		}
		engine->n_io_workers++;
	}
	return 0;
}

void job_io_stop(struct job_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->io_stop = true;
	pthread_cond_broadcast(&engine->io_wake);
	pthread_mutex_unlock(&engine->lock);
	for (size_t i = 0; i < engine->n_io_workers; i++)
		pthread_join(engine->io_workers[i], NULL);
}
