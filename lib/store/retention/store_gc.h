/*
 * store_gc.h - the garbage collection: gives the disk back what the record does not name any more.
 *
 * Ends erasures that a killed process left (store_erase.h), ends doubts about what owners hold, removes rows and files
 * of contents that nothing names and that were not put or wanted for STORE_BLOB_GRACE_US. `sallyport gc` and the
 * gateway's hourly expiry run this. It works next to a gateway that serves, in transactions of few milliseconds; a lock
 * (gc.lock) keeps it to one process at a time. Killed anywhere, it is begun anew by the next one: rows go before files.
 */
#pragma once

#include "lib/store/store.h"

#define STORE_BLOB_GRACE_US                                                                                            \
	(6 * 3600 * 1000000ll) /* longer than a call can wait in its queue between putting a file and naming it */

struct store_gc {
	int64_t now_us;
	bool dry;    /* only counts */
	bool vacuum; /* free pages of the database go back to the disk */
	void (*progress)(void *arg, const char *step, int64_t done, int64_t total); /* NULL: nobody asks */
	void *arg;
};
struct store_collected {
	int64_t contents, bytes;    /* gone */
	int64_t young, young_bytes; /* nothing names them; they go when they are old enough */
	int64_t pages_bytes;        /* of the database that went back to the disk */
	int64_t free_bytes;         /* of it that are free now, and used for what comes next */
};
/* ERR_CONFLICT: another process collects garbage. */
int store_gc(struct store *store, const struct store_gc *gc, struct store_collected *ret, struct err *err);
/* What was erased leaves the write-ahead log, too: it is folded into the database and emptied. Where others use it, it
 * is not, and *ret_emptied is false: they do so by and by. */
int store_empty_log(struct store *store, bool *ret_emptied, struct err *err);
