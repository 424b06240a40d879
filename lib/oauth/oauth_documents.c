/*
 * oauth_documents.c - see oauth_documents.h.
 *
 * Each fetch has a thread of its own, of which there are few; the request waits for it under one lock. A request that
 * has waited long enough leaves, and the thread cleans up. At the end the threads that are under way are waited for:
 * their transfers look at `stop` all the time.
 *
 * Credits are counted for all hosts together and by host, in places that a hash chooses: hosts that share a place share
 * its credit. A fetch that failed makes requests for the same address wait for half a minute: an error is never kept as
 * an answer.
 */
#include "oauth_documents.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "lib/base/host.h"
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "oauth_client.h"
#include "oauth_fetch.h"

#define SECOND    INT64_C(1000000)
#define MINUTE_US (60 * SECOND)
#define FAILED_US (30 * SECOND)
#define AGE       3600 /* seconds, where the host does not say */
#define AGE_MIN   300
#define AGE_MAX   (24 * 3600)
#define STALE_US  (7 * 24 * 3600 * SECOND)
#define PLACES    256
#define STACK     (512 * 1024)

struct credit {
	int64_t left_us, seen_us; /* a fetch costs a minute divided by how many there may be in one */
};

struct flight {
	struct oauth_documents *documents;
	char *url;
	bool landed, left; /* the request that waits has gone */
	int code;
	struct err err;
	struct oauth_fetched fetched;
};

struct oauth_documents {
	const struct config *config;
	struct store *store;
	atomic_bool stop;
	pthread_mutex_t lock; /* guards what is below */
	pthread_cond_t changed;
	int flights;
	struct credit all, hosts[PLACES];
	struct {
		uint64_t url;
		int64_t until_us;
	} failed[PLACES];
};

struct oauth_documents *oauth_documents_new(const struct config *config, struct store *store)
{
	struct oauth_documents *documents = xcalloc(1, sizeof(*documents));
	pthread_condattr_t attributes;

	documents->config = config;
	documents->store = store;
	pthread_mutex_init(&documents->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&documents->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	oauth_fetch_begin();
	return documents;
}

void oauth_documents_stop(struct oauth_documents *documents)
{
	if (documents == NULL)
		return;
	documents->stop = true;
	pthread_mutex_lock(&documents->lock);
	pthread_cond_broadcast(&documents->changed);
	pthread_mutex_unlock(&documents->lock);
}

void oauth_documents_free(struct oauth_documents *documents)
{
	if (documents == NULL)
		return;
	oauth_documents_stop(documents);
	pthread_mutex_lock(&documents->lock);
	while (documents->flights > 0)
		pthread_cond_wait(&documents->changed, &documents->lock);
	pthread_mutex_unlock(&documents->lock);
	pthread_cond_destroy(&documents->changed);
	pthread_mutex_destroy(&documents->lock);
	free(documents);
}

/* -------- fetching ------------------------------------------------------------------------------------ */

static void free_flight(struct flight *flight)
{
	oauth_fetched_clear(&flight->fetched);
	free(flight->url);
	free(flight);
}

static void *flight_main(void *arg)
{
	struct flight *flight = arg;
	struct oauth_documents *documents = flight->documents;
	const bool here = oauth_redirect_local(documents->config);
	const struct oauth_fetch what = {.url = flight->url,
					 .ca_file = documents->config->oauth.ca_file,
					 .max = OAUTH_CLIENT_BYTES,
					 .trust = here ? OAUTH_FETCH_STRANGER_HERE : OAUTH_FETCH_STRANGER,
					 .stop = &documents->stop};
	const int code = oauth_fetch(&what, &flight->fetched, &flight->err);

	pthread_mutex_lock(&documents->lock);
	flight->code = code;
	flight->landed = true;
	if (flight->left)
		free_flight(flight);
	documents->flights--;
	pthread_cond_broadcast(&documents->changed);
	pthread_mutex_unlock(&documents->lock);
	return NULL;
}

static bool take_credit(struct credit *credit, int64_t a_minute)
{
	const int64_t cost = MINUTE_US / a_minute, now = clock_monotonic_us();

	credit->left_us = credit->seen_us ? MIN(credit->left_us + now - credit->seen_us, MINUTE_US) : MINUTE_US;
	credit->seen_us = now;
	if (credit->left_us < cost)
		return false;
	credit->left_us -= cost;
	return true;
}

/* Under the lock: may this address be asked now? */
static bool may_fetch(struct oauth_documents *documents, const char *url)
{
	const uint64_t hash = fnv1a(FNV1A_BEGIN, url, strlen(url));
	struct host_url parts;

	if (documents->stop || documents->flights >= OAUTH_DOCUMENTS_FLIGHTS || host_url_parse(url, &parts) < 0)
		return false;
	if (documents->failed[hash % PLACES].url == hash &&
	    documents->failed[hash % PLACES].until_us > clock_monotonic_us())
		return false;
	const uint64_t host = fnv1a(FNV1A_BEGIN, parts.host, strlen(parts.host));

	return take_credit(&documents->hosts[host % PLACES], OAUTH_DOCUMENTS_HOST) &&
	       take_credit(&documents->all, OAUTH_DOCUMENTS_MINUTE);
}

static void note_failure(struct oauth_documents *documents, const char *url)
{
	const uint64_t hash = fnv1a(FNV1A_BEGIN, url, strlen(url));

	pthread_mutex_lock(&documents->lock);
	documents->failed[hash % PLACES].url = hash;
	documents->failed[hash % PLACES].until_us = clock_monotonic_us() + FAILED_US;
	pthread_mutex_unlock(&documents->lock);
}

/* Under the lock. */
static int start(struct oauth_documents *documents, struct flight *flight, struct err *err)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = pthread_create(&thread, &attributes, flight_main, flight);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (errno != 0) {
		err_errno(err, "starting a thread");
		return -ERR_UNAVAILABLE;
	}
	documents->flights++;
	return 0;
}

/* Under the lock: until the flight has landed, or the time is up. */
static bool wait_for(struct oauth_documents *documents, const struct flight *flight)
{
	struct timespec until;
	int waited = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += OAUTH_DOCUMENTS_SECONDS;
	while (waited == 0 && !flight->landed && !documents->stop)
		waited = pthread_cond_timedwait(&documents->changed, &documents->lock, &until);
	return flight->landed;
}

/* *ret is the caller's also on failure. */
static int fetch(struct oauth_documents *documents, const char *url, struct oauth_fetched *ret, struct err *err)
{
	struct flight *flight = NULL;
	int result = 0;

	pthread_mutex_lock(&documents->lock);
	if (!may_fetch(documents, url)) {
		result = err_set(err, ERR_BUSY, "too many documents are asked for: try again in a minute");
	} else {
		flight = xcalloc(1, sizeof(*flight));
		flight->documents = documents;
		flight->url = xstrdup(url);
		result = start(documents, flight, err);
	}
	if (result == 0 && !wait_for(documents, flight)) {
		flight->left = true; /* its thread cleans up */
		flight = NULL;
		result = err_set(err, ERR_UNAVAILABLE, "its host does not answer");
	}
	pthread_mutex_unlock(&documents->lock);
	if (result == 0) {
		result = flight->code;
		if (err != NULL)
			*err = flight->err;
		*ret = flight->fetched;
		flight->fetched = (struct oauth_fetched){0};
	}
	if (flight != NULL)
		free_flight(flight);
	return result;
}

/* -------- documents ----------------------------------------------------------------------------------- */

static int fetch_client(struct oauth_documents *documents, const char *id, struct store_oauth_client *ret,
			struct err *err)
{
	auto_fetched struct oauth_fetched fetched = {0};
	const int64_t now = clock_now_us();
	int result = fetch(documents, id, &fetched, err);

	if (result == -ERR_BUSY)
		return result;
	if (result == 0 && fetched.status != 200)
		result = err_set(err, ERR_UNAVAILABLE, "its host answers with status %d", fetched.status);
	if (result == 0)
		result = oauth_client_document(documents->config, id, fetched.body.data, fetched.body.length, ret, err);
	if (result < 0) {
		note_failure(documents, id);
		return result == -ERR_INVALID ? result : -ERR_UNAVAILABLE;
	}
	const int64_t age = fetched.max_age_seconds < 0 ? AGE : MIN(MAX(fetched.max_age_seconds, AGE_MIN), AGE_MAX);

	ret->fetched_us = now;
	ret->fresh_us = now + age * SECOND;
	return 0;
}

/* What counts while the host does not answer. */
static bool take_copy(struct oauth_documents *documents, const char *id, struct store_oauth_client *kept,
		      struct store_oauth_client *ret)
{
	if (kept->redirects != NULL && kept->fetched_us + STALE_US > clock_now_us()) {
		*ret = *kept;
		kept->redirects = NULL;
		return true;
	}
	return documents->config->oauth.known_clients && oauth_client_known(id, ret);
}

int oauth_documents_client(struct oauth_documents *documents, const char *id, struct store_oauth_client *ret,
			   struct err *err)
{
	auto_oauth_client struct store_oauth_client kept = {.redirects = NULL};
	struct store_oauth_client client = {.redirects = NULL};
	int result = store_oauth_client_find(documents->store, id, &kept, err);

	if (result < 0 && result != -ERR_NOT_FOUND)
		return result;
	if (kept.redirects != NULL && (kept.blocked_us != 0 || kept.fresh_us > clock_now_us())) {
		*ret = kept;
		kept.redirects = NULL;
		return 0;
	}
	result = fetch_client(documents, id, &client, err);
	if (result < 0) {
		if (result == -ERR_INVALID || !take_copy(documents, id, &kept, &client))
			return result;
		log_event(LOG_WARN, "a copy of a client's document is used", "client", id, "error",
			  err != NULL ? err->text : "", NULL);
	}
	if ((result = store_oauth_client_put(documents->store, &client, err)) < 0) {
		store_oauth_client_clear(&client);
		return result;
	}
	*ret = client;
	return 0;
}
