/*
 * store_erase.c - see store_erase.h.
 *
 * A run is erased in one transaction, but for the rows of its files: those may be thousands and go in parts of
 * FILE_ROWS. Table `erasing` names the runs whose rows are still going. Transactions take a few milliseconds each, and
 * as long as one took nothing is asked of the writer: a gateway next to this process waits a moment and not for the
 * whole work.
 */
#include "store_erase.h"

#include <string.h>

#include "lib/base/metrics.h"
#include "lib/base/util.h"
#include "lib/store/audit/store_audit_internal.h"
#include "lib/store/blob/store_search.h"
#include "lib/store/db/store_txn.h"
#include "lib/store/record/store_file.h"
#include "store_retention_internal.h"

#define BATCH     64
#define FILE_ROWS 200 /* in one transaction */
#define CALL_ROWS 2 /* a result may be long */

static const char *const whats[] = {[STORE_ERASE_OUTPUT] = "output", [STORE_ERASE_CONTENT] = "content"};

/* -------- which --------------------------------------------------------------------------------------- */

struct batch {
	const struct store_erase *erase;
	char ids[BATCH][ID_SIZE];
	size_t count, done;
	int64_t erased, until_us;
	bool begun; /* the next one's texts are leaving the index */
};

void store_erase_bind(struct query *query, const struct store_erase *erase, const struct store_range *range,
		      const char *after)
{
	query_bind_text(query, ":after", after);
	query_bind_text(query, ":from", range->from);
	query_bind_text(query, ":to", range->to);
	query_bind_text(query, ":owner", erase->owner);
	query_bind_text(query, ":conversation", erase->conversation);
	query_bind_int(query, ":before", erase->before_us);
	query_bind_text(query, ":what", whats[erase->what]);
}

static int list_runs(struct store *store, const struct store_erase *erase, const char *after, struct batch *ret,
		     struct err *err)
{
	struct store_range range = {"", STORE_ID_ABOVE};
	int failed = erase->id != NULL ? store_range(erase->id, &range, err) : 0, found = 0;

	if (failed < 0)
		return failed;
	auto_read struct query q = store_read(store, SQL_ERASE_LIST, err);

	store_erase_bind(&q, erase, &range, after);
	query_bind_int(&q, ":limit", BATCH);
	ret->count = ret->done = 0;
	while (ret->count < BATCH && (found = query_next(&q, err)) > 0)
		query_copy(&q, 0, ret->ids[ret->count++], ID_SIZE);
	return MIN(found, 0);
}

/* -------- one run ------------------------------------------------------------------------------------- */

static int run_on(struct store_txn *txn, enum store_sql which, const char *id, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, which);

	query_bind_text(&q, ":id", id);
	return query_run(&q, NULL, err);
}

static int run_what(struct store_txn *txn, enum store_sql which, const char *id, const char *what, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, which);

	query_bind_text(&q, ":id", id);
	query_bind_text(&q, ":what", what);
	return query_run(&q, NULL, err);
}

struct rows {
	char id[ID_SIZE], what[8];
	bool more;
};

static int file_rows(struct store_txn *txn, enum store_sql which, const struct rows *rows, int64_t *ret,
		     struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, which);

	query_bind_text(&q, ":id", rows->id);
	query_bind_text(&q, ":what", rows->what);
	query_bind_int(&q, ":limit", FILE_ROWS);
	return query_run(&q, ret, err);
}

/* The next rows of its files and calls; behind the last the run counts what is left of it. */
static int rows_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct rows *rows = arg;
	int64_t gone = 0, calls = 0;
	auto_query struct query tools = query_begin(txn->conn, SQL_ERASE_CALLS); /* what was sent and what came */

	query_bind_text(&tools, ":id", rows->id);
	query_bind_int(&tools, ":limit", CALL_ROWS);
	int failed = file_rows(txn, SQL_ERASE_DOUBT_FILES, rows, NULL, err);

	if (failed == 0)
		failed = store_txn_audit_kept(txn, rows->id, rows->what, FILE_ROWS, err);
	if (failed == 0)
		failed = file_rows(txn, SQL_ERASE_FILES, rows, &gone, err);
	if (failed == 0)
		failed = query_run(&tools, &calls, err);
	rows->more = gone == FILE_ROWS || calls == CALL_ROWS;
	if (failed == 0)
		failed = run_on(txn, SQL_ERASE_RECOUNT, rows->id, err);
	return failed < 0 || rows->more ? failed : run_on(txn, SQL_ERASING_END, rows->id, err);
}

/* The row. *ret_owner stays "" where it runs, or was erased meanwhile. */
static int clear_row(struct store_txn *txn, const struct store_erase *erase, const char *id,
		     char ret_owner[STORE_OWNER_MAX + 1], struct err *err)
{
	auto_query struct query q =
		query_begin(txn->conn, erase->what == STORE_ERASE_CONTENT ? SQL_ERASE_CONTENT : SQL_ERASE_OUTPUT);

	query_bind_text(&q, ":id", id);
	query_bind_text(&q, ":what", whats[erase->what]);
	query_bind_int(&q, ":now", store_txn_now(txn));
	query_bind_text(&q, ":why", erase->why);
	int found = query_next(&q, err);

	if (found <= 0)
		return found;
	query_copy(&q, 0, ret_owner, STORE_OWNER_MAX + 1);
	return query_run(&q, NULL, err);
}

static int erase_run(struct store_txn *txn, struct batch *batch, bool *ret_erased, struct err *err)
{
	const struct store_erase *erase = batch->erase;
	const char *id = batch->ids[batch->done], *what = whats[erase->what];
	struct rows rows = {0};
	char owner[STORE_OWNER_MAX + 1] = "";
	int failed = store_txn_search_forget(txn, &(struct store_search_forget){id, what, batch->until_us},
					     &batch->begun, err);

	if (failed < 0 || batch->begun)
		return failed;
	failed = run_what(txn, SQL_ERASE_DOUBT_TEXTS, id, what, err);
	if (failed == 0)
		failed = clear_row(txn, erase, id, owner, err);
	*ret_erased = owner[0] != '\0';
	if (failed < 0 || !*ret_erased)
		return failed;
	snprintf(rows.id, sizeof(rows.id), "%s", id);
	snprintf(rows.what, sizeof(rows.what), "%s", what);
	failed = run_on(txn, SQL_ERASE_EVENTS, id, err);
	if (failed == 0)
		failed = run_on(txn, SQL_ERASE_BASELINES, id, err);
	if (failed == 0)
		failed = store_txn_audit_erase(
			txn,
			&(struct store_audit_erasure){.type = "execution",
						      .id = id,
						      .what = what,
						      .reason = erase->retention ? "retention" : "request",
						      .owner = owner,
						      .ticket = erase->ticket},
			err);
	if (failed == 0)
		failed = run_what(txn, SQL_ERASING_ADD, id, what, err);
	return failed < 0 ? failed : rows_work(txn, &rows, err);
}

static int batch_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct batch *batch = arg;
	int failed = 0;

	batch->until_us = clock_monotonic_us() + STORE_BUDGET_US;
	do {
		bool erased = false;

		failed = erase_run(txn, batch, &erased, err);
		batch->erased += erased;
		batch->done += !batch->begun;
	} while (failed == 0 && !batch->begun && batch->done < batch->count &&
		 clock_monotonic_us() < batch->until_us);
	return failed;
}

/* -------- all ----------------------------------------------------------------------------------------- */

static int next_erasing(struct store *store, const char *after, struct rows *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_ERASING_NEXT, err);

	query_bind_text(&q, ":after", after);
	int found = query_next(&q, err);

	if (found > 0) {
		query_copy(&q, ERASING_EXECUTION, ret->id, sizeof(ret->id));
		query_copy(&q, ERASING_WHAT, ret->what, sizeof(ret->what));
	}
	return found;
}

int store_erase_resume(struct store *store, struct err *err)
{
	struct rows rows = {0};
	char after[ID_SIZE] = "";
	int found;

	while ((found = next_erasing(store, after, &rows, err)) > 0) {
		snprintf(after, sizeof(after), "%s", rows.id);
		do {
			found = store_commit_gently(store, rows_work, &rows, err);
		} while (found == 0 && rows.more);
		if (found < 0)
			return found;
	}
	return found;
}

int store_erase_runs(struct store *store, const struct store_erase *erase, struct store_erased *ret, struct err *err)
{
	struct batch batch = {.erase = erase};
	char after[ID_SIZE] = "";
	int failed;

	do {
		failed = list_runs(store, erase, after, &batch, err);
		if (erase->limit > 0)
			batch.count = MIN(batch.count, (size_t)(erase->limit - batch.erased));
		if (batch.count > 0)
			snprintf(after, sizeof(after), "%s", batch.ids[batch.count - 1]);
		while (failed == 0 && batch.done < batch.count) {
			failed = store_commit_gently(store, batch_work, &batch, err);
			if (failed == 0)
				failed = store_search_relieve(store, err);
		}
		if (failed == 0)
			failed = store_erase_resume(store, err);
	} while (failed == 0 && batch.count > 0);
	ret->executions += batch.erased;
	metrics_add(METRIC_SWEPT, "executions", NULL, batch.erased);
	return failed;
}
