/* server.c - see server.h. */
#include "server.h"

#include "lib/oauth/oauth_issuer.h"

const struct fixtures *server_fixtures;

int server_engine(struct server *server, struct job_engine **ret, struct err *err)
{
	int result = 0;

	pthread_mutex_lock(&server->lock);
	if (server->stopping)
		result = err_set(err, ERR_UNAVAILABLE, "the server is stopping: try again in a moment");
	else if (!server->engine &&
		 (result = job_engine_start(server->config, server->store, &server->engine, err)) == 0)
		job_engine_watch(server->engine, server->tell, server);
	if (result == 0)
		*ret = server->engine;
	pthread_mutex_unlock(&server->lock);
	return result;
}

void server_stop(struct server *server)
{
	pthread_mutex_lock(&server->lock);
	server->stopping = true;
	pthread_cond_broadcast(&server->stop);
	pthread_mutex_unlock(&server->lock);
	oauth_issuer_stop(server->issuer);
	if (server->store)
		store_hurry(server->store);
}

bool server_cancel(struct server *server, const char *execution)
{
	pthread_mutex_lock(&server->lock);
	const bool found = server->engine && job_engine_cancel(server->engine, execution);

	pthread_mutex_unlock(&server->lock);
	return found;
}

void server_drain(struct server *server)
{
	struct job_engine *engine = server->engine; /* it was started before server_stop, or is never */

	job_engine_drain(engine); /* meanwhile server_cancel finds it */
	pthread_mutex_lock(&server->lock);
	server->engine = NULL;
	pthread_mutex_unlock(&server->lock);
	job_engine_stop(engine);
}

int server_thread(pthread_t *ret, bool detached, void *(*work)(void *arg), void *arg)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, SERVER_STACK_SIZE);
	pthread_attr_setdetachstate(&attributes, detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
	int error = pthread_create(ret, &attributes, work, arg);

	pthread_attr_destroy(&attributes);
	return error;
}
