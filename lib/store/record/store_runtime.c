/* store_runtime.c - see store_runtime.h. */
#include "store_runtime.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

int store_txn_runtime(struct store_txn *txn, const char *execution, const struct store_runtime *runtime,
		      struct err *err)
{
	auto_query struct query is = query_begin(txn->conn, SQL_RUNTIME_IS);

	query_bind_text(&is, ":hash", runtime->hash);
	int result = query_next(&is, err);

	if (result == 0) {
		auto_query struct query add = query_begin(txn->conn, SQL_RUNTIME_ADD);

		query_bind_text(&add, ":hash", runtime->hash);
		query_bind_text(&add, ":description", runtime->text);
		query_bind_int(&add, ":now", store_txn_now(txn));
		result = query_run(&add, NULL, err);
	}
	if (result < 0)
		return result;
	auto_query struct query q = query_begin(txn->conn, SQL_RUNTIME_SET);

	query_bind_text(&q, ":hash", runtime->hash);
	query_bind_text(&q, ":id", execution);
	return query_run(&q, NULL, err);
}

int store_runtime_of(struct store *store, const char *execution, char **ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_RUNTIME_OF, err);

	query_bind_text(&q, ":id", execution);
	int found = query_next(&q, err);

	if (found < 0)
		return found;
	*ret = found > 0 ? xstrdup(query_text(&q, 0)) : NULL;
	return 0;
}
