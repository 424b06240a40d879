/*
 * server.h - what every request of this process shares: configuration, store, job engine, known sessions.
 *
 * cgi/server_start.c sets it up and knows what the members of the rooms above this one are; to what is here they are
 * pointers that are handed on. Thread-safe.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "hub.h"
#include "lib/base/config.h"
#include "lib/job/job_news.h"
#include "lib/store/record/store_token.h"
#include "sessions.h"

struct http_exchange;
struct mcp_call;
struct server;
struct skill;
/* Tools that no table lists, because they come and go: those of other servers. */
struct tool_provider {
	/* NULL: there is no such tool. One struct serves all of them. */
	const struct tool *(*find)(const struct server *server, const char *name);
	/* Appends those that the caller may call to the JSON array that tools/list gives; `list` ends with "]". */
	void (*list)(struct mcp_call *call, struct buf *list);
};
/* What clients are offered; each is ended by NULL. */
struct server_tables {
	const struct tool *const *tools;
	const struct prompt *const *prompts; /* arrays, each ended by {0} */
	const struct resource_provider *const *resources;
	const struct skill *skills; /* ended by {0}; NULL: none. Those of `next` are not asked for */
	const struct tool_provider *provider; /* NULL: none */
	const struct server_tables *next; /* is offered, too; NULL: nothing more */
};
/* What a gateway that is linked for the conformance suite has besides (tests/gateway): things that mean nothing, and
 * requests without a token. */
struct fixtures {
	int (*open)(struct server *server, struct err *err);
	int (*authenticate)(struct http_exchange *exchange); /* takes the place of access_token */
	struct server_tables tables;
};
/* Set before main by that link unit, where the environment asks for them; NULL in the programs that are installed. */
extern const struct fixtures *server_fixtures;

struct server {
	const struct config *config;
	struct store *store;
	struct sessions *sessions;
	struct hub *hub;
	struct limiter *limiter;
	struct oauth_issuer *issuer; /* of tokens that are not ours; NULL: there is none */
	struct oauth_front *front;   /* a front end that signs who its users are; NULL: there is none */
	struct oauth_server *oauth; /* our own (cgi/oauth/oauth_server.h); NULL: oauth.mode is not builtin */
	struct body_budget *bodies;
	struct server_tables tables;
	const struct fixtures *fixtures; /* server_fixtures */
	struct interpreters *interpreters;
	struct tools_cache *tools;
	struct tool_parked *parked; /* runs that wait for their users' answers */
	struct admin *admin;        /* sessions of the admin page; NULL: this process does not stay long enough */
	struct doors_line *doors;   /* requests that wait for a place (cgi/doors); NULL: no door is open */
	struct tasks *tasks;        /* NULL: this process does not stay long enough */
	struct news_listener *news; /* of other processes; NULL: this process does not stay long enough */
	struct job_news_sender news_sender; /* to other processes */
	void (*tell)(void *server, const struct job_news *news); /* of what the engine recorded */
	pthread_mutex_t lock;      /* guards what is below */
	struct job_engine *engine; /* NULL: not started */
	struct upstream *upstream; /* servers whose tools programs may call; NULL: none, or not started */
	struct bridge *bridge;     /* serves those programs; NULL: not started */
	bool stopping;
	pthread_cond_t stop;  /* `stopping` became true */
	bool expires;         /* the thread below was started */
	pthread_t expiry;     /* removes what is past its time */
	atomic_bool closing; /* requests that come now are refused: 503 */
};

/* The engine, started if need be; ERR_UNAVAILABLE once the server is stopping. */
int server_engine(struct server *server, struct job_engine **ret, struct err *err);
/* The operator ends a run of this process; false: it has none of this id. Any thread. */
bool server_cancel(struct server *server, const char *execution);
/* After server_stop: lets the jobs come to their end, cancels what is left, gives the engine back. */
void server_drain(struct server *server);
/* From now on server_engine refuses. Running jobs go on. */
void server_stop(struct server *server);

/* Starts a thread: there may be hundreds, so their stacks are small.
 * Runs, uploads and JSON at its depth limit touch 20 KiB of it (smaps of a gateway under the end-to-end tests).
 * Sanitizers need more. */
#ifdef __SANITIZE_ADDRESS__
#define SERVER_STACK_SIZE (2 * 1024 * 1024)
#else
#define SERVER_STACK_SIZE (128 * 1024)
#endif

/* 0, or the error's number, as of pthread_create(3). */
int server_thread(pthread_t *ret, bool detached, void *(*work)(void *arg), void *arg);
