/* store_refused.c - see store_refused.h. */
#include "store_refused.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

static void write_entry(struct store *store, const struct store_refused_count *count, int64_t refusals)
{
	struct store_audit entry;

	store_audit_init(&entry, count->kind, count->kind == STORE_AUDIT_LIMIT ? "limit" : "auth", count->word);
	entry.owner = count->owner[0] != '\0' ? count->owner : NULL;
	store_audit_int(&entry, "count", refusals);
	store_audit_client(&entry, &count->client);
	store_audit_later(store, &entry);
}

/* Under the lock: the place that counts these, emptied where it counted others. *ret_gone: what it had counted. */
static struct store_refused_count *place_of(struct store_refused_counts *counts, const struct store_refused_count *of,
					    struct store_refused_count *ret_gone)
{
	struct store_refused_count *quiet = &counts->items[0];

	for (size_t i = 0; i < STORE_REFUSED_KEPT; i++) {
		struct store_refused_count *count = &counts->items[i];

		if (count->kind == of->kind && streq(count->word, of->word) && streq(count->owner, of->owner))
			return count;
		if (count->written_us < quiet->written_us)
			quiet = count;
	}
	*ret_gone = *quiet;
	*quiet = *of;
	return quiet;
}

void store_refused(struct store *store, enum store_audit_kind kind, const char *word,
		   const struct store_refused_who *who)
{
	struct store_refused_count of = {.kind = kind, .written_us = INT64_MIN / 2}, gone = {0};
	const int64_t now = clock_monotonic_us();
	int64_t refusals = 0;

	metrics_add(kind == STORE_AUDIT_LIMIT ? METRIC_REJECTED : METRIC_AUTH, word, NULL, 1);
	if (store == NULL || !store->writer_started)
		return;
	snprintf(of.word, sizeof(of.word), "%s", word);
	snprintf(of.owner, sizeof(of.owner), "%s", who != NULL && who->owner != NULL ? who->owner : "");
	if (who != NULL && who->client != NULL)
		of.client = *who->client;
	pthread_mutex_lock(&store->refused.lock);
	struct store_refused_count *count = place_of(&store->refused, &of, &gone);

	count->waiting++;
	count->client = of.client;
	if (now - count->written_us >= STORE_REFUSED_US) {
		refusals = count->waiting;
		count->waiting = 0;
		count->written_us = now;
	}
	pthread_mutex_unlock(&store->refused.lock);
	if (gone.waiting > 0)
		write_entry(store, &gone, gone.waiting);
	if (refusals > 0)
		write_entry(store, &of, refusals);
}

void store_refused_write(struct store *store)
{
	for (size_t i = 0; i < STORE_REFUSED_KEPT; i++) {
		pthread_mutex_lock(&store->refused.lock);
		const struct store_refused_count count = store->refused.items[i];

		store->refused.items[i].waiting = 0;
		pthread_mutex_unlock(&store->refused.lock);
		if (count.waiting > 0)
			write_entry(store, &count, count.waiting);
	}
}

int store_refused_list(struct store *store, int64_t since_us, int64_t until_us,
		       void (*each)(void *arg, const struct store_refusal *refusal), void *arg, struct err *err)
{
	enum { AT, OBJECT, OWNER, COUNT };
	auto_read struct query q = store_read(store, SQL_AUDIT_REFUSED, err);
	int found;

	query_bind_int(&q, ":since", since_us);
	query_bind_int(&q, ":until", until_us > 0 ? until_us : INT64_MAX);
	while ((found = query_next(&q, err)) > 0) {
		const struct store_refusal refusal = {.at_us = query_int(&q, AT),
						      .count = query_int(&q, COUNT),
						      .object = query_text(&q, OBJECT),
						      .owner = query_text(&q, OWNER)};

		each(arg, &refusal);
	}
	return found;
}
