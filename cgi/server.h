/*
 * server.h - what every request of this process shares: configuration, store, job engine, known sessions.
 *
 * The gateway sets all of it up before the first request. As a plain CGI program only what the request needs is set up:
 * server_engine starts the engine when the first tool asks for it. Thread-safe.
 */
#pragma once

#include <pthread.h>

#include "../lib/config.h"
#include "../lib/job.h"
#include "../lib/store.h"
#include "hub.h"
#include "interpreters.h"
#include "sessions.h"

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
	struct news_listener *news; /* of other processes; NULL: nobody here would want them */
	pthread_mutex_t lock;      /* guards the three below */
	struct job_engine *engine; /* NULL: not started */
	bool stopping;
};

/* Whoever serves HTTP needs a public_base_url. */
int server_check_url(const struct config *config, struct err *err);
/* Opens the store and starts what `mode` asks for: STORE_SERVE everything, STORE_WRITE (plain CGI) the store only. */
int server_open(struct server *server, const struct config *config, enum store_mode mode, struct err *err);
/* The engine, started if need be; ERR_UNAVAILABLE once the server is stopping. */
int server_engine(struct server *server, struct job_engine **ret, struct err *err);
/* store_expire, and tells listeners that there is less. */
int server_expire(struct server *server, int64_t now_us, struct err *err);
/* From now on server_engine refuses. Running jobs go on. */
void server_stop(struct server *server);
/* Nobody may use the server any more: drains the jobs and gives everything back. */
void server_close(struct server *server);
