/*
 * server.h - what every request of this process shares: configuration, store, job engine, known sessions.
 *
 * Who stays (the gateway, stdio) sets all of it up before the first request. As a plain CGI program only what the
 * request needs is set up: server_engine starts the engine when the first tool asks for it. Thread-safe.
 */
#pragma once

#include <pthread.h>

#include "cgi/http/hub.h"
#include "cgi/http/sessions.h"
#include "cgi/tool/interpreters.h"
#include "lib/base/config.h"
#include "lib/job/job_news.h"
#include "lib/store/store_token.h"

#define SERVER_EXPIRE_SECONDS 3600 /* between two server_expire */

struct tasks;
struct news_listener;
struct server {
	const struct config *config;
	struct store *store;
	struct sessions *sessions;
	struct hub *hub;
	struct interpreters interpreters;
	struct store_token open_token; /* profile conformance: whose requests without a token are */
	struct limiter *limiter;
	struct tasks *tasks; /* NULL: this process does not stay long enough */
	struct tools_cache *tools;
	struct news_listener *news; /* of other processes; NULL: this process does not stay long enough */
	struct job_news_sender news_sender; /* to other processes */
	pthread_mutex_t lock;      /* guards the three below */
	struct job_engine *engine; /* NULL: not started */
	bool stopping;
};

/* Whoever serves HTTP needs a public_base_url. */
int server_check_url(const struct config *config, struct err *err);
/* Opens the store, and what one request needs. */
int server_open(struct server *server, const struct config *config, enum store_mode mode, struct err *err);
/* What a process has besides that serves more than one request: tasks, news of other processes, the engine from the
 * beginning; and what is past its time goes. */
int server_stay(struct server *server, struct err *err);
/* The engine, started if need be; ERR_UNAVAILABLE once the server is stopping. */
int server_engine(struct server *server, struct job_engine **ret, struct err *err);
/* store_expire, and tells those whose list has become shorter. */
int server_expire(struct server *server, int64_t now_us, struct err *err);
/* From now on server_engine refuses. Running jobs go on. */
void server_stop(struct server *server);
/* Nobody may use the server any more: drains the jobs and gives everything back. */
void server_close(struct server *server);
