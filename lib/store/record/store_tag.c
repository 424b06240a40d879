/* store_tag.c - see store_tag.h. */
#include "store_tag.h"

#include <string.h>

#include "lib/base/util.h"
#include "lib/store/audit/store_audit.h"
#include "lib/store/db/store_txn.h"

#define TAG_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-"

bool store_tag_valid(const char *tag)
{
	const size_t length = strlen(tag);

	return length > 0 && length <= STORE_TAG_MAX && strspn(tag, TAG_BYTES) == length;
}

struct put {
	const struct store_tagging *tagging;
	int64_t changed;
};

static int put_work(struct store_txn *txn, void *arg, struct err *err)
{
	struct put *put = arg;
	const struct store_tagging *tagging = put->tagging;
	int result = 0;

	put->changed = 0;
	for (size_t i = 0; result == 0 && i < tagging->count; i++) {
		auto_query struct query q = query_begin(txn->conn, tagging->remove ? SQL_TAG_REMOVE : SQL_TAG_ADD);
		int64_t rows = 0;

		query_bind_text(&q, ":id", tagging->ids[i]);
		query_bind_text(&q, ":tag", tagging->tag);
		result = query_run(&q, &rows, err);
		put->changed += rows;
	}
	if (result < 0 || put->changed == 0)
		return result;
	struct store_audit entry;

	store_audit_init(&entry, STORE_AUDIT_ADMIN_ACT, "log", "audit");
	store_audit_word(&entry, "act", tagging->remove ? "untag" : "tag");
	store_audit_word(&entry, "tag", tagging->tag);
	store_audit_int(&entry, "runs", put->changed);
	return store_txn_audit(txn, &entry, err);
}

int store_tag_put(struct store *store, const struct store_tagging *tagging, int64_t *ret_changed, struct err *err)
{
	struct put put = {.tagging = tagging};

	if (!store_tag_valid(tagging->tag))
		return err_set(err, ERR_INVALID, "a tag is 1 to %d letters, digits and characters of ._:/-",
			       STORE_TAG_MAX);
	if (streq(tagging->tag, STORE_TAG_UNVERIFIED))
		return err_set(err, ERR_INVALID,
			       "the tag %s stays with runs of import --unverified, and no other run gets it",
			       STORE_TAG_UNVERIFIED);
	int result = store_commit(store, put_work, &put, err);

	if (result == 0)
		*ret_changed = put.changed;
	return result;
}

int store_tag_list(struct store *store, void (*each)(void *arg, const char *tag, int64_t executions), void *arg,
		   struct err *err)
{
	auto_read struct query q = store_read(store, SQL_TAG_LIST, err);
	int found;

	while ((found = query_next(&q, err)) > 0)
		each(arg, query_text(&q, TAG_NAME), query_int(&q, TAG_COUNT));
	return found;
}
