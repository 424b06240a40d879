/*
 * store_gc.c - see store_gc.h.
 *
 * The order is that of trust. Erasures that were begun are ended, so that what they doubted is known. Doubts are ended,
 * so that owners are charged for what is there. The index of texts loses what was erased. Then rows of contents go that
 * nothing names, asked once more in the transaction that removes them, and files that have no row. A file without a row
 * is harmless at any time, a row without its file never is. At last, without the lock, the index of texts gets what was
 * recorded, which takes minutes where it is far behind. Everything that writes goes through store_commit_gently.
 *
 * The log is emptied by a connection of its own that gives up at once where others read or write: waiting for them
 * would hold the writers back.
 */
#include "store_gc.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "lib/store/blob/store_blob_internal.h"
#include "lib/store/blob/store_search.h"
#include "lib/store/db/store_schema.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_record_internal.h"
#include "store_erase.h"
#include "store_reserve.h"

#define LOCK_NAME   "gc.lock"
#define LOG_BUSY_MS 20

static int lock(struct store *store, struct err *err)
{
	auto_close int fd = openat(store->dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || store_give(store, fd) < 0)
		return err_errno(err, "making %s/%s", store->path, LOCK_NAME);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? err_set(err, ERR_CONFLICT,
					 "another process collects garbage %s (the gateway does so every hour): try "
					 "again in a moment",
					 store->path)
			       : err_errno(err, "locking %s/%s", store->path, LOCK_NAME);
	return steal_fd(&fd);
}

static void tell(const struct store_gc *gc, const char *step, int64_t done, int64_t total)
{
	if (gc->progress != NULL)
		gc->progress(gc->arg, step, done, total);
}

static int count_garbage(struct store *store, int64_t limit_us, struct store_collected *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_BLOB_GARBAGE, err);

	query_bind_int(&q, ":limit", limit_us);
	int failed = query_next(&q, err);

	if (failed < 0)
		return failed;
	ret->contents = query_int(&q, GARBAGE_COUNT);
	ret->bytes = query_int(&q, GARBAGE_BYTES);
	ret->young = query_int(&q, GARBAGE_YOUNG);
	ret->young_bytes = query_int(&q, GARBAGE_YOUNG_BYTES);
	return 0;
}

/* -------- rows of contents ---------------------------------------------------------------------------- */

struct unused {
	char (*sums)[SHA256_HEX_SIZE];
	size_t count, room, done;
};

static int list_unused(struct store *store, int64_t limit_us, struct unused *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_BLOB_UNUSED, err);
	int found;

	query_bind_int(&q, ":limit", limit_us);
	while ((found = query_next(&q, err)) > 0) {
		if (ret->count == ret->room) {
			ret->room = 2 * ret->room + 64;
			ret->sums = xrealloc(ret->sums, ret->room, sizeof(*ret->sums));
		}
		query_copy(&q, 0, ret->sums[ret->count++], SHA256_HEX_SIZE);
	}
	return found;
}

static int unused_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct unused *unused = arg;
	const int64_t until = clock_monotonic_us() + STORE_BUDGET_US;
	int failed = 0;

	while (failed == 0 && unused->done < unused->count && clock_monotonic_us() < until) {
		auto_query struct query q = query_begin(txn->conn, SQL_BLOB_DELETE); /* asks again */

		query_bind_text(&q, ":sha256", unused->sums[unused->done++]);
		failed = query_run(&q, NULL, err);
	}
	return failed;
}

static int remove_rows(struct store *store, const struct store_gc *gc, int64_t limit_us, struct err *err)
{
	struct unused unused = {0};
	int failed = list_unused(store, limit_us, &unused, err);

	while (failed == 0 && unused.done < unused.count) {
		failed = store_commit_gently(store, unused_work, &unused, err);
		tell(gc, "contents", (int64_t)unused.done, (int64_t)unused.count);
	}
	free(unused.sums);
	return failed;
}

/* -------- pages of the database ----------------------------------------------------------------------- */

struct pages {
	bool vacuum;
	int64_t free, size;
};

static int pages_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct pages *pages = arg;
	int failed = 0;

	if (pages->vacuum) {
		auto_query struct query some = query_begin(txn->conn, SQL_VACUUM_SOME);

		failed = query_run(&some, NULL, err);
	}
	if (failed < 0)
		return failed;
	auto_query struct query q = query_begin(txn->conn, SQL_PAGES);

	failed = query_next(&q, err);
	if (failed < 0)
		return failed;
	pages->free = query_int(&q, PAGES_FREE);
	pages->size = query_int(&q, PAGES_SIZE);
	return 0;
}

static int give_pages_back(struct store *store, const struct store_gc *gc, struct store_collected *ret, struct err *err)
{
	struct pages pages = {.vacuum = false};
	int failed = store_commit(store, pages_work, &pages, err);
	const int64_t first = pages.free;
	int64_t before = first + 1;

	pages.vacuum = true;
	while (failed == 0 && gc->vacuum && !gc->dry && pages.free > 0 && pages.free < before) {
		before = pages.free;
		failed = store_commit_gently(store, pages_work, &pages, err);
		tell(gc, "pages", first - pages.free, first);
	}
	ret->pages_bytes = (first - pages.free) * pages.size;
	ret->free_bytes = pages.free * pages.size;
	return failed;
}

int store_empty_log(struct store *store, bool *ret_emptied, struct err *err)
{
	auto_free char *path = xasprintf("%s/sallyport.db", store->path);
	struct store_conn *conn;
	int version, failed = store_conn_open(path, STORE_CONN_WRITER, &conn, &version, err);

	if (failed < 0)
		return failed;
	sqlite3_busy_timeout(conn->db, LOG_BUSY_MS);
	*ret_emptied = sqlite3_wal_checkpoint_v2(conn->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) == SQLITE_OK;
	store_conn_close(conn);
	return 0;
}

/* -------- all ----------------------------------------------------------------------------------------- */

static int collect(struct store *store, const struct store_gc *gc, int64_t limit_us, struct store_collected *ret,
		   struct err *err)
{
	struct store_blob_gc files = {.limit_us = limit_us, .dry = gc->dry, .progress = gc->progress, .arg = gc->arg};
	int failed = gc->dry ? 0 : store_erase_resume(store, err);

	if (failed == 0 && !gc->dry)
		failed = store_holdings_settle(store, limit_us, err);
	if (failed == 0 && !gc->dry)
		failed = store_search_purge(store, err);
	if (failed == 0)
		failed = count_garbage(store, limit_us, ret, err);
	/* The rows are gone on disk before the first file goes. */
	if (failed == 0 && !gc->dry)
		failed = remove_rows(store, gc, limit_us, err);
	if (failed == 0)
		failed = store_blob_collect(store, &files, err);
	if (failed < 0)
		return failed;
	if (!gc->dry)
		ret->contents = ret->bytes = 0; /* what had a row is among the files now */
	if (!gc->dry)
		metrics_add(METRIC_SWEPT, "contents", NULL, files.removed);
	ret->contents += files.removed;
	ret->bytes += files.bytes;
	ret->young += files.young;
	ret->young_bytes += files.young_bytes;
	return give_pages_back(store, gc, ret, err);
}

int store_gc(struct store *store, const struct store_gc *gc, struct store_collected *ret, struct err *err)
{
	struct store_collected collected = {0};

	if (!gc->dry)
		store_reserve_release(store->path);
	auto_close int held = gc->dry ? -1 : lock(store, err);

	if (held < 0 && !gc->dry)
		return held;
	int failed = collect(store, gc, gc->now_us - STORE_BLOB_GRACE_US, &collected, err);

	if (failed < 0)
		return err_wrap(err, "collecting garbage");
	if (!gc->dry)
		store_reserve_keep(store);
	close_pointer(&held); /* the index may be far behind, and nobody waits for it */
	held = -1;
	failed = gc->dry ? 0 : store_search_fill(store, err);
	if (failed < 0)
		return failed;
	*ret = collected;
	return 0;
}
