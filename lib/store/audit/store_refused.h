/*
 * store_refused.h - what limits and missing tokens refused, counted and written to the audit log: who was held up by
 * which limit, and how often.
 *
 * A stranger must not be able to fill the log. So the first refusal of a kind (and owner) is an entry at once, and the
 * next one follows STORE_REFUSED_US later and says how many there were since. Counts that are left are written hourly
 * and at the end.
 */
#pragma once

#include "store_audit.h"

#define STORE_REFUSED_US (60 * INT64_C(1000000)) /* between two entries of the same kind and owner */
#define STORE_REFUSED_KEPT                                                                                             \
	64 /* kinds and owners that are counted at a time; the one that was quiet longest gives way */

/* Whom it refused; NULL: not known. */
struct store_refused_who {
	const char *owner;
	const struct store_client *client;
};
/* One refusal, in the metrics too; an entry has the client of the last. `kind`: STORE_AUDIT_LIMIT (`word` is one of
 * METRIC_REJECTED's) or STORE_AUDIT_DENIED (of METRIC_AUTH's). `who` NULL: nobody knows. `store` NULL: only the metric.
 * From any thread; does not wait. */
void store_refused(struct store *store, enum store_audit_kind kind, const char *word,
		   const struct store_refused_who *who);
/* Writes the counts that were not written yet. */
void store_refused_write(struct store *store);

/* The entries from `since_us` on and before `until_us` (0: all), in no order. */
struct store_refusal {
	int64_t at_us, count;
	const char *object, *owner; /* "limit:rate", "auth:unknown"; gone after the callback */
};
int store_refused_list(struct store *store, int64_t since_us, int64_t until_us,
		       void (*each)(void *arg, const struct store_refusal *refusal), void *arg, struct err *err);
