/* store_subscription.c - see store_subscription.h. */
#include "store_subscription.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

struct change {
	const char *session, *uri;
	bool add;
};

static int change_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct change *change = arg;
	auto_query struct query q =
		query_begin(txn->conn, change->add ? SQL_SUBSCRIPTION_ADD : SQL_SUBSCRIPTION_REMOVE);
	int64_t changes = 0;

	query_bind_text(&q, ":session", change->session);
	query_bind_text(&q, ":uri", change->uri);
	if (change->add)
		query_bind_int(&q, ":most", STORE_SUBSCRIPTIONS_MAX);
	int failed = query_run(&q, &changes, err);

	if (failed == 0 && change->add && changes == 0)
		return err_set(err, ERR_LIMIT, "this session follows %d resources already: unsubscribe from one",
			       STORE_SUBSCRIPTIONS_MAX);
	return failed;
}

int store_subscription_add(struct store *store, const char *session, const char *uri, struct err *err)
{
	return store_commit(store, change_work, &(struct change){session, uri, true}, err);
}

int store_subscription_remove(struct store *store, const char *session, const char *uri, struct err *err)
{
	return store_commit(store, change_work, &(struct change){session, uri, false}, err);
}

int store_subscription_list(struct store *store, const char *session, int (*each)(void *arg, const char *uri),
			    void *arg, struct err *err)
{
	auto_read struct query q = store_read(store, SQL_SUBSCRIPTION_LIST, err);
	int found;

	query_bind_text(&q, ":session", session);
	while ((found = query_next(&q, err)) > 0) {
		if (each(arg, query_text(&q, 0)) != 0)
			return 0;
	}
	return found;
}
