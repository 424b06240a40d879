/* thread.c - see thread.h. */
#include "thread.h"

int thread_start(pthread_t *ret, bool detached, void *(*work)(void *arg), void *arg)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, THREAD_STACK_SIZE);
	pthread_attr_setdetachstate(&attributes, detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
	int error = pthread_create(ret, &attributes, work, arg);

	pthread_attr_destroy(&attributes);
	return error;
}
