/* store_pin.c - see store_pin.h. */
#include "store_pin.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

int store_pin_list(struct store *store, const char *server, void (*each)(void *arg, const struct store_pin *pin),
		   void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_PIN_LIST, err);
	int found;

	query_bind_text(&q, ":server", server);
	while ((found = query_next(&q, err)) > 0)
		each(arg, &(struct store_pin){query_text(&q, PIN_TOOL), query_text(&q, PIN_HASH)});
	return found;
}

struct pin_work {
	const char *server;
	const struct store_pin *pins;
	size_t count;
	bool accept;
};

static int put_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct pin_work *work = arg;
	int result = 0;

	for (size_t i = 0; result == 0 && i < work->count; i++) {
		auto_query struct query q = query_begin(txn->conn, work->accept ? SQL_PIN_ACCEPT : SQL_PIN_ADD);

		query_bind_text(&q, ":server", work->server);
		query_bind_text(&q, ":tool", work->pins[i].tool);
		query_bind_text(&q, ":hash", work->pins[i].hash);
		query_bind_int(&q, ":now", store_txn_now(txn));
		result = query_run(&q, NULL, err);
	}
	return result;
}

int store_pin_put(struct store *store, const char *server, const struct store_pin *pins, size_t count, bool accept,
		  struct err *err)
{
	return store_commit(store, put_work, &(struct pin_work){server, pins, count, accept}, err);
}
