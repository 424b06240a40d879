/* grade_crew.c - see grade_crew.h. */
#include "grade_crew.h"

#include <signal.h>

#include "lib/base/util.h"

struct seat {
	struct grade_crew *crew;
	int index;
};

static int jobs_of(const struct grade_crew *crew)
{
	return MIN(MAX(crew->jobs, 1), GRADE_JOBS_MAX);
}

static void fail(struct grade_crew *crew, const struct err *err)
{
	pthread_mutex_lock(&crew->lock);
	if (!crew->failure.code)
		crew->failure = *err;
	pthread_cond_broadcast(&crew->changed);
	pthread_mutex_unlock(&crew->lock);
}

/* A thread a seat, until all have ended. */
static int fill_seats(struct grade_crew *crew, void *(*thread_main)(void *), struct err *err)
{
	pthread_t threads[GRADE_JOBS_MAX];
	struct seat seats[GRADE_JOBS_MAX];
	int started = 0;

	for (; started < jobs_of(crew); started++) {
		struct err failure = ERR_INIT;

		seats[started] = (struct seat){crew, started};
		if (pthread_create(&threads[started], NULL, thread_main, &seats[started])) {
			err_set(&failure, ERR_SYSTEM, "cannot start a thread");
			fail(crew, &failure);
			break;
		}
	}
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	if (crew->failure.code) {
		*err = crew->failure;
		return -(int)err->code;
	}
	return 0;
}

static void *dial_main(void *arg)
{
	const struct seat *seat = arg;
	struct grade_crew *crew = seat->crew;
	struct err err = ERR_INIT;

	struct jail_client **client = &crew->clients[seat->index];
	int count = MIN(jobs_of(crew) - seat->index, GRADE_CREW_SHARES);

	if (seat->index % GRADE_CREW_SHARES == 0 && !*client &&
	    crew->dial->connect(crew->dial->arg, client, (size_t)count, &err) < 0)
		fail(crew, &err);
	return NULL;
}

int grade_crew_dial(struct grade_crew *crew, struct err *err)
{
	return fill_seats(crew, dial_main, err);
}

static void *work_main(void *arg)
{
	const struct seat *seat = arg;
	struct grade_crew *crew = seat->crew;
	_Alignas(max_align_t) char step[GRADE_STEP_MAX];
	enum grade_choice choice;
	void *own = NULL;
	sigset_t pipes;

	/* A write to a program that has ended fails, and the call reports it. */
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipes, NULL);
	pthread_mutex_lock(&crew->lock);
	while (!crew->failure.code && !crew->over && (choice = crew->choose(crew->arg, step)) != GRADE_FINISHED) {
		if (choice == GRADE_WAIT) {
			pthread_cond_wait(&crew->changed, &crew->lock);
			continue;
		}
		pthread_mutex_unlock(&crew->lock);
		crew->act(crew->arg, crew->clients[seat->index], &own, step);
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
	int result = grade_crew_dial(crew, err);

	return result < 0 ? result : fill_seats(crew, work_main, err);
}

static void *hang_up_main(void *arg)
{
	const struct seat *seat = arg;

	jail_client_free(steal(&seat->crew->clients[seat->index]));
	return NULL;
}

void grade_crew_clear(struct grade_crew *crew)
{
	struct err err = ERR_INIT;

	fill_seats(crew, hang_up_main, &err);
}
