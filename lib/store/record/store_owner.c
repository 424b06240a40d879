/* store_owner.c - see store_owner.h. */
#include "store_owner.h"

#include "lib/base/util.h"
#include "lib/store/db/store_txn.h"

#define ROW struct store_owner
static const struct column columns[] = {STORE_OWNER_COLUMNS(COLUMN_PLACE, COLUMN_PLACE, COLUMN_NONE)};
#undef ROW

int store_owner_list(struct store *store, int (*each)(void *arg, const struct store_owner *owner), void *arg,
		     struct err *err)
{
	auto_read struct query q = store_read(store, SQL_OWNER_LIST, err);
	int found;

	query_bind_int(&q, ":now", clock_now_us());
	while ((found = query_next(&q, err)) > 0) {
		struct store_owner owner = {0};

		query_read(&q, columns, ARRAY_SIZE(columns), &owner);
		owner.drained = query_int(&q, OWNER_DRAINED) != 0;
		if (each(arg, &owner) != 0)
			return 0;
	}
	return found;
}
