/*
 * store_holding.c - which contents count for which owner (tables holding and usage).
 *
 * A pair of owner and content comes by a trigger with the first row that names the content. Whether it may go when one
 * such row goes is not known at once: another file, another version, another run of the owner may name the content,
 * too. So the pair is doubted then, and the garbage collection looks, in transactions of few pairs. A pair whose
 * content cannot leave the disk yet (STORE_BLOB_GRACE_US) stays: what an owner is charged is what the disk holds.
 */
#include "lib/base/util.h"
#include "lib/store/blob/store_blob_internal.h"
#include "lib/store/db/store_txn.h"
#include "store_record_internal.h"

#define PAIRS 64 /* in one transaction: each looks at some thousand rows at most */

struct pair {
	char owner[STORE_OWNER_MAX + 1], blob[SHA256_HEX_SIZE];
};
struct pairs {
	struct pair items[PAIRS];
	size_t count;
	int64_t blob_limit_us;
};

/* The doubted ones behind `last`. */
static int list(struct store *store, const struct pair *last, struct pairs *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_HOLDING_DOUBTED, err);
	int found;

	query_bind_text(&q, ":owner", last->owner);
	query_bind_text(&q, ":blob", last->blob);
	query_bind_int(&q, ":limit", PAIRS);
	for (ret->count = 0; ret->count < PAIRS && (found = query_next(&q, err)) != 0; ret->count++) {
		if (found < 0)
			return found;
		query_copy(&q, HOLDING_OWNER, ret->items[ret->count].owner, sizeof(ret->items->owner));
		query_copy(&q, HOLDING_BLOB, ret->items[ret->count].blob, sizeof(ret->items->blob));
	}
	return 0;
}

static int settle_one(struct store_txn *txn, const struct pair *pair, struct err *err)
{
	auto_query struct query look = query_begin(txn->conn, SQL_HOLDING_REFERRED);

	query_bind_text(&look, ":owner", pair->owner);
	query_bind_text(&look, ":blob", pair->blob);
	int found = query_next(&look, err);

	if (found < 0)
		return found;
	auto_query struct query q =
		query_begin(txn->conn, query_int(&look, 0) ? SQL_HOLDING_BELIEVE : SQL_HOLDING_DROP);

	query_bind_text(&q, ":owner", pair->owner);
	query_bind_text(&q, ":blob", pair->blob);
	return query_run(&q, NULL, err);
}

static int settle_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct pairs *pairs = arg;
	int failed = 0;

	for (size_t i = 0; failed == 0 && i < pairs->count; i++)
		if (!store_blob_fresh(txn->store, pairs->items[i].blob, pairs->blob_limit_us))
			failed = settle_one(txn, &pairs->items[i], err);
	return failed;
}

int store_holdings_settle(struct store *store, int64_t blob_limit_us, struct err *err)
{
	struct pairs pairs = {.blob_limit_us = blob_limit_us};
	struct pair last = {"", ""};
	int failed;

	do {
		failed = list(store, &last, &pairs, err);
		if (failed == 0 && pairs.count > 0) {
			last = pairs.items[pairs.count - 1];
			failed = store_commit_gently(store, settle_work, &pairs, err);
		}
	} while (failed == 0 && pairs.count > 0);
	return failed;
}

int store_txn_hold_imported(struct store_txn *txn, const char *id, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_IMPORT_HOLD);

	query_bind_text(&q, ":id", id);
	int failed = query_run(&q, NULL, err);

	return failed < 0 ? failed : store_txn_count_files(txn, id, err);
}
