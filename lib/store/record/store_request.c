/* store_request.c - see store_request.h. */
#include "store_request.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

struct claim {
	char hash[SHA256_HEX_SIZE], execution[ID_SIZE], state[16];
};
#define ROW struct claim
static const struct column columns[] = {STORE_REQUEST_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_txn_request_find(struct store_txn *txn, const struct store_request *request, char ret_execution[ID_SIZE],
			   struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_REQUEST_FIND);

	query_bind_text(&q, ":owner", request->owner);
	query_bind_text(&q, ":key", request->key);
	store_uptime_bind(txn->store, &q);
	int found = query_next(&q, err);

	if (found <= 0)
		return found;
	struct claim claim;

	query_read(&q, columns, ARRAY_SIZE(columns), &claim);
	if (!streq(claim.hash, request->hash))
		return err_set(
			err, ERR_CONFLICT,
			"idempotencyKey: was used for a call with other arguments; choose a new key for a new call");
	if (streq(claim.state, "running"))
		return err_set(err, ERR_BUSY,
			       "idempotencyKey: the first call with it is still running; try again in a moment");
	memcpy(ret_execution, claim.execution, ID_SIZE);
	return 1;
}

int store_txn_request_put(struct store_txn *txn, const struct store_request *request, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_REQUEST_PUT);

	if (strlen(request->key) > STORE_REQUEST_KEY_MAX)
		return err_member(err, "idempotencyKey", "at most %d bytes were expected", STORE_REQUEST_KEY_MAX);
	query_bind_text(&q, ":owner", request->owner);
	query_bind_text(&q, ":key", request->key);
	query_bind_text(&q, ":hash", request->hash);
	query_bind_text(&q, ":execution", request->execution);
	query_bind_int(&q, ":now", store_txn_now(txn));
	query_bind_int(&q, ":ttl", STORE_REQUEST_TTL_US);
	store_uptime_bind(txn->store, &q);
	return query_run(&q, NULL, err);
}
