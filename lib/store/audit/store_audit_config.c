/*
 * store_audit_config.c - see store_audit_config.h.
 *
 * What was in force before is in the details of the last entry that changed something: all members as they were. So an
 * entry says what changed without a table of its own, and no entry repeats what did not.
 */
#include "store_audit_config.h"

#include <string.h>

#include "lib/store/db/store_txn.h"
#include "store_audit.h"

#define SHOWN_MAX (STORE_AUDIT_DETAILS_MAX / 2) /* of members and changes, each; a larger one is a sum alone */

struct work {
	struct json_object *shown;
	const char *sum;
};

static bool same(struct json_object *a, struct json_object *b)
{
	auto_buf struct buf one = {0}, other = {0};

	buf_init(&one, SIZE_MAX / 2);
	buf_init(&other, SIZE_MAX / 2);
	json_print(&one, a);
	json_print(&other, b);
	return one.length == other.length && memcmp(one.data, other.data, one.length) == 0;
}

static void add_change(struct json_object *changes, const char *member, struct json_object *old,
		       struct json_object *new)
{
	struct json_object *change = json_object_new_object();

	json_add_string(change, "member", member);
	json_add(change, "old", json_object_get(old));
	json_add(change, "new", json_object_get(new));
	json_object_array_add(changes, change);
}

/* Members that are in one alone have the default in the other: null. */
static struct json_object *compare(struct json_object *before, struct json_object *now)
{
	struct json_object *changes = json_object_new_array(), *value;

	json_object_object_foreach(now, member, new)
	{
		value = NULL;
		if (!json_object_object_get_ex(before, member, &value) || !same(value, new))
			add_change(changes, member, value, new);
	}
	json_object_object_foreach(before, gone, old)
	{
		if (!json_object_object_get_ex(now, gone, &value))
			add_change(changes, gone, old, NULL);
	}
	return changes;
}

/* *ret NULL: no entry has one yet. */
static int last_config(struct store_txn *txn, struct json_object **ret, struct err *err)
{
	auto_query struct query q = query_begin(txn->conn, SQL_AUDIT_CONFIG);
	auto_json struct json_object *detail = NULL;
	int found = query_next(&q, err);

	*ret = NULL;
	if (found <= 0)
		return found;
	const char *text = query_text(&q, 0);

	if (json_parse(text, strlen(text), &detail, NULL) == 0)
		*ret = json_object_get(json_get(detail, "members", json_type_object));
	return 0;
}

static bool fits(struct json_object *value)
{
	auto_buf struct buf text = {0};

	buf_init(&text, SHOWN_MAX);
	json_print(&text, value);
	return !text.overflow;
}

static int config_work(struct store_txn *txn, void *arg, struct err *err)
{
	const struct work *work = arg;
	auto_json struct json_object *before = NULL, *changes = NULL;
	struct store_audit entry;
	int failed = last_config(txn, &before, err);

	if (failed < 0)
		return failed;
	store_audit_init(&entry, STORE_AUDIT_CONFIG, "log", "config");
	store_audit_word(&entry, "sum", work->sum);
	changes = before != NULL ? compare(before, work->shown) : json_object_new_array();
	store_audit_int(&entry, "changes", (int64_t)json_object_array_length(changes));
	if ((before == NULL || json_object_array_length(changes) > 0) && fits(work->shown) && fits(changes)) {
		store_audit_json(&entry, "changes", changes);
		store_audit_json(&entry, "members", work->shown);
	}
	return store_txn_audit(txn, &entry, err);
}

int store_audit_config(struct store *store, struct json_object *shown, const char sum[SHA256_HEX_SIZE],
		       struct err *err)
{
	struct work work = {shown, sum};

	return store_commit(store, config_work, &work, err);
}
