/* server.c - see server.h. */
#include "server.h"

#include <string.h>

#include "conformance.h"
#include "cgi/http/access.h"
#include "cgi/mcp/resource_news.h"
#include "cgi/mcp/tasks.h"
#include "cgi/tool/tools_cache.h"
#include "lib/base/util.h"
#include "lib/store/store_expire.h"

#define DAY_US (24 * 3600 * 1000000LL)

/* The fixtures' requests come without a token, but what runs needs an owner: nobody ever sees this token's text. */
static int open_to_all(struct server *server, struct err *err)
{
	char text[STORE_TOKEN_TEXT];

	if (!conformance_on(server->config))
		return 0;
	int result =
		store_token_add(server->store, "conformance", "profile conformance", text, &server->open_token, err);

	explicit_bzero(text, sizeof(text));
	return result;
}

int server_check_url(const struct config *config, struct err *err)
{
	if (!config->public_base_url[0])
		return err_member(err, "public_base_url",
				  "must be set in the configuration: download URLs begin with it");
	return 0;
}

static void tell_lost(void *server, const char *owner)
{
	resource_news(server, &(struct job_news){.owner = owner, .conversation = ""});
}

int server_expire(struct server *server, int64_t now_us, struct err *err)
{
	return store_expire(server->store, now_us, tell_lost, server, err);
}

int server_open(struct server *server, const struct config *config, enum store_mode mode, struct err *err)
{
	*server = (struct server){.config = config};
	pthread_mutex_init(&server->lock, NULL);
	interpreters_init(&server->interpreters);
	if (!config->data_dir[0])
		return err_member(err, "data_dir", "must be set in the configuration: the folder of the database");
	int result = store_open(config->data_dir, mode, &server->store, err);

	if (result < 0)
		return err_wrap(err, "opening the database");
	store_set_retention(server->store, config->retention.owner_mb << 20,
			    config->retention.conversation_days * DAY_US);
	server->sessions = sessions_new(server->store);
	server->hub = hub_new();
	server->limiter = limiter_new();
	server->tools = tools_cache_new();
	return open_to_all(server, err);
}

int server_stay(struct server *server, struct err *err)
{
	struct job_engine *engine;
	int result = news_listen(server, &server->news, err);

	if (result < 0)
		return err_wrap(err, "listening for news of other processes");
	server->tasks = tasks_new(server);
	result = server_expire(server, clock_now_us(), err);
	if (result < 0)
		return err_wrap(err, "removing what is past its time");
	return server_engine(server, &engine, err);
}

/* Under the lock. */
static int start_engine(struct server *server, struct err *err)
{
	int result = job_engine_start(server->config, server->store, &server->engine, err);

	if (result == 0)
		job_engine_watch(server->engine, resource_news, server);
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
	pthread_mutex_unlock(&server->lock);
}

void server_close(struct server *server)
{
	server_stop(server);
	job_engine_stop(server->engine);
	tasks_free(server->tasks);
	tools_cache_free(server->tools);
	limiter_free(server->limiter);
	sessions_free(server->sessions);
	news_leave(server->news);
	hub_free(server->hub);
	store_close(server->store);
	interpreters_clear(&server->interpreters);
	pthread_mutex_destroy(&server->lock);
	*server = (struct server){0};
}
