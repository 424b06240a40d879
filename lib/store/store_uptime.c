/*
 * store_uptime.c - the clock of idle conversations: how long gateways have served this database, all together.
 *
 * The gateway (the holder of the gateway's lock) reads the row `uptime` when it starts, adds its own monotonic time,
 * and writes the sum back about once an hour and at its end. A gateway that is killed loses what it had not written:
 * conversations live that much longer. Other processes take the row's value.
 */
#include "lib/base/util.h"
#include "store_txn.h"

static int read_row(struct store *store, int64_t *ret, struct err *err)
{
	auto_reader struct store_reader reader = {0};
	int result = store_reader_take(store, &reader, err);

	if (result < 0)
		return result;
	auto_query struct query q = query_begin(reader.conn, SQL_UPTIME);

	result = query_next(&q, err);
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

void store_uptime_bind(struct store_txn *txn, struct query *query)
{
	int64_t served;

	if (txn->store->mode == STORE_SERVE && store_uptime(txn->store, &served, NULL) == 0)
		query_bind_int(query, ":served", served);
	else
		query_bind_null(query, ":served");
}

static int save_work(struct store_txn *txn, void *arg, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_UPTIME_SAVE);

	(void)arg;
	store_uptime_bind(txn, &q);
	return query_run(&q, NULL, err);
}

int store_uptime_save(struct store *store, struct err *err)
{
	return store->mode == STORE_SERVE ? store_commit(store, save_work, NULL, err) : 0;
}
