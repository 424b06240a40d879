/*
 * store_uptime.c - the clock of what expires: how long gateways have served this database, all together.
 *
 * Conversations, sessions, tasks, idempotency keys and events live by it, so neither a machine's clock that jumps nor a
 * time out of service ends them. What the operator dates does not: tokens, retention.execution_days and output_days.
 *
 * The gateway (the holder of the gateway's lock) reads the row `uptime` when it starts, adds its own monotonic time,
 * and writes the sum back about once an hour and at its end. A gateway that is killed loses what it had not written:
 * everything lives that much longer. Other processes take the row's value.
 */
#include "lib/base/util.h"
#include "store_txn.h"

static int read_row(struct store *store, int64_t *ret, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_UPTIME, err);

	int result = query_next(&q, err);

	if (result < 0)
		return result;
	*ret = query_int(&q, 0);
	return 0;
}

int store_uptime_begin(struct store *store, struct err *err)
{
	store->served_at_us = clock_monotonic_us();
	return read_row(store, &store->served_us, err);
}

int store_uptime(struct store *store, int64_t *ret, struct err *err)
{
	if (store->mode != STORE_SERVE)
		return read_row(store, ret, err);
	*ret = store->served_us + clock_monotonic_us() - store->served_at_us;
	return 0;
}

void store_uptime_bind(struct store *store, struct query *query)
{
	int64_t served = 0;
	const bool known = store->mode == STORE_SERVE && store_uptime(store, &served, NULL) == 0;

	query_bind_int_if(query, ":served", known, served);
}

static int save_work(struct store_txn *txn, void *arg, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_UPTIME_SAVE);

	(void)arg;
	store_uptime_bind(txn->store, &q);
	return query_run(&q, NULL, err);
}

int store_uptime_save(struct store *store, struct err *err)
{
	return store->mode == STORE_SERVE ? store_commit(store, save_work, NULL, err) : 0;
}
