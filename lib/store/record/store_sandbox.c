/* store_sandbox.c - see store_sandbox.h. */
#include "store_sandbox.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

int store_txn_sandbox_add(struct store_txn *txn, const struct store_sandbox *sandbox, char ret_before[STORE_CAUSE_SIZE],
			  struct err *err)
{
	auto_query struct query before = query_begin(txn->conn, SQL_SANDBOX_BEFORE);

	query_bind_text(&before, ":owner", sandbox->owner);
	query_bind_text(&before, ":conversation", sandbox->conversation);
	query_bind_text(&before, ":language", sandbox->language);
	int found = query_next(&before, err);

	if (found < 0)
		return found;
	if (found > 0 && query_is_null(&before, 0))
		snprintf(ret_before, STORE_CAUSE_SIZE, "gone");
	else
		snprintf(ret_before, STORE_CAUSE_SIZE, "%s", found > 0 ? query_text(&before, 0) : "");
	auto_query struct query q = query_begin(txn->conn, SQL_SANDBOX_ADD);

	query_bind_text(&q, ":id", sandbox->id);
	query_bind_text(&q, ":instance", txn->store->instance);
	query_bind_text(&q, ":owner", sandbox->owner);
	query_bind_text(&q, ":conversation", sandbox->conversation);
	query_bind_text(&q, ":language", sandbox->language);
	query_bind_int(&q, ":now", store_txn_now(txn));
	return query_run(&q, NULL, err);
}

int store_txn_sandbox_end(struct store_txn *txn, const char *id, const char *cause, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SANDBOX_END);

	query_bind_text(&q, ":id", id);
	query_bind_text(&q, ":cause", cause);
	query_bind_int(&q, ":now", store_txn_now(txn));
	return query_run(&q, NULL, err);
}

int store_txn_sandbox_dismiss(struct store_txn *txn, const struct store_sandbox *place, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_SANDBOX_DISMISS);

	query_bind_text(&q, ":owner", place->owner);
	query_bind_text(&q, ":conversation", place->conversation);
	query_bind_text(&q, ":language", place->language);
	query_bind_int(&q, ":now", store_txn_now(txn));
	return query_run(&q, NULL, err);
}

int store_sandbox_runs(struct store *store, const char *id, int64_t last,
		       int (*each)(void *arg, const char *execution_id), void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_EXECUTION_SANDBOX, err);
	int failed, found;

	query_bind_text(&q, ":sandbox", id);
	query_bind_int(&q, ":last", last);
	while ((found = query_next(&q, err)) > 0) {
		failed = each(arg, query_text(&q, 0));
		if (failed < 0)
			return failed;
	}
	return found;
}
