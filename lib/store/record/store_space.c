/* store_space.c - see store_space.h. */
#include "store_space.h"

#include <sys/statvfs.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_refused.h"
#include "lib/store/db/store_txn.h"

#define MEGABYTE (1024 * 1024)
#define SLACK    (64ll * MEGABYTE) /* above the cap, while room is made */

static struct store_free free_of(const struct statvfs *space)
{
	return (struct store_free){
		.bytes = (int64_t)space->f_bavail * (int64_t)space->f_frsize,
		.inodes = space->f_files > 0 ? (int64_t)space->f_favail : INT64_MAX,
	};
}

int store_free_space(const char *data_dir, struct store_free *ret, struct err *err)
{
	struct statvfs space;

	if (statvfs(data_dir, &space) < 0)
		return err_errno(err, "asking for the space in %s", data_dir);
	*ret = free_of(&space);
	return 0;
}

int store_space_check(struct store *store, struct err *err)
{
	const struct store_retention *retention = &store->retention;
	struct statvfs space;

	if (fstatvfs(store->dir_fd, &space) < 0)
		return err_errno(err, "asking for the server's free disk space");
	const struct store_free left = free_of(&space);

	if (left.bytes < retention->free_bytes)
		return err_set(
			err, ERR_UNAVAILABLE,
			"the server's disk is almost full: %lld MiB are free, and nothing starts below %lld MiB "
			"(retention.free_mb): the operator must make room outside of the data folder, or erase old "
			"content (sallyport forget), try again later",
			(long long)left.bytes / MEGABYTE, (long long)retention->free_bytes / MEGABYTE);
	if (left.inodes < retention->free_inodes)
		return err_set(err, ERR_UNAVAILABLE,
			       "the server's disk is almost full: %lld inodes are free, and nothing starts below %lld "
			       "(retention.free_inodes): the operator must free some outside of the data folder, "
			       "or erase old content (sallyport forget), try again later",
			       (long long)left.inodes, (long long)retention->free_inodes);
	return 0;
}

/* The bytes of the owner; with the content of `more`, where it is new to the owner. */
static int used_with(struct store_txn *txn, const struct store_more *more, int64_t *ret_used, int64_t *ret_new,
		     struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_USAGE_OF);

	query_bind_text(&q, ":owner", more->owner);
	query_bind_text(&q, ":blob", more->blob);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	*ret_used = query_int(&q, USAGE_BYTES);
	*ret_new = more->bytes + (more->blob != NULL && !query_int(&q, USAGE_HELD) ? more->size : 0);
	return 0;
}

int store_txn_room(struct store_txn *txn, const struct store_more *more, struct err *err)
{
	const bool oldest = txn->store->retention.oldest;
	const int64_t cap = txn->store->retention.owner_bytes;
	int64_t used = 0, added = 0;
	int failed = cap > 0 ? used_with(txn, more, &used, &added, err) : 0;

	if (failed < 0 || cap <= 0 || added == 0 || used + added <= cap)
		return failed;
	if (oldest) {
		struct store_retainer *retainer = &txn->store->retainer;

		pthread_mutex_lock(&retainer->lock);
		retainer->wanted = true;
		pthread_cond_signal(&retainer->wake);
		pthread_mutex_unlock(&retainer->lock);
		if (used + added <= cap + MAX(cap / 4, SLACK))
			return 0;
	}
	store_refused(txn->store, STORE_AUDIT_LIMIT, "owner_mb",
	              &(struct store_refused_who){.owner = more->owner});
	return err_set(err, ERR_LIMIT,
		       "the record of owner %s has %.1f MiB and may have %.1f MiB (retention.owner_mb); %.1f MiB more do "
		       "not fit: %s",
		       more->owner, (double)used / MEGABYTE, (double)cap / MEGABYTE, (double)added / MEGABYTE,
		       oldest ? "the oldest runs give way, but not files of conversations, nor what was stored in the "
				"last hours"
			      : "the operator can raise the limit, or remove old content (sallyport forget)");
}
