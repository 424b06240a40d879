/* Tasks between the threads of the job engine: the keepers' queue for slow disk work, the reactor's inbox. */
#include "job_internal.h"

#include <errno.h>
#include <unistd.h>

void job_tasks_add(struct job_tasks *tasks, struct job_task *task)
{
	task->next = NULL;
	if (tasks->tail)
		tasks->tail->next = task;
	else
		tasks->head = task;
	tasks->tail = task;
}

struct job_task *job_tasks_take(struct job_tasks *tasks)
{
	struct job_task *task = tasks->head;

	if (task)
		tasks->head = task->next;
	if (!tasks->head)
		tasks->tail = NULL;
	return task;
}

void job_wake_reactor(struct job_engine *engine)
{
	const uint64_t one = 1;

	/* Fails only when the counter is full, and then the reactor is awake anyway. */
	if (write(engine->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void job_post(struct job_engine *engine, struct job_task *task)
{
	pthread_mutex_lock(&engine->lock);
	job_tasks_add(&engine->inbox, task);
	pthread_mutex_unlock(&engine->lock);
	job_wake_reactor(engine);
}

void job_keep(struct job_engine *engine, struct job_task *task)
{
	pthread_mutex_lock(&engine->lock);
	job_tasks_add(&engine->keep, task);
	pthread_cond_signal(&engine->keep_more);
	pthread_mutex_unlock(&engine->lock);
}

static void *keeper(void *arg)
{
	struct job_engine *engine = arg;
	struct job_task *task;

	pthread_mutex_lock(&engine->lock);
	for (;;) {
		while (!(task = job_tasks_take(&engine->keep)) && !engine->keepers_stop)
			pthread_cond_wait(&engine->keep_more, &engine->lock);
		if (!task)
			break;
		pthread_mutex_unlock(&engine->lock);
		task->work(task);
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
	pthread_cond_broadcast(&engine->keep_more);
	pthread_mutex_unlock(&engine->lock);
	for (size_t i = 0; i < engine->n_keepers; i++)
		pthread_join(engine->keepers[i], NULL);
}
