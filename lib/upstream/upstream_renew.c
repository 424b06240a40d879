/*
 * upstream_renew.c - see upstream_renew.h.
 *
 * Everything but renew_main belongs to the upstream thread. What is held of a server is looked at before each request:
 * one stat(2) says whether another process wrote the file anew. When a token is due, or was refused, a thread is
 * started, which takes the lock of the login, reads the file once more (another process may have been faster, and a
 * refresh token counts once), asks the issuer, writes the file and wakes the upstream thread, which joins it and takes
 * the result. Until then the requests to this server wait, and no others.
 *
 * A grant that the issuer does not know any more is taken out of the file, so that nobody asks again; the client's
 * registration stays, unless it is what the issuer does not know.
 */
#include "upstream_renew.h"

#include <pthread.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/oauth/oauth_fetch.h"
#include "upstream_grant.h"

#define SECOND   INT64_C(1000000)
#define AGAIN_US (5 * SECOND)  /* between two questions to an issuer that is away */
#define LEAST_US (10 * SECOND) /* a server that refuses a younger token refuses the next one, too */
#define STACK    (512 * 1024)

struct renewals {
	const struct config *config;
	void (*wake)(void *arg);
	void *arg;
	atomic_bool stop;
	struct held *held;
};

struct held {
	struct held *next;
	struct renewals *renewals;
	const struct upstream_server *server;
	struct upstream_login login;
	uint64_t version, generation;
	int64_t not_before_us, renewed_us; /* monotonic; 0: never */
	char problem[ERR_TEXT_SIZE];       /* of the last renewal; "": none */
	bool final;                        /* only a person can help */
	bool running;
	pthread_t thread;
	/* The thread's, until `done`: */
	struct upstream_login fresh; /* begins as a copy of the token that is not good any more */
	uint64_t written;            /* version of the file when it left the lock */
	struct err err;
	int result;
	atomic_bool done;
};

struct renewals *upstream_renew_open(const struct config *config, void (*wake)(void *arg), void *arg)
{
	struct renewals *renewals = xcalloc(1, sizeof(*renewals));

	renewals->config = config;
	renewals->wake = wake;
	renewals->arg = arg;
	oauth_fetch_begin();
	return renewals;
}

void upstream_renew_close(struct renewals *renewals)
{
	if (renewals == NULL)
		return;
	renewals->stop = true;
	for (struct held *held; (held = renewals->held) != NULL;) {
		renewals->held = held->next;
		if (held->running)
			pthread_join(held->thread, NULL);
		upstream_login_clear(&held->login);
		upstream_login_clear(&held->fresh);
		free(held);
	}
	free(renewals);
}

/* -------- the thread that asks ------------------------------------------------------------------------ */

static bool same(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && streq(a, b));
}

/* Under the lock of the login. `old`: the token that is not good any more. */
static int renew(struct held *held, const char *old)
{
	const char *data_dir = held->renewals->config->data_dir;
	struct upstream_login *fresh = &held->fresh;
	struct err problem = ERR_INIT;
	int result = upstream_login_read(data_dir, held->server, fresh, &held->err);

	if (result < 0)
		return result;
	if (fresh->access_token != NULL && !same(fresh->access_token, old) &&
	    !upstream_login_due(fresh, clock_now_us()))
		return 0; /* another process was faster */
	result = upstream_grant_renew(held->server, &held->renewals->stop, fresh, &held->err);
	if (result < 0 && result != -ERR_DENIED)
		return result;
	if (result == -ERR_DENIED) {
		upstream_login_set(&fresh->access_token, NULL);
		upstream_login_set(&fresh->refresh_token, NULL);
	}
	/* It is used all the same: until this process ends it works. */
	if (upstream_login_write(data_dir, held->server, fresh, &problem) < 0)
		log_event(LOG_ERROR, "renewed tokens cannot be kept", "server", held->server->name, "error",
			  problem.text, NULL);
	return result;
}

static void *renew_main(void *arg)
{
	struct held *held = arg;
	struct renewals *renewals = held->renewals;
	auto_free char *old = steal(&held->fresh.access_token);
	auto_close int lock =
		upstream_login_lock(renewals->config->data_dir, held->server, &renewals->stop, &held->err);

	held->result = lock < 0 ? lock : renew(held, old);
	held->written = upstream_login_version(renewals->config->data_dir, held->server);
	if (old != NULL)
		explicit_bzero(old, strlen(old));
	fd_close(&lock);
	held->done = true;
	renewals->wake(renewals->arg);
	return NULL;
}

/* -------- the upstream thread ------------------------------------------------------------------------- */

static struct held *held_of(struct renewals *renewals, const struct upstream_server *server)
{
	for (struct held *held = renewals->held; held != NULL; held = held->next)
		if (held->server == server)
			return held;
	struct held *held = xcalloc(1, sizeof(*held));

	held->renewals = renewals;
	held->server = server;
	held->next = renewals->held;
	renewals->held = held;
	return held;
}

static void take_login(struct held *held, struct upstream_login *login)
{
	upstream_login_clear(&held->login);
	held->login = *login;
	*login = (struct upstream_login){0};
	held->generation++;
	held->problem[0] = '\0';
	held->final = false;
	held->not_before_us = 0;
}

/* Only a person can help. */
static void need_person(struct held *held, const char *why)
{
	held->final = true;
	snprintf(held->problem, sizeof(held->problem),
		 "its sign-in has ended (%.300s): sallyport upstream login %.100s", why, held->server->name);
	log_event(LOG_WARN, "upstream server needs a sign-in", "server", held->server->name, NULL);
}

/* The thread has ended: what it found. */
static void take_result(struct held *held)
{
	pthread_join(held->thread, NULL);
	held->running = false;
	held->version = held->written;
	if (held->result == 0) {
		take_login(held, &held->fresh);
		held->renewed_us = clock_monotonic_us();
		log_event(LOG_INFO, "upstream token renewed", "server", held->server->name, NULL);
	} else if (held->result == -ERR_DENIED || held->result == -ERR_NOT_FOUND) {
		need_person(held, held->err.text);
	} else {
		held->not_before_us = clock_monotonic_us() + AGAIN_US;
		snprintf(held->problem, sizeof(held->problem), "its token cannot be renewed now: %.400s",
			 held->err.text);
		log_event(LOG_WARN, "upstream token not renewed", "server", held->server->name, "error", held->err.text,
			  NULL);
	}
	upstream_login_clear(&held->fresh);
}

static void begin(struct held *held)
{
	pthread_attr_t attributes;

	held->err = ERR_INIT;
	held->done = false;
	upstream_login_set(&held->fresh.access_token, held->login.access_token);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	held->running = pthread_create(&held->thread, &attributes, renew_main, held) == 0;
	pthread_attr_destroy(&attributes);
	if (held->running)
		return;
	snprintf(held->problem, sizeof(held->problem), "no thread can renew its token");
	held->not_before_us = clock_monotonic_us() + AGAIN_US;
}

/* What another process wrote. */
static void look_at_file(struct held *held)
{
	const uint64_t version = upstream_login_version(held->renewals->config->data_dir, held->server);
	struct upstream_login login = {0};
	struct err err = ERR_INIT;

	if (version == held->version)
		return;
	held->version = version;
	int result = version != 0 ? upstream_login_read(held->renewals->config->data_dir, held->server, &login, &err)
				  : -ERR_NOT_FOUND;

	if (result == 0) {
		take_login(held, &login);
		return;
	}
	upstream_login_clear(&held->login);
	held->generation = 0;
	if (result != -ERR_NOT_FOUND)
		log_event(LOG_WARN, "a sign-in cannot be read", "server", held->server->name, "error", err.text, NULL);
}

static enum renew_state state_of(struct held *held)
{
	const struct upstream_login *login = &held->login;
	const int64_t now_us = clock_now_us();

	if (held->generation == 0)
		return RENEW_NOTHING;
	if (held->final)
		return RENEW_FAILED;
	if (login->access_token != NULL && (login->refresh_token == NULL || !upstream_login_due(login, now_us)))
		return RENEW_READY;
	if (login->refresh_token == NULL) {
		need_person(held, "there are no tokens");
		return RENEW_FAILED;
	}
	if (held->not_before_us <= clock_monotonic_us())
		begin(held);
	if (held->running)
		return RENEW_WAITS;
	return login->access_token != NULL && now_us < login->expires_us ? RENEW_READY : RENEW_FAILED;
}

enum renew_state upstream_renew_look(struct renewals *renewals, const struct upstream_server *server,
				     struct renew_view *ret)
{
	*ret = (struct renew_view){0};
	if (!upstream_login_possible(server) || renewals->config->data_dir[0] == '\0')
		return RENEW_NOTHING;
	struct held *held = held_of(renewals, server);

	if (held->running && !held->done)
		return RENEW_WAITS;
	if (held->running)
		take_result(held);
	look_at_file(held);
	const enum renew_state state = state_of(held);

	*ret = (struct renew_view){held->generation, &held->login, held->problem};
	return state;
}

bool upstream_renew_refused(struct renewals *renewals, const struct upstream_server *server, uint64_t generation)
{
	struct renew_view view;
	const enum renew_state state = upstream_renew_look(renewals, server, &view);
	struct held *held;

	if (state == RENEW_NOTHING || state == RENEW_FAILED)
		return false;
	if (state == RENEW_WAITS || view.generation != generation)
		return true;
	held = held_of(renewals, server);
	if (held->login.refresh_token == NULL) {
		need_person(held, "the server refuses the token");
		return false;
	}
	if (held->renewed_us != 0 && clock_monotonic_us() - held->renewed_us < LEAST_US)
		return false;
	begin(held);
	return held->running;
}
