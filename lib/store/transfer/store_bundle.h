/*
 * store_bundle.h - executions in one SQLite file, with all that is needed to run them again, from one database to
 * another.
 *
 * A bundle has the rows of executions, their files, tags and live sandboxes, and every content that they name. It is
 * written next to its place and renamed. Environment variables are in it in clear, or by name only; of declared
 * secrets only the names were ever stored. A replay elsewhere needs those values from its caller. A bundle is somebody
 * else's text: store_bundle_open checks all of it before anything is written: its schema must be ours to the letter
 * (so no trigger, view or expression of somebody else is ever run), each content must have its hash, each name must be
 * one of a file below /data.
 */
#pragma once

#include "lib/store/store.h"

struct store_bundle;
void store_bundle_close(struct store_bundle *bundle); /* NULL is fine; one that was not finished is removed */

int store_bundle_new(const char *path, struct store_bundle **ret, struct err *err);
/* From now on environment variables are added by name only, as {"NAME":false}, but for FILE_BASE_URL, which is ours. */
void store_bundle_leave_env(struct store_bundle *bundle);
/* An execution that is over, and the runs of its sandbox before it; once more does no harm. */
int store_bundle_add(struct store_bundle *bundle, struct store *store, const char *id, struct err *err);
/* Adds the contents and puts the file in its place. */
int store_bundle_finish(struct store_bundle *bundle, struct store *store, struct err *err);

/* ERR_INVALID: no bundle, or not as it must be; ERR_UNAVAILABLE: of another version; ERR_CORRUPT: a hash is wrong. */
int store_bundle_open(const char *path, struct store_bundle **ret, struct err *err);
struct store_carried {
	int64_t executions, added;
	int64_t tags; /* that runs did not have */
};
/* In one transaction; what is there already stays as it is, and gets generations and tags that it lacks. Counts are
 * added to *ret. */
int store_bundle_import(struct store_bundle *bundle, struct store *store, struct store_carried *ret, struct err *err);
