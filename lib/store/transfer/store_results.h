/*
 * store_results.h - what a replay found, in a SQLite file of its own, so that an interrupted one can go on.
 *
 * A result belongs to an execution and to a key, which says everything that it depends on: runners and their versions,
 * what is compared, normalisers. A result is there as soon as store_results_put has returned, also when the process is
 * killed after that; nothing is synced, so a power cut may take the last ones away. Each shard of a replay writes a
 * file of its own; store_results_shard says of which it is. Thread-safe.
 *
 * Next to its report a result has the sums of what the run put out, as it was and as the normalisers of the key leave
 * it: two files of results are compared by them without running anything again (docs/batch.md).
 */
#pragma once

#include <stdbool.h>

#include "lib/store/store.h"

#define STORE_RESULTS_CLASS 32 /* bytes of a class's name */

struct store_results;
/* Made where it is missing, if `make`. ERR_INVALID: another program's file; ERR_CORRUPT: damaged; ERR_UNAVAILABLE: of a
 * newer version. */
int store_results_open(const char *path, bool make, struct store_results **ret, struct err *err);
void store_results_close(struct store_results *results); /* NULL is fine */

/* SHA-256 of a stream; "": it was not compared, or (normalised) is longer than STORE_RESULTS_NORMALISED. */
struct store_result_sum {
	char raw[SHA256_HEX_SIZE], normalised[SHA256_HEX_SIZE];
};
#define STORE_RESULTS_NORMALISED (1 << 20)

struct store_result {
	char class[STORE_RESULTS_CLASS];
	char recorded[3], now[3]; /* verdicts; "" where there is none */
	char *report;             /* JSON; the caller's to free */
	struct store_result_sum output, errors; /* store_results_get leaves them out */
};
int store_results_put(struct store_results *results, const char *execution, const char *key,
		      const struct store_result *result, struct err *err);
/* How many could not be put, and why the first of them. */
int64_t store_results_lost(struct store_results *results, struct err *ret_why);
/* 1 and *ret, or 0: there is none. */
int store_results_get(struct store_results *results, const char *execution, const char *key, struct store_result *ret,
		      struct err *err);

/* Which part of which replay the file has: `key` as for the results, shard `number` of `count`. */
struct store_shard {
	char key[SHA256_HEX_SIZE];
	int number, count;
};
int store_results_shard(struct store_results *results, const struct store_shard *shard, struct err *err);
/* 1 and the last one that was written, or 0. */
int store_results_shard_read(struct store_results *results, struct store_shard *ret, struct err *err);
