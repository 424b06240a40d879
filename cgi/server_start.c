/*
 * server_start.c - see server_start.h.
 *
 * Nothing that grows with the record is on the way of a start: what is past its time, contents that nothing names and
 * the index of texts are left to a thread, which begins with the service, goes on hourly, and ends at its next step
 * when the server stops.
 */
#include "server_start.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "cgi/admin/admin_session.h"
#include "cgi/doors/doors.h"
#include "cgi/http/access.h"
#include "cgi/http/body.h"
#include "cgi/mcp/resource_news.h"
#include "cgi/mcp/resource_record.h"
#include "cgi/mcp/skills.h"
#include "cgi/mcp/tasks.h"
#include "cgi/mcp/tools_cache.h"
#include "cgi/oauth/oauth_server.h"
#include "cgi/tool/interpreters.h"
#include "cgi/tool/prompt_tools.h"
#include "cgi/tool/resource_app.h"
#include "cgi/tool/resource_capabilities.h"
#include "cgi/tool/snippets.h"
#include "cgi/tool/tool_direct.h"
#include "cgi/tool/tool_park.h"
#include "cgi/tool/tool_table.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/bridge/bridge.h"
#include "lib/oauth/oauth_front.h"
#include "lib/oauth/oauth_issuer.h"
#include "lib/store/audit/store_audit_config.h"
#include "lib/store/blob/store_search.h"
#include "lib/store/record/store_file.h"
#include "lib/store/retention/store_expire.h"

static const struct resource_provider *const providers[] = {&resource_guide,        &resource_skills, &resource_record,
							    &resource_capabilities, &resource_app,    NULL};

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
	int result = store_reap(server->store, err);

	return result < 0 ? result : store_expire(server->store, now_us, tell_lost, server, err);
}

#define BACKLOG_TOLD 1000 /* runs without which the log is silent about the index of texts */

/* The index of texts is filled at last, and may have minutes of work left: the log says so. */
static void tell_backlog(struct server *server)
{
	auto_free char *runs = NULL;
	int64_t backlog = 0;

	if (store_search_backlog(server->store, &backlog, NULL) < 0 || backlog < BACKLOG_TOLD)
		return;
	runs = xasprintf("%lld", (long long)backlog);
	log_event(LOG_INFO, "the index of texts is behind and catches up meanwhile", "runs", runs, NULL);
}

/* At the start, then each hour, in a thread of its own: neither start nor stop waits for it. */
static void *expire_main(void *arg)
{
	struct server *server = arg;

	pthread_mutex_lock(&server->lock);
	while (!server->stopping) {
		struct err err = ERR_INIT;
		struct timespec until;
		int waited = 0;

		pthread_mutex_unlock(&server->lock);
		tell_backlog(server);
		int result = server_expire(server, clock_now_us(), &err);

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += SERVER_EXPIRE_SECONDS;
		pthread_mutex_lock(&server->lock);
		if (result < 0 && !server->stopping)
			log_event(LOG_ERROR, "expiry failed", "error", err.text, NULL);
		while (!server->stopping && waited == 0)
			waited = pthread_cond_timedwait(&server->stop, &server->lock, &until);
	}
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

static int start_expiry(struct server *server, struct err *err)
{
	errno = server_thread(&server->expiry, false, expire_main, server);
	server->expires = errno == 0;
	return server->expires ? 0 : err_errno(err, "starting a thread");
}

int server_open(struct server *server, const struct config *config, enum store_mode mode, struct err *err)
{
	*server = (struct server){.config = config, .tell = resource_news, .fixtures = server_fixtures};
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->stop, NULL);
	server->interpreters = interpreters_new();
	server->parked = tool_parked_new();
	if (!config->data_dir[0])
		return err_member(err, "data_dir", "must be set in the configuration: the folder of the database");
	int result = store_open(config->data_dir, mode, &server->store, err);
	if (result < 0)
		return err_wrap(err, "opening the database");
	if ((result = snippets_import(server->store, config, err)) < 0)
		return result;
	if (config_oauth(config) == CONFIG_OAUTH_EXTERNAL &&
	    (result = oauth_issuer_open(config, &server->issuer, err)) < 0)
		return result;
	if (config_oauth(config) == CONFIG_OAUTH_BUILTIN &&
	    (result = oauth_server_open(config, server->store, &server->oauth, err)) < 0)
		return result;
	if ((result = oauth_front_open(config, &server->front, err)) < 0 ||
	    (result = access_trusted_check(config, err)) < 0)
		return result;
	job_set_retention(config, server->store);
	server->tables = (struct server_tables){
		.tools = tool_table,
		.prompts = prompt_table,
		.provider = tool_direct_provider(config),
		.resources = providers,
		.skills = skill_table,
		.next = server->fixtures ? &server->fixtures->tables : NULL,
	};
	server->sessions = sessions_new(server->store);
	server->hub = hub_new(server->store);
	server->limiter = access_limiter_new();
	server->bodies = body_budget_new();
	server->tools = tools_cache_new();
	return server->fixtures ? server->fixtures->open(server, err) : 0;
}

#define TAG_SIZE 8 /* digits: another secret has another tag, and no tag says which */

static void tag_secret(void *server, const char *secret, struct buf *out)
{
	char sum[SHA256_HEX_SIZE];

	store_sign(((struct server *)server)->store, secret, strlen(secret), sum);
	buf_printf(out, "secret %.*s", TAG_SIZE, sum);
}

/* The configuration of this start, by its sum, and what of it is another than at the last one. */
static int log_config(struct server *server, struct err *err)
{
	auto_buf struct buf text = {0};
	char sum[SHA256_HEX_SIZE];

	buf_init(&text, SIZE_MAX / 2);
	json_print(&text, server->config->document);
	sha256_hex(text.data, text.length, sum);
	auto_json struct json_object *shown = config_shown(server->config, tag_secret, server);

	return store_audit_config(server->store, shown, sum, err);
}

int server_stay(struct server *server, struct err *err)
{
	struct job_engine *engine;
	int result = log_config(server, err);

	if (result == 0)
		result = news_listen(server, &server->news, err);

	if (result < 0)
		return err_wrap(err, "listening for news of other processes");
	server->tasks = tasks_new(server);
	server->admin = admin_session_table_new();
	result = start_expiry(server, err);
	if (result == 0)
		result = upstream_open(server->config, &server->upstream, err);
	if (result < 0)
		return result;
	if (server->upstream) {
		tool_direct_watch(server);
		upstream_warm(server->upstream);
	}
	result = server_engine(server, &engine, err);
	/* A desktop client shows no log: it is served, and each call that needs a jail says why there is none. */
	if (result < 0 && server->config->stays) {
		log_event(LOG_ERROR, "programs cannot run", "error", err->text, NULL);
		*err = ERR_INIT;
		result = 0;
	}
	return result < 0 ? result : doors_open(server, err);
}

void server_close(struct server *server)
{
	server_stop(server);
	doors_stop(server);
	if (server->expires)
		pthread_join(server->expiry, NULL);
	tool_parked_stop(server->parked);
	server_drain(server);
	doors_close(server);
	bridge_stop(server->bridge);
	upstream_close(server->upstream);
	tasks_free(server->tasks);
	tool_parked_free(server->parked);
	admin_session_table_free(server->admin);
	tools_cache_free(server->tools);
	oauth_issuer_close(server->issuer);
	oauth_front_close(server->front);
	oauth_server_close(server->oauth);
	access_limiter_free(server->limiter);
	body_budget_free(server->bodies);
	sessions_free(server->sessions);
	news_leave(server->news);
	hub_free(server->hub);
	store_close(server->store);
	interpreters_free(server->interpreters);
	pthread_cond_destroy(&server->stop);
	pthread_mutex_destroy(&server->lock);
	*server = (struct server){0};
}
