/*
 * store_retain.c - the rules of the configuration's group retention: content that is too old, and owners above their
 * cap. See store_erase.h.
 *
 * Where the oldest give way (store_space.h), runs of an owner above the cap are erased until nine tenths of it are
 * used. What that frees counts until it may leave the disk, so the contents in doubt are left out of the sum: else
 * every run of the owner would go. The thread of the gateway that does this waits until a call has found an owner above
 * the cap.
 */
#include "lib/base/log.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_erase.h"
#include "store_retention_internal.h"

#define RUNS_AT_ONCE 16

static int erase_older(struct store *store, enum store_erase_what what, int64_t before_us, const char *rule,
		       struct err *err)
{
	const struct store_erase erase = {.what = what, .before_us = before_us, .why = rule, .retention = true};
	struct store_erased erased = {0};

	return store_erase_runs(store, &erase, &erased, err);
}

/* The next owner above the cap behind `after`, in *ret. 1: there is one. */
static int next_owner(struct store *store, const char *after, char ret[STORE_OWNER_MAX + 1], struct err *err)
{
	auto_read struct query q = store_read(store, SQL_USAGE_ABOVE, err);

	query_bind_text(&q, ":after", after);
	query_bind_int(&q, ":cap", store->retention.owner_bytes);
	int found = query_next(&q, err);

	if (found > 0)
		query_copy(&q, 0, ret, STORE_OWNER_MAX + 1);
	return found;
}

static int firm_bytes(struct store *store, const char *owner, int64_t *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_USAGE_FIRM, err);

	query_bind_text(&q, ":owner", owner);
	int failed = query_next(&q, err);

	if (failed < 0)
		return failed;
	*ret = query_int(&q, 0);
	return 0;
}

static int make_room(struct store *store, const char *owner, struct err *err)
{
	const struct store_erase erase = {.what = STORE_ERASE_CONTENT,
					  .owner = owner,
					  .before_us = INT64_MAX,
					  .limit = RUNS_AT_ONCE,
					  .why = "retention.owner_mb",
					  .retention = true};
	const int64_t enough = store->retention.owner_bytes / 10 * 9;
	int64_t used = 0, before;
	struct store_erased erased = {0};
	int failed = firm_bytes(store, owner, &used, err);

	while (failed == 0 && used > enough) {
		before = erased.executions;
		failed = store_erase_runs(store, &erase, &erased, err);
		if (failed == 0 && erased.executions == before)
			break; /* the rest are files of conversations, and runs in progress */
		if (failed == 0)
			failed = firm_bytes(store, owner, &used, err);
	}
	return failed;
}

static int make_rooms(struct store *store, struct err *err)
{
	char owner[STORE_OWNER_MAX + 1] = "", next[STORE_OWNER_MAX + 1];
	int found;

	while ((found = next_owner(store, owner, next, err)) > 0) {
		snprintf(owner, sizeof(owner), "%s", next);
		found = make_room(store, owner, err);
		if (found < 0)
			break;
	}
	return found;
}

int store_retain(struct store *store, int64_t now_us, struct err *err)
{
	const struct store_retention *rules = &store->retention;
	int failed = 0;

	if (rules->execution_ttl_us > 0)
		failed = erase_older(store, STORE_ERASE_CONTENT, now_us - rules->execution_ttl_us,
				     "retention.execution_days", err);
	if (failed == 0 && rules->output_ttl_us > 0)
		failed = erase_older(store, STORE_ERASE_OUTPUT, now_us - rules->output_ttl_us, "retention.output_days",
				     err);
	if (failed == 0 && rules->oldest && rules->owner_bytes > 0)
		failed = make_rooms(store, err);
	return failed;
}

/* -------- the gateway's thread ------------------------------------------------------------------------ */

static void *retainer(void *arg)
{
	struct store *store = arg;
	struct store_retainer *own = &store->retainer;
	struct err err = ERR_INIT;

	pthread_mutex_lock(&own->lock);
	while (!own->stopping) {
		if (!own->wanted) {
			pthread_cond_wait(&own->wake, &own->lock);
			continue;
		}
		own->wanted = false;
		pthread_mutex_unlock(&own->lock);
		if (make_rooms(store, &err) < 0)
			log_event(LOG_ERROR, "making room failed", "error", err.text, NULL);
		pthread_mutex_lock(&own->lock);
	}
	pthread_mutex_unlock(&own->lock);
	return NULL;
}

void store_retain_start(struct store *store)
{
	if (store->mode == STORE_SERVE && store->retention.oldest && !store->retainer.started)
		store->retainer.started = pthread_create(&store->retainer.thread, NULL, retainer, store) == 0;
}

void store_retain_stop(struct store *store)
{
	pthread_mutex_lock(&store->retainer.lock);
	store->retainer.stopping = true;
	pthread_cond_signal(&store->retainer.wake);
	pthread_mutex_unlock(&store->retainer.lock);
	if (store->retainer.started)
		pthread_join(store->retainer.thread, NULL);
	store->retainer.started = false;
}
