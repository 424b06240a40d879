/* oauth_issuer_fetch.c - see oauth_issuer_internal.h, and oauth_issuer.c, which says how it works. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/util.h"
#include "oauth_issuer_internal.h"

#define GOOD_US      (60 * SECOND) /* a verdict is kept */
#define BAD_US       (10 * SECOND)
#define AGE_US       (3600 * SECOND) /* of keys, where the issuer does not say */
#define AGE_MIN      300             /* seconds */
#define AGE_MAX      (24 * 3600)
#define STALE_US     (24 * 3600 * SECOND)
#define AGAIN_US     (2 * SECOND)  /* between two questions while there are no keys */
#define AGAIN_OLD_US (30 * SECOND) /* while there are old ones */
#define STACK        (512 * 1024)

void oauth_issuer_leave_set(struct key_set *set)
{
	if (set == NULL || --set->users > 0)
		return;
	oauth_keys_free(set->keys);
	free(set);
}

void oauth_issuer_free_flight(struct flight *flight)
{
	explicit_bzero(flight->token, strlen(flight->token));
	free(flight->token);
	free(flight);
}

void oauth_issuer_keep(struct oauth_issuer *issuer, const uint8_t sum[SHA256_SIZE], uint64_t keys, int code,
		       const struct oauth_who *who)
{
	struct verdict **slot = &issuer->slots[oauth_issuer_slot(sum)];

	if (*slot == NULL)
		*slot = xcalloc(1, sizeof(**slot));
	**slot = (struct verdict){
		.until_us = clock_monotonic_us() + (code == 0 ? GOOD_US : BAD_US), .keys = keys, .code = code};
	memcpy((*slot)->sum, sum, SHA256_SIZE);
	if (code == 0)
		(*slot)->who = *who;
}

/* -------- threads that fetch -------------------------------------------------------------------------- */

/* Under the lock. */
static void take_keys(struct oauth_issuer *issuer, int result, struct oauth_keys *keys, int64_t age_seconds)
{
	const int64_t now_us = clock_monotonic_us();

	issuer->failing = result < 0;
	issuer->attempts++;
	if (result < 0) {
		issuer->due_us = now_us + (issuer->set != NULL ? AGAIN_OLD_US : AGAIN_US);
		if (issuer->set != NULL && issuer->stale_us <= now_us) {
			oauth_issuer_leave_set(issuer->set);
			issuer->set = NULL;
		}
		return;
	}
	oauth_issuer_leave_set(issuer->set);
	issuer->set = xcalloc(1, sizeof(*issuer->set));
	*issuer->set = (struct key_set){keys, 1};
	issuer->generation++;
	issuer->due_us = now_us + (age_seconds < 0 ? AGE_US : MIN(MAX(age_seconds, AGE_MIN), AGE_MAX) * SECOND);
	issuer->stale_us = now_us + STALE_US;
}

/* Under the lock, which it gives up while it asks. */
static void fetch_keys(struct oauth_issuer *issuer)
{
	struct oauth_keys *keys = NULL;
	struct err err = ERR_INIT;
	int64_t age = -1;

	issuer->wanted = false;
	issuer->fetching = true;
	pthread_mutex_unlock(&issuer->lock);
	int result = oauth_remote_keys(&issuer->remote, &keys, &age, &err);

	if (result < 0)
		log_event(LOG_WARN, "keys of the issuer are not available", "error", err.text, NULL);
	pthread_mutex_lock(&issuer->lock);
	take_keys(issuer, result, keys, age);
	issuer->fetching = false;
}

/* What the issuer says of a token, as far as its claims are good here. */
static int introspect(struct oauth_issuer *issuer, const char *token, struct oauth_who *ret, struct err *err)
{
	auto_json struct json_object *claims = NULL;
	int result = oauth_remote_introspect(&issuer->remote, token, &claims, err);

	if (result == 0)
		result = oauth_claims_check(claims, &issuer->rules, true, clock_now_us(), err);
	return result < 0 ? result : oauth_who_read(issuer->config, claims, ret, err);
}

void oauth_issuer_leave_flight(struct flight *flight)
{
	if (--flight->users == 0)
		oauth_issuer_free_flight(flight);
}

/* Under the lock, which it gives up while it asks. */
static void fly(struct oauth_issuer *issuer, struct flight *flight)
{
	flight->taken = true;
	flight->users++;
	pthread_mutex_unlock(&issuer->lock);
	const int code = introspect(issuer, flight->token, &flight->who, &flight->err);

	pthread_mutex_lock(&issuer->lock);
	flight->code = code;
	flight->landed = true;
	if (code == 0 || code == -ERR_DENIED || code == -ERR_NOT_FOUND)
		oauth_issuer_keep(issuer, flight->sum, 0, code, &flight->who);
	struct flight **at = &issuer->flights;

	while (*at != flight)
		at = &(*at)->next;
	*at = flight->next;
	issuer->n_flights--;
	oauth_issuer_leave_flight(flight);
}

static void *fetch_main(void *arg)
{
	struct oauth_issuer *issuer = arg;

	pthread_mutex_lock(&issuer->lock);
	while (!issuer->stopping) {
		struct flight *flight = issuer->flights;

		while (flight != NULL && flight->taken)
			flight = flight->next;
		if (issuer->wanted && !issuer->fetching)
			fetch_keys(issuer);
		else if (flight != NULL)
			fly(issuer, flight);
		else {
			pthread_cond_wait(&issuer->changed, &issuer->lock);
			continue;
		}
		pthread_cond_broadcast(&issuer->changed);
	}
	pthread_mutex_unlock(&issuer->lock);
	return NULL;
}

int oauth_issuer_start_threads(struct oauth_issuer *issuer, struct err *err)
{
	pthread_attr_t attributes;
	sigset_t all, before;

	if (issuer->n_threads > 0)
		return 0;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (issuer->n_threads < FETCHERS) {
		errno = pthread_create(&issuer->threads[issuer->n_threads], &attributes, fetch_main, issuer);
		if (errno != 0)
			break;
		issuer->n_threads++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (issuer->n_threads > 0)
		return 0;
	err_errno(err, "starting a thread");
	return err_set(err, ERR_UNAVAILABLE, "no thread can ask the issuer");
}
