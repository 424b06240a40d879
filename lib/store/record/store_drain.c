/* store_drain.c - see store_drain.h. */
#include "store_drain.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"
#include "store_token.h"

static int audit_drain(struct store_txn *txn, const char *act, const char *owner, struct err *err)
{
	struct store_audit entry;
	bool all = streq(owner, STORE_DRAIN_ALL);

	store_audit_init(&entry, STORE_AUDIT_ADMIN_ACT, "log", "audit");
	entry.owner = all ? NULL : owner;
	store_audit_word(&entry, "act", act);
	store_audit_word(&entry, "of", all ? "everybody" : "owner");
	return store_txn_audit(txn, &entry, err);
}

static int begin_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct store_drain *const *at = arg, *drain = *at;
	auto_query struct query q = query_begin(txn->conn, SQL_DRAIN_BEGIN);

	query_bind_text(&q, ":owner", drain->owner);
	query_bind_text(&q, ":reason", drain->reason);
	query_bind_int(&q, ":now", store_txn_now(txn));
	int result = query_run(&q, NULL, err);

	return result < 0 ? result : audit_drain(txn, "drain.begin", drain->owner, err);
}

int store_drain_begin(struct store *store, const struct store_drain *drain, struct err *err)
{
	if (!streq(drain->owner, STORE_DRAIN_ALL) && !store_owner_valid(drain->owner))
		return err_member(err, "owner", STORE_OWNER_WANTED);
	if (strlen(drain->reason) > STORE_DRAIN_REASON_MAX)
		return err_set(err, ERR_INVALID, "the reason has %zu bytes, at most %d are kept", strlen(drain->reason),
			       STORE_DRAIN_REASON_MAX);
	return store_commit(store, begin_work, &drain, err);
}

static int end_work(struct store_txn *txn, void *arg, struct err *err)
{
	const char *const *at = arg, *owner = *at;
	auto_query struct query q = query_begin(txn->conn, SQL_DRAIN_END);
	int64_t changed = 0;

	query_bind_text(&q, ":owner", owner);
	int result = query_run(&q, &changed, err);

	if (result == 0 && changed == 0)
		result = err_set(err, ERR_NOT_FOUND, "%s not drained",
				 streq(owner, STORE_DRAIN_ALL) ? "this host is" : "the owner is");
	return result < 0 ? result : audit_drain(txn, "drain.end", owner, err);
}

int store_drain_end(struct store *store, const char *owner, struct err *err)
{
	return store_commit(store, end_work, &owner, err);
}

int store_drain_list(struct store *store, void (*each)(void *arg, const struct store_drain *drain), void *arg,
		     struct err *err)
{
	auto_read struct query q = store_read(store, SQL_DRAIN_LIST, err);
	int found;

	while ((found = query_next(&q, err)) > 0)
		each(arg, &(struct store_drain){query_text(&q, DRAIN_OWNER), query_text(&q, DRAIN_REASON),
						query_int(&q, DRAIN_SINCE)});
	return found;
}

static int number(struct store *store, enum store_sql statement, const char *owner, int64_t *ret, struct err *err)
{
	auto_read struct query q = store_read(store, statement, err);

	query_bind_text(&q, ":owner", owner);
	int found = query_next(&q, err);

	if (found > 0)
		*ret = query_int(&q, 0);
	return found < 0 ? found : 0;
}

int store_drained(struct store *store, const char *owner, bool *ret, struct err *err)
{
	int64_t drained = 0;
	int result = number(store, SQL_DRAIN_STATE, owner, &drained, err);

	*ret = drained > 0;
	return result;
}

int store_under_way(struct store *store, const char *owner, int64_t *ret, struct err *err)
{
	*ret = 0;
	return number(store, SQL_DRAIN_UNDER_WAY, owner, ret, err);
}
