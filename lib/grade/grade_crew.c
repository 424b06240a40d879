/* grade_crew.c - see grade_crew.h. */
#include "grade_crew.h"

#include <signal.h>

#include "lib/base/util.h"

void grade_client_pointer(struct jail_client **client)
{
	jail_client_free(*client);
}

static void *thread_main(void *arg)
{
	struct grade_crew *crew = arg;
	auto_client struct jail_client *client = NULL;
	struct err err = ERR_INIT;
	_Alignas(max_align_t) char step[GRADE_STEP_MAX];
	enum grade_choice choice;
	void *own = NULL;
	sigset_t pipes;

	/* A write to a program that has ended fails, and the call reports it. */
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipes, NULL);
	pthread_mutex_lock(&crew->lock);
	if (crew->first)
		client = steal(crew->first);
	pthread_mutex_unlock(&crew->lock);
	int result = client ? 0 : crew->dial->connect(crew->dial->arg, &client, &err);

	pthread_mutex_lock(&crew->lock);
	if (result < 0 && !crew->failure.code)
		crew->failure = err;
	while (!crew->failure.code && !crew->over && (choice = crew->choose(crew->arg, step)) != GRADE_FINISHED) {
		if (choice == GRADE_WAIT) {
			pthread_cond_wait(&crew->changed, &crew->lock);
			continue;
		}
		pthread_mutex_unlock(&crew->lock);
		crew->act(crew->arg, client, &own, step);
		pthread_mutex_lock(&crew->lock);
		pthread_cond_broadcast(&crew->changed);
	}
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
	if (crew->leave && own)
		crew->leave(own);
	return NULL;
}

int grade_crew_run(struct grade_crew *crew, struct err *err)
{
	pthread_t threads[GRADE_JOBS_MAX];
	int jobs = MIN(MAX(crew->jobs, 1), GRADE_JOBS_MAX), started = 0;

	for (; started < jobs; started++)
		if (pthread_create(&threads[started], NULL, thread_main, crew)) {
			pthread_mutex_lock(&crew->lock);
			err_set(&crew->failure, ERR_SYSTEM, "cannot start a thread");
			pthread_mutex_unlock(&crew->lock);
			break;
		}
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	if (crew->failure.code) {
		*err = crew->failure;
		return -(int)err->code;
	}
	return 0;
}
