/*
 * oauth_issuer_internal.h - what the two halves of oauth_issuer share: requests (oauth_issuer.c) and threads that fetch
 * (oauth_issuer_fetch.c). Everything is called under the lock.
 */
#pragma once

#include <pthread.h>

#include "oauth_claims.h"
#include "oauth_issuer.h"
#include "oauth_remote.h"

#define SECOND   INT64_C(1000000)
#define FETCHERS 4
#define SLOTS    8192

struct key_set {
	struct oauth_keys *keys;
	int users; /* the issuer counts as one */
};

struct verdict {
	uint8_t sum[SHA256_SIZE];
	int64_t until_us; /* monotonic */
	uint64_t keys;    /* of which attempt its keys are; 0: it was introspected */
	int code;         /* 0, -ERR_DENIED, -ERR_NOT_FOUND */
	struct oauth_who who;
};

struct flight {
	struct flight *next;
	char *token;
	uint8_t sum[SHA256_SIZE];
	bool taken, landed;
	int users; /* requests that wait, and the thread that asks */
	int code;
	struct err err;
	struct oauth_who who;
};

struct oauth_issuer {
	const struct config *config;
	struct oauth_rules rules;
	const char *audiences[2]; /* where the configuration names none */
	struct oauth_remote remote;
	pthread_mutex_t lock; /* guards what is below */
	pthread_cond_t changed;
	struct key_set *set;      /* NULL: no keys */
	uint64_t generation;      /* of the set: 1 is the first one */
	int64_t due_us, stale_us; /* monotonic: when they are asked for again, and when they do not count any more */
	int64_t unknown_us;       /* when they were asked for because of an unknown key; 0: never */
	uint64_t attempts;
	bool wanted, fetching, failing;
	int waiters;
	struct flight *flights;
	int n_flights;
	double credit; /* of introspections */
	int64_t credit_us;
	struct verdict *slots[SLOTS];
	pthread_t threads[FETCHERS];
	int n_threads;
	bool stopping;
};

static inline size_t oauth_issuer_slot(const uint8_t sum[SHA256_SIZE])
{
	return ((size_t)sum[0] << 8 | sum[1]) % SLOTS;
}

/* Remembers a verdict. `keys`: the generation of the keys that it was checked with; 0: none. */
void oauth_issuer_keep(struct oauth_issuer *issuer, const uint8_t sum[SHA256_SIZE], uint64_t keys, int code,
		       const struct oauth_who *who);
/* Gives a use of it back; the last one frees it. NULL is fine. */
void oauth_issuer_leave_set(struct key_set *set);
void oauth_issuer_leave_flight(struct flight *flight);
void oauth_issuer_free_flight(struct flight *flight);
/* Those that fetch, unless they were started before. ERR_UNAVAILABLE: there is none. */
int oauth_issuer_start_threads(struct oauth_issuer *issuer, struct err *err);
