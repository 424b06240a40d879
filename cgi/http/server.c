/* server.c - see server.h. */
#include "server.h"

const struct fixtures *server_fixtures;

/* Under the lock. */
static int start_engine(struct server *server, struct err *err)
{
	int result = job_engine_start(server->config, server->store, &server->engine, err);

	if (result == 0)
		job_engine_watch(server->engine, server->tell, server);
	return result;
}

int server_engine(struct server *server, struct job_engine **ret, struct err *err)
{
	int result = 0;

	pthread_mutex_lock(&server->lock);
	if (server->stopping)
		result = err_set(err, ERR_UNAVAILABLE, "the server is stopping: try again in a moment");
	else if (!server->engine)
		result = start_engine(server, err);
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
